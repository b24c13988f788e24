"""Samples that were made and not yet sent, and how they are cut into chunks."""

from collections import deque

import numpy as np

from intone_server.audio import Samples

# Of one message: 320 ms at 24 kHz. Fewer messages cost less; longer ones would make a `Clear`
# leave more audio in flight.
MAX_CHUNK_SECONDS = 0.32


class SampleBuffer:
    """A queue of float32 samples. `len` is their number."""

    def __init__(self) -> None:
        self._parts: deque[Samples] = deque()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, samples: Samples) -> None:
        """Add samples of shape (n,) at the end."""
        if len(samples):
            self._parts.append(samples)
            self._count += len(samples)

    def take_chunk(self, sample_rate_hertz: int, limit: int | None = None) -> Samples:
        """Remove and return the next chunk, shape (n,), of the first `limit` samples (None: all).

        All of them, if they fit one chunk; else one of the fewest equal parts, so that no tiny
        chunk is left over.
        """
        count = self._count if limit is None else min(limit, self._count)
        most = int(MAX_CHUNK_SECONDS * sample_rate_hertz)
        chunks = -(-count // most)
        return self.take(-(-count // chunks)) if chunks else np.zeros(0, np.float32)

    def drop(self) -> int:
        """Remove everything; returns how many samples that was."""
        dropped, self._count = self._count, 0
        self._parts.clear()
        return dropped

    def take(self, count: int) -> Samples:
        """Remove and return the first `count` samples, of which there are so many."""
        taken: list[Samples] = []
        self._count -= count
        while count:
            part = self._parts.popleft()
            if len(part) > count:
                self._parts.appendleft(part[count:])
                part = part[:count]
            taken.append(part)
            count -= len(part)
        if len(taken) == 1:
            return taken[0]
        return np.concatenate(taken) if taken else np.zeros(0, np.float32)
