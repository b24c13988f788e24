"""`intone bench`: calls at random times, and what their listeners hear."""

import argparse
import asyncio
import contextlib
from pathlib import Path
from typing import Any

from intone_client._access import client_of
from intone_client._audio import check_target
from intone_client._client import Client
from intone_client._config import speech_config
from intone_client._dialogues.plot import check_plot
from intone_client._terminal import UsageError, tell

from .load import Load
from .options import add_options, load_plan, load_texts, thresholds
from .plot import plot_calls
from .progress import show_progress
from .report import Server, describe, document, print_report, warnings, write_json
from .result import Outcome
from .summary import Summary

_INFO_SECONDS = 10.0

_EXIT_NOTHING_SPOKEN = 1
_EXIT_THRESHOLD = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Make `parser` that of `bench`."""
    parser.set_defaults(command=_bench)
    add_options(parser)


async def _bench(options: argparse.Namespace) -> int:
    """Measure; the exit code. Raises UsageError, IntoneError, OSError."""
    plan = load_plan(options)
    load = Load(plan, load_texts(options, plan))
    config = speech_config(voice=options.voice)
    try:
        if options.plot:
            check_plot(options.plot)
        if options.json_file:
            check_target(Path(options.json_file))
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None
    async with contextlib.AsyncExitStack() as opened:
        clients = [
            await opened.enter_async_context(client_of(options, retry=False))
            for _ in range(options.connections)
        ]
        server = await _ask(clients)
        tell(describe(plan, _which_texts(options), options.connections))
        showing = asyncio.create_task(show_progress(load))
        try:
            await load.run(clients, config)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
            # Also on Ctrl-C.
            summary = _report(options, server, load)
    if not summary.calls[Outcome.SPOKEN.value]:
        tell("no call succeeded")
        return _EXIT_NOTHING_SPOKEN
    failures = thresholds(options).failures(summary)
    for line in failures:
        tell(line)
    return _EXIT_THRESHOLD if failures else 0


async def _ask(clients: list[Client]) -> Server:
    """What the server is. Every connection is open afterwards: no call has to wait for one."""
    infos = await asyncio.gather(*(client.info(timeout=_INFO_SECONDS) for client in clients))
    capacity = await clients[0].capacity(timeout=_INFO_SECONDS)
    return Server(clients[0].address, infos[0], capacity)


def _which_texts(options: argparse.Namespace) -> str:
    own = "own" if options.text_file else ""
    lengths = options.text_lengths.name if options.text_lengths else "" if own else "mixed"
    return " ".join(filter(None, (own, lengths)))


def _report(options: argparse.Namespace, server: Server, load: Load) -> Summary:
    """Tell and write what is known. Raises OSError."""
    summary = Summary.of(load.results)
    print_report(server, load, summary)
    for line in warnings(load):
        tell(line)
    if options.json_file:
        settings: dict[str, Any] = {
            "texts": _which_texts(options),
            "voice": options.voice,
            "connections": options.connections,
        }
        write_json(options.json_file, document(server, load, summary, settings))
    if options.plot:
        plot_calls(load.results, options.plot)
    return summary
