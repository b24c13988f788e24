"""When calls are made: at their times, whatever the server does, or by people who take turns."""

import asyncio
import time
from collections.abc import Sequence
from itertools import count

from intone.v1 import tts_pb2
from intone_client._client import Client

from .call import Caller
from .lag import LoopLag
from .plan import Plan, Texts, arrivals, think_times
from .result import CallResult, Outcome

# A person who was refused does not call again at once, also if `think` is 0.
_REFUSED_PAUSE_SECONDS = 1.0


class Load:
    """One measurement. Its attributes can be read at any time."""

    def __init__(self, plan: Plan, texts: Texts) -> None:
        self.plan = plan
        #: Of all calls, in the order in which they were to begin.
        self.results: list[CallResult] = []
        self.lag = LoopLag()
        #: `max_calls` ended it before its time.
        self.truncated = False
        #: When it began, on the monotonic clock.
        self.began_at = 0.0
        self._texts = texts
        self._running: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> int:
        """Calls that are open now."""
        return len(self._running)

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began_at

    async def run(self, clients: Sequence[Client], config: tts_pb2.SpeechConfig) -> None:
        """Make all calls. Cancelled, it ends those that run at once. See `Caller` for `clients`."""
        self.began_at = time.monotonic()
        caller = Caller(
            clients,
            config,
            streamed=self.plan.tokens_per_second is not None,
            timeout=self.plan.timeout,
            began_at=self.began_at,
        )
        lag = asyncio.create_task(self.lag.measure())
        try:
            async with asyncio.TaskGroup() as tasks:
                if self.plan.rate is not None:
                    await self._arrive(tasks, caller, self.plan.rate)
                for stream in range(self.plan.streams or 0):
                    tasks.create_task(self._converse(tasks, caller, stream))
        finally:
            lag.cancel()
            await asyncio.gather(lag, return_exceptions=True)

    async def _arrive(self, tasks: asyncio.TaskGroup, caller: Caller, rate: float) -> None:
        """Begin each call at its time. Nothing here waits for a call."""
        for number, at in enumerate(arrivals(self.plan.seed, rate, self.plan.duration)):
            if number == self.plan.max_calls:
                self.truncated = True
                return
            delay = at - self.elapsed
            if delay > 0:
                await asyncio.sleep(delay)
            self._begin(tasks, caller, at, number)

    async def _converse(self, tasks: asyncio.TaskGroup, caller: Caller, stream: int) -> None:
        """One person: thinks, speaks, listens to the end, thinks, and so on."""
        thinking = think_times(self.plan.seed, stream, self.plan.think)
        for turn in count():
            await self._pause(next(thinking))
            if self.elapsed >= self.plan.duration:
                return
            if len(self.results) >= self.plan.max_calls:
                self.truncated = True
                return
            result, call = self._begin(tasks, caller, self.elapsed, stream, turn)
            if call is not None:
                await asyncio.wait({call})
            if result.heard is not None:
                await self._pause(result.heard.ends_at - self.elapsed)
            if result.outcome is not Outcome.SPOKEN:
                await self._pause(result.retry_delay_seconds or _REFUSED_PAUSE_SECONDS)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the end."""
        left = self.plan.duration - self.elapsed
        await asyncio.sleep(max(min(seconds, left), 0.0))

    def _begin(
        self, tasks: asyncio.TaskGroup, caller: Caller, at: float, *name: int
    ) -> tuple[CallResult, asyncio.Task[None] | None]:
        """Begin the call of this name (see `Texts`), unless too many are open."""
        utterance = self._texts.utterance(*name)
        stream = name[0] if self.plan.streams else None
        result = CallResult(len(self.results), stream, at, len(utterance.text))
        self.results.append(result)
        if len(self._running) >= self.plan.concurrency_limit:
            result.outcome = Outcome.NOT_SENT
            return result, None
        task = tasks.create_task(caller.call(result, utterance))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return result, task
