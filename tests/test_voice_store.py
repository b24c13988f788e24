"""The directory of created and imported voices: whole or absent, whatever happens, for everyone."""

import asyncio
import dataclasses
import errno
import json
import os
import random
import re
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from intone_server.voices import store as store_module
from intone_server.voices.record import StoredVoice, VoiceRecord
from intone_server.voices.store import VoiceStore

STATE = b"not really tensors" * 1000
REPORT = {
    "seconds_used": 12.5,
    "level_dbfs": -23.0,
    "clipped_ratio": 0.0,
    "speech_ratio": 1,
    "warnings": ["quiet"],
}


RECORD: dict[str, Any] = {
    "name": "anna",
    "language": "english",
    "origin": "created",
    "digest": "0" * 64,
    "model_fingerprint": "f1",
    "model": "english",
    "create_time": 1_700_000_000.25,
    "labels": {"team": "a"},
    "consent_statement": "I agree.",
    "report": REPORT,
}


def record(name: str = "anna", **changes: Any) -> VoiceRecord:
    return VoiceRecord(**(RECORD | {"name": name} | changes))


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def assert_whole(voice: StoredVoice, state: bytes = STATE) -> None:
    """This voice is complete, and nothing else is in its directory."""
    assert voice.file.read_bytes() == state
    assert names_in(voice.file.parent) == {f"{voice.name}.json", voice.file.name}


@pytest.fixture
def store(tmp_path: Path) -> VoiceStore:
    return VoiceStore(tmp_path)


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as lines:
        yield lines


@pytest.fixture
def everything_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LEFTOVER_SECONDS", -1.0)


