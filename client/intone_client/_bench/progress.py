"""How far a measurement is, on a terminal."""

import asyncio
import sys

from .load import Load
from .result import Outcome

_INTERVAL_SECONDS = 0.5
_ERASE = "\r\x1b[K"


async def show_progress(load: Load) -> None:
    """Keep a line on standard error up to date until cancelled, if that is a terminal."""
    if not sys.stderr.isatty():
        return
    try:
        while True:
            sys.stderr.write(_ERASE + _line(load))
            sys.stderr.flush()
            await asyncio.sleep(_INTERVAL_SECONDS)
    finally:
        sys.stderr.write(_ERASE)
        sys.stderr.flush()


def _line(load: Load) -> str:
    refused = failed = 0
    for result in load.results:
        refused += result.outcome is Outcome.REFUSED
        failed += result.outcome is Outcome.FAILED
    return (
        f"{min(load.elapsed, load.plan.duration):.0f} of {load.plan.duration:g} s: "
        f"{len(load.results)} calls, {load.running} open, {refused} refused, {failed} failed"
    )
