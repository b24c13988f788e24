"""Where the command line puts audio."""

import asyncio
import sys
from pathlib import Path
from typing import Any, Protocol

from intone.v1 import tts_pb2

from ._audio import PartFile, WavWriter, set_flac_length
from ._terminal import UsageError, write_bytes


class Sink(Protocol):
    """Takes the audio of one stream. `start`, then `put` any number of times, then `finish`."""

    def start(self, sample_rate_hertz: int) -> None:
        """The format is known. Raises OSError."""

    def put(self, chunk: tts_pb2.AudioChunk) -> None:
        """Take audio, without waiting. Raises OSError, also of an earlier `put`."""

    async def finish(self, *, drain: bool) -> None:
        """No more audio; `drain` waits until what was put has arrived. Raises OSError.

        Does nothing if the sink was never started.
        """


class WavSink:
    """A WAV file, right at every moment and in place at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer: WavWriter | None = None

    def start(self, sample_rate_hertz: int) -> None:
        self._writer = WavWriter(self.path, sample_rate_hertz)

    def put(self, chunk: tts_pb2.AudioChunk) -> None:
        if self._writer is not None:
            self._writer.write(chunk.data)

    async def finish(self, *, drain: bool) -> None:  # noqa: ARG002 - nothing is ever behind
        if self._writer is not None:
            self._writer.close()


class FileSink:
    """A file of the bytes as they come, in place at the end; with no sample there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: PartFile | None = None
        self._sample_count = 0

    def start(self, sample_rate_hertz: int) -> None:  # noqa: ARG002 - the bytes say it themselves
        self._file = PartFile(self.path)

    def put(self, chunk: tts_pb2.AudioChunk) -> None:
        if self._file is not None:
            self._file.write(chunk.data)
            self._sample_count += chunk.sample_count

    async def finish(self, *, drain: bool) -> None:  # noqa: ARG002 - nothing is ever behind
        if self._file is not None:
            try:
                set_flac_length(self._file.file, self._sample_count)
            finally:
                self._file.close(keep=bool(self._sample_count))


class _SlowSink:
    """A sink that may be slower than the server: what it has not taken yet waits in a queue."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None

    def start(self, sample_rate_hertz: int) -> None:  # noqa: ARG002 - a matter of subclasses
        self._pump = asyncio.create_task(self._run())

    def put(self, chunk: tts_pb2.AudioChunk) -> None:
        if self._pump is not None and self._pump.done():
            self._pump.result()
        self._queue.put_nowait(chunk.data)

    async def finish(self, *, drain: bool) -> None:
        if self._pump is None:
            return
        pump, self._pump = self._pump, None
        if not drain:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)
            return
        self._queue.put_nowait(None)
        await pump

    async def _run(self) -> None:
        while (data := await self._queue.get()) is not None:
            await self._write(data)

    async def _write(self, data: bytes) -> None:
        raise NotImplementedError


class StdoutSink(_SlowSink):
    """The bytes to standard output. Raises BrokenPipeError when nobody reads any more."""

    async def _write(self, data: bytes) -> None:
        await write_bytes(sys.stdout.fileno(), data)


class PlayerSink(_SlowSink):
    """The default audio device, through sounddevice (the extra `play`)."""

    def __init__(self) -> None:
        super().__init__()
        self._device: Any = None
        try:
            import sounddevice

            sounddevice.query_devices(kind="output")
        except ImportError:
            why = "sounddevice is not installed (pip install sounddevice)"
        except Exception as error:  # noqa: BLE001 - OSError, or a class of the missing module
            why = str(error)
        else:
            self._sounddevice: Any = sounddevice
            return
        raise UsageError(f"cannot play audio here: {why}; write a file instead: -o hello.wav")

    def start(self, sample_rate_hertz: int) -> None:
        try:
            self._device = self._sounddevice.RawOutputStream(
                samplerate=sample_rate_hertz, channels=1, dtype="int16"
            )
            self._device.start()
        except Exception as error:
            raise OSError(f"cannot play audio: {error}") from error
        super().start(sample_rate_hertz)

    async def finish(self, *, drain: bool) -> None:
        try:
            await super().finish(drain=drain)
            if self._device is not None:
                # `stop` plays to the end, `abort` does not.
                await asyncio.to_thread(self._device.stop if drain else self._device.abort)
        finally:
            if self._device is not None:
                self._device.close()

    async def _write(self, data: bytes) -> None:
        writing = asyncio.ensure_future(asyncio.to_thread(self._device.write, data))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # PortAudio may crash if a device is closed during a write.
            await asyncio.wait({writing})
            raise
        except Exception as error:
            raise OSError(f"cannot play audio: {error}") from error
