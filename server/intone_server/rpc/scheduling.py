"""What a call asks of the admission queue, and whether it can have it."""

import time

from intone.v1 import tts_pb2
from intone_server.errors import Overloaded, Reason
from intone_server.rpc.faults import Faults
from intone_server.rpc.methods import Method
from intone_server.scheduling.generation import Later, Priority
from intone_server.scheduling.scheduler import Scheduler
from intone_server.synthesis.generations import UNHEARD_SECONDS
from intone_server.synthesis.speech import SpeechConfig, estimated_seconds

PRIORITIES = {
    tts_pb2.PRIORITY_BATCH: Priority.BATCH,
    tts_pb2.PRIORITY_STANDARD: Priority.STANDARD,
    tts_pb2.PRIORITY_INTERACTIVE: Priority.INTERACTIVE,
}
# Allowed values, as the proto states them.
QUEUE_WAIT_SECONDS = (0.001, 3600.0)
MAX_AHEAD_SECONDS = (0.1, 600.0)


def read_priority(
    scheduling: tts_pb2.Scheduling, method: Method, faults: Faults | None = None
) -> Priority:
    """What is asked for, or the default of the method. A fault is noted."""
    if scheduling.priority == tts_pb2.PRIORITY_UNSPECIFIED:
        return method.priority
    if scheduling.priority not in PRIORITIES and faults is not None:
        faults.add("config.scheduling.priority", f"has no value {scheduling.priority}")
    return PRIORITIES.get(scheduling.priority, method.priority)


def read_max_queue_wait(scheduling: tts_pb2.Scheduling, faults: Faults) -> float | None:
    """Seconds that a segment may wait; None: any time. A fault is noted."""
    if not scheduling.HasField("max_queue_wait"):
        return None
    field = "config.scheduling.max_queue_wait"
    return faults.seconds(field, scheduling.max_queue_wait, QUEUE_WAIT_SECONDS)


def read_max_ahead(scheduling: tts_pb2.Scheduling, method: Method, faults: Faults) -> float | None:
    """Seconds that the listener may be ahead; None: any time. A fault is noted."""
    field = "config.scheduling.max_ahead"
    if not scheduling.HasField("max_ahead"):
        return None
    if method.has_listener:
        return faults.seconds(field, scheduling.max_ahead, MAX_AHEAD_SECONDS)
    if scheduling.max_ahead.seconds or scheduling.max_ahead.nanos:
        faults.add(field, "nobody listens while this method works", Reason.UNSUPPORTED_OPTION)
    return None


def check_wait(
    scheduler: Scheduler, config: SpeechConfig, text: str, *, deadline_seconds: float | None = None
) -> None:
    """Raises Overloaded if the first segment of `text` would wait longer than the call asks or,
    with a deadline in so many seconds, lives."""
    most = config.max_queue_wait_seconds
    if most is None and deadline_seconds is None:
        return
    wait_seconds = scheduler.outlook.forecast(
        priority=config.priority,
        client=config.client,
        estimated_seconds=estimated_seconds(text[: config.max_characters]),
    ).wait_seconds
    what = f"a replica would begin this in {wait_seconds:.2f} s"
    if most is not None and wait_seconds > most:
        raise _unreachable(scheduler, f"{what}, scheduling.max_queue_wait is {most:g} s")
    if deadline_seconds is not None and wait_seconds > deadline_seconds:
        raise _unreachable(scheduler, f"{what}, the deadline is in {deadline_seconds:.2f} s")


def check_done(
    scheduler: Scheduler, config: SpeechConfig, text: str, deadline_seconds: float | None
) -> None:
    """Raises Overloaded if the whole of `text` would not be spoken before the deadline.

    Not before the speed was measured: a server that refuses all on a guess never measures it.
    """
    if deadline_seconds is None or not scheduler.outlook.load().speed:
        return
    done_seconds = scheduler.outlook.forecast(
        priority=config.priority,
        client=config.client,
        estimated_seconds=estimated_seconds(text),
        listener=Later(time.monotonic() + UNHEARD_SECONDS),
    ).done_seconds
    if done_seconds > deadline_seconds:
        what = f"all of this would be spoken in {done_seconds:.2f} s"
        raise _unreachable(scheduler, f"{what}, the deadline is in {deadline_seconds:.2f} s")


def _unreachable(scheduler: Scheduler, message: str) -> Overloaded:
    return Overloaded(Reason.DEADLINE_UNREACHABLE, message, retry_after=scheduler.retry_after())
