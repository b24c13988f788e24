"""What one client may have in use: never more than its limits, and hints that are true."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callers import bearer, delay_of, reason_of, token_entry
from intone.v1 import tts_pb2, tts_pb2_grpc
from intone_server.access import quotas as quotas_module
from intone_server.access.grants import ClientLimits
from intone_server.access.quotas import Account, Quotas
from intone_server.access.windows import SLOTS, Window
from intone_server.errors import Overloaded
from processes import ServerProcess, running_server

Request = tts_pb2.SynthesizeRequest


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def refusal_of(account: Account, count: int) -> float | None:
    """The delay with which so much text is refused, if it is."""
    try:
        account.take_characters(count)
    except Overloaded as error:
        return error.retry_after
    return None


steps = st.lists(st.tuples(st.floats(0, 30), st.integers(1, 60)), max_size=60)


@given(steps)
def test_no_minute_has_more_text_than_the_limit(steps: list[tuple[float, int]]) -> None:
    clock = Clock()
    account = Account(ClientLimits(characters_per_minute=100), clock)
    taken: list[tuple[float, int]] = []
    for pause, count in steps:
        clock.now += pause
        try:
            account.take_characters(count)
        except Overloaded:
            continue
        taken.append((clock.now, count))
    for end, _ in taken:
        assert sum(count for at, count in taken if end - 60 < at <= end) <= 100


@given(steps)
def test_who_comes_back_after_the_delay_is_let_in(steps: list[tuple[float, int]]) -> None:
    clock = Clock()
    account = Account(ClientLimits(characters_per_minute=100), clock)
    for pause, count in steps:
        clock.now += pause
        delay = refusal_of(account, count)
        if delay is not None:
            assert 0 < delay <= 60 * (1 + 1 / SLOTS)
            clock.now += delay + 0.001
            account.take_characters(count)


def test_a_text_that_never_fits_has_no_delay() -> None:
    with pytest.raises(Overloaded, match="has 101 characters, limit 100 a minute") as caught:
        Account(ClientLimits(characters_per_minute=100)).take_characters(101)
    assert caught.value.retry_after is None


def test_refused_text_is_not_counted() -> None:
    account = Account(ClientLimits(characters_per_minute=100), Clock())
    account.take_characters(60)
    for _ in range(3):
        with pytest.raises(Overloaded):
            account.take_characters(60)
    account.take_characters(40)


def test_audio_of_a_day_is_bounded_and_comes_back() -> None:
    clock = Clock()
    account = Account(ClientLimits(audio_seconds_per_day=10), clock)
    account.add_audio(12.5)
    with pytest.raises(Overloaded, match="got 12 s of audio in 24 hours, limit 10 s") as caught:
        account.check_audio()
    assert caught.value.retry_after is not None
    clock.now += caught.value.retry_after + 0.001
    account.check_audio()


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0.001, 10)), max_size=500))
def test_a_window_remembers_a_bounded_number_of_slots(adds: list[tuple[float, float]]) -> None:
    window, now = Window(60), 0.0
    for pause, amount in adds:
        now += pause
        window.used(now)
        window.add(now, amount)
    assert len(window._slots) <= SLOTS + 1


def test_places_come_back_when_calls_end() -> None:
    account = Account(ClientLimits(streams=1, heavy_calls=1))
    with account.stream(), account.heavy_call():
        with pytest.raises(Overloaded, match="has 1 calls open, limit 1"), account.stream():
            pass
        with pytest.raises(Overloaded), account.heavy_call():
            pass
    with account.stream(), account.heavy_call():
        pass
    assert not account.in_use


@pytest.fixture
def few_clients(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many are remembered here."""
    monkeypatch.setattr(quotas_module, "MAX_CLIENTS", 50)
    return 50


def test_clients_that_went_away_are_forgotten(few_clients: int) -> None:
    clock = Clock()
    quotas = Quotas(clock)
    limits = ClientLimits(streams=1, characters_per_minute=10)
    for number in range(few_clients + 100):
        quotas.account(f"client {number}", limits).take_characters(1)
    assert len(quotas) <= few_clients
    clock.now += 100
    for number in range(few_clients):
        quotas.account("one", limits)
        quotas.account(f"new {number}", limits)
    assert len(quotas) < few_clients


def test_a_client_with_a_call_open_is_not_forgotten(few_clients: int) -> None:
    quotas = Quotas(Clock())
    limits = ClientLimits(streams=1, characters_per_minute=10)
    with quotas.account("first", limits).stream():
        for number in range(few_clients + 10):
            quotas.account(f"client {number}", limits).take_characters(1)
        with pytest.raises(Overloaded), quotas.account("first", limits).stream():
            pass


def test_without_limits_nobody_is_remembered() -> None:
    quotas = Quotas()
    quotas.account("anna", ClientLimits()).take_characters(10**9)
    assert len(quotas) == 0


# Over the wire.


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    path = tmp_path_factory.mktemp("quotas") / "tokens.toml"
    scopes = ["synthesize"]
    path.write_text(
        token_entry("few", "few", scopes, max_streams=1)
        + token_entry("short", "short", scopes, max_characters_per_minute=30)
        + token_entry("short-too", "short-too", scopes, max_characters_per_minute=30)
        + token_entry("quiet", "quiet", scopes, max_audio_seconds_per_day=1)
        + token_entry("quiet-too", "quiet-too", scopes, max_audio_seconds_per_day=1)
        + token_entry("free", "free", scopes)
    )
    with running_server("--engine", "fake", "--tokens", str(path)) as server:
        yield server