class TestLifeCycle:
    """One server."""

    def test_a_voice_is_created_found_listed_and_deleted(
        self, store: VoiceStore, tmp_path: Path
    ) -> None:
        assert store.get("anna") is None
        assert store.all() == []
        created = store.create(record(), STATE)
        assert_whole(created)
        assert store.get("anna") == created
        assert store.all() == [created]
        assert store.count() == 1
        assert dataclasses.asdict(created) == dataclasses.asdict(record()) | {"file": created.file}
        assert store.delete("anna")
        assert store.get("anna") is None
        assert not store.delete("anna")
        assert store.count() == 0
        assert names_in(tmp_path) == set()

    def test_voices_are_listed_by_name(self, store: VoiceStore) -> None:
        for name in ("b", "a-b", "a_b", "a", "ab"):
            store.create(record(name), b"")
        assert [voice.name for voice in store.all()] == ["a", "a-b", "a_b", "ab", "b"]

    def test_a_name_is_taken_until_its_voice_is_deleted(self, store: VoiceStore) -> None:
        first = store.create(record(), STATE)
        with pytest.raises(FileExistsError):
            store.create(record(language="french"), b"other")
        assert store.all() == [first]
        assert_whole(first)
        store.delete("anna")
        second = store.create(record(language="french"), b"other")
        assert second.file != first.file
        assert_whole(second, b"other")

    def test_a_voice_from_the_store_can_be_kept_under_another_name(self, store: VoiceStore) -> None:
        created = store.create(record(), STATE)
        copy = store.create(dataclasses.replace(created, name="copy"), created.file.read_bytes())
        assert copy.digest == created.digest
        assert copy.file != created.file

    def test_the_description_is_json_for_people(self, store: VoiceStore, tmp_path: Path) -> None:
        created = store.create(record(consent_statement="Ja, gerne, Zoë 😀"), STATE)
        text = (tmp_path / "anna.json").read_text("utf-8")
        keys = re.findall(r'^  "(\w+)":', text, re.MULTILINE)
        assert keys == sorted(keys)
        assert "Zoë 😀" in text
        assert json.loads(text)["version"] == 1
        assert json.loads(text)["file"] == created.file.name

    def test_other_users_of_the_machine_can_read_nothing(self, tmp_path: Path) -> None:
        mask = os.umask(0)
        try:
            created = VoiceStore(tmp_path / "voices").create(record(), STATE)
        finally:
            os.umask(mask)
        for path in (created.file.parent, created.file, created.file.parent / "anna.json"):
            assert stat.S_IMODE(path.stat().st_mode) & stat.S_IRWXO == 0

    async def test_calls_may_come_from_any_thread(self, store: VoiceStore) -> None:
        names = [f"v{number:02}" for number in range(20)]
        created = await asyncio.gather(
            *(asyncio.to_thread(store.create, record(name), name.encode()) for name in names)
        )
        assert await asyncio.to_thread(store.all) == list(created)

    def test_who_has_a_state_open_reads_on_after_its_deletion(self, store: VoiceStore) -> None:
        created = store.create(record(), STATE)
        with created.file.open("rb") as opened:
            assert store.delete("anna")
            assert opened.read() == STATE

    @settings(max_examples=40, deadline=None)
    @given(
        labels=st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5),
        consent=st.text(max_size=200),
        create_time=st.floats(0, 253_402_300_799),
        language=st.text(max_size=10),
    )
    def test_whatever_was_said_comes_back_to_the_letter(
        self, labels: dict[str, str], consent: str, create_time: float, language: str
    ) -> None:
        given_record = record(
            labels=labels, consent_statement=consent, create_time=create_time, language=language
        )
        with tempfile.TemporaryDirectory() as directory:
            VoiceStore(Path(directory)).create(given_record, b"")
            found = VoiceStore(Path(directory)).get("anna")
        assert found is not None
        assert dataclasses.asdict(found) == dataclasses.asdict(given_record) | {"file": found.file}

    @pytest.mark.parametrize(
        "changes",
        [
            {"name": "Anna"},
            {"name": "../anna"},
            {"name": "anna\n"},
            {"name": ""},
            {"name": "a" * 65},
            {"origin": "stolen"},
            {"digest": "abc"},
            {"create_time": float("nan")},
            {"create_time": -1.0},
            {"labels": {"a": "\ud800"}},
            {"consent_statement": "x" * (1 << 20)},
            {"report": {"seconds_used": 1.0}},
            {"report": REPORT | {"level_dbfs": float("-inf")}},
        ],
        ids=str,
    )
    def test_nothing_is_written_that_could_not_be_read(
        self, store: VoiceStore, tmp_path: Path, changes: dict[str, Any]
    ) -> None:
        with pytest.raises(ValueError):
            store.create(record(**changes), STATE)
        assert names_in(tmp_path) == set()

    @pytest.mark.parametrize("name", ["", "..", "../anna", "ANNA", "anna\0", "anna.json", "é"])
    def test_what_is_no_name_is_no_voice_and_is_looked_for_nowhere(
        self, tmp_path: Path, name: str, logged: list[Any]
    ) -> None:
        (tmp_path / "inner").mkdir()
        VoiceStore(tmp_path).create(record(), STATE)
        inner = VoiceStore(tmp_path / "inner")
        assert inner.get(name) is None
        assert not inner.delete(name)
        assert VoiceStore(tmp_path).count() == 1
        assert logged == []


class TestDirectory:
    """What the store needs of its directory."""

    def test_a_missing_directory_is_made(self, tmp_path: Path) -> None:
        assert VoiceStore(tmp_path / "voices").all() == []
        assert (tmp_path / "voices").is_dir()

    def test_only_the_last_part_of_the_path_is_made(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="missing/voices"):
            VoiceStore(tmp_path / "missing" / "voices")

    def test_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "voices").write_text("")
        with pytest.raises(NotADirectoryError, match=r"is not a directory.*voices"):
            VoiceStore(tmp_path / "voices")

    def test_a_directory_for_reading_only_serves_for_reading(
        self, store: VoiceStore, tmp_path: Path
    ) -> None:
        created = store.create(record(), STATE)
        for path in tmp_path.iterdir():
            path.chmod(0o644)
        tmp_path.chmod(0o555)
        shown = as_another_user(
            tmp_path,
            """
            store = VoiceStore(Path("."))
            print(store.get("anna").name, len(store.all()), store.count())
            for change in (lambda: store.create(record("b"), b""), lambda: store.delete("anna")):
                try:
                    change()
                except OSError as error:
                    print(type(error).__name__)
            """,
        )
        assert shown.split() == ["anna", "1", "1", "PermissionError", "PermissionError"]
        tmp_path.chmod(0o755)
        assert_whole(created)

    def test_a_directory_that_cannot_be_read_is_refused_with_the_reason(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "closed").mkdir(mode=0)
        tmp_path.chmod(0o755)
        shown = as_another_user(
            tmp_path,
            """
            try:
                VoiceStore(Path("closed"))
            except PermissionError as error:
                print(error)
            """,
        )
        assert "directory is not readable: 'closed'" in shown

    def test_an_unreadable_file_does_not_hide_the_other_voices(
        self, store: VoiceStore, tmp_path: Path
    ) -> None:
        store.create(record("anna"), STATE)
        store.create(record("bert"), STATE)
        (tmp_path / "anna.json").chmod(0)
        (tmp_path / "bert.json").chmod(0o644)
        tmp_path.chmod(0o755)
        shown = as_another_user(
            tmp_path, 'print([voice.name for voice in VoiceStore(Path(".")).all()])'
        )
        assert "['bert']" in shown
        assert shown.count("cannot be read: Permission denied") == 1


