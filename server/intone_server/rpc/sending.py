"""The server's side of a call that speaks: its events, in order, and how it ends."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from intone.v1 import tts_pb2
from intone_server import __version__
from intone_server.errors import Overloaded, Reason
from intone_server.rpc import responses
from intone_server.rpc.calls import Context, current_call
from intone_server.rpc.runtime import Service
from intone_server.synthesis import events
from intone_server.synthesis.session import Session
from intone_server.synthesis.speech import SpeechConfig


async def send(
    session: Session, service: Service, context: Context, wrap: Callable[..., Any]
) -> None:
    """Write the session's events until it has finished. Raises what ends it instead."""
    sequence = 1
    await context.write(wrap(event=_started(session.config, service)))
    try:
        async with asyncio.timeout(None) as patience:
            loop = asyncio.get_running_loop()

            def give_up() -> None:
                with suppress(RuntimeError):  # it is over already
                    patience.reschedule(loop.time())

            session.on_slow_client = give_up
            event: events.Event | None = None
            while not isinstance(event, events.Finished):
                event = await session.next_event()
                sequence += 1
                message = responses.speech_event(sequence, session.epoch, event)
                await context.write(wrap(event=message))
    except TimeoutError:
        seconds = service.session_limits.slow_client_timeout_seconds
        raise Overloaded(
            Reason.SLOW_CLIENT,
            f"nothing was read for {seconds:g} s",
            retry_after=service.scheduler.retry_after(),
        ) from None
    session.check_spoken()


def _started(config: SpeechConfig, service: Service) -> tts_pb2.SpeechEvent:
    info = service.loaded().info
    return tts_pb2.SpeechEvent(
        sequence=1,
        started=tts_pb2.Started(
            request_id=current_call().request_id,
            format=responses.audio_format(config.encoding, config.sample_rate_hertz),
            effective_config=responses.effective_config(config, info),
            limits=service.limits(),
            model=info.model,
            server_version=__version__,
        ),
    )
