"""The file of bearer tokens: hashes, with whom they belong to and what they open."""

import hashlib
import hmac
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from intone_server.access.grants import ClientLimits, Grant, Scope

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:/-]{0,127}")
_HASH = re.compile(r"[0-9a-f]{64}")
_LIMITS = {f"max_{field.name}": field.name for field in fields(ClientLimits)}
_KEYS = {"name", "sha256", "scopes", *_LIMITS}


class Tokens:
    """All tokens that are good now, by the SHA-256 of each: they are random and long, so that a
    slow hash would add nothing."""

    def __init__(self, grants: Mapping[str, Grant]) -> None:
        self._grants = [(hash_.encode(), grant) for hash_, grant in grants.items()]

    def find(self, token: str) -> Grant | None:
        """Whose token it is. Every hash is compared, in constant time."""
        digest = hashlib.sha256(token.encode()).hexdigest().encode()
        found = None
        for known, grant in self._grants:
            if hmac.compare_digest(known, digest):
                found = grant
        return found


def parse_tokens(contents: Sequence[bytes], defaults: ClientLimits) -> Tokens:
    """From the TOML of the file; limits that a token does not name are `defaults`. Raises
    ValueError that names the place."""
    (content,) = contents
    try:
        document = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"not TOML in UTF-8: {error}") from None
    entries = document.pop("token", [])
    tables = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    if document or not tables:
        raise ValueError("the file may have tables [[token]] and nothing else")
    grants: dict[str, Grant] = {}
    for number, entry in enumerate(entries, 1):
        try:
            hash_, grant = _read(entry, defaults)
        except ValueError as error:
            raise ValueError(f"token {number}: {error}") from None
        if hash_ in grants:
            raise ValueError(f"token {number}: sha256: another token has the same")
        grants[hash_] = grant
    return Tokens(grants)


def _read(entry: Mapping[str, Any], defaults: ClientLimits) -> tuple[str, Grant]:
    if unknown := sorted(set(entry) - _KEYS):
        raise ValueError(f"{unknown[0]}: is not known; known are {', '.join(sorted(_KEYS))}")
    name, hash_ = entry.get("name"), entry.get("sha256")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("name: must be 1 to 128 letters, digits and . _ @ : / -")
    if not isinstance(hash_, str) or not _HASH.fullmatch(hash_):
        raise ValueError(f"sha256: must be the 64 lowercase hexadecimal digits of one ({name})")
    return hash_, Grant(name, _scopes(entry.get("scopes")), _limits(entry, defaults))


def _scopes(value: Any) -> frozenset[Scope]:
    known = [scope.value for scope in Scope]
    if not isinstance(value, list) or not value or not all(scope in known for scope in value):
        raise ValueError(f"scopes: must be a list of some of {', '.join(known)}")
    return frozenset(map(Scope, value))


def _limits(entry: Mapping[str, Any], defaults: ClientLimits) -> ClientLimits:
    found = {}
    for key, name in _LIMITS.items():
        limit = entry.get(key, getattr(defaults, name))
        if type(limit) is not int or limit < 0:
            raise ValueError(f"{key}: must be a whole number from 0, which is no limit")
        found[name] = limit
    return ClientLimits(**found)
