"""What a caller is allowed."""

import enum
from dataclasses import dataclass


class Scope(enum.StrEnum):
    """A kind of calls that a token may open."""

    SYNTHESIZE = "synthesize"
    VOICES_READ = "voices:read"
    VOICES_WRITE = "voices:write"
    STATUS = "status"


EVERYTHING = frozenset(Scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """Bounds of all that one client does at the same time or in a while; 0: none."""

    streams: int = 0
    characters_per_minute: int = 0
    audio_seconds_per_day: int = 0
    heavy_calls: int = 0


NO_LIMITS = ClientLimits()


@dataclass(frozen=True, slots=True)
class Grant:
    """Who a caller has proved to be, and what that client may do. `limits` are None where the
    server's own hold."""

    subject: str
    scopes: frozenset[Scope]
    limits: ClientLimits | None = None