class TestSharing:
    """Several servers on one directory."""

    def test_every_change_is_seen_by_the_others_at_once(self, tmp_path: Path) -> None:
        ours, theirs = VoiceStore(tmp_path), VoiceStore(tmp_path)
        assert theirs.get("anna") is None
        created = ours.create(record(), STATE)
        assert theirs.get("anna") == created
        assert theirs.all() == [created]
        assert theirs.delete("anna")
        assert ours.get("anna") is None
        assert ours.all() == []
        again = theirs.create(record(language="french"), STATE)
        assert ours.get("anna") == again

    def test_of_threads_that_create_one_name_exactly_one_wins(self, tmp_path: Path) -> None:
        stores = [VoiceStore(tmp_path) for _ in range(8)]
        for number in range(10):
            name = f"voice{number}"
            barrier = threading.Barrier(len(stores))

            def create(
                index: int, name: str = name, barrier: threading.Barrier = barrier
            ) -> StoredVoice | None:
                barrier.wait()
                try:
                    return stores[index].create(record(name), b"%d" % index)
                except FileExistsError:
                    return None

            with ThreadPoolExecutor(len(stores)) as pool:
                results = list(pool.map(create, range(len(stores))))
            (winner,) = [index for index, voice in enumerate(results) if voice]
            assert stores[0].get(name) == results[winner]
            assert_whole(results[winner], b"%d" % winner)
            assert stores[0].delete(name)

    @pytest.mark.parametrize("hard_links", [True, False])
    def test_of_processes_that_create_one_name_exactly_one_wins(
        self, tmp_path: Path, hard_links: bool
    ) -> None:
        shown = run(
            """
            for number in range(10):
                start = time.monotonic() + 0.02
                children = []
                for index in range(4):
                    child = os.fork()
                    if child == 0:
                        while time.monotonic() < start:
                            pass
                        try:
                            voice = VoiceStore(Path(".")).create(
                                record(f"v{number}"), b"%d" % index
                            )
                            os._exit(0 if voice.file.read_bytes() == b"%d" % index else 2)
                        except FileExistsError:
                            os._exit(1)
                        finally:
                            os._exit(3)
                    children.append(child)
                codes = [os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children]
                assert sorted(codes) == [0, 1, 1, 1], codes
                voice = VoiceStore(Path(".")).get(f"v{number}")
                assert voice.file.read_bytes() == b"%d" % codes.index(0)
            print(len(VoiceStore(Path(".")).all()), len(os.listdir(".")))
            """,
            tmp_path,
            hard_links=hard_links,
        )
        assert shown.split() == ["10", "20"]

    def test_in_any_mix_of_creations_and_deletions_a_voice_is_whole_or_absent(
        self, tmp_path: Path
    ) -> None:
        stop = threading.Event()

        def change(seed: int) -> tuple[int, int]:
            store, choice = VoiceStore(tmp_path), random.Random(seed)
            created = deleted = 0
            for number in range(40):
                if choice.random() < 0.5:
                    deleted += store.delete("anna")
                    continue
                text = f"{seed} {number}"
                try:
                    store.create(record(consent_statement=text), text.encode())
                    created += 1
                except FileExistsError:
                    pass
            return created, deleted

        def look() -> int:
            store, seen = VoiceStore(tmp_path), 0
            while not stop.is_set():
                for voice in (store.get("anna"), *store.all()):
                    if voice is not None:
                        try:
                            state = voice.file.read_bytes()
                        except FileNotFoundError:
                            continue
                        assert state.decode() == voice.consent_statement
                        seen += 1
            return seen

        with ThreadPoolExecutor(5) as pool:
            looking = pool.submit(look)
            changes = list(pool.map(change, range(4)))
            stop.set()
            assert looking.result() > 0
        created, deleted = (sum(column) for column in zip(*changes, strict=True))
        assert created > 4
        assert created - deleted == VoiceStore(tmp_path).count()
        assert len(names_in(tmp_path)) == 2 * (created - deleted)

    def test_a_link_that_was_made_though_it_is_said_to_exist_is_a_success(
        self, store: VoiceStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "link", twice(os.link))
        assert_whole(store.create(record(), STATE))

    def test_a_rename_that_was_made_though_its_file_is_said_to_be_missing_is_a_success(
        self, store: VoiceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.create(record(), STATE)
        monkeypatch.setattr(os, "rename", twice(os.rename))
        assert store.delete("anna")
        assert names_in(tmp_path) == set()


class TestCrash:
    """kill -9 and power failures."""

    @pytest.mark.parametrize("hard_links", [True, False])
    def test_a_creation_killed_at_any_step_leaves_none_or_a_whole_voice(
        self, tmp_path: Path, hard_links: bool, everything_is_old: None
    ) -> None:
        kill_at_every_step('store.create(record(), b"new")', tmp_path, hard_links=hard_links)
        outcomes = []
        for directory in sorted(tmp_path.iterdir()):
            store = VoiceStore(directory)
            found = store.get("anna")
            outcomes.append(found is not None)
            if found is not None:
                assert dataclasses.asdict(found) == dataclasses.asdict(record()) | {
                    "file": found.file
                }
                assert_swept(store, found, b"new")
                assert store.delete("anna")
            elif not hard_links:
                store.all()  # sweeps a claim
            assert_swept(store, store.create(record(), STATE), STATE)
        assert len(outcomes) > 12
        assert outcomes == sorted(outcomes)
        assert set(outcomes) == {False, True}

    def test_a_deletion_killed_at_any_step_leaves_none_or_a_whole_voice(
        self, tmp_path: Path, everything_is_old: None
    ) -> None:
        kill_at_every_step('store.delete("anna")', tmp_path, before='store.create(record(), b"1")')
        outcomes = []
        for directory in sorted(tmp_path.iterdir()):
            store = VoiceStore(directory)
            found = store.get("anna")
            outcomes.append(found is not None)
            if found is not None:
                assert_swept(store, found, b"1")
                assert store.delete("anna")
            assert_swept(store, store.create(record(), STATE), STATE)
        assert len(outcomes) > 12
        assert outcomes == sorted(outcomes, reverse=True)
        assert set(outcomes) == {False, True}

    def test_nothing_is_published_before_all_of_it_is_on_the_disk(
        self, store: VoiceStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps = record_steps(monkeypatch)
        store.create(record(), STATE)
        published = steps.index("link")
        assert steps[:published] == ["sync safetensors", "sync partial", "sync directory"]
        assert "sync directory" in steps[published:]

    def test_a_state_goes_only_after_its_deletion_is_on_the_disk(
        self, store: VoiceStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.create(record(), STATE)
        steps = record_steps(monkeypatch)
        assert store.delete("anna")
        assert steps[:3] == ["rename", "sync directory", "unlink safetensors"]
        assert steps[-1] == "sync directory"

    @pytest.mark.parametrize("function", ["fsync", "link"])
    def test_a_full_disk_is_an_error_and_no_voice(
        self,
        store: VoiceStore,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        function: str,
        everything_is_old: None,
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, function, full)
            with pytest.raises(OSError, match="No space left"):
                store.create(record(), STATE)
        assert store.get("anna") is None
        if function == "fsync":
            assert names_in(tmp_path) == set()
        assert_swept(store, store.create(record(), STATE), STATE)

    def test_a_voice_whose_link_came_to_be_in_spite_of_an_error_is_whole(
        self, store: VoiceStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link = os.link

        def lose_the_answer(*names: Any) -> None:
            link(*names)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(os, "link", lose_the_answer)
        with pytest.raises(OSError, match="Input/output"):
            store.create(record(), STATE)
        found = store.get("anna")
        assert found is not None
        assert found.file.read_bytes() == STATE

    def test_a_creation_so_slow_that_others_could_sweep_it_gives_up(
        self, store: VoiceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store_module, "GIVE_UP_SECONDS", 0.0)
        with pytest.raises(TimeoutError):
            store.create(record(), STATE)
        assert names_in(tmp_path) == set()
        assert 0 < store_module.GIVE_UP_SECONDS + 1 < store_module.LEFTOVER_SECONDS


class TestLeftovers:
    """Files that nothing names."""

    LEFT = (
        ".anna.0123456789abcdef.partial",
        "anna.0123456789abcdef.safetensors",
        "gone.0123456789abcdef.safetensors",
    )

    def leave(self, directory: Path) -> None:
        for name in self.LEFT:
            (directory / name).write_bytes(b"{}")
        (directory / "claimed.json").touch()

    def test_they_are_invisible(self, store: VoiceStore, tmp_path: Path) -> None:
        self.leave(tmp_path)
        created = store.create(record(), STATE)
        assert store.all() == [created]
        assert store.get("claimed") is None
        assert store.get("gone") is None

    def test_young_ones_may_be_in_the_making_and_stay(
        self, store: VoiceStore, tmp_path: Path
    ) -> None:
        self.leave(tmp_path)
        for path in tmp_path.iterdir():  # as a restored backup does it
            os.utime(path, (0, 0))
        store.create(record(), STATE)
        store.all()
        assert names_in(tmp_path) >= {*self.LEFT, "claimed.json"}

    @pytest.mark.parametrize(
        "call",
        [
            lambda store: store.create(record("new"), STATE),
            lambda store: store.delete("spare"),
            lambda store: store.all(),
        ],
        ids=["create", "delete", "all"],
    )
    def test_old_ones_are_removed_by_whoever_works_in_the_directory(
        self,
        store: VoiceStore,
        tmp_path: Path,
        call: Callable[[VoiceStore], object],
        everything_is_old: None,
    ) -> None:
        kept = store.create(record(), STATE)
        store.create(record("spare"), STATE)
        self.leave(tmp_path)
        call(VoiceStore(tmp_path))
        names = names_in(tmp_path)
        voices = store.all()
        assert kept in voices
        assert names == {f"{voice.name}.json" for voice in voices} | {
            voice.file.name for voice in voices
        }

    def test_the_directory_is_swept_once_an_hour_at_most(
        self, store: VoiceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.all()
        self.leave(tmp_path)
        monkeypatch.setattr(store, "_now", lambda: pytest.fail("swept again"))
        store.all()
        store.create(record(), STATE)
        assert names_in(tmp_path) >= set(self.LEFT)

    def test_what_may_belong_to_a_newer_server_or_to_nobody_here_stays(
        self, tmp_path: Path, everything_is_old: None
    ) -> None:
        names = {
            "anna.0123456789abcdef.safetensors",
            "notes.txt",
            "narrator.safetensors",
            "Anna.0123456789abcdef.safetensors",
            ".nfs0000",
            "broken.json",
            "broken.0123456789abcdef.safetensors",
        }
        for name in names:
            (tmp_path / name).write_bytes(b"x")
        (tmp_path / "anna.json").write_text('{"version": 2, "shards": 3}')
        (tmp_path / ".anna.00000000000000ff.partial").mkdir()
        before = names_in(tmp_path)
        VoiceStore(tmp_path).all()
        assert names_in(tmp_path) == before

    def test_a_state_that_cannot_be_removed_yet_does_not_keep_the_voice(
        self,
        store: VoiceStore,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        everything_is_old: None,
        logged: list[Any],
    ) -> None:
        created = store.create(record(), STATE)
        unlink = os.unlink

        def busy(path: Any) -> None:
            if str(path).endswith(".safetensors"):
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
            unlink(path)

        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", busy)
            assert store.delete("anna")
            assert store.get("anna") is None
        assert [line["file"] for line in logged] == [str(created.file)]
        store.all()
        assert names_in(tmp_path) == set()


class TestStrangeFiles:
    """A directory that others have written in."""

    def described(self, tmp_path: Path, **changes: Any) -> None:
        """Make a voice, and change its description."""
        VoiceStore(tmp_path).create(record(), STATE)
        file = tmp_path / "anna.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b"1",
            b"\xff\xfe",
            b"[" * 100_000,
            b'{"version": ' + b"9" * 5000 + b"}",
            b'{"version": 1}',
            b'{"version": 2, "name": "anna"}',
            b" " * ((1 << 20) + 1),
        ],
        ids=lambda content: repr(content[:16]),
    )
    def test_a_file_that_describes_no_voice_is_skipped_and_logged_once(
        self, store: VoiceStore, tmp_path: Path, logged: list[Any], content: bytes
    ) -> None:
        other = store.create(record("other"), STATE)
        (tmp_path / "anna.json").write_bytes(content)
        for _ in range(3):
            assert store.all() == [other]
            assert store.get("anna") is None
            assert not store.delete("anna")
        with pytest.raises(FileExistsError):
            store.create(record(), STATE)
        assert (tmp_path / "anna.json").read_bytes() == content
        assert [line["file"] for line in logged] == [str(tmp_path / "anna.json")]

    @pytest.mark.parametrize(
        "changes",
        [
            {"file": "../anna.0123456789abcdef.safetensors"},
            {"file": "/etc/passwd"},
            {"file": "other.0123456789abcdef.safetensors"},
            {"file": "anna.json"},
            {"file": ["anna"]},
            {"file": None},
            {"name": "other"},
            {"version": "1"},
            {"digest": "F" * 64},
            {"origin": ["created"]},
            {"create_time": 10**400},
            {"create_time": True},
            {"create_time": float("nan")},
            {"labels": {"a": 1}},
            {"labels": []},
            {"consent_statement": None},
            {"consent_statement": "\ud800"},
            {"report": REPORT | {"warnings": [1]}},
            {"report": "good"},
        ],
        ids=lambda changes: str(changes)[:40],
    )
    def test_a_description_with_a_wrong_field_is_skipped(
        self, tmp_path: Path, changes: dict[str, Any]
    ) -> None:
        (tmp_path / "voices").mkdir()
        for name in ("anna.0123456789abcdef.safetensors", "other.0123456789abcdef.safetensors"):
            (tmp_path / name).touch()
            (tmp_path / "voices" / name).touch()
        self.described(tmp_path / "voices", **changes)
        store = VoiceStore(tmp_path / "voices")
        assert store.get("anna") is None
        assert store.all() == []

    @settings(max_examples=60, deadline=None)
    @given(data=st.binary(max_size=40) | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
            st.sampled_from(["version", "name", "file", "labels", "report"]), inner
        ),
    ).map(lambda value: json.dumps(value).encode()))  # fmt: skip
    def test_no_content_makes_the_listing_fail(self, data: bytes) -> None:
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "anna.json").write_bytes(data)
            assert VoiceStore(Path(directory)).all() == []

    def test_a_huge_file_is_not_read(
        self, store: VoiceStore, tmp_path: Path, logged: list[Any]
    ) -> None:
        with (tmp_path / "anna.json").open("wb") as file:
            file.truncate(1 << 40)
        assert store.get("anna") is None
        assert store.all() == []
        assert logged[0]["reason"] == "has 1,099,511,627,776 bytes, limit 1,048,576"

    def test_fields_that_are_not_known_here_do_no_harm(self, tmp_path: Path) -> None:
        self.described(tmp_path, colour="blue")
        found = VoiceStore(tmp_path).get("anna")
        assert found is not None
        assert found.labels == record().labels

    def test_a_voice_without_its_state_is_not_listed_but_can_be_deleted(
        self, store: VoiceStore, tmp_path: Path, logged: list[Any]
    ) -> None:
        store.create(record(), STATE).file.unlink()
        assert store.get("anna") is None
        assert store.all() == []
        assert "is missing" in logged[0]["reason"]
        assert store.delete("anna")
        assert_whole(store.create(record(), STATE))

    def test_junk_is_no_voice(self, store: VoiceStore, tmp_path: Path, logged: list[Any]) -> None:
        (tmp_path / "directory.json").mkdir()
        os.mkfifo(tmp_path / "pipe.json")
        (tmp_path / "README.json").write_text("{}")
        (tmp_path / ".hidden.json").write_text("{}")
        (tmp_path / "notes.txt").write_text("{}")
        (tmp_path / "loop.json").symlink_to("loop.json")
        (tmp_path / "nowhere.json").symlink_to("missing")
        (tmp_path / os.fsdecode(b"\xff.json")).write_text("{}")
        created = store.create(record(), STATE)
        assert store.all() == [created]
        assert store.get("directory") is None
        assert store.get("pipe") is None
        assert len(logged) == len({line["file"] for line in logged}) == 5


