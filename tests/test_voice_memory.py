"""Created voices of a server without a directory for them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from intone_server.voices.memory import MemoryStore
from intone_server.voices.record import StoreFull, VoiceRecord


def record(name: str) -> VoiceRecord:
    return VoiceRecord(
        name=name,
        language="en",
        origin="imported",
        digest="d" * 64,
        model_fingerprint="f" * 64,
        model="fake",
        create_time=1.0,
        labels={},
        consent_statement="",
        report=None,
    )


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    store = MemoryStore(max_bytes=100)
    yield store
    store.close()


def test_voices_are_listed_in_order_until_they_are_deleted(store: MemoryStore) -> None:
    for name in ("b", "a"):
        store.create(record(name), b"state")
    assert [voice.name for voice in store.all()] == ["a", "b"]
    assert store.count() == 2
    assert store.delete("a")
    assert not store.delete("a")
    assert store.get("a") is None
    assert store.get("b") is not None


def test_another_process_reads_a_state_that_no_directory_has(store: MemoryStore) -> None:
    stored = store.create(record("a"), b"the state")
    program = f"print(open({str(stored.file)!r}, 'rb').read())"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "b'the state'"
    assert str(stored.file.readlink()).startswith("/memfd:")


def test_a_name_is_given_once(store: MemoryStore) -> None:
    store.create(record("a"), b"state")
    with pytest.raises(FileExistsError):
        store.create(record("a"), b"state")


def test_memory_is_bounded_and_freed(store: MemoryStore) -> None:
    store.create(record("a"), bytes(60))
    with pytest.raises(StoreFull, match="take 60 bytes, and this one 41, limit 100"):
        store.create(record("b"), bytes(41))
    store.delete("a")
    store.create(record("b"), bytes(41))


def test_closing_leaves_no_file_open() -> None:
    before = [*map(str, Path("/proc/self/fd").iterdir())]
    store = MemoryStore()
    store.create(record("a"), b"state")
    store.close()
    assert [*map(str, Path("/proc/self/fd").iterdir())] == before
