"""VoiceService."""

from intone.v1 import voices_pb2, voices_pb2_grpc
from intone_server.rpc import responses
from intone_server.rpc.calls import Context
from intone_server.rpc.requests import Faults
from intone_server.rpc.runtime import Service

DEFAULT_PAGE = 100
MAX_PAGE = 1000


class VoiceServicer(voices_pb2_grpc.VoiceServiceServicer):
    """The catalogue, for clients."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def ListVoices(
        self, request: voices_pb2.ListVoicesRequest, context: Context
    ) -> voices_pb2.ListVoicesResponse:
        faults = Faults()
        faults.within("page_size", request.page_size, 0, MAX_PAGE)
        faults.check()
        catalogue = self._service.loaded().catalogue
        # The token is the last name of the page before: a page stays right when voices come or go.
        rest = [v for v in catalogue.voices(request.language) if v.name > request.page_token]
        page = rest[: request.page_size or DEFAULT_PAGE]
        return voices_pb2.ListVoicesResponse(
            voices=[responses.voice(voice, catalogue.default) for voice in page],
            next_page_token=page[-1].name if len(page) < len(rest) else "",
        )

    async def GetVoice(
        self, request: voices_pb2.GetVoiceRequest, context: Context
    ) -> voices_pb2.GetVoiceResponse:
        catalogue = self._service.loaded().catalogue
        voice = catalogue.get(request.name)
        return voices_pb2.GetVoiceResponse(voice=responses.voice(voice, catalogue.default))