def twice(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a server sees of a request that its client repeats."""

    def call(*names: Any) -> None:
        function(*names)
        function(*names)

    return call


def record_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note calls that change names, and what is brought to the disk, in order."""
    steps: list[str] = []
    functions = {name: getattr(os, name) for name in ("fsync", "link", "rename", "unlink")}

    def kind(path: str) -> str:
        return "directory" if Path(path).is_dir() else path.rpartition(".")[2]

    def fsync(descriptor: int) -> None:
        steps.append(f"sync {kind(str(Path(f'/proc/self/fd/{descriptor}').readlink()))}")
        functions["fsync"](descriptor)

    def unlink(path: Any) -> None:
        steps.append(f"unlink {kind(str(path))}")
        functions["unlink"](path)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "unlink", unlink)
    for name in ("link", "rename"):

        def call(*names: Any, name: str = name) -> None:
            steps.append(name)
            functions[name](*names)

        monkeypatch.setattr(os, name, call)
    monkeypatch.setattr(VoiceStore, "_sweep", lambda _: None)
    return steps


def assert_swept(store: VoiceStore, voice: StoredVoice, state: bytes) -> None:
    """This voice is whole, and the next sweep leaves it alone in its directory."""
    assert VoiceStore(voice.file.parent).all() == [voice]
    assert store.get(voice.name) == voice
    assert_whole(voice, state)


