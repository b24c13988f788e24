"""Runs of `intone dialogue` after and beside each other: settings, locks, what is told."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from client_command import COMMAND
from intone.v1 import tts_pb2
from intone_client import WavWriter
from intone_client._dialogues.claim import FolderClaim
from intone_client._dialogues.folder import DialogueFolder
from intone_client._dialogues.mistakes import script_faults
from intone_client._dialogues.plan import plan_items
from intone_client._dialogues.settings import Settings
from intone_client._scripts.places import Source
from intone_client._scripts.script import Script, line
from processes import ServerProcess, running_server, wait_for

SCRIPT = "cast: {anna: anna}\nitems:\n  - anna: The first line.\n  - anna: And the second.\n"

Intone = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def intone(fake_server: ServerProcess, tmp_path: Path) -> Intone:
    """Runs `intone dialogue script.yaml -o out` with more arguments; exit code and what is told."""
    (tmp_path / "script.yaml").write_text(SCRIPT)

    def run(*arguments: str, server: str = fake_server.address) -> tuple[int, list[str]]:
        command = [*COMMAND, "--server", server, "dialogue", "script.yaml", "-o", "out"]
        result = subprocess.run(
            [*command, *arguments], cwd=tmp_path, capture_output=True, timeout=60, check=False
        )
        assert b"Traceback" not in result.stderr, result.stderr.decode()
        return result.returncode, result.stderr.decode().splitlines()

    return run


def plan(folder: DialogueFolder, settings: Settings, seed: int | None = 7) -> None:
    items = plan_items([line("", "a")], {}, tts_pb2.SpeechConfig())
    folder.plan(items, gap=0, seed=seed, settings=settings)


def begun(path: Path, settings: Settings, *, rate: int = 24_000) -> DialogueFolder:
    """What goes on in a folder that has an item of a run with these settings."""
    folder = DialogueFolder(path)
    plan(folder, settings)
    folder.begin(rate)
    folder.save_item(1, bytes(2000))
    return DialogueFolder(path, resume=True)


class TestSettings:
    def test_a_resumed_dialogue_keeps_the_flags_of_its_first_run(
        self, intone: Intone, tmp_path: Path
    ) -> None:
        assert intone("--rate", "16000", "--gain", "-6", "--seed", "5")[0] == 0
        before = (tmp_path / "out/dialogue.wav").read_bytes()
        (tmp_path / "out/0002-anna.wav").unlink()
        code, told = intone("--resume")
        assert code == 0
        assert told[0] == "intone: 1 of 2 items are there already"
        assert (tmp_path / "out/dialogue.wav").read_bytes() == before
        document = json.loads((tmp_path / "out/timeline.json").read_text())
        assert document["settings"] == {"rate": 16000, "gain": -6.0, "seed": 5}
        assert (document["seed"], document["sample_rate_hertz"]) == (5, 16_000)

    def test_a_flag_that_contradicts_is_refused_and_nothing_is_touched(
        self, intone: Intone, tmp_path: Path
    ) -> None:
        assert intone("--rate", "16000")[0] == 0
        files = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
        told = (
            "--rate is 8000, but the dialogue in out was begun with 16000: leave --rate out to go "
            "on with it, or begin another one in another folder, without --resume"
        )
        assert intone("--resume", "--rate", "8000") == (
            2,
            [f"intone: {told}"],
        )
        assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == files

    def test_what_a_script_changes_is_made_anew_and_told(
        self, intone: Intone, tmp_path: Path
    ) -> None:
        intone()
        (tmp_path / "script.yaml").write_text(f"config: {{gain_db: 3}}\n{SCRIPT}")
        code, told = intone("--resume")
        assert code == 0
        assert told[0] == (
            "intone: 2 of the items that are there are no longer in the script as they were"
        )

    @pytest.mark.parametrize(
        ("given", "same"),
        [
            (Settings(), Settings(rate=16_000, gain=3.0, seed=5)),
            (Settings(rate=16_000, gain=3, seed=5), Settings(rate=16_000, gain=3.0, seed=5)),
        ],
    )
    def test_what_is_given_again_is_the_same(
        self, tmp_path: Path, given: Settings, same: Settings
    ) -> None:
        folder = begun(tmp_path / "out", Settings(rate=16_000, gain=3.0, seed=5), rate=16_000)
        assert folder.settings(given, gain=0.0) == same

    def test_what_was_no_flag_may_be_said_as_it_was(self, tmp_path: Path) -> None:
        """The rate of the server, the gain of the script, the seed that was drawn."""
        folder = begun(tmp_path / "out", Settings())
        assert folder.settings(Settings(24_000, -3.3, 7), gain=-3.3) == Settings(None, -3.3, 7)

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            (Settings(rate=8000), "--rate is 8000, but .* begun with 24000: leave --rate out"),
            (Settings(gain=6.0), "--gain is 6.0, but .* begun with 0.0: leave --gain out"),
            (Settings(seed=8), "--seed is 8, but .* begun with 7: leave --seed out"),
        ],
    )
    def test_what_was_no_flag_may_not_be_said_otherwise(
        self, tmp_path: Path, given: Settings, told: str
    ) -> None:
        with pytest.raises(ValueError, match=told):
            begun(tmp_path / "out", Settings()).settings(given, gain=0.0)

    def test_where_nothing_was_made_a_new_flag_counts(self, tmp_path: Path) -> None:
        plan(DialogueFolder(tmp_path / "out"), Settings(rate=12_345, gain=3.0))
        folder = DialogueFolder(tmp_path / "out", resume=True)
        assert folder.settings(Settings(rate=8000), gain=0.0) == Settings(8000, 3.0, None)

    def test_a_folder_from_before_they_were_kept_goes_on(self, tmp_path: Path) -> None:
        begun(tmp_path / "out", Settings())
        document = json.loads((tmp_path / "out/timeline.json").read_text())
        del document["settings"]
        (tmp_path / "out/timeline.json").write_text(json.dumps(document))
        folder = DialogueFolder(tmp_path / "out", resume=True)
        assert folder.settings(Settings(), gain=0.0) == Settings()

    @pytest.mark.parametrize(
        "settings",
        [{}, None, {"rate": "8000", "gain": None, "seed": None}, {"rate": True}, {"speed": 1}],
    )
    def test_settings_that_are_none_are_damage(self, tmp_path: Path, settings: object) -> None:
        begun(tmp_path / "out", Settings())
        document = json.loads((tmp_path / "out/timeline.json").read_text())
        (tmp_path / "out/timeline.json").write_text(json.dumps(document | {"settings": settings}))
        with pytest.raises(ValueError, match="is damaged"):
            DialogueFolder(tmp_path / "out", resume=True)


class TestClaim:
    def test_a_second_command_in_the_folder_is_refused(
        self, intone: Intone, tmp_path: Path
    ) -> None:
        refused = ["intone: another command is at work in out: wait for it, or name another folder"]
        with FolderClaim(tmp_path / "out"):
            assert intone() == (2, refused)
            assert intone("--resume") == (2, refused)
            assert list((tmp_path / "out").iterdir()) == []
        assert intone()[0] == 0

    def test_of_many_at_once_one_has_the_folder(self, tmp_path: Path) -> None:
        """A new one, which all of them would make. None is told anything but the refusal."""
        program = """
