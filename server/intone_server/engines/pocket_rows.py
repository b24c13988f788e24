"""Generations that run at the same time on one pocket-tts: who reads, speaks, is decoded and ends.

Every running generation is a row, which is a replica. A step makes one frame of each row that
speaks; rows join and leave at any step, and none hears of the others.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

import torch

from intone_server.engines.base import (
    NOT_FINITE,
    Ending,
    EngineError,
    Job,
    Output,
    Sampling,
    describe,
)
from intone_server.engines.pocket_batch import MAX_FRAMES_PER_CALL, FlowRows, Sampler
from intone_server.engines.pocket_decoding import Decoding
from intone_server.engines.pocket_private import (
    Prompt,
    first_frame_of_eos,
    prompts,
    samples_per_frame,
    token_count,
)
from intone_server.engines.pocket_row import Piece, Row
from intone_server.engines.pocket_text import pieces
from intone_server.engines.pocket_voices import PocketVoices

# The model is trained on sentences; past 50 tokens it may skip words (the library's own limit).
MAX_TOKENS = 50
# What that may become when the library prepares a text: a capital, a full stop, or eight spaces
# before a short one.
MAX_PROMPT_TOKENS = 80
# Tokens of text that are read in one step, all rows together: about as much work as eight rows.
TOKENS_PER_STEP = 32
# A listener who has so much left to hear can wait for frames that are decoded together: they come
# up to three steps after the first of them was made.
PATIENT_SECONDS = 0.5
PATIENT_STEPS = 4


class Rows:
    """Up to `count` generations, numbered by slots of the caches.

    A step reads up to TOKENS_PER_STEP tokens of the text of one row that is to begin (all of them
    if `whole_texts`), makes the next latent of all rows that speak, and decodes. Decoding is a step
    behind, except for the first frame of a row, which waits for nothing. `defaults` is what a
    caller's `Sampling` leaves open.
    """

    def __init__(
        self,
        model: Any,
        flow: FlowRows,
        decoding: "Decoding[Piece]",
        voices: PocketVoices,
        defaults: Sampling,
        *,
        count: int,
        whole_texts: bool,
    ) -> None:
        self._model = model
        self._flow = flow
        self._decoding = decoding
        self._voices = voices
        self._defaults = defaults
        self._whole_texts = whole_texts
        self._first_eos = first_frame_of_eos(model)
        self._frame_samples = samples_per_frame(model)
        self.count = count
        self._free = list(range(count))
        self._started: deque[tuple[Job, float]] = deque()  # and when its listener runs dry
        self._step_seconds = 0.0  # the last one took
        self._running: list[Row] = []
        self._reading: deque[Piece] = deque()
        self._speaking: list[Piece] = []

    @property
    def frame_seconds(self) -> float:
        """How long the audio of a frame lasts."""
        return self._frame_samples / float(self._model.sample_rate)

    @property
    def speaking(self) -> int:
        """How many make frames now; the others read."""
        return len(self._speaking)

    def use(self, count: int) -> None:
        """Run only so many from now on; none runs now."""
        self.count = count
        self._free = list(range(count))

    def start(self, job: Job) -> None:
        """As `Engine.start`."""
        self._started.append((job, time.monotonic() + job.ahead_seconds))

    def step(self) -> Sequence[Output]:
        """As `Engine.step`."""
        outputs: list[Output] = []
        started_at = time.monotonic()
        with torch.inference_mode():
            self._drop_stopped(outputs)
            has_read = self._read_text(outputs)
            if has_read and not any(piece.frames for piece in self._speaking):
                # Callers come in bursts. Whoever began now would run dry while the texts of the
                # others are read, which may have come in the meantime.
                self._collect(outputs)
                return outputs
            more_to_read = bool(self._reading or self._started)
            self._make_frames(outputs)
            begins = any(piece.frames == len(piece.waiting) for piece in self._speaking)
            ends = any(piece.is_over for piece in self._speaking)
            is_due = begins or ends or self._enough_waits()
            if is_due or not self._speaking or self._decoding.is_done:
                self._collect(outputs)
            if is_due:
                self._submit(outputs)
            if begins and not more_to_read:
                self._collect(outputs)
            if not self._speaking:
                self._decoding.forget()
        self._step_seconds = time.monotonic() - started_at
        return outputs

    def _drop_stopped(self, outputs: list[Output]) -> None:
        for started in [started for started in self._started if started[0].stop.is_set()]:
            self._started.remove(started)
            outputs.append(_ended(started[0], Ending.STOPPED))
        for row in [row for row in self._running if row.job.stop.is_set()]:
            self._end(row, _ended(row.job, Ending.STOPPED), outputs)

    def _read_text(self, outputs: list[Output]) -> bool:
        """Read some text of one row, which speaks once all of it is read. Whether there was any."""
        if not self._reading and self._started:
            self._begin(*self._started.popleft(), outputs)
        if not self._reading:
            return False
        piece = self._reading[0]
        row, tokens = piece.row, piece.prompt.tokens
        try:
            if not piece.read:
                needed = tokens.shape[1] + piece.prompt.max_frames
                self._flow.begin(row.slot, row.voice, needed)
            most = MAX_PROMPT_TOKENS if self._whole_texts else TOKENS_PER_STEP
            some = tokens[:, piece.read : piece.read + most]
            self._flow.read(row.slot, some)
            piece.read += some.shape[1]
            if piece.read == tokens.shape[1]:
                self._flow.skip_noise(row.sampler)
                self._reading.popleft()
                self._speaking.append(piece)
        except Exception as error:  # noqa: BLE001 - costs this row alone
            self._end(row, _failed(row.job, error), outputs)
        return True

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
                self._end(piece.row, _failed(piece.row.job, EngineError(NOT_FINITE)), outputs)

    def _enough_waits(self) -> bool:
        """Whether to decode what waits: at once for a listener who has little left to hear,
        otherwise several frames in one call, which takes less time than one by one.

        All rows that speak have as many frames waiting, but those that begin.
        """
        if not self._speaking:
            return False
        soon = time.monotonic() + max(PATIENT_SECONDS, PATIENT_STEPS * self._step_seconds)
        return len(self._speaking[0].waiting) == MAX_FRAMES_PER_CALL or any(
            piece.row.dry_at < soon for piece in self._speaking
        )

    def _submit(self, outputs: list[Output]) -> None:
        """Decode what waits; nothing is being decoded. A row that was over before its newest frame
        has that decoded as well if others wait with it, so that all have as many, and nobody hears
        it."""
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
            heard = samples[: (piece.frames - piece.decoded) * self._frame_samples]
            if len(heard):
                outputs.append(Output(row.job.generation_id, heard))
                seconds = len(heard) / self._model.sample_rate
                row.dry_at = max(row.dry_at, time.monotonic()) + seconds
                piece.decoded += len(heard) // self._frame_samples
            if piece.decoded == piece.frames and piece not in self._speaking:
                self._advance(row, outputs)

    def _begin(self, job: Job, dry_at: float, outputs: list[Output]) -> None:
        """Give a job a row. Voices that are in memory take no time."""
        held = ExitStack()
        try:
            voice = held.enter_context(self._voices.use(job.voice)).state
            sampler = Sampler(self._wanted(job.sampling), job.seed)
        except Exception as error:  # noqa: BLE001 - costs this row alone
            held.close()
            outputs.append(_failed(job, error))
            return
        row = Row(job, self._free.pop(), voice, sampler, self._prompts(job), held, dry_at)
        self._running.append(row)
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
        self._running.remove(row)
        self._reading = deque(piece for piece in self._reading if piece.row is not row)
        self._speaking = [piece for piece in self._speaking if piece.row is not row]
        self._free.append(row.slot)
        outputs.append(output)

    def _prompts(self, job: Job) -> Iterator[Prompt]:
        after = self._wanted(job.sampling).frames_after_eos
        for text in pieces(job.text, self._tokens, MAX_TOKENS):
            yield from prompts(self._model, text, after)

    def _tokens(self, text: str) -> int:
        return token_count(self._model, text)

    def _wanted(self, sampling: Sampling) -> Sampling:
        """With the model's own settings where the caller has none."""
        chosen = {name: value for name, value in asdict(sampling).items() if value is not None}
        return replace(self._defaults, **chosen)


def _ended(job: Job, ending: Ending) -> Output:
    return Output(job.generation_id, ending=ending)


def _failed(job: Job, error: Exception) -> Output:
    message = str(error) if isinstance(error, EngineError) else describe(error)
    return Output(job.generation_id, ending=Ending.FAILED, error=message)
