"""TLS with certificates that are read again when they change."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import grpc
import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from intone_server.watched_files import WatchedFiles

log = structlog.stdlib.get_logger("intone.tls")

SOON = datetime.timedelta(days=7)


def server_credentials(certificate: str, key: str, client_ca: str) -> grpc.ServerCredentials:
    """For a port with TLS 1.2 or newer, gRPC's own floor. With `client_ca`, clients must show a
    certificate that it signed. Connections keep what they began with. Raises OSError or ValueError.
    """
    paths = [certificate, key, *([client_ca] if client_ca else [])]
    files = WatchedFiles("--tls-certificate", paths, _parse)
    told = [files.value]

    def fetch() -> Any:  # called at each handshake, by a thread of gRPC's
        now = files.value
        if now is told[0]:
            return None  # as before
        told[0] = now
        return now

    return grpc.dynamic_ssl_server_credentials(
        told[0], fetch, require_client_authentication=bool(client_ca)
    )


def _parse(contents: Sequence[bytes]) -> Any:
    """A configuration of gRPC's, if the files fit each other: one may be written before another."""
    chain, key, *authorities = contents
    certificate = x509.load_pem_x509_certificates(chain)[0]
    try:
        private = load_pem_private_key(key, password=None)
    except TypeError:
        raise ValueError("the key asks for a password, which cannot be given") from None
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if private.public_key().public_bytes(*form) != certificate.public_key().public_bytes(*form):
        raise ValueError("the key is not that of the certificate")
    for pem in authorities:
        x509.load_pem_x509_certificates(pem)
    _tell(certificate)
    return grpc.ssl_server_certificate_configuration(
        [(key, chain)], root_certificates=authorities[0] if authorities else None
    )


def _tell(certificate: x509.Certificate) -> None:
    end = certificate.not_valid_after_utc
    left = end - datetime.datetime.now(datetime.UTC)
    tell = log.warning if left < SOON else log.info
    tell("certificate", expires=end.isoformat(), days_left=left.days)


def subject_of(auth_context: Mapping[str, Iterable[bytes]]) -> str:
    """Whom a verified client certificate names: its first URI or DNS name, else its common name; ""
    if it showed none."""
    for key in ("peer_uri", "peer_dns", "x509_common_name"):
        for value in auth_context.get(key, ()):
            return value.decode(errors="replace")
    return ""
