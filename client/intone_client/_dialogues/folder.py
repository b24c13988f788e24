"""What `intone dialogue` leaves behind: a folder of WAV files and their timeline.

`timeline.json` is what is published, and the state from which an interrupted dialogue goes on. It
tells of audio only when that is in place.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from intone_client._audio import PartFile

from .archive import check_archive, write_archive
from .captions import to_srt, to_vtt
from .claim import make_folder
from .plan import PlannedItem
from .settings import NO_FLAGS, Settings, merged, resumed
from .timeline import FILE_NAME, ItemSegment, Record, Timeline, read_timeline

_JOINED = "dialogue.wav"
_SRT = "captions.srt"
_VTT = "captions.vtt"

_HEADER_BYTES = 44
_WAV_BYTES = 2**32 - 1 + 8  # a number of 32 bits says how many bytes follow the first 8
_COPIED_BYTES = 2**20  # at a time


class DialogueFolder:
    """The folder of one dialogue. Its methods block, and are not for two threads at once.

    First `plan()`; then `begin()` when the sample rate is known, and any number of `save_item()`
    and `copy_item()`; at last `finish()`. What was saved is there also if the process is killed.
    """

    def __init__(self, path: str | Path, *, resume: bool = False) -> None:
        """Create the folder, or with `resume` go on with the dialogue in it, if there is one.

        Raises FileExistsError if there are files in it, other OSErrors if it cannot be made, and
        ValueError if the timeline in it cannot be used.
        """
        self.path = Path(path)
        self._timeline = Timeline()
        #: Items with audio that `plan()` found no place for: edited, or gone from the script.
        self.outdated = 0
        make_folder(self.path)
        if (self.path / FILE_NAME).exists():
            self._timeline = read_timeline(self.path / FILE_NAME)
        else:
            # Hidden files, of a file manager for example, are in nobody's way.
            names = {each.name for each in self.path.iterdir() if not each.name.startswith(".")}
            if names - {f"{FILE_NAME}.part"}:
                raise FileExistsError(f"{self.path} is not empty, and holds no dialogue")
        if not resume:
            if self._timeline.has_samples():
                raise FileExistsError(
                    f"{self.path} holds a dialogue already: resume it, or name another folder"
                )
            files = self._files()
            self._timeline = Timeline(leftovers=files)

    @property
    def seed(self) -> int | None:
        """Of the dialogue in it; None if there is none. Items sound the same with it only."""
        return self._timeline.seed

    @property
    def sample_rate_hertz(self) -> int | None:
        """Of the samples in it; None while that is not known."""
        return self._timeline.sample_rate_hertz

    def settings(self, given: Settings, *, gain: float) -> Settings:
        """What to make it with: as in its first run, and as the flags are `given` now. `gain` is
        the script's own.

        Raises ValueError where a flag contradicts the samples that are there.
        """
        first = self._timeline.settings
        if not self._timeline.has_samples():
            return merged(given, first)
        made_with = Settings(
            rate=first.rate or self.sample_rate_hertz,
            gain=gain if first.gain is None else first.gain,
            seed=self.seed if first.seed is None else first.seed,
        )
        return resumed(given, first, made_with, self.path)

    def plan(
        self,
        items: Sequence[PlannedItem],
        *,
        gap: float,
        seed: int | None,
        settings: Settings = NO_FLAGS,
    ) -> list[int]:
        """Take the script: `items` of `plan_items`, `gap` in seconds; what is `missing()` of it.

        What is there stays if its file is as long as it was, and its fingerprint in the script, be
        it at another place. The `settings` are kept for later runs. Raises FileExistsError if
        somebody else's file is in the way of an item, and OSError.
        """
        ours = self._files()
        known: defaultdict[str, list[Record]] = defaultdict(list)
        for record in self._timeline.records:
            if record.status != "missing" and self._has_file(record):
                known[record.item.fingerprint].append(record)
        records: list[Record] = []
        moves: dict[str, str] = {}
        for item in items:
            record = Record(item)
            if (self.path / record.file).exists() and record.file not in ours:
                raise FileExistsError(f"{self.path / record.file} is not of this dialogue")
            if known[item.fingerprint]:
                old = known[item.fingerprint].pop(0)
                record = replace(old, item=item)
                if old.sample_count and old.file != record.file:
                    moves[old.file] = record.file
            records.append(record)
        on_the_way = set(moves.values())
        self._timeline = Timeline(
            sample_rate_hertz=self.sample_rate_hertz,
            seed=seed,
            gap=gap,
            records=[Record(r.item) if r.file in on_the_way else r for r in records],
            leftovers=ours - {record.file for record in records},
            settings=settings,
        )
        self.outdated = sum(bool(old.sample_count) for rest in known.values() for old in rest)
        # Files on their way count as missing: one under another's name would be taken for it.
        self._write_timeline()
        if moves:
            for old_name, name in moves.items():
                (self.path / old_name).replace(self.path / f"{name}.part")
            for name in moves.values():
                (self.path / f"{name}.part").replace(self.path / name)
            self._timeline.records = records
            self._write_timeline()
        return self.missing()

    def timeline(self) -> dict[str, Any]:
        """The document of `timeline.json` as it is now."""
        return self._timeline.to_json()

    def missing(self) -> list[int]:
        """Numbers of the items that were not made, or failed, or repeat one that did."""
        return self._timeline.missing()

    def begin(self, sample_rate_hertz: int) -> None:
        """Take the rate of the samples that follow. Raises ValueError if there are others."""
        there = self.sample_rate_hertz
        if there not in (None, sample_rate_hertz) and self._timeline.has_samples():
            raise ValueError(
                f"{self.path} holds audio at {there:,} Hz, and what follows has "
                f"{sample_rate_hertz:,} Hz: name another folder, or ask for the same rate"
            )
        self._timeline.sample_rate_hertz = sample_rate_hertz

    def save_item(
        self,
        number: int,
        audio: bytes,
        *,
        segments: Iterable[ItemSegment] = (),
        error: str | None = None,
        skipped: bool = False,
    ) -> None:
        """Keep an item: mono 16-bit little-endian samples, in the place of what was there of it.

        With an `error` it has failed, and has what was heard of it all the same. Raises OSError,
        and ValueError for what is neither failed nor skipped and has no whole samples.
        """
        record = replace(
            self._timeline.record(number),
            status="failed" if error is not None else "skipped" if skipped else "done",
            sample_count=len(audio) // 2,
            error=error,
            segments=tuple(segments),
        )
        if len(audio) % 2 or (record.status == "done" and not audio):
            raise ValueError(f"item {number} has {len(audio):,} bytes, which are no whole samples")
        if audio:
            self._write_wav(record.file, record.sample_count, [audio])
        else:
            (self.path / record.file).unlink(missing_ok=True)
        self._keep(record)

    def copy_item(self, number: int) -> None:
        """Make a reuse from its original. Raises ValueError if that was not made, and OSError."""
        item = self._timeline.record(number).item
        original = self._timeline.record(item.reuse_of) if item.reuse_of is not None else None
        if original is None or original.status not in ("done", "skipped"):
            raise ValueError(f"item {number} repeats nothing that was made")
        record = replace(original, item=item)
        if record.sample_count:
            self._write_wav(record.file, record.sample_count, self._samples(original))
        self._keep(record)

    def finish(self) -> dict[str, Any]:
        """Join what is heard, write captions, delete what is left of an earlier script; the
        document of `timeline.json`.

        Of items that failed there is what was heard of them. Raises ValueError if items were never
        made, or are longer together than a WAV file can be, and OSError.
        """
        length = self._timeline.places()[-1]
        if length is None:
            waiting = [r.item.number for r in self._timeline.records if r.status == "missing"]
            raise ValueError(
                f"{self.path} is not complete: item {waiting[0]} was not made"
                + (f", nor were {len(waiting) - 1} more" if waiting[1:] else "")
            )
        if length:
            self._write_wav(_JOINED, length, self._joined_samples())
        else:
            (self.path / _JOINED).unlink(missing_ok=True)
        cues = list(self._timeline.cues())
        self._write(_SRT, [to_srt(cues).encode()])
        self._write(_VTT, [to_vtt(cues).encode()])
        heard = {record.file for record in self._timeline.records if record.sample_count}
        for name in self._files() - heard:
            (self.path / name).unlink(missing_ok=True)
        for name in self._files() | {_JOINED, _SRT, _VTT}:
            # Of a process that was killed while it wrote.
            (self.path / f"{name}.part").unlink(missing_ok=True)
        self._timeline.leftovers = set()
        self._timeline.is_joined = True
        self._write_timeline()
        return self._timeline.to_json()

    @property
    def zip_path(self) -> Path:
        """Where `zip()` puts the archive: beside the folder, with its name."""
        folder = self.path.resolve()
        return folder.with_name(f"{folder.name}.zip")

    def check_zip(self) -> None:
        """Raises OSError if no archive can be put there, as it would replace somebody else's."""
        check_archive(self.zip_path)

    def zip(self) -> Path:
        """Put what `finish()` left into one archive; its path.

        Raises OSError, and ValueError before `finish()`.
        """
        if not self._timeline.is_joined:
            raise ValueError(f"{self.path} is not finished")
        self.check_zip()
        items = [record.file for record in self._timeline.records if record.sample_count]
        names = (FILE_NAME, _SRT, _VTT, *([_JOINED] if items else []), *items)
        return write_archive(self.zip_path, (self.path / name for name in names))

    def _files(self) -> set[str]:
        """Names that are ours, whether there are such files or not."""
        return self._timeline.leftovers | {record.file for record in self._timeline.records}

    def _keep(self, record: Record) -> None:
        self._timeline.records[record.item.number - 1] = record
        self._timeline.is_joined = False
        self._write_timeline()

    def _has_file(self, record: Record) -> bool:
        if not record.sample_count:
            return True
        path = self.path / record.file
        try:
            if path.stat().st_size != _HEADER_BYTES + 2 * record.sample_count:
                return False
            with path.open("rb") as file:
                header = file.read(_HEADER_BYTES)
        except OSError:
            return False
        return header == _wav_header(self.sample_rate_hertz or 0, record.sample_count)

    def _samples(self, record: Record) -> Iterator[bytes]:
        path = self.path / record.file
        if not self._has_file(record):
            raise OSError(f"{path} was changed or removed: resuming the dialogue makes it again")
        with path.open("rb") as file:
            file.seek(_HEADER_BYTES)
            while piece := file.read(_COPIED_BYTES):
                yield piece

    def _joined_samples(self) -> Iterator[bytes]:
        position = 0
        for record, place in zip(self._timeline.records, self._timeline.places()[:-1], strict=True):
            if record.sample_count and place is not None:
                yield bytes(2 * (place - position))
                yield from self._samples(record)
                position = place + record.sample_count

    def _write_wav(self, name: str, sample_count: int, pieces: Iterable[bytes]) -> None:
        rate = self.sample_rate_hertz
        if rate is None:
            raise RuntimeError("begin() comes before the first item")
        size = _HEADER_BYTES + 2 * sample_count
        if size > _WAV_BYTES:
            raise ValueError(
                f"{self.path / name} would have {size:,} bytes, a WAV file has up to "
                f"{_WAV_BYTES:,}: cut the script in two"
            )
        self._write(name, chain([_wav_header(rate, sample_count)], pieces))

    def _write_timeline(self) -> None:
        self._write(FILE_NAME, [self._timeline.to_text().encode()])

    def _write(self, name: str, pieces: Iterable[bytes]) -> None:
        part = PartFile(self.path / name)
        whole = False
        try:
            for piece in pieces:
                part.write(piece)
            whole = True
        finally:
            part.close(keep=whole)


def _wav_header(sample_rate_hertz: int, sample_count: int) -> bytes:
    """Of a WAV file of mono 16-bit samples, as `WavWriter` makes it."""
    rate, size = sample_rate_hertz, 2 * sample_count
    return struct.pack(
        "<4sI8sIHHIIHH4sI",
        *(b"RIFF", _HEADER_BYTES - 8 + size, b"WAVEfmt ", 16),
        *(1, 1, rate, 2 * rate, 2, 16),  # PCM, channels, rate, bytes a second, bytes, bits
        *(b"data", size),
    )