def run(program: str, directory: Path, *, hard_links: bool = True, user: str = "") -> str:
    """Standard output of a program that starts in the directory."""
    preamble = f"""
import errno, os, signal, sys, time
from pathlib import Path
from intone_server.voices.record import VoiceRecord
from intone_server.voices.store import VoiceStore

def record(name="anna"):
    return VoiceRecord(**({RECORD!r} | {{"name": name}}))

def no_links(*_):
    raise PermissionError(errno.EPERM, "no hard links here")

{"" if hard_links else "os.link = no_links"}
{user}
"""
    lines = program.strip("\n").split("\n")
    indent = len(lines[0]) - len(lines[0].lstrip())
    result = subprocess.run(
        [sys.executable, "-c", preamble + "\n".join(line[indent:] for line in lines)],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def as_another_user(directory: Path, program: str) -> str:
    """Run a program as somebody for whom permissions count, which they do not for root."""
    return run(program, directory, user="if os.getuid() == 0: os.setgroups([]); os.setuid(65534)")


def kill_at_every_step(
    call: str, directory: Path, *, before: str = "", hard_links: bool = True
) -> None:
    """Make the call in as many new directories as it has steps, and kill it before the first, the
    second, and so on; in the last one it ends. A step is any call into the operating system."""
    run(
        f"""
        def watch(frame, event, function):
            global steps
            owner = getattr(function, "__self__", None)
            module = function.__module__ or type(owner).__module__ if event == "c_call" else ""
            if module in ("posix", "_io"):
                steps -= 1
                if steps < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        steps = 0
        for number in range(1000):
            os.mkdir(f"{{number:04}}")
            child = os.fork()
            if child == 0:
                store = VoiceStore(Path(f"{{number:04}}"))
                {before or "pass"}
                store._next_sweep = 1e18
                steps = number
                sys.setprofile(watch)
                {call}
                sys.setprofile(None)
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code != -signal.SIGKILL:
                break
        assert code == 0, code
        """,
        directory,
        hard_links=hard_links,
    )
