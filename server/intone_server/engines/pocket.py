"""Kyutai's pocket-tts, several generations at a time on one set of weights.

Every running generation is a row, which is a replica. A step makes one frame of each row that
speaks; rows join and leave at any step, and none hears of the others.
"""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import structlog

from intone_server.engines.base import (
    Ending,
    EngineError,
    EngineInfo,
    EngineOptions,
    Job,
    Output,
    Sampling,
    VoiceRef,
    describe,
)
from intone_server.engines.pocket_model import MAX_TOKENS, PocketModel
from intone_server.engines.pocket_text import pieces
from intone_server.engines.pocket_tuning import available_cores, chosen_replicas, measured_speeds

if TYPE_CHECKING:
    import torch

    from intone_server.engines.pocket_batch import DecoderRows, FlowRows, Sampler
    from intone_server.engines.pocket_decoding import Decoding
    from intone_server.engines.pocket_private import FlowParts, Prompt
    from intone_server.engines.pocket_state import State

log = structlog.stdlib.get_logger("intone.engine")

# A step of so many rows takes longer than their frames last on any machine measured so far.
MAX_ROWS = 16
# Tokens of text that are read in one step, all rows together: about as much work as eight rows.
# In int8 the library scales a text as a whole, so a part of it would come out differently.
TOKENS_PER_STEP = 32
# What MAX_TOKENS may become when the library prepares a text: a capital, a full stop, or eight
# spaces before a short one.
MAX_PROMPT_TOKENS = 80
# A listener who has so much left to hear can wait for frames that are decoded together: they come
# one step later, and a step takes less than this.
PATIENT_SECONDS = 0.5


NOT_FINITE = "the model made samples that are no number"


@dataclass(slots=True, eq=False)
class Row:
    """A running generation: its slot of the caches, and what is left to speak.

    `dry_at` is when its listener has heard all that was made, on the monotonic clock.
    """

    job: Job
    slot: int
    voice: "State"
    sampler: "Sampler"
    prompts: "Iterator[Prompt]"
    held: ExitStack
    dry_at: float
    reached_cap: bool = False
    ended: bool = False


@dataclass(slots=True, eq=False)
class Piece:
    """A prompt of a row while it is read and spoken: `read` tokens are read, `frames` are made, and
    `decoded` of those are audio.

    `latent` is the newest frame, shape (1, 1, latent); those that wait for the decoder are in
    `waiting`, and `eos_frame` is where speech ended. `is_over`: no more frames will be made.
    """

    row: Row
    prompt: "Prompt"
    latent: "torch.Tensor"
    waiting: "list[torch.Tensor]" = field(default_factory=list)
    read: int = 0
    frames: int = 0
    decoded: int = 0
    eos_frame: int | None = None
    is_over: bool = False

    def take(self, latent: "torch.Tensor", is_eos: bool, first_eos: int) -> None:
        """Take the next frame, by the library's rule, unless speech was over before it."""
        self.waiting.append(latent)
        if is_eos and self.eos_frame is None and self.frames >= first_eos:
            self.eos_frame = self.frames
        if (
            self.eos_frame is not None
            and self.frames >= self.eos_frame + self.prompt.frames_after_eos
        ):
            self.is_over = True
            return
        self.latent = latent
        self.frames += 1
        if self.frames == self.prompt.max_frames:
            self.is_over = self.row.reached_cap = True


