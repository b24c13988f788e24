"""The front's handle on one place in a worker where one generation can run."""

import enum

from intone_server.scheduling.generation import Generation
from intone_server.transitions import change
from intone_server.workers.launch import WorkerLink
from intone_server.workers.messages import Cancel, Generate


class ReplicaState(enum.Enum):
    """LOADING -> IDLE <-> BUSY -> STOPPED; any of them -> DEAD -> replaced.

    LOADING ends when the worker has loaded its model and spoken a warm-up segment.
    """

    LOADING = "loading"
    IDLE = "idle"
    BUSY = "busy"
    STOPPED = "stopped"
    DEAD = "dead"


_NEXT = {
    ReplicaState.LOADING: frozenset({ReplicaState.IDLE, ReplicaState.DEAD, ReplicaState.STOPPED}),
    ReplicaState.IDLE: frozenset({ReplicaState.BUSY, ReplicaState.DEAD, ReplicaState.STOPPED}),
    ReplicaState.BUSY: frozenset({ReplicaState.IDLE, ReplicaState.DEAD, ReplicaState.STOPPED}),
    ReplicaState.DEAD: frozenset({ReplicaState.LOADING, ReplicaState.STOPPED}),
}


class Replica:
    """Holds at most one generation. BUSY until the worker has *released* it: a cancelled
    generation leaves at once, its replica only when the model has really stopped."""

    def __init__(self) -> None:
        self.state = ReplicaState.LOADING
        self.generation: Generation | None = None
        self.running_id: int | None = None
        self._link: WorkerLink | None = None

    def ready(self, link: WorkerLink) -> None:
        """The worker can take generations now."""
        self._become(ReplicaState.IDLE)
        self._link = link

    @property
    def is_free(self) -> bool:
        """Whether it can take a generation. Workers may die together, and the loss of one is told
        before that of the next: what the first one left must not be given to a dead one."""
        return self.state is ReplicaState.IDLE and self._link is not None and not self._link.is_gone

    def start(self, generation: Generation, ahead_seconds: float) -> None:
        """Send a generation to the worker, whose listener has so much left to hear."""
        self._become(ReplicaState.BUSY)
        assert self._link is not None
        self.generation = generation
        self.running_id = generation.id
        self._link.send(
            Generate(
                generation.id,
                generation.text,
                generation.voice,
                generation.sampling,
                generation.seed,
                ahead_seconds,
            )
        )

    def drop(self) -> None:
        """Stop what runs; what it still sends belongs to nobody."""
        self.generation = None
        if self._link is not None and self.running_id is not None:
            self._link.send(Cancel(self.running_id))

    def released(self) -> None:
        """The worker has finished with the generation."""
        self.generation = None
        self.running_id = None
        self._become(ReplicaState.IDLE)

    def lost(self) -> Generation | None:
        """The worker is gone. Returns the generation that went with it, if anybody wants it."""
        generation, self.generation, self.running_id = self.generation, None, None
        self._become(ReplicaState.DEAD)
        return generation

    def replaced(self) -> None:
        """A new worker is on its way."""
        self._become(ReplicaState.LOADING)
        self._link = None

    def stopped(self) -> None:
        """The server is shutting down."""
        self._become(ReplicaState.STOPPED)

    def _become(self, state: ReplicaState) -> None:
        self.state = change(self.state, state, _NEXT)