import sys
from intone_client._dialogues.claim import FolderClaim
sys.stdin.read(1)
try:
    with FolderClaim(sys.argv[1]):
        print("mine", flush=True)
        sys.stdin.read()
except BlockingIOError:
    print("refused", flush=True)
"""
        command = [sys.executable, "-c", program, f"{tmp_path}/out"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        processes = [subprocess.Popen(command, bufsize=0, **pipes) for _ in range(6)]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"x")
        told = [process.stdout.readline() for process in processes if process.stdout]
        assert sorted(told) == [b"mine\n", *[b"refused\n"] * 5]
        for process in processes:
            process.communicate()

    def test_a_command_that_is_killed_locks_nothing(self, tmp_path: Path) -> None:
        program = """
import os, signal, sys
from intone_client._dialogues.claim import FolderClaim
with FolderClaim(sys.argv[1]):
    os.kill(os.getpid(), signal.SIGKILL)
"""
        command = [sys.executable, "-c", program, f"{tmp_path}/out"]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        with FolderClaim(tmp_path / "out"):
            pass

    def test_a_folder_that_it_made_is_removed_if_nothing_came_of_it(self, tmp_path: Path) -> None:
        with FolderClaim(tmp_path / "out"):
            plan(DialogueFolder(tmp_path / "out"), Settings())
        assert not (tmp_path / "out").exists()
        with FolderClaim(tmp_path / "out"):
            begun(tmp_path / "out", Settings())
        assert (tmp_path / "out/0001-voice.wav").exists()

    def test_a_folder_that_was_there_stays(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        with FolderClaim(tmp_path / "out"):
            pass
        assert (tmp_path / "out").is_dir()

    def test_a_folder_that_is_removed_while_it_is_locked_is_made_anew(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As by a command that ends, refused, just then."""
        opened = os.open

        def remove_at_first(path: Path, flags: int) -> int:
            descriptor = opened(path, flags)
            monkeypatch.setattr(os, "open", opened)
            path.rmdir()
            return descriptor

        monkeypatch.setattr(os, "open", remove_at_first)
        with FolderClaim(tmp_path / "out"):
            assert (tmp_path / "out").is_dir()
            with pytest.raises(BlockingIOError), FolderClaim(tmp_path / "out"):
                pass

    def test_refused_runs_leave_no_folder(self, intone: Intone, tmp_path: Path) -> None:
        for arguments in (("--gain", "99"), ("--plot", "a.txt"), ("--rate", "3")):
            assert intone(*arguments)[0] == 2
        (tmp_path / "out.zip").write_text("mine")
        assert intone("--zip")[0] == 2
        assert intone(server="localhost:1")[0] == 1
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.zip", "script.yaml"]

    def test_files_beside_the_folder_are_nobodys_to_take(
        self, intone: Intone, tmp_path: Path
    ) -> None:
        (tmp_path / "out.zip.part").write_text("mine")
        assert intone("--zip")[0] == 0
        assert (tmp_path / "out.zip.part").read_text() == "mine"
        names = ["out", "out.zip", "out.zip.part", "script.yaml"]
        assert sorted(path.name for path in tmp_path.iterdir()) == names


