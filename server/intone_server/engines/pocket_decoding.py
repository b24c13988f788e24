"""Decoding beside the flow step, in a thread of its own where there is a core for it."""

import queue
import threading
from collections import deque
from collections.abc import Sequence
from itertools import groupby
from typing import Generic, TypeVar

import torch

from intone_server.audio import Samples
from intone_server.engines.pocket_batch import DecoderRows

Key = TypeVar("Key")


class Decoding(Generic[Key]):
    """The decoder. With a thread it works between `submit` and `collect`, without one in
    `collect`; otherwise it is the caller's.

    Rows go by a key; a key that was not in the last batch begins anew, one that is not in the
    next is forgotten. A caller that waits in `collect` does rows instead of nothing.
    """

    def __init__(self, rows: DecoderRows, *, own_thread: bool) -> None:
        self._rows = rows
        self._order: list[Key] = []
        self._latents: list[torch.Tensor] = []  # of each key: shape (1, k, latent)
        self._samples: dict[int, Samples] = {}  # by row
        self._todo: deque[tuple[int, torch.Tensor]] = deque()  # rows that are begun
        self._own_thread = own_thread
        self._work: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._begun: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._is_busy = False
        if own_thread:
            threading.Thread(target=self._run, name="decoder", daemon=True).start()

    @property
    def is_done(self) -> bool:
        """Whether there is something to collect, and no other thread has to be waited for."""
        return self._is_busy and (not self._own_thread or not self._done.empty())

    def submit(self, latents: Sequence[tuple[Key, torch.Tensor]]) -> None:
        """Begin to decode the next latents of each key, shape (1, k, latent) each; k is the same
        for all keys that were there before, and the same for all new ones."""
        assert not self._is_busy
        by_key = dict(latents)
        for row in reversed(range(len(self._order))):
            if self._order[row] not in by_key:
                self._rows.leave(row)
                self._order[row] = self._order[-1]
                self._order.pop()
        known = set(self._order)
        for key, _ in latents:
            if key not in known:
                self._rows.join()
                self._order.append(key)
        if latents:
            self._is_busy = True
            self._latents = [by_key[key] for key in self._order]
            if self._own_thread:
                self._work.put(None)

    def forget(self) -> None:
        """No key is left, so that nothing of them is kept; nothing is being decoded."""
        if self._order and not self._is_busy:
            self.submit([])

    def collect(self) -> list[tuple[Key, Samples]]:
        """Wait for what was submitted: float32 samples of shape (k * frame,) for each key."""
        if not self._is_busy:
            return []
        self._is_busy = False
        if self._own_thread:
            error = self._begun.get()
            if error is None:
                own_error = self._finish()
                error = self._done.get() or own_error
        else:
            error = self._begin() or self._finish()
        if error is not None:
            raise error
        samples, self._samples, self._latents = self._samples, {}, []
        return [(key, samples[row]) for row, key in enumerate(self._order)]

    def _run(self) -> None:
        with torch.inference_mode():
            while True:
                self._work.get()
                error = self._begin()
                self._begun.put(error)
                if error is None:
                    self._done.put(self._finish())

    def _begin(self) -> Exception | None:
        """The part for all rows together; returns what went wrong."""
        try:
            first = 0
            for _, alike in groupby(self._latents, key=lambda latents: latents.shape[1]):
                latents = torch.cat(list(alike))
                begun = self._rows.begin(latents, first)
                self._todo.extend(enumerate(begun.split(1), first))
                first += len(latents)
        except Exception as error:  # noqa: BLE001 - raised again by `collect`
            self._todo.clear()
            return error
        return None

    def _finish(self) -> Exception | None:
        """Do rows until none is left; returns what went wrong."""
        while True:
            try:
                row, begun = self._todo.popleft()
            except IndexError:
                return None
            try:
                self._samples[row] = self._rows.finish(begun, row).numpy()
            except Exception as error:  # noqa: BLE001 - raised again by `collect`
                return error
