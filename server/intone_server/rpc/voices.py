"""VoiceService."""

import re

from intone.v1 import voices_pb2, voices_pb2_grpc
from intone_server.errors import Reason, VoiceNotFound
from intone_server.rpc import responses
from intone_server.rpc.calls import Context, current_call
from intone_server.rpc.faults import Faults
from intone_server.rpc.runtime import Service
from intone_server.setting_values import VOICE_NAME
from intone_server.voices.creation import NewVoice

DEFAULT_PAGE = 100
MAX_PAGE = 1000
MAX_LABELS = 32
LABEL_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
MAX_LABEL_CHARACTERS = 256
MAX_CONSENT_CHARACTERS = 2000


class VoiceServicer(voices_pb2_grpc.VoiceServiceServicer):
    """The catalogue, for clients."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.open_creations = 0  # calls in which a voice is being made

    async def ListVoices(
        self, request: voices_pb2.ListVoicesRequest, context: Context
    ) -> voices_pb2.ListVoicesResponse:
        faults = Faults()
        faults.within("page_size", request.page_size, 0, MAX_PAGE)
        faults.check()
        catalogue = self._service.loaded().catalogue
        subject = current_call().subject
        voices = await catalogue.voices(subject, request.language)
        # The token is the last name of the page before: a page stays right when voices come or go.
        rest = [v for v in voices if v.name > request.page_token]
        page = rest[: request.page_size or DEFAULT_PAGE]
        return voices_pb2.ListVoicesResponse(
            voices=[responses.voice(voice, catalogue.default, subject) for voice in page],
            next_page_token=page[-1].name if len(page) < len(rest) else "",
        )

    async def GetVoice(
        self, request: voices_pb2.GetVoiceRequest, context: Context
    ) -> voices_pb2.GetVoiceResponse:
        catalogue = self._service.loaded().catalogue
        subject = current_call().subject
        voice = await catalogue.get(request.name, subject)
        return voices_pb2.GetVoiceResponse(voice=responses.voice(voice, catalogue.default, subject))

    async def CreateVoice(
        self, request: voices_pb2.CreateVoiceRequest, context: Context
    ) -> voices_pb2.CreateVoiceResponse:
        runtime = self._service.loaded()
        self._service.admission.check_available()
        new = self._read(request)
        self.open_creations += 1
        try:
            voice = await runtime.creator.create(new, keep=not request.validate_only)
        finally:
            self.open_creations -= 1
        current_call().fields |= {
            "bytes": len(new.prompt or new.state),
            "digest": voice.digest[:12],
            "kept": not request.validate_only,
            "shared": voice.shared,
        }
        return voices_pb2.CreateVoiceResponse(
            voice=responses.voice(voice, runtime.catalogue.default, new.owner)
        )

    async def ExportVoice(
        self, request: voices_pb2.ExportVoiceRequest, context: Context
    ) -> voices_pb2.ExportVoiceResponse:
        catalogue = self._service.loaded().catalogue
        subject = current_call().subject
        state, voice = await catalogue.export(request.name, subject)
        return voices_pb2.ExportVoiceResponse(
            state=state, voice=responses.voice(voice, catalogue.default, subject)
        )

    async def DeleteVoice(
        self, request: voices_pb2.DeleteVoiceRequest, context: Context
    ) -> voices_pb2.DeleteVoiceResponse:
        catalogue = self._service.loaded().catalogue
        found = await catalogue.delete(request.name, current_call().subject)
        if not found and not request.allow_missing:
            raise VoiceNotFound(request.name)
        return voices_pb2.DeleteVoiceResponse()

    def _read(self, request: voices_pb2.CreateVoiceRequest) -> NewVoice:
        """What is to be made. Raises InvalidRequest with every fault."""
        faults = Faults()
        if not VOICE_NAME.fullmatch(request.name):
            faults.add(
                "name",
                "must be 1 to 64 lowercase letters, digits, - and _, beginning with a letter or "
                f"digit; it is {request.name[:64]!r}",
            )
        source = request.WhichOneof("source")
        size = len(getattr(request, source)) if source else 0
        limit = self._service.request_limits.max_prompt_bytes
        if not size:
            faults.add(source or "source", "is empty; give a recording in prompt, or a state")
        elif size > limit:
            reason = Reason.BAD_AUDIO if source == "prompt" else Reason.BAD_STATE
            faults.add(str(source), f"has {size:,} bytes, limit {limit:,}", reason)
        info = self._service.loaded().info
        language = faults.language("language", request.language, info.languages)
        self._check_labels(dict(request.labels), faults)
        consent = request.consent_statement
        if len(consent) > MAX_CONSENT_CHARACTERS:
            faults.add(
                "consent_statement",
                f"has {len(consent):,} characters, limit {MAX_CONSENT_CHARACTERS:,}",
            )
        elif self._service.request_limits.require_consent and not consent.strip():
            faults.add("consent_statement", "is required by this server")
        faults.check()
        return NewVoice(
            name=request.name,
            language=language,
            prompt=request.prompt,
            state=request.state,
            labels=dict(request.labels),
            consent_statement=consent,
            owner=current_call().subject,
            shared=request.shared,
        )

    def _check_labels(self, labels: dict[str, str], faults: Faults) -> None:
        if len(labels) > MAX_LABELS:
            faults.add("labels", f"are {len(labels):,}, limit {MAX_LABELS}")
        for key, value in list(labels.items())[:MAX_LABELS]:
            if not LABEL_KEY.fullmatch(key):
                faults.add(
                    "labels",
                    f"key {key[:64]!r} must be 1 to 63 lowercase letters, digits, ., - and _",
                )
            elif len(value) > MAX_LABEL_CHARACTERS:
                faults.add(
                    f"labels[{key}]",
                    f"has {len(value):,} characters, limit {MAX_LABEL_CHARACTERS}",
                )
