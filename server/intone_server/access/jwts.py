"""JSON Web Tokens of an issuer that is trusted, as bearer tokens."""

import json
from collections.abc import Sequence
from typing import Any

import jwt

from intone_server.access.grants import Grant, Scope

# Public keys alone: with a symmetric algorithm, whoever can verify could issue.
ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
# How far the clocks of issuer and server may be apart.
LEEWAY_SECONDS = 30
MAX_SUBJECT_CHARACTERS = 128


def parse_keys(contents: Sequence[bytes]) -> jwt.PyJWKSet:
    """The keys of a JWKS document. Raises ValueError."""
    (content,) = contents
    try:
        document = json.loads(content)
        kinds = [key["kty"] for key in document["keys"]]
        if "oct" in kinds:
            raise ValueError("keys: a symmetric key (oct) has no place here")
        if any("d" in key for key in document["keys"]):
            raise ValueError("keys: a private key has no place here")
        return jwt.PyJWKSet.from_dict(document)
    except (jwt.PyJWTError, TypeError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"not a JWKS document with usable keys ({type(error).__name__})") from None


def grant_of(token: str, keys: jwt.PyJWKSet, *, issuer: str, audience: str) -> Grant:
    """Who is named by a JWT, `sub`, and what its `scope` opens: words that are no scope here open
    nothing. Raises jwt.PyJWTError."""
    claims: dict[str, Any] = jwt.decode(
        token,
        _key(token, keys),
        algorithms=ALGORITHMS,
        issuer=issuer,
        audience=audience,
        leeway=LEEWAY_SECONDS,
        options={"require": ["exp", "iss", "aud", "sub"]},
    )
    subject = claims["sub"]
    if not 0 < len(subject) <= MAX_SUBJECT_CHARACTERS or not subject.isprintable():
        raise jwt.InvalidTokenError("sub is no name")
    words = str(claims.get("scope", "")).split()
    return Grant(subject, frozenset(scope for scope in Scope if scope in words))


def _key(token: str, keys: jwt.PyJWKSet) -> jwt.PyJWK:
    """The key that the token names; if it names none, the only one."""
    identifier = jwt.get_unverified_header(token).get("kid")
    if identifier is None and len(keys.keys) == 1:
        return keys.keys[0]
    for key in keys.keys:
        if identifier is not None and key.key_id == identifier:
            return key
    raise jwt.InvalidKeyError("no such key")
