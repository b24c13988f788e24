"""From what a caller shows to a grant."""

from collections.abc import Sequence

import jwt

from intone_server.access.grants import Grant
from intone_server.access.jwts import grant_of
from intone_server.access.tokens import Tokens
from intone_server.errors import NotAllowed, Reason
from intone_server.watched_files import WatchedFiles

MAX_TOKEN_CHARACTERS = 8192


class TokenRefused(NotAllowed):
    """No good token. `fault` is for the server's log, and says nothing of the token itself."""

    def __init__(self, reason: Reason, message: str, fault: str) -> None:
        super().__init__(reason, message)
        self.fault = fault


class Authentication:
    """Knows the tokens of a file, and those that an issuer has signed."""

    def __init__(
        self,
        tokens: WatchedFiles[Tokens] | None,
        keys: WatchedFiles[jwt.PyJWKSet] | None,
        *,
        issuer: str,
        audience: str,
    ) -> None:
        self._tokens = tokens
        self._keys = keys
        self._issuer = issuer
        self._audience = audience

    def grant(self, authorization: Sequence[str]) -> Grant:
        """Of a call with these values of the metadata `authorization`. Raises TokenRefused."""
        if not authorization:
            raise TokenRefused(
                Reason.TOKEN_MISSING, "send a token, as authorization: Bearer TOKEN", "none"
            )
        if len(authorization) > 1:
            raise _invalid("authorization may be sent once", "several")
        scheme, _, token = authorization[0].partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise _invalid("authorization must be: Bearer TOKEN", "not a bearer token")
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise _invalid(f"the token is longer than {MAX_TOKEN_CHARACTERS:,}", "too long")
        if self._tokens is not None and (grant := self._tokens.value.find(token)) is not None:
            return grant
        if self._keys is None or token.count(".") != 2:
            raise _invalid("the token is not known here", "unknown")
        try:
            return grant_of(token, self._keys.value, issuer=self._issuer, audience=self._audience)
        except jwt.ExpiredSignatureError:
            raise _invalid("the token has expired", "expired") from None
        except jwt.PyJWTError as error:
            raise _invalid("the token is not valid here", type(error).__name__) from None


def _invalid(message: str, fault: str) -> TokenRefused:
    return TokenRefused(Reason.TOKEN_INVALID, message, fault)
