"""Everything that the server listens on."""

import asyncio
from collections.abc import Callable

import grpc

from intone_server.metrics import Endpoint, Metrics, Snapshot
from intone_server.observing import Scrapes
from intone_server.rpc.server import RpcServer
from intone_server.settings import Settings


class CannotListen(Exception):
    """A port cannot be had; the message names its flag."""


class Ports:
    """The port of the calls; and, if the settings say so, one for probes and one for metrics."""

    def __init__(
        self,
        settings: Settings,
        server: RpcServer,
        credentials: grpc.ServerCredentials | None,
        metrics: Metrics,
        snapshot: Callable[[], Snapshot],
    ) -> None:
        self._settings = settings
        self._server = server
        self._credentials = credentials
        self._metrics = metrics
        self._snapshot = snapshot
        self._endpoint: Endpoint | None = None

    async def open(self) -> dict[str, str]:
        """Listen. Returns, for the log, the addresses with their real ports, and whether calls
        have TLS. Raises CannotListen."""
        settings, told = self._settings, {}
        try:
            flag, wanted = "--listen", settings.listen
            told["address"] = await self._server.start(wanted, self._credentials)
            if settings.health_listen:
                flag, wanted = "--health-listen", settings.health_listen
                told["health"] = await self._server.start_health(wanted)
            if settings.metrics_listen:
                flag, wanted = "--metrics-listen", settings.metrics_listen
                self._metrics.show(Scrapes(self._snapshot).take)
                self._endpoint = self._metrics.serve(wanted)
                told["metrics"] = self._endpoint.address
        except (RuntimeError, OSError):
            raise CannotListen(
                f"{flag}: cannot listen on {wanted}: it is in use, or not of this machine; choose "
                "another (port 0: any free one)"
            ) from None
        mutual = "mutual" if settings.tls_client_ca else "yes"
        return told | {"tls": "no" if self._credentials is None else mutual}

    async def close(self) -> None:
        """Stop listening, and end every call that is still open."""
        await self._server.stop(0)
        if self._endpoint is not None:
            await asyncio.to_thread(self._endpoint.close)
