"""What one running generation of the pocket engine is, and where it stands."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import torch

from intone_server.engines.base import Job
from intone_server.engines.pocket_batch import Sampler
from intone_server.engines.pocket_private import Prompt
from intone_server.engines.pocket_state import State


@dataclass(slots=True, eq=False)
class Row:
    """A running generation: its slot of the caches, and what is left to speak.

    `dry_at` is when its listener has heard all that was made, on the monotonic clock.
    """

    job: Job
    slot: int
    voice: State
    sampler: Sampler
    prompts: Iterator[Prompt]
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
    prompt: Prompt
    latent: torch.Tensor
    waiting: list[torch.Tensor] = field(default_factory=list)
    read: int = 0
    frames: int = 0
    decoded: int = 0
    eos_frame: int | None = None
    is_over: bool = False

    def take(self, latent: torch.Tensor, is_eos: bool, first_eos: int) -> None:
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
            self.is_over = True
            self.row.reached_cap = self.row.reached_cap or self.eos_frame is None
