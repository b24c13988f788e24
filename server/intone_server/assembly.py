"""What the parts of the server are built with, from its settings."""

import sys
from pathlib import Path

from intone_server.engines.base import EngineInfo, EngineOptions
from intone_server.rpc.runtime import DialogueLimits, RequestLimits
from intone_server.settings import Settings
from intone_server.synthesis.deadlines import SessionLimits
from intone_server.voices.memory import MemoryStore
from intone_server.voices.record import Store
from intone_server.voices.store import VoiceStore


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
    """For created voices. Raises OSError if the directory cannot be used."""
    if settings.voice_dir:
        return VoiceStore(Path(settings.voice_dir))
    if sys.platform == "linux":
        return MemoryStore()
    return VoiceStore(states / "created")


def features(settings: Settings, info: EngineInfo) -> frozenset[str]:
    """The engine's and the server's own."""
    found = set(info.features)
    if settings.voice_dir:
        found.add("voice_storage")
    if settings.require_consent:
        found.add("consent_required")
    return frozenset(found)
