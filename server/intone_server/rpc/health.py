"""grpc.health.v1.Health.

The servicer of grpcio-health-checking holds a lock while it writes to a watcher: one that takes
nothing would hold up every change of its name, and with it the start and the end of the server.
"""

import asyncio
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

Response = health_pb2.HealthCheckResponse
# Each costs some memory for as long as its client likes.
MAX_WATCHES = 1000


class HealthServicer(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # it has no types
    """The status of each name, asked or watched."""

    def __init__(self) -> None:
        self._statuses: dict[str, Any] = {}
        self._watchers: set[asyncio.Event] = set()

    def set(self, name: str, status: Any) -> None:
        """From now on; watchers hear of it when they can."""
        self._statuses[name] = status
        for watcher in self._watchers:
            watcher.set()

    async def Check(self, request: Any, context: Any) -> Any:
        status = self._statuses.get(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such name")
        return Response(status=status)

    # A coroutine that writes, not a generator: see rpc/tts.py.
    async def Watch(self, request: Any, context: Any) -> None:
        if len(self._watchers) >= MAX_WATCHES:
            message = f"{MAX_WATCHES:,} watches are open, which is the limit"
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
        changed, told = asyncio.Event(), None
        self._watchers.add(changed)
        try:
            while True:
                changed.clear()
                status = self._statuses.get(request.service, Response.SERVICE_UNKNOWN)
                if status != told:
                    told = status
                    await context.write(Response(status=status))
                await changed.wait()
        finally:
            self._watchers.discard(changed)
