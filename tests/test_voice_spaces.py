"""The spaces of a voice directory: what servers with and without owners see of each other."""

import stat
from pathlib import Path
from typing import Any

import pytest

from intone_server.voices import store as store_module
from intone_server.voices.memory import MemoryStore
from intone_server.voices.record import COMMON, StoreFull, VoiceRecord
from intone_server.voices.spaces import VoiceSpaces
from intone_server.voices.store import VoiceStore

RECORD: dict[str, Any] = {
    "language": "en",
    "origin": "imported",
    "digest": "d" * 64,
    "model_fingerprint": "f" * 64,
    "model": "fake",
    "create_time": 1.0,
    "labels": {},
    "consent_statement": "",
    "report": None,
}


def record(name: str, owner: str = "", *, shared: bool = False) -> VoiceRecord:
    return VoiceRecord(name=name, owner=owner, shared=shared, **RECORD)


@pytest.fixture
def spaces(tmp_path: Path) -> VoiceSpaces:
    return VoiceSpaces(tmp_path)


def test_each_space_has_names_of_its_own(spaces: VoiceSpaces) -> None:
    kept = [spaces.create(record("a", owner), owner.encode()) for owner in ("", "ann", "ben")]
    kept.append(spaces.create(record("b", "ann", shared=True), b"shared"))
    assert spaces.all(COMMON) == [kept[0], kept[3]]
    assert spaces.all("ann") == [kept[1]]
    assert spaces.get("a", "ben") == kept[2]
    assert spaces.get("b", "ann") is None
    assert spaces.count() == 4
    assert spaces.delete("a", "ann")
    assert not spaces.delete("a", "ann")
    assert [voice.file.read_bytes() for voice in kept[2:]] == [b"ben", b"shared"]
    with pytest.raises(FileExistsError):
        spaces.create(record("a", "ben"), b"another")


def test_looking_for_voices_of_a_client_who_has_none_makes_nothing(
    spaces: VoiceSpaces, tmp_path: Path
) -> None:
    assert spaces.get("a", "ann") is None
    assert spaces.all("ann") == []
    assert not spaces.delete("a", "ann")
    assert list(tmp_path.iterdir()) == []


def test_servers_see_at_once_what_the_others_keep(spaces: VoiceSpaces, tmp_path: Path) -> None:
    other = VoiceSpaces(tmp_path)
    assert other.get("a", "ann") is None
    kept = spaces.create(record("a", "ann"), b"state")
    assert other.get("a", "ann") == kept
    assert other.count() == 1
    assert other.delete("a", "ann")
    assert spaces.all("ann") == []


def test_a_server_that_knows_no_owners_sees_the_common_voices_alone(
    spaces: VoiceSpaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And takes nothing of an owner for what a crash has left."""
    own = spaces.create(record("a", "ann"), b"own")
    spaces.create(record("b", "ann", shared=True), b"shared")
    monkeypatch.setattr(store_module, "LEFTOVER_SECONDS", -1.0)
    old = VoiceStore(tmp_path)
    made = old.create(record("c"), b"old")
    assert [voice.name for voice in old.all()] == ["b", "c"]
    assert spaces.get("c", COMMON) == made
    assert spaces.get("a", "ann") == own
    assert own.file.read_bytes() == b"own"


def test_a_voice_that_was_moved_to_another_space_is_in_none(
    spaces: VoiceSpaces, tmp_path: Path
) -> None:
    """Its record tells whose it is; a directory could be renamed by mistake."""
    own = spaces.create(record("a", "ann"), b"own")
    other = spaces.create(record("b", "ben"), b"other").file.parent
    for target in (other, tmp_path):
        for file in list(own.file.parent.iterdir()):
            (target / file.name).write_bytes(file.read_bytes())
    assert spaces.get("a", "ben") is None
    assert spaces.get("a", COMMON) is None
    assert [voice.name for voice in spaces.all("ben")] == ["b"]
    assert spaces.all(COMMON) == []
    assert not spaces.delete("a", "ben")


def test_what_a_crash_left_with_an_owner_is_removed_though_the_owner_never_calls_again(
    spaces: VoiceSpaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = spaces.create(record("a", "ann"), b"own")
    leftover = own.file.parent / f"b.{'0' * 16}.safetensors"
    leftover.touch()
    monkeypatch.setattr(store_module, "LEFTOVER_SECONDS", -1.0)
    VoiceSpaces(tmp_path).count()
    assert not leftover.exists()
    assert own.file.exists()


def test_who_can_write_in_the_directory_can_write_in_those_of_owners(
    spaces: VoiceSpaces, tmp_path: Path
) -> None:
    """Servers that share a group, but no user."""
    tmp_path.chmod(0o2770)
    own = spaces.create(record("a", "ann"), b"own")
    assert stat.S_IMODE(own.file.parent.stat().st_mode) == 0o2770


@pytest.mark.parametrize("wrong", [b'"owner": 7', b'"shared": "yes"'])
def test_a_record_with_a_wrong_owner_is_skipped(
    spaces: VoiceSpaces, tmp_path: Path, wrong: bytes
) -> None:
    spaces.create(record("a", "ann", shared=True), b"state")
    json = tmp_path / "a.json"
    key = wrong.partition(b":")[0]
    lines = [wrong + b"," if key in line else line for line in json.read_bytes().split(b"\n")]
    json.write_bytes(b"\n".join(lines))
    assert spaces.all(COMMON) == []


def test_in_memory_a_client_has_a_share_of_the_room() -> None:
    store = MemoryStore(max_bytes=100)
    store.create(record("a", "ann"), bytes(20))
    with pytest.raises(StoreFull, match=r"client's voices .* take 20 bytes, .* limit 25"):
        store.create(record("b", "ann", shared=True), bytes(6))
    store.create(record("a", "ben"), bytes(25))
    store.create(record("c"), bytes(55))
    with pytest.raises(StoreFull, match=r"the voices in memory take 100 bytes, .* limit 100"):
        store.create(record("b", "ann"), bytes(1))
    store.close()