class PocketEngine(PocketModel):
    """`Engine` over the parts of `pocket_tts.TTSModel`, several generations at a time.

    A step reads up to TOKENS_PER_STEP tokens of the text of one row that is to begin, makes the
    next latent of all rows that speak, and decodes. Decoding has a thread of its own and is a step
    behind, except for the first frame of a row, which waits for nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._capacity = 1
        self.speeds: Mapping[int, float] = {}
        self._flow_parts: FlowParts
        self._decoder: DecoderRows
        self._flow: FlowRows
        self._decoding: Decoding[Piece]
        self._first_eos = 0
        self._free: list[int] = []
        self._started: deque[Job] = deque()
        self._rows: list[Row] = []
        self._reading: deque[Piece] = deque()
        self._speaking: list[Piece] = []

    @property
    def capacity(self) -> int:
        return self._capacity

    def load(self, options: EngineOptions) -> None:
        super().load(options)
        from intone_server.engines.pocket_batch import DecoderRows
        from intone_server.engines.pocket_private import DecoderParts, FlowParts, check

        check(self._model)
        self._flow_parts = FlowParts(self._model)
        # Here, so that all workers share what it makes of the weights.
        self._decoder = DecoderRows(DecoderParts(self._model), MAX_ROWS)

    def attach(self, replicas: int) -> EngineInfo:
        import torch

        from intone_server.engines.pocket_batch import FlowRows
        from intone_server.engines.pocket_decoding import Decoding
        from intone_server.engines.pocket_private import first_frame_of_eos

        if replicas > MAX_ROWS:
            raise EngineError(f"--replicas={replicas}: the pocket engine runs up to {MAX_ROWS}")
        threads = self._options.threads or min(2, available_cores())
        torch.set_num_threads(max(1, threads // 2))
        info = super().attach(replicas)
        longest = MAX_PROMPT_TOKENS + self._model._estimate_max_gen_len(MAX_PROMPT_TOKENS)
        rows = replicas or MAX_ROWS
        self._flow = FlowRows(self._flow_parts, rows, self._longest_voice() + longest)
        self._decoding = Decoding(self._decoder, own_thread=threads > 1)
        self._first_eos = first_frame_of_eos(self._model)
        self._free = list(range(rows))
        self._capacity = rows
        if not replicas:
            # What all workers together need of the cores, each gets its share of.
            share = min(1.0, available_cores() / (threads * self._options.workers))
            alone = measured_speeds(self, info)
            self.speeds = {rows: share * speed for rows, speed in alone.items()}
            self._capacity = chosen_replicas(self.speeds)
            self._free = list(range(self._capacity))
            log.info(
                "replicas chosen",
                replicas=self._capacity,
                speeds={rows: round(speed, 2) for rows, speed in self.speeds.items()},
            )
        return info

    def start(self, job: Job) -> None:
        self._started.append(job)

    def step(self) -> Sequence[Output]:
        import torch

        outputs: list[Output] = []
        with torch.inference_mode():
            self._drop_stopped(outputs)
            self._read_text(outputs)
            self._make_frames(outputs)
            begins = any(piece.frames == len(piece.waiting) for piece in self._speaking)
            ends = any(piece.is_over for piece in self._speaking)
            is_due = begins or ends or self._enough_waits()
            if is_due or not self._speaking or self._decoding.is_done:
                self._collect(outputs)
            if is_due:
                self._submit(outputs)
            if begins:
                self._collect(outputs)
        return outputs

    def _drop_stopped(self, outputs: list[Output]) -> None:
        for job in [job for job in self._started if job.stop.is_set()]:
            self._started.remove(job)
            outputs.append(_ended(job, Ending.STOPPED))
        for row in [row for row in self._rows if row.job.stop.is_set()]:
            self._end(row, _ended(row.job, Ending.STOPPED), outputs)

    def _read_text(self, outputs: list[Output]) -> None:
        """Read some text of one row, which speaks once all of it is read."""
        if not self._reading and self._started:
            self._begin(self._started.popleft(), outputs)
        if not self._reading:
            return
        piece = self._reading[0]
        row, tokens = piece.row, piece.prompt.tokens
        try:
            if not piece.read:
                needed = tokens.shape[1] + piece.prompt.max_frames
                self._flow.begin(row.slot, row.voice, needed)
            most = MAX_PROMPT_TOKENS if self._options.quantize else TOKENS_PER_STEP
            some = tokens[:, piece.read : piece.read + most]
            self._flow.read(row.slot, some)
            piece.read += some.shape[1]
            if piece.read == tokens.shape[1]:
                self._flow.skip_noise(row.sampler)
                self._reading.popleft()
                self._speaking.append(piece)
        except Exception as error:  # noqa: BLE001 - costs this row alone
            self._end(row, _failed(row.job, error), outputs)

    def _make_frames(self, outputs: list[Output]) -> None:
        """The next latent of all that speak."""
        if not self._speaking:
            return
        spoken = list(self._speaking)
        frames = self._flow.step(
            [piece.row.slot for piece in spoken],
            [piece.latent for piece in spoken],
            [piece.row.sampler for piece in spoken],
        )
        for piece, frame in zip(spoken, frames, strict=True):
            if frame.is_finite:
                piece.take(frame.latent, frame.is_eos, self._first_eos)
            else:
                # Silence instead would be a wrong sample that nobody hears of.
                self._end(piece.row, _failed(piece.row.job, EngineError(NOT_FINITE)), outputs)

    def _enough_waits(self) -> bool:
        """Whether to decode what waits: at once for a listener who has little left to hear,
        otherwise several frames in one call, which takes less time than one by one.

        All rows that speak have as many frames waiting, but those that begin.
        """
        from intone_server.engines.pocket_batch import MAX_FRAMES_PER_CALL

        if not self._speaking:
            return False
        soon = time.monotonic() + PATIENT_SECONDS
        return len(self._speaking[0].waiting) == MAX_FRAMES_PER_CALL or any(
            piece.row.dry_at < soon for piece in self._speaking
        )

    def _submit(self, outputs: list[Output]) -> None:
        """Decode what waits; nothing is being decoded. A row that was over before its newest frame
        has that decoded as well if others wait with it, so that all have as many, and nobody hears
        it."""
        import torch

        spoken, self._speaking = self._speaking, []
        unheard = [piece for piece in spoken if piece.frames > piece.decoded]
        self._decoding.submit([(piece, torch.cat(piece.waiting, dim=1)) for piece in unheard])
        self._speaking = [piece for piece in spoken if not piece.is_over]
        for piece in spoken:
            piece.waiting = []
            if piece not in unheard:
                self._advance(piece.row, outputs)

    def _collect(self, outputs: list[Output]) -> None:
        """Wait for the frames that are being decoded."""
        for piece, samples in self._decoding.collect():
            row = piece.row
            if row.ended:
                continue
            heard = samples[: (piece.frames - piece.decoded) * self.frame_samples]
            if len(heard):
                outputs.append(Output(row.job.generation_id, heard))
                seconds = len(heard) / self._model.sample_rate
                row.dry_at = max(row.dry_at, time.monotonic()) + seconds
                piece.decoded += len(heard) // self.frame_samples
            if piece.decoded == piece.frames and piece not in self._speaking:
                self._advance(row, outputs)

    def _begin(self, job: Job, outputs: list[Output]) -> None:
        """Give a job a row. Voices that are in memory take no time."""
        from intone_server.engines.pocket_batch import Sampler

        held = ExitStack()
        try:
            voice = held.enter_context(self._voices.use(job.voice)).state
            sampler = Sampler(self._wanted(job.sampling), job.seed)
        except Exception as error:  # noqa: BLE001 - costs this row alone
            held.close()
            outputs.append(_failed(job, error))
            return
        dry_at = time.monotonic() + job.ahead_seconds
        row = Row(job, self._free.pop(), voice, sampler, self._prompts(job), held, dry_at)
        self._rows.append(row)
        self._advance(row, outputs)

    def _advance(self, row: Row, outputs: list[Output]) -> None:
        """Queue the next piece of a row, before rows that have not begun; without one, end it."""
        try:
            prompt = next(row.prompts, None)
        except Exception as error:  # noqa: BLE001 - costs this row alone
            self._end(row, _failed(row.job, error), outputs)
            return
        if prompt is None:
            ending = Ending.NO_END if row.reached_cap else Ending.COMPLETE
            self._end(row, _ended(row.job, ending), outputs)
        else:
            self._reading.append(Piece(row, prompt, self._flow.first_latent()))

    def _end(self, row: Row, output: Output, outputs: list[Output]) -> None:
        row.ended = True
        row.held.close()
        self._rows.remove(row)
        self._reading = deque(piece for piece in self._reading if piece.row is not row)
        self._speaking = [piece for piece in self._speaking if piece.row is not row]
        self._free.append(row.slot)
        outputs.append(output)

    def _prompts(self, job: Job) -> "Iterator[Prompt]":
        from intone_server.engines.pocket_private import prompts

        after = self._wanted(job.sampling).frames_after_eos
        for text in pieces(job.text, self._tokens, MAX_TOKENS):
            yield from prompts(self._model, text, after)

    def _wanted(self, sampling: Sampling) -> Sampling:
        """With the model's own settings where the caller has none."""
        chosen = {name: value for name, value in asdict(sampling).items() if value is not None}
        return replace(self._defaults, **chosen)

    def _longest_voice(self) -> int:
        """Positions of the longest voice that can come."""
        from intone_server.engines.pocket_making import MAX_POSITIONS
        from intone_server.engines.pocket_private import voice_length

        longest = MAX_POSITIONS
        for name, _ in self._options.voices:
            with self._voices.use(VoiceRef(name)) as voice:
                longest = max(longest, voice_length(voice.state))
        return longest


def _ended(job: Job, ending: Ending) -> Output:
    return Output(job.generation_id, ending=ending)


def _failed(job: Job, error: Exception) -> Output:
    message = str(error) if isinstance(error, EngineError) else describe(error)
    return Output(job.generation_id, ending=Ending.FAILED, error=message)
