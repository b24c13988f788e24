"""What the parts of the server are built with, from its settings."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from intone_server.access.authentication import Authentication
from intone_server.access.grants import ClientLimits
from intone_server.access.jwts import parse_keys
from intone_server.access.tokens import parse_tokens
from intone_server.engines.base import EngineInfo, EngineOptions
from intone_server.rpc.access import Access
from intone_server.rpc.certificates import server_credentials
from intone_server.rpc.runtime import DialogueLimits, RequestLimits
from intone_server.settings import Settings
from intone_server.synthesis.deadlines import SessionLimits
from intone_server.voices.memory import MemoryStore
from intone_server.voices.record import Store
from intone_server.voices.spaces import VoiceSpaces
from intone_server.watched_files import WatchedFiles, fault_of

if TYPE_CHECKING:
    from intone_server.rpc.tracing import Tracing


class Unusable(Exception):
    """What a setting names cannot be used: the message is for whoever started the server."""


@contextmanager
def _naming(flag: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise Unusable(f"{flag}: {fault_of(error)}") from None


def session_limits(settings: Settings) -> SessionLimits:
    """Bounds of one stream."""
    return SessionLimits(
        idle_timeout_seconds=settings.idle_timeout_seconds,
        session_limit_seconds=settings.session_limit_seconds,
        slow_client_timeout_seconds=settings.slow_client_timeout_seconds,
        max_unsent_seconds=settings.max_unsent_seconds,
        max_buffered_characters=settings.max_buffered_characters,
    )


def request_limits(settings: Settings) -> RequestLimits:
    """Bounds of requests."""
    return RequestLimits(
        max_text_characters=settings.max_text_characters,
        max_piece_characters=settings.max_piece_characters,
        first_message_timeout_seconds=settings.first_message_timeout_seconds,
        max_prompt_bytes=settings.max_prompt_bytes,
        require_consent=settings.require_consent,
        dialogue=DialogueLimits(
            concurrency=settings.dialogue_concurrency,
            items=settings.max_dialogue_items,
            characters=settings.max_dialogue_characters,
            held_seconds=settings.max_dialogue_held_seconds,
            buffer_seconds=settings.max_dialogue_buffer_seconds,
        ),
    )


def engine_options(settings: Settings, state_directory: str) -> EngineOptions:
    """What workers load the model with; they share voice states in a directory."""
    return EngineOptions(
        model=settings.model,
        quantize=settings.quantize,
        voices=settings.voice,
        default_voice=settings.default_voice,
        state_directory=state_directory,
        voice_cache_bytes=settings.voice_cache_bytes,
        threads=settings.threads,
        workers=settings.workers,
    )


def open_store(settings: Settings, states: Path) -> Store:
    """For created voices. Raises Unusable."""
    if settings.voice_dir:
        with _naming("--voice-dir"):
            return VoiceSpaces(Path(settings.voice_dir))
    if sys.platform == "linux":
        return MemoryStore()
    return VoiceSpaces(states / "created")


def features(settings: Settings, info: EngineInfo) -> frozenset[str]:
    """The engine's and the server's own."""
    found = set(info.features)
    if settings.voice_dir:
        found.add("voice_storage")
    if settings.require_consent:
        found.add("consent_required")
    return frozenset(found)


def access(settings: Settings) -> Access:
    """Who may call what. Raises Unusable."""
    limits = ClientLimits(
        streams=settings.max_client_streams,
        characters_per_minute=settings.max_client_characters_per_minute,
        audio_seconds_per_day=settings.max_client_audio_seconds_per_day,
        heavy_calls=settings.max_client_heavy_calls,
    )
    authentication = None
    if settings.tokens or settings.jwt_keys:
        tokens = keys = None
        if settings.tokens:
            with _naming("--tokens"):
                tokens = WatchedFiles(
                    "--tokens", [settings.tokens], lambda contents: parse_tokens(contents, limits)
                )
        if settings.jwt_keys:
            with _naming("--jwt-keys"):
                keys = WatchedFiles("--jwt-keys", [settings.jwt_keys], parse_keys)
        authentication = Authentication(
            tokens, keys, issuer=settings.jwt_issuer, audience=settings.jwt_audience
        )
    return Access(
        authentication,
        limits=limits,
        client_header=settings.client_header,
        names_all=bool(settings.tls_client_ca),
    )


def credentials(settings: Settings) -> grpc.ServerCredentials | None:
    """For the port; None: plaintext. Raises Unusable."""
    if not settings.tls_certificate:
        return None
    with _naming("--tls-certificate, --tls-key, --tls-client-ca"):
        return server_credentials(
            settings.tls_certificate, settings.tls_key, settings.tls_client_ca
        )


def tracing(settings: Settings) -> "Tracing | None":
    """Where traces go, if anywhere. Raises Unusable."""
    if not settings.otlp_endpoint:
        return None
    try:
        from intone_server.rpc.tracing import Tracing  # an extra, and slow to load
    except ModuleNotFoundError as error:
        raise Unusable(f"--otlp-endpoint: needs the extra otel ({error})") from None
    return Tracing(settings.otlp_endpoint)