class TestFailures:
    def test_each_is_told_once_and_what_is_heard_of_it_counts(
        self, intone: Intone, tmp_path: Path
    ) -> None:
        text = "- anna: fail@2 one two three\n  - anna: fail@0 nothing\n  - anna: '---'\n"
        (tmp_path / "script.yaml").write_text(f"{SCRIPT}  {text}")
        code, told = intone()
        assert code == 1
        assert told[0].startswith("intone: out: 3 of 5 items, 1 of them partly, ")
        why = "INTERNAL (SYNTHESIS_FAILED): segment"
        assert [each.partition(f": {why}")[0] for each in told[1:]] == [
            "intone: script.yaml:5: item 3 (anna) failed partly",
            "intone: script.yaml:6: item 4 (anna) failed",
            "intone: script.yaml:7: item 5 (anna) was skipped: there is nothing of it to be heard",
        ]

    def test_silence_in_the_place_of_an_item_is_nothing_heard_of_it(
        self, intone: Intone, tmp_path: Path
    ) -> None:
        failing = f"on_item_failure: silence\n{SCRIPT}  - anna: fail@0 nothing\n"
        (tmp_path / "script.yaml").write_text(failing)
        _, told = intone()
        assert told[0].startswith("intone: out: 2 of 3 items, ")
        assert "partly" not in "".join(told)

    def test_they_are_told_also_when_the_run_is_cut_short(self, tmp_path: Path) -> None:
        (tmp_path / "script.yaml").write_text(
            "cast: {anna: anna}\nmax_concurrency: 1\nitems:\n  - anna: fail@0 nothing\n"
            "  - anna: And the second.\n  - anna: frames@10000 delay@50 without end\n"
        )
        with running_server("--engine", "fake") as server:
            command = [*COMMAND, "--server", server.address, "dialogue", "script.yaml", "-o", "out"]
            with subprocess.Popen(
                command, cwd=tmp_path, stderr=subprocess.PIPE, text=True
            ) as process:
                wait_for((tmp_path / "out/0002-anna.wav").exists)
                process.send_signal(signal.SIGINT)
                told = process.communicate(timeout=20)[1].splitlines()
        assert told[0].startswith("intone: script.yaml:4: item 1 (anna) failed: INTERNAL")
        assert told[1] == "intone: 1 of 3 items are missing; go on with --resume"

    def test_no_name_steers_the_terminal(self, fake_server: ServerProcess, tmp_path: Path) -> None:
        """Files keep it as it is."""
        name = "an\x1b[31m\u202ena"
        text = f"@cast {name} = anna\n{name}: fail@0 x\n\n{name}: Hi.\n"
        (tmp_path / "play.txt").write_text(text)
        result = subprocess.run(
            [*COMMAND, "--server", fake_server.address, "dialogue", "play.txt", "-o", "out"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "play.txt:2: item 1 (an\\x1b[31m\\u202ena) failed: " in result.stderr
        assert not {"\x1b", "\u202e"} & set(result.stderr)
        document = json.loads((tmp_path / "out/timeline.json").read_text())
        assert document["items"][1]["speaker"] == name


def test_mistakes_are_told_in_the_words_of_the_script() -> None:
    """And on its lines; `asked` are the items that were sent."""
    lines = {(): 1, ("config",): 2, ("config", "temperature"): 3, ("cast",): 5, ("cast", "Anna"): 6}
    lines |= {("items",): 7, ("items", 0): 8, ("items", 1): 9, ("items", 1, "Anna"): 9}
    script = Script(
        [line("Anna", "One."), line("Anna", "Two.")],
        cast={"Anna": "alba", "o'Ben": "x"},
        source=Source(lines),  # type: ignore[arg-type]
    )
    violations = {
        "items[0].speech.text": "9: items[1].Anna",
        "items[0].speech.sampling.seed": "9: items[1].seed",
        "items[0].silence.duration": "9: items[1].silence",
        "items[0].reuse.item_id": "9: items[1].reuse",
        "items[0].audio.format.sample_rate_hertz": "9: items[1].audio",
        "items[0].audio.data": "9: items[1].audio",
        "items[0].id": "9: items[1].id",
        "items": "7: items",
        "config.sampling.temperature": "3: config.temperature",
        "config.segmentation.mode": "2: config.segmentation",
        "config.segmentation.segment_gap": "2: config.segment_gap",
        "config.text.replacements[3].word": "2: config.replacements[3].word",
        "config.scheduling.max_queue_wait": "2: config.max_queue_wait",
        "config.gain_db": "0: --gain",
        "config.language": "2: config.language",
        "cast": "5: cast",
        "cast['Anna']": "6: cast.Anna",
        'cast["o\'Ben"]': "5: cast.o'Ben",
        "max_concurrency": "0: max_concurrency",
    }
    told = script_faults(
        [(field, "is wrong") for field in violations],
        script,
        [2],
        {("config", "gain_db"): "--gain"},
    )
    assert [f"{number}: {what}" for number, what in told] == [
        f"{name}: is wrong" for name in violations.values()
    ]


def test_how_many_more_mistakes_there_are_is_told_last() -> None:
    script = Script([line("", "One.")], source=Source({("items", 0): 4}))
    told = script_faults([("items[0].id", "is wrong"), ("", "and 5 more")], script, [1], {})
    assert told == [(4, "items[0].id: is wrong"), (4, "and 5 more")]


def test_audio_from_elsewhere_needs_a_flag(
    intone: Intone, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with WavWriter(elsewhere / "sound.wav", 24_000) as wav:
        wav.write(bytes(2000))
    (tmp_path / "script.yaml").write_text(f"items:\n- audio: {elsewhere}/sound.wav\n")
    code, told = intone()
    assert code == 2
    assert "which only --allow-outside lets it do" in told[0]
    assert intone("--allow-outside")[0] == 0


def test_mistakes_in_plain_text_have_their_lines_too(
    fake_server: ServerProcess, tmp_path: Path
) -> None:
    text = f"@cast Anna = anna\n@cast Ben = nobody\n\nAnna: Hi.\nBen: {'x' * 10_001}\n"
    (tmp_path / "play.txt").write_text(text)
    result = subprocess.run(
        [*COMMAND, "--server", fake_server.address, "dialogue", "play.txt", "-o", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stderr == (
        "intone: play.txt:2: @cast Ben: no voice 'nobody'; see `intone voices`\n"
        "play.txt:5: Ben: text has 10,001 characters, limit 10,000\n"
    )
