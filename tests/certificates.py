"""Certificate authorities, and certificates for servers and clients, in files."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> list[str]:
        """Into two files; their paths."""
        paths = folder / f"{name}.pem", folder / f"{name}.key"
        paths[0].write_bytes(self.certificate)
        paths[1].write_bytes(self.key)
        return [str(path) for path in paths]


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key.public_key(), days=365)
        self._certificate = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        ).sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(Encoding.PEM)

    def issue(self, name: str, *, days: int = 90, uri: str = "") -> Pair:
        """A certificate for `name` and localhost; with negative `days` it has expired.
        With an empty name it has none."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])
        names: list[x509.GeneralName] = [
            x509.DNSName(name or "nobody"),
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        if uri:
            names.insert(0, x509.UniformResourceIdentifier(uri))
        builder = self._builder(subject, key.public_key(), days=days)
        if name:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Pair(
            builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM),
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, days: int
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=400))
            .not_valid_after(now + datetime.timedelta(days=days))
        )
