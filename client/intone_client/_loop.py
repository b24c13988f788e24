"""An event loop for code that has none."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class LoopThread:
    """An event loop that runs in a thread of its own until `stop()`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon: a client that was never closed must not keep the process from ending.
        self._thread = threading.Thread(target=self._serve, name="intone-client", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Its result. Interrupting the wait, by Ctrl-C for example, cancels it."""
        if self._loop.is_closed():
            coroutine.close()
            raise RuntimeError("the client is closed")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Cancel what still runs and end the thread. Calling it again does nothing."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        # The garbage collector may call this, in any thread.
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop):
            asyncio.set_event_loop(self._loop)
            self._loop.run_forever()
