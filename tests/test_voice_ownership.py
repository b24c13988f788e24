"""Voices belong to the client that made them, unless it shares them."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from processes import ServerProcess, running_server, wait_for
from voice_callers import Caller, guarded_server, refusal, state, words_of_refusal

NOT_FOUND = ("NOT_FOUND", "VOICE_NOT_FOUND")
NOT_ALLOWED = ("PERMISSION_DENIED", "NOT_ALLOWED")
EXISTS = ("ALREADY_EXISTS", "VOICE_EXISTS")


@pytest.fixture(scope="module", params=["memory", "directory"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("ownership")
    flags = ["--voice-dir", str(folder / "voices")] if request.param == "directory" else []
    with guarded_server(folder, *flags, names=["ann", "ben"]) as server:
        yield server
        assert "-token" not in server.stderr.read_text()


@pytest.fixture
def callers(server: ServerProcess) -> Iterator[tuple[Caller, Caller]]:
    """Ann and Ben, who have no voices."""
    both = Caller(server, "ann"), Caller(server, "ben")
    yield both
    for caller in both:
        while own := [voice.name for voice in caller.list().values() if voice.owned]:
            for name in own:  # which may have hidden another
                caller.delete(name)
        caller.close()


Callers = tuple[Caller, Caller]


def test_an_own_voice_is_listed_for_its_owner_alone(callers: Callers) -> None:
    ann, ben = callers
    made = ann.create("mine", 250)
    assert (made.owned, made.shared) == (True, False)
    assert list(ann.list()) == ["mine"]
    assert ann.get("mine").owned
    assert ann.say("mine") == {250}
    assert ann.export("mine") == state(250)
    assert list(ben.list()) == []


@pytest.mark.parametrize(
    "method",
    ["get", "export", "delete", "say", "stream", "change", "file", "cast", "narrate", "plan"],
)
def test_a_voice_of_another_cannot_be_told_from_one_that_is_not_there(
    callers: Callers, method: str
) -> None:
    ann, ben = callers
    ann.create("hidden")
    call = getattr(ben, method)
    assert words_of_refusal(call, "hidden") == words_of_refusal(call, "absent")
    assert ann.get("hidden").owned
    getattr(ann, method)("hidden")


def test_who_may_delete_what_is_missing_deletes_nothing_of_others(callers: Callers) -> None:
    ann, ben = callers
    ann.create("mine")
    ben.delete("mine", allow_missing=True)
    assert list(ann.list()) == ["mine"]


def test_two_clients_have_different_voices_of_one_name(callers: Callers) -> None:
    """Whatever the server keeps of a voice, in calls at once, one after the other, and after one
    was replaced."""
    ann, ben = callers
    ann.create("mine", 250)
    ben.create("mine", 750)
    for method in ("say", "stream", "change", "cast", "narrate"):
        with ThreadPoolExecutor(8) as pool:
            said = [pool.submit(getattr(each, method), "mine") for each in callers * 4]
            assert [each.result() for each in said] == [{250}, {750}] * 4, method
    assert (ann.export("mine"), ben.export("mine")) == (state(250), state(750))
    ann.delete("mine")
    assert refusal(ann.say, "mine") == NOT_FOUND
    assert ben.say("mine") == {750}
    ann.create("mine", 500)
    assert (ann.say("mine"), ben.say("mine")) == ({500}, {750})


def test_a_voice_in_use_keeps_nobody_from_deleting_one_of_the_same_name(callers: Callers) -> None:
    ann, ben = callers
    ann.create("mine")
    ben.create("mine")
    call = ann.speech("mine", "frames@1000 delay@20")
    next(call)
    ben.delete("mine")
    assert refusal(ann.delete, "mine") == ("FAILED_PRECONDITION", "VOICE_IN_USE")
    call.cancel()
    wait_for(lambda: not _is_refused(ann))


def _is_refused(caller: Caller) -> bool:
    try:
        caller.delete("mine", allow_missing=True)
    except Exception:  # noqa: BLE001 - the test above tells with what
        return True
    return False


def test_a_shared_voice_speaks_for_all_and_is_its_owners_to_delete_and_export(
    callers: Callers,
) -> None:
    """Its state would be the voice itself, for ever."""
    ann, ben = callers
    made = ann.create("ours", 250, shared=True)
    assert (made.owned, made.shared) == (True, True)
    (seen,) = ben.list().values()
    assert (seen.name, seen.owned, seen.shared) == ("ours", False, True)
    assert ben.say("ours") == {250}
    assert refusal(ben.export, "ours") == NOT_ALLOWED
    assert refusal(ben.delete, "ours") == NOT_ALLOWED
    assert refusal(ben.delete, "ours", allow_missing=True) == NOT_ALLOWED
    assert ann.export("ours") == state(250)
    ann.delete("ours")
    assert refusal(ben.say, "ours") == NOT_FOUND


def test_an_own_voice_hides_a_shared_one_until_it_is_deleted(callers: Callers) -> None:
    ann, ben = callers
    ann.create("ours", 250, shared=True)
    ben.create("ours", 750)
    assert (ann.say("ours"), ben.say("ours")) == ({250}, {750})
    assert ben.list()["ours"].owned
    ben.delete("ours")
    assert ben.say("ours") == {250}
    assert ann.get("ours").shared


def test_a_name_is_given_once_by_each_client_and_once_among_shared_voices(
    callers: Callers,
) -> None:
    ann, ben = callers
    ann.create("mine")
    ann.create("ours", shared=True)
    for name in ("mine", "ours", "anna"):
        for shared in (False, True):
            assert refusal(ann.create, name, shared=shared) == EXISTS
    assert refusal(ben.create, "ours", shared=True) == EXISTS
    ben.create("mine", shared=True)
    assert (ann.get("mine").owned, ben.get("mine").owned) == (True, True)


def test_no_client_can_take_the_room_of_all(tmp_path: Path) -> None:
    with guarded_server(tmp_path, "--max-voices", "8", names=["ann", "ben"]) as server:
        ann, ben = Caller(server, "ann"), Caller(server, "ben")
        ann.create("one")
        ann.create("two", shared=True)
        assert refusal(ann.create, "three") == ("RESOURCE_EXHAUSTED", "VOICE_LIMIT")
        ben.create("one")
        ann.delete("two")
        ann.create("three")
        ann.close()
        ben.close()


def test_without_access_control_all_voices_are_everybodys(fake_server: ServerProcess) -> None:
    one, other = Caller(fake_server), Caller(fake_server)
    made = one.create("mine")
    assert (made.owned, made.shared) == (True, True)
    assert list(other.list()) == ["mine"]
    assert (other.get("anna").owned, other.get("anna").shared) == (False, False)
    assert other.export("mine") == state(100)
    other.delete("mine")
    one.close()
    other.close()


def test_voices_of_before_there_was_access_control_are_for_all_and_nobodys(
    tmp_path: Path,
) -> None:
    """Who controls no access sees nothing of what clients keep for themselves."""
    flags = ["--voice-dir", str(tmp_path / "voices")]
    with (
        running_server("--engine", "fake", *flags) as open_server,
        guarded_server(tmp_path, *flags, names=["ann"]) as guarded,
    ):
        anybody, ann = Caller(open_server), Caller(guarded, "ann")
        anybody.create("old", 250)
        assert ann.say("old") == {250}
        assert (ann.get("old").owned, ann.get("old").shared) == (False, True)
        assert refusal(ann.delete, "old") == NOT_ALLOWED
        ann.create("own")
        ann.create("ours", shared=True)
        assert list(anybody.list()) == ["old", "ours"]
        assert refusal(anybody.say, "own") == NOT_FOUND
        assert refusal(anybody.delete, "ours") == NOT_ALLOWED
        anybody.delete("old")
        assert list(ann.list()) == ["ours", "own"]
        anybody.close()
        ann.close()


def test_a_clients_name_is_no_path(tmp_path: Path) -> None:
    """Voices outlive the server, whatever their owner is called."""
    name, flags = "eve/../../../up", ["--voice-dir", str(tmp_path / "voices")]
    with guarded_server(tmp_path, *flags, names=[name]) as server:
        eve = Caller(server, name)
        eve.create("mine", 250)
        eve.close()
    assert {path.name for path in tmp_path.iterdir()} == {"tokens.toml", "voices"}
    (directory,) = (tmp_path / "voices").iterdir()
    assert re.fullmatch("owner-[0-9a-f]{64}", directory.name)
    with guarded_server(tmp_path, *flags, names=[name]) as server:
        eve = Caller(server, name)
        assert eve.say("mine") == {250}
        eve.close()
