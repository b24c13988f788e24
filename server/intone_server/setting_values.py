"""What the text of a setting means: each parser raises ValueError that says what it must be."""

import os
import re
from collections.abc import Callable
from pathlib import Path

VOICE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
METADATA_KEY = re.compile(r"[a-z0-9_.-]{1,64}")


def number(low: float, high: float) -> Callable[[str], float]:
    """A number in a range."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError("must be a number") from None
        if not low <= value <= high:
            raise ValueError(f"must be from {low:g} to {high:g}")
        return value

    return parse


def integer(low: int, high: int) -> Callable[[str], int]:
    """A whole number in a range."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if not low <= value <= high:
            raise ValueError(f"must be from {low} to {high}")
        return value

    return parse


def auto(parse: Callable[[str], int]) -> Callable[[str], int]:
    """0 if it is left to the server."""

    def parse_auto(text: str) -> int:
        return 0 if text == "auto" else parse(text)

    return parse_auto


def choice(*choices: str) -> Callable[[str], str]:
    """One of a few words."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return parse


def boolean(text: str) -> bool:
    """A switch."""
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off", ""):
        return False
    raise ValueError("must be true or false")


def address(text: str) -> str:
    """HOST:PORT or unix:PATH."""
    if text.startswith("unix:"):
        if len(text) == len("unix:"):
            raise ValueError("must name a path after unix:")
        return text
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ValueError("must be HOST:PORT or unix:PATH")
    return text


def voices(text: str) -> tuple[tuple[str, str], ...]:
    """NAME=FILE,NAME=FILE."""
    found = []
    for item in filter(None, text.split(",")):
        name, equals, path = item.partition("=")
        if not equals or not path:
            raise ValueError("must be NAME=FILE")
        if not VOICE_NAME.fullmatch(name):
            raise ValueError(f"name {name!r} must match {VOICE_NAME.pattern}")
        if not os.access(path, os.R_OK) or not Path(path).is_file():
            raise ValueError(f"{path} is not a readable file")
        found.append((name, path))
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        raise ValueError("names a voice twice")
    return tuple(found)


def directory(text: str) -> str:
    """A directory, or a name for one in a directory that is there."""
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise ValueError("is not a directory")
    if not path.exists() and not path.parent.is_dir():
        raise ValueError(f"{path.parent} is not a directory")
    return text


def file_path(text: str) -> str:
    """A file that can be read."""
    if not os.access(text, os.R_OK) or not Path(text).is_file():
        raise ValueError("is not a readable file")
    return text


def tcp_address(text: str) -> str:
    """HOST:PORT; "" if there is to be none."""
    if text and address(text).startswith("unix:"):
        raise ValueError("must be HOST:PORT")
    return text


def endpoint(text: str) -> str:
    """An http or https URL; "" if there is none."""
    if text and not re.fullmatch(r"https?://[^/\s]+/?", text):
        raise ValueError("must be http://HOST:PORT or https://HOST:PORT")
    return text


def metadata_key(text: str) -> str:
    """A key of gRPC metadata whose values are text; "" if there is none."""
    if text and (not METADATA_KEY.fullmatch(text) or text.endswith("-bin")):
        raise ValueError(f"must match {METADATA_KEY.pattern} and not end in -bin")
    return text
