"""Tokens for tests, and calls that show them."""

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

ISSUER, AUDIENCE = "https://login.example.org/", "intone"
Metadata = tuple[tuple[str, str], ...]


def token_entry(name: str, token: str, scopes: list[str], **limits: int) -> str:
    """A [[token]] of a token file."""
    lines = [
        "[[token]]",
        f'name = "{name}"',
        f'sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"',
        f"scopes = {json.dumps(scopes)}",
        *(f"{key} = {value}" for key, value in limits.items()),
    ]
    return "\n".join(lines) + "\n\n"


def bearer(token: str) -> Metadata:
    """Metadata with a token."""
    return (("authorization", f"Bearer {token}"),)


class Issuer:
    """Signs JWTs, with a key that it publishes."""

    def __init__(self, kid: str = "one") -> None:
        self.kid = kid
        self.key = ec.generate_private_key(ec.SECP256R1())

    @property
    def pem(self) -> bytes:
        """The public key."""
        return self.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def publish(self, path: Path) -> None:
        """Write the JWKS document."""
        jwk = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key()))
        path.write_text(json.dumps({"keys": [jwk | {"kid": self.kid, "use": "sig"}]}))

    def token(self, **claims: Any) -> str:
        """A token that is good for a minute, but for what `claims` says; None leaves one out."""
        everything = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "anna",
            "exp": int(time.time()) + 60,
            "scope": "openid synthesize",
        } | claims
        given = {key: value for key, value in everything.items() if value is not None}
        return jwt.encode(given, self.key, algorithm="ES256", headers={"kid": self.kid})


def reason_of(error: grpc.RpcError) -> str:
    """`ErrorInfo.reason` of a status."""
    info = error_details_pb2.ErrorInfo()
    _unpack(error, info)
    return info.reason


def delay_of(error: grpc.RpcError) -> float:
    """`RetryInfo` of a status, in seconds; 0 if it has none."""
    retry = error_details_pb2.RetryInfo()
    _unpack(error, retry)
    return retry.retry_delay.ToNanoseconds() / 1e9


def _unpack(error: grpc.RpcError, into: Message) -> None:
    assert isinstance(error, grpc.Call | grpc.aio.AioRpcError)
    metadata = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])  # type: ignore[arg-type]
    for detail in status.details:
        detail.Unpack(into)
