"""TLS, with and without client certificates, whose files may change while the server runs."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from grpc_health.v1 import health_pb2, health_pb2_grpc

from callers import reason_of
from certificates import Authority, Pair
from intone.v1 import tts_pb2, tts_pb2_grpc
from intone_client import Client, tls
from intone_client.cli import main
from processes import ServerProcess, running_server, start_server, wait_for

SPEECH = tts_pb2.SynthesizeTextRequest(text="One two.")


@dataclass
class Secure:
    """A server with TLS, started without waiting: health is asked with TLS too."""

    server: ServerProcess
    folder: Path
    authority: Authority

    @contextmanager
    def channel(self, client: Pair | None = None, ca: bytes = b"") -> Iterator[grpc.Channel]:
        credentials = grpc.ssl_channel_credentials(
            ca or self.authority.pem,
            client.key if client else None,
            client.certificate if client else None,
        )
        # Each has a connection of its own.
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.secure_channel(self.server.address, credentials, options) as channel:
            yield channel

    def say(self, client: Pair | None = None, ca: bytes = b"") -> None:
        """Raises grpc.RpcError."""
        with self.channel(client, ca) as channel:
            list(tts_pb2_grpc.TextToSpeechServiceStub(channel).SynthesizeText(SPEECH, timeout=10))

    def certificate(self) -> x509.Certificate:
        """The one that a new connection sees."""
        context = ssl.create_default_context(cadata=self.authority.pem.decode())
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        host, port = self.server.address.split(":")
        with (
            socket.create_connection((host, int(port)), 10) as plain,
            context.wrap_socket(plain) as secure,
        ):
            found = secure.getpeercert(binary_form=True)
            assert found is not None
            return x509.load_der_x509_certificate(found)

    def logged(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.server.logs() if line["event"] == event]


@contextmanager
def secure_server(folder: Path, *flags: str, pair: Pair | None = None) -> Iterator[Secure]:
    authority = Authority()
    pair = pair or authority.issue("first")
    certificate, key = pair.write(folder, "server")
    tls = ["--tls-certificate", certificate, "--tls-key", key]
    with running_server("--engine", "fake", *tls, *flags, ready=False) as server:
        wait_for(lambda: "serving" in server.stderr.read_text(), 60)
        yield Secure(server, folder, authority)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    with secure_server(tmp_path_factory.mktemp("tls"), "--health-listen", "127.0.0.1:0") as secure:
        yield secure


def test_who_trusts_the_authority_is_served(secure: Secure) -> None:
    secure.say()


def test_who_trusts_another_authority_is_not(secure: Secure) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        secure.say(ca=Authority().pem)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE  # type: ignore[attr-defined]


def test_plaintext_is_not_served(secure: Secure) -> None:
    with grpc.insecure_channel(secure.server.address) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            list(tts_pb2_grpc.TextToSpeechServiceStub(channel).SynthesizeText(SPEECH, timeout=10))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
@pytest.mark.parametrize(
    ("version", "served"),
    [
        (ssl.TLSVersion.TLSv1_1, False),
        (ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_3, True),
    ],
)
def test_the_oldest_tls_is_1_2(secure: Secure, version: ssl.TLSVersion, served: bool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # or the client itself would refuse 1.1
    context.minimum_version = context.maximum_version = version
    host, port = secure.server.address.split(":")
    with socket.create_connection((host, int(port)), 10) as plain:
        if served:
            with context.wrap_socket(plain) as connection:
                assert connection.version() == version.name.replace("_", ".")
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                context.wrap_socket(plain)


def test_probes_ask_the_plaintext_port_which_knows_nothing_but_health(secure: Secure) -> None:
    (started,) = secure.logged("starting")
    assert started["tls"] == "yes"
    with grpc.insecure_channel(started["health"]) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for name in ("startup", "readiness", "liveness", ""):
            answer = health.Check(health_pb2.HealthCheckRequest(service=name), timeout=10)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError) as caught:
            list(tts_pb2_grpc.TextToSpeechServiceStub(channel).SynthesizeText(SPEECH, timeout=10))
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED  # type: ignore[attr-defined]


def test_a_new_certificate_is_used_without_a_restart_or_a_dropped_stream(secure: Secure) -> None:
    with secure.channel() as channel:
        text = tts_pb2.SynthesizeTextRequest(text="frames@60 delay@20 one.")
        call = tts_pb2_grpc.TextToSpeechServiceStub(channel).SynthesizeText(text, timeout=60)
        events = [next(call).event]
        before = secure.certificate().serial_number
        secure.authority.issue("second").write(secure.folder, "server")
        wait_for(lambda: secure.certificate().serial_number != before)
        events += [response.event for response in call]
    assert events[-1].HasField("finished")
    assert sum(e.audio.sample_count for e in events) == 60 * 1920
    secure.say()


def test_files_that_do_not_fit_each_other_keep_the_old_certificate(secure: Secure) -> None:
    before = secure.certificate().serial_number
    key = secure.folder / "server.key"
    old = key.read_bytes()
    key.write_bytes(secure.authority.issue("other").key)
    fault = "files changed, and are wrong: the old content holds"
    wait_for(lambda: secure.certificate() is not None and bool(secure.logged(fault)))
    assert secure.logged(fault)[0]["fault"] == "the key is not that of the certificate"
    assert secure.certificate().serial_number == before
    secure.say()
    key.write_bytes(old)


def test_the_log_tells_when_the_certificate_ends(secure: Secure, tmp_path: Path) -> None:
    assert secure.logged("certificate")[0]["days_left"] in (89, 90)
    with secure_server(tmp_path, pair=Authority().issue("old", days=3)) as other:
        (told,) = other.logged("certificate")
        assert told["level"] == "warning"
        assert told["days_left"] in (2, 3)


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Secure, Authority]]:
    folder = tmp_path_factory.mktemp("mutual")
    clients = Authority("clients")
    (folder / "ca.pem").write_bytes(clients.pem)
    with secure_server(folder, "--tls-client-ca", str(folder / "ca.pem")) as secure:
        yield secure, clients


def test_clients_show_a_certificate_which_names_them(mutual: tuple[Secure, Authority]) -> None:
    secure, clients = mutual
    secure.say(clients.issue("agent"))
    secure.say(clients.issue("pod", uri="spiffe://cluster/ns/voice/sa/agent"))
    names = {"agent", "spiffe://cluster/ns/voice/sa/agent"}
    wait_for(lambda: names <= {line.get("client") for line in secure.logged("call ended")})


def test_a_certificate_without_a_name_is_refused(mutual: tuple[Secure, Authority]) -> None:
    secure, clients = mutual
    with pytest.raises(grpc.RpcError) as caught:
        secure.say(clients.issue(""))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED  # type: ignore[attr-defined]
    assert reason_of(caught.value) == "TOKEN_INVALID"


@pytest.mark.parametrize("kind", ["none", "of another authority", "expired"])
def test_without_a_good_one_nobody_is_served(mutual: tuple[Secure, Authority], kind: str) -> None:
    secure, clients = mutual
    shown = {
        "none": None,
        "of another authority": Authority("clients").issue("agent"),
        "expired": clients.issue("agent", days=-1),
    }[kind]
    with pytest.raises(grpc.RpcError) as caught:
        secure.say(shown)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE  # type: ignore[attr-defined]


async def test_the_python_client_speaks_tls_and_shows_its_certificate(
    mutual: tuple[Secure, Authority], tmp_path: Path
) -> None:
    secure, clients = mutual
    certificate, key = clients.issue("python").write(tmp_path, "client")
    ca = tmp_path / "ca.pem"
    ca.write_bytes(secure.authority.pem)
    credentials = tls(ca=ca, certificate=certificate, key=key)
    async with Client(secure.server.address, credentials=credentials) as client:
        assert (await client.info()).engine == "fake"
    with pytest.raises(ValueError, match="both certificate and key"):
        tls(certificate=certificate)
    shown = ["--tls-ca", str(ca), "--tls-certificate", certificate, "--tls-key", key]
    assert await asyncio.to_thread(main, ["info", "--server", secure.server.address, *shown]) == 0
    assert await asyncio.to_thread(main, ["info", "--server", secure.server.address]) == 1


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (["--tls-certificate", "{certificate}"], "--tls-certificate and --tls-key: give both"),
        (["--tls-client-ca", "{certificate}"], "--tls-client-ca: needs --tls-certificate"),
        (
            ["--tls-certificate", "{certificate}", "--tls-key", "{other}"],
            "the key is not that of the certificate",
        ),
        (["--tls-certificate", "{key}", "--tls-key", "{key}"], "--tls-certificate"),
    ],
)
def test_wrong_files_end_the_start(tmp_path: Path, flags: list[str], fault: str) -> None:
    authority = Authority()
    certificate, key = authority.issue("server").write(tmp_path, "server")
    _, other = authority.issue("other").write(tmp_path, "other")
    named = [f.format(certificate=certificate, key=key, other=other) for f in flags]
    server = start_server(tmp_path, "--engine", "fake", *named)
    assert server.process.wait(30) == 1
    assert fault in server.stderr.read_text()
    assert server.process.stdout is not None
    server.process.stdout.close()
