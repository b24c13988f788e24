"""StatusService."""

import asyncio

from intone.v1 import status_pb2, status_pb2_grpc
from intone_server import __version__
from intone_server.audio.encoding import Encoding
from intone_server.rpc import responses
from intone_server.rpc.calls import Context
from intone_server.rpc.faults import Faults
from intone_server.rpc.formats import available_encodings
from intone_server.rpc.requests import WATCH_SECONDS
from intone_server.rpc.runtime import Service

DEFAULT_INTERVAL_SECONDS = 1.0


class StatusServicer(status_pb2_grpc.StatusServiceServicer):
    """What the server is and how busy. Call `changed` whenever the capacity may have changed."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watchers: set[asyncio.Event] = set()

    def changed(self) -> None:
        """Wake the watchers."""
        for watcher in self._watchers:
            watcher.set()

    async def GetServerInfo(
        self, request: status_pb2.GetServerInfoRequest, context: Context
    ) -> status_pb2.GetServerInfoResponse:
        runtime = self._service.loaded()
        info = runtime.info
        return status_pb2.GetServerInfoResponse(
            server_version=__version__,
            engine=info.engine,
            engine_version=info.engine_version,
            model=info.model,
            languages=info.languages,
            features=sorted(runtime.features),
            native_format=responses.audio_format(Encoding.PCM_S16LE, info.sample_rate_hertz),
            encodings=available_encodings(),
            limits=self._service.limits(),
            default_voice=info.default_voice,
        )

    async def GetCapacity(
        self, request: status_pb2.GetCapacityRequest, context: Context
    ) -> status_pb2.GetCapacityResponse:
        return status_pb2.GetCapacityResponse(capacity=self._capacity())

    async def WatchCapacity(  # type: ignore[override]  # see rpc/tts.py
        self, request: status_pb2.WatchCapacityRequest, context: Context
    ) -> None:
        interval = DEFAULT_INTERVAL_SECONDS
        if request.HasField("min_interval"):
            faults = Faults()
            interval = faults.seconds("min_interval", request.min_interval, WATCH_SECONDS)
            faults.check()
        changed = asyncio.Event()
        self._watchers.add(changed)
        told: status_pb2.Capacity | None = None
        try:
            while True:
                changed.clear()
                capacity = self._capacity()
                if capacity != told:
                    told = capacity
                    await context.write(status_pb2.WatchCapacityResponse(capacity=capacity))
                    await asyncio.sleep(interval)
                await changed.wait()
        finally:
            self._watchers.discard(changed)

    def _capacity(self) -> status_pb2.Capacity:
        load = self._service.scheduler.outlook.load()
        admission = self._service.admission
        return status_pb2.Capacity(
            replicas_total=load.replicas_total,
            replicas_busy=load.replicas_busy,
            replicas_unhealthy=load.replicas_unhealthy,
            queue_depth=load.queue_depth,
            queue_limit=admission.queue_limit,
            queued_work=responses.duration(load.queued_work_seconds),
            estimated_wait=responses.duration(load.estimated_wait_seconds),
            open_streams=admission.open,
            stream_limit=admission.stream_limit,
            speed=load.speed,
            total_speed=load.total_speed,
            draining=admission.draining,
        )
