"""How a client shows who it is: TLS and a token."""

import argparse
import ipaddress
import os
from pathlib import Path
from typing import Any

import grpc

from ._client import Client
from ._connection import complete_address
from ._terminal import UsageError, tell

_TOKEN_VARIABLE = "INTONE_TOKEN"  # noqa: S105 - a name


def tls(
    *,
    ca: str | Path | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
) -> grpc.ChannelCredentials:
    """`credentials` of a `Client` for a server with TLS; all are PEM files.

    `ca` signed the server's certificate; None: one of the authorities that gRPC knows. With
    `certificate` and `key` the client shows one too. Raises ValueError for one without the other,
    OSError for a file that cannot be read.
    """
    if (certificate is None) != (key is None):
        raise ValueError("give both certificate and key, or none")
    return grpc.ssl_channel_credentials(
        None if ca is None else Path(ca).read_bytes(),
        None if key is None else Path(key).read_bytes(),
        None if certificate is None else Path(certificate).read_bytes(),
    )


def configure(parser: argparse.ArgumentParser, *, described: bool) -> None:
    """Add the options of a server's address to a parser; `described`: in its help too."""
    for name, metavar, text in (
        ("--tls-ca", "FILE", "PEM; who signed its certificate"),
        ("--tls-certificate", "FILE", "PEM; to show who calls"),
        ("--tls-key", "FILE", "PEM; of that certificate"),
        ("--token-file", "FILE", f"bearer token; default: ${_TOKEN_VARIABLE}"),
    ):
        parser.add_argument(name, metavar=metavar, help=text if described else argparse.SUPPRESS)
    parser.add_argument(
        "--tls",
        action="store_true",
        help="the server speaks TLS" if described else argparse.SUPPRESS,
    )


DEFAULTS: dict[str, Any] = {
    "tls": False,
    "tls_ca": None,
    "tls_certificate": None,
    "tls_key": None,
    "token_file": None,
}


def client_of(options: argparse.Namespace, *, retry: bool = True) -> Client:
    """The client that the options describe. Raises UsageError, OSError."""
    credentials = None
    if options.tls or options.tls_ca or options.tls_certificate or options.tls_key:
        try:
            credentials = tls(
                ca=options.tls_ca, certificate=options.tls_certificate, key=options.tls_key
            )
        except ValueError:
            raise UsageError("--tls-certificate and --tls-key: give both, or none") from None
    token = os.environ.get(_TOKEN_VARIABLE)
    if options.token_file:
        token = Path(options.token_file).read_text(encoding="utf-8").strip()
    if token and credentials is None and not _is_local(options.server):
        tell("the token travels in plaintext, which others can read on the way: see --tls")
    try:
        return Client(options.server, credentials=credentials, token=token or None, retry=retry)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _is_local(address: str) -> bool:
    """Whether nobody else is on the way."""
    host = complete_address(address).rpartition(":")[0].strip("[]")
    if address.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