@pytest.fixture
def stub(server: ServerProcess) -> Iterator[tts_pb2_grpc.TextToSpeechServiceStub]:
    with grpc.insecure_channel(server.address) as channel:
        yield tts_pb2_grpc.TextToSpeechServiceStub(channel)


def test_one_client_at_its_limit_does_not_disturb_another(
    stub: tts_pb2_grpc.TextToSpeechServiceStub,
) -> None:
    text = tts_pb2.SynthesizeTextRequest(text="One two.")
    open_call = stub.SynthesizeText(
        tts_pb2.SynthesizeTextRequest(text="frames@400 delay@20 one."), metadata=bearer("few")
    )
    next(open_call)
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.SynthesizeText(text, metadata=bearer("few")))
    assert reason_of(caught.value) == "CLIENT_LIMIT"
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED  # type: ignore[attr-defined]
    open_call.cancel()
    assert list(stub.SynthesizeText(text, metadata=bearer("free")))


def test_an_open_stream_speaks_what_was_taken_and_then_says_why_it_ends(
    stub: tts_pb2_grpc.TextToSpeechServiceStub,
) -> None:
    pieces = ["One two three four. ", "Too much of this text. ", "Not any more."]
    call = stub.Synthesize(iter([Request(text=p) for p in pieces]), metadata=bearer("short"))
    events: list[tts_pb2.SpeechEvent] = []
    with pytest.raises(grpc.RpcError) as caught:
        events.extend(response.event for response in call)
    assert reason_of(caught.value) == "CLIENT_LIMIT"
    assert "sent 20 characters in the last minute and now 23, limit 30" in (
        caught.value.details()  # type: ignore[attr-defined]
    )
    assert 0 < delay_of(caught.value) <= 61
    notices = [e.notice for e in events if e.HasField("notice")]
    assert [n.message.partition(":")[0] for n in notices] == ["CLIENT_LIMIT"]
    assert sum(e.audio.sample_count for e in events) == 4 * 1920  # the first sentence, whole


def test_commands_hold_while_the_rest_is_spoken(
    stub: tts_pb2_grpc.TextToSpeechServiceStub,
) -> None:
    told = threading.Event()

    def requests() -> Iterator[Request]:
        yield Request(text="frames@300 delay@10 one. ")
        yield Request(text="Too much for it.")
        told.wait(10)
        yield Request(clear=tts_pb2.Clear(id="c"))

    call = stub.Synthesize(requests(), metadata=bearer("short-too"))
    kinds = []

    def note(event: tts_pb2.SpeechEvent) -> None:
        kinds.append(event.WhichOneof("event"))
        if event.HasField("notice"):
            told.set()

    with pytest.raises(grpc.RpcError) as caught:
        _each(call, note)
    assert kinds[-1] == "cleared"
    assert reason_of(caught.value) == "CLIENT_LIMIT"


def _each(call: Any, note: Callable[[tts_pb2.SpeechEvent], None]) -> None:
    for response in call:
        note(response.event)


def test_a_client_that_had_its_audio_is_told_when_to_come_back(
    stub: tts_pb2_grpc.TextToSpeechServiceStub,
) -> None:
    text = tts_pb2.SynthesizeTextRequest(text="frames@20 one.")
    assert list(stub.SynthesizeText(text, metadata=bearer("quiet")))
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.SynthesizeText(text, metadata=bearer("quiet")))
    assert reason_of(caught.value) == "CLIENT_LIMIT"
    assert 0 < delay_of(caught.value) <= 86_400 * (1 + 1 / SLOTS)
    trailers = dict(caught.value.trailing_metadata())  # type: ignore[attr-defined]
    assert trailers["grpc-retry-pushback-ms"] == "-1"  # no library sits through that


def test_the_audio_of_a_day_ends_an_open_stream_too(
    stub: tts_pb2_grpc.TextToSpeechServiceStub,
) -> None:
    spoken = threading.Event()

    def requests() -> Iterator[Request]:
        yield Request(text="frames@20 one. ")
        yield Request(flush=tts_pb2.Flush(id="f"))
        spoken.wait(10)
        yield Request(text="One more.")

    call = stub.Synthesize(requests(), metadata=bearer("quiet-too"))
    with pytest.raises(grpc.RpcError) as caught:
        _each(call, lambda event: spoken.set() if event.HasField("flushed") else None)
    assert reason_of(caught.value) == "CLIENT_LIMIT"


def test_clients_are_told_apart_by_what_a_proxy_says() -> None:
    flags = ["--client-header", "x-forwarded-for", "--max-client-streams", "1"]
    with (
        running_server("--engine", "fake", *flags) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
        slow = tts_pb2.SynthesizeTextRequest(text="frames@400 delay@20 one.")
        call = stub.SynthesizeText(slow, metadata=(("x-forwarded-for", "1.1.1.1, 2.2.2.2"),))
        next(call)
        text = tts_pb2.SynthesizeTextRequest(text="One two.")
        with pytest.raises(grpc.RpcError) as caught:  # what the caller says of itself is no matter
            list(stub.SynthesizeText(text, metadata=(("x-forwarded-for", "9.9.9.9, 2.2.2.2"),)))
        assert reason_of(caught.value) == "CLIENT_LIMIT"
        call.cancel()
