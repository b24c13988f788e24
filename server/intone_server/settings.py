"""The server's settings: one frozen dataclass, with what each of them may be."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VOICE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class SettingsError(Exception):
    """`faults` names every setting that is wrong, one line each."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


def _setting(default: Any, help_text: str, parse: Callable[[str], Any]) -> Any:
    return field(default=default, metadata={"help": help_text, "parse": parse})


def _number(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError("must be a number") from None
        if not low <= value <= high:
            raise ValueError(f"must be from {low:g} to {high:g}")
        return value

    return parse


def _integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if not low <= value <= high:
            raise ValueError(f"must be from {low} to {high}")
        return value

    return parse


def _auto(parse: Callable[[str], int]) -> Callable[[str], int]:
    """0 if it is left to the server."""

    def parse_auto(text: str) -> int:
        return 0 if text == "auto" else parse(text)

    return parse_auto


def _choice(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return parse


def _boolean(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off", ""):
        return False
    raise ValueError("must be true or false")


def _address(text: str) -> str:
    if text.startswith("unix:"):
        if len(text) == len("unix:"):
            raise ValueError("must name a path after unix:")
        return text
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ValueError("must be HOST:PORT or unix:PATH")
    return text


def _voices(text: str) -> tuple[tuple[str, str], ...]:
    voices = []
    for item in filter(None, text.split(",")):
        name, equals, path = item.partition("=")
        if not equals or not path:
            raise ValueError("must be NAME=FILE")
        if not VOICE_NAME.fullmatch(name):
            raise ValueError(f"name {name!r} must match {VOICE_NAME.pattern}")
        if not os.access(path, os.R_OK) or not Path(path).is_file():
            raise ValueError(f"{path} is not a readable file")
        voices.append((name, path))
    names = [name for name, _ in voices]
    if len(set(names)) < len(names):
        raise ValueError("names a voice twice")
    return tuple(voices)


def _directory(text: str) -> str:
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise ValueError("is not a directory")
    if not path.exists() and not path.parent.is_dir():
        raise ValueError(f"{path.parent} is not a directory")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. Each field is a flag, `--max-streams`, and an environment
    variable, `INTONE_MAX_STREAMS`; the flag wins. Times are in seconds, lengths in code points."""

    listen: str = _setting(
        "127.0.0.1:50051",
        "address to serve on: HOST:PORT or unix:PATH; port 0 takes a free one",
        _address,
    )
    engine: str = _setting("pocket", "speech engine: pocket or builtin", str)
    model: str = _setting(
        "english",
        "pocket: a language, or a config file ending in .yaml; builtin has one model",
        str,
    )
    quantize: bool = _setting(False, "pocket: use int8 weights; faster on x86", _boolean)
    voice: tuple[tuple[str, str], ...] = _setting(
        (),
        "pocket: add a voice NAME=FILE from a recording or an exported state; repeatable, "
        "comma-separated in the variable",
        _voices,
    )
    default_voice: str = _setting(
        "", "voice for callers who name none; default: the model's own", str
    )
    voice_dir: str = _setting(
        "",
        "directory that keeps created voices; several servers may share it; default: none, they "
        "live in memory, up to 256 MiB",
        _directory,
    )
    max_voices: int = _setting(1000, "most voices that can be created", _integer(0, 1_000_000))
    max_prompt_bytes: int = _setting(
        20 * 1024 * 1024,
        "longest recording or voice state in CreateVoice",
        _integer(1, 256 * 1024 * 1024),
    )
    require_consent: bool = _setting(
        False, "CreateVoice needs a consent_statement, which is stored with the voice", _boolean
    )
    voice_cache_bytes: int = _setting(
        256 * 1024 * 1024,
        "most memory of a worker for voice states, beside those in use",
        _integer(0, 1 << 40),
    )
    workers: int = _setting(
        1, "worker processes; they share one copy of the weights", _integer(1, 64)
    )
    replicas: int = _setting(
        0,
        "generations that a worker runs at the same time; 0 or auto: the number up to 8 with "
        "which it makes the most audio, measured at start",
        _auto(_integer(0, 64)),
    )
    threads: int = _setting(
        0,
        "threads that a worker computes with; 0 or auto: two, of which one decodes, or one on a "
        "single core",
        _auto(_integer(0, 64)),
    )
    scheduling: str = _setting(
        "deadline",
        "who is spoken next: deadline, whose listener runs dry first; or fifo, in order of arrival",
        _choice("deadline", "fifo"),
    )
    max_streams: int = _setting(
        0, "most calls open at the same time; 0 is 64 for each replica", _integer(0, 1_000_000)
    )
    max_talking: int = _setting(
        0,
        "most calls with text waiting or being spoken; 0 or auto: as many listeners as the "
        "measured speed keeps fed, and for BATCH calls 8 for each replica",
        _auto(_integer(0, 1_000_000)),
    )
    drain_timeout_seconds: float = _setting(
        25.0, "how long streams may finish after SIGTERM", _number(0, 86_400)
    )
    idle_timeout_seconds: float = _setting(
        60.0,
        "a stream without messages and with nothing to say ends after this",
        _number(1, 86_400),
    )
    session_limit_seconds: float = _setting(3600.0, "longest life of a stream", _number(1, 604_800))
    first_message_timeout_seconds: float = _setting(
        10.0, "a stream must send its first message within this", _number(0.1, 3600)
    )
    slow_client_timeout_seconds: float = _setting(
        30.0,
        "a client that reads nothing for this long, while there is audio for it, is ended",
        _number(1, 3600),
    )
    stall_timeout_seconds: float = _setting(
        10.0, "a busy worker that is silent for this long is replaced", _number(1, 3600)
    )
    max_text_delay_seconds: float = _setting(
        0.8, "default pause in the text after which unfinished text is spoken", _number(0.05, 60)
    )
    max_text_characters: int = _setting(
        10_000, "longest text of SynthesizeText, SynthesizeFile and PlanText", _integer(1, 200_000)
    )
    max_piece_characters: int = _setting(
        16_384, "longest text piece of Synthesize", _integer(1, 200_000)
    )
    max_buffered_characters: int = _setting(
        32_768,
        "most text that waits in one stream before the server stops reading",
        _integer(1, 1_000_000),
    )
    max_unsent_seconds: float = _setting(
        10.0,
        "most audio that waits in one stream before its next segment is spoken",
        _number(0.1, 600),
    )
    dialogue_concurrency: int = _setting(
        3, "segments of one dialogue that are spoken at the same time by default", _integer(1, 64)
    )
    max_dialogue_items: int = _setting(1000, "most items of one dialogue", _integer(1, 100_000))
    max_dialogue_characters: int = _setting(
        200_000, "longest text of all items of one dialogue", _integer(1, 10_000_000)
    )
    max_dialogue_held_seconds: float = _setting(
        300.0, "most audio that one dialogue reuses or brings along", _number(0, 36_000)
    )
    max_dialogue_buffer_seconds: float = _setting(
        60.0, "most audio that one dialogue makes before its turn, as estimated", _number(0.1, 3600)
    )
    log_format: str = _setting(
        "auto",
        "json, text, or auto: text on a terminal, else json",
        _choice("auto", "json", "text"),
    )


def contradictions(settings: Settings, engines: Sequence[str]) -> list[str]:
    """What is wrong with settings that are each right: one line for each fault."""
    if settings.engine not in engines:
        return [f"--engine={settings.engine}: must be one of {', '.join(engines)}"]
    if settings.engine != "pocket" or not settings.model.endswith((".yaml", ".yml")):
        return []
    faults = []
    if not Path(settings.model).is_file():
        faults.append(f"--model={settings.model}: no such file")
    if settings.default_voice not in [name for name, _ in settings.voice]:
        faults.append(
            "--default-voice: a config file has no voices of its own; "
            "give --voice NAME=FILE and --default-voice NAME"
        )
    return faults
