"""The folder that a dialogue is written into, and how it goes on in it."""

import json
import os
import subprocess
import sys
import tracemalloc
import unicodedata
import wave
import zipfile
from pathlib import Path
from typing import Any

import pytest

from intone.v1 import tts_pb2
from intone_client._dialogues.folder import DialogueFolder
from intone_client._dialogues.plan import PlannedItem, file_name, plan_items
from intone_client._dialogues.timeline import ItemSegment

RATE = 8000
CAST = {"Anna": "alba", "Bob": "marius"}


def config(**fields: Any) -> tts_pb2.SpeechConfig:
    return tts_pb2.SpeechConfig(voice="alba", sampling={"seed": 7}, **fields)


def line(speaker: str, text: str, id: str = "") -> tts_pb2.DialogueItem:  # noqa: A002
    return tts_pb2.DialogueItem(id=id, speech={"speaker": speaker, "text": text})


def pause(seconds: int) -> tts_pb2.DialogueItem:
    return tts_pb2.DialogueItem(silence={"duration": {"seconds": seconds}})


def again(item_id: str) -> tts_pb2.DialogueItem:
    return tts_pb2.DialogueItem(reuse={"item_id": item_id})


def plan(
    *items: tts_pb2.DialogueItem, cast: dict[str, str] | None = None, **more: Any
) -> list[PlannedItem]:
    return plan_items(items, cast or CAST, config(**more))


def pcm(value: int, count: int = 800) -> bytes:
    """`count` samples that are all the same: at 8,000 Hz 800 are 0.1 s."""
    return value.to_bytes(2, "little", signed=True) * count


def spoken(text: str, count: int, offset: int = 0, **more: Any) -> ItemSegment:
    return ItemSegment(
        **{"kind": "speech", "seed": 11, "outcome": "complete"} | more,
        text=text,
        sample_offset=offset,
        sample_count=count,
    )


def new(path: Path, items: list[PlannedItem], gap: float = 0.0) -> DialogueFolder:
    folder = DialogueFolder(path)
    folder.plan(items, gap=gap, seed=7)
    folder.begin(RATE)
    return folder


def resumed(path: Path, items: list[PlannedItem]) -> tuple[DialogueFolder, list[int]]:
    folder = DialogueFolder(path, resume=True)
    return folder, folder.plan(items, gap=0.0, seed=7)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def timeline(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "timeline.json").read_bytes())
    return document


def samples(path: Path) -> bytes:
    """Of a WAV file that is whole."""
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE)
        data = file.readframes(10**9)
        assert len(data) == 2 * file.getnframes()
    assert path.stat().st_size == 44 + len(data)
    return data


class TestFiles:
    """What is in the folder when all is done."""

    def test_a_dialogue_becomes_files_a_timeline_and_captions(self, tmp_path: Path) -> None:
        sound = tts_pb2.DialogueItem(audio={"data": b"RIFF"})
        items = plan(line("Anna", "One. Two.", "a"), pause(1), again("a"), sound)
        folder = new(tmp_path / "out", items)
        folder.save_item(1, pcm(1), segments=[spoken("One. ", 400), spoken("Two.", 400, 400)])
        folder.save_item(2, pcm(0, RATE))
        folder.copy_item(3)
        folder.save_item(4, pcm(4))
        assert folder.missing() == []
        document = folder.finish()
        assert names(tmp_path / "out") == [
            "0001-anna.wav",
            "0002-silence.wav",
            "0003-reuse.wav",
            "0004-audio.wav",
            "captions.srt",
            "captions.vtt",
            "dialogue.wav",
            "timeline.json",
        ]
        assert samples(tmp_path / "out/0003-reuse.wav") == pcm(1)
        assert samples(tmp_path / "out/dialogue.wav") == pcm(1) + pcm(0, RATE) + pcm(1) + pcm(4)
        assert document == timeline(tmp_path / "out")
        assert (tmp_path / "out/captions.vtt").read_text() == (
            "WEBVTT\n\n"
            "00:00:00.000 --> 00:00:00.050\n<v Anna>One.\n\n"
            "00:00:00.050 --> 00:00:00.100\n<v Anna>Two.\n\n"
            "00:00:01.100 --> 00:00:01.150\n<v Anna>One.\n\n"
            "00:00:01.150 --> 00:00:01.200\n<v Anna>Two.\n"
        )
        assert (tmp_path / "out/captions.srt").read_text().startswith("1\n00:00:00,000 --> ")

    def test_the_timeline_says_all_of_an_item(self, tmp_path: Path) -> None:
        items = plan(line("Anna", "Hi.", "a"), line("Bob", "Hé."))
        folder = new(tmp_path / "out", items, gap=0.25)
        folder.save_item(1, pcm(1, 1600), segments=[spoken("Hi.", 1600)])
        folder.save_item(2, pcm(2), segments=[spoken("Hé.", 800, seed=2**60)])
        document = folder.finish()
        assert {key: document[key] for key in document if key != "items"} == {
            "version": 1,
            "sample_rate_hertz": RATE,
            "seed": 7,
            "settings": {"rate": None, "gain": None, "seed": None},
            "gap": 0.25,
            "duration": 0.55,
            "complete": True,
        }
        assert document["items"][1] == {
            "number": 2,
            "id": "",
            "kind": "speech",
            "speaker": "Bob",
            "voice": "marius",
            "text": "Hé.",
            "reuse_of": None,
            "file": "0002-bob.wav",
            "start": 0.45,
            "end": 0.55,
            "sample_count": 800,
            "status": "done",
            "error": None,
            "seed": 2**60,
            "segments": [
                {
                    "start": 0.45,
                    "end": 0.55,
                    "kind": "speech",
                    "text": "Hé.",
                    "sample_offset": 0,
                    "sample_count": 800,
                    "seed": 2**60,
                    "outcome": "complete",
                }
            ],
            "fingerprint": items[1].fingerprint,
        }

    def test_times_are_unknown_behind_what_is_missing(self, tmp_path: Path) -> None:
        folder = new(tmp_path / "out", plan(*[line("Anna", text) for text in "abc"]))
        folder.save_item(1, pcm(1))
        folder.save_item(3, pcm(3), segments=[spoken("c", 800)])
        document = timeline(tmp_path / "out")
        assert [(item["start"], item["end"]) for item in document["items"]] == [
            (0.0, 0.1),
            (None, None),
            (None, None),
        ]
        assert document["items"][2]["segments"][0]["start"] is None
        assert [item["status"] for item in document["items"]] == ["done", "missing", "done"]
        assert (document["duration"], document["complete"]) == (None, False)

    def test_gaps_are_between_what_is_heard_and_not_beside_a_silence(self, tmp_path: Path) -> None:
        items = plan(
            line("Anna", "not heard"),
            line("Anna", "heard", "a"),
            line("Bob", "not heard either"),
            line("Bob", "---"),
            again("a"),
            pause(1),
            line("Bob", "at the silence"),
            line("Anna", "heard in part"),
        )
        folder = new(tmp_path / "out", items, gap=0.0301)  # 240.8 samples
        folder.save_item(1, b"", error="it broke")
        folder.save_item(2, pcm(2))
        folder.save_item(3, b"", error="it broke")
        folder.save_item(4, b"", skipped=True)
        folder.copy_item(5)
        folder.save_item(6, pcm(0, 8000))
        folder.save_item(7, pcm(7))
        folder.save_item(8, pcm(8), error="it broke")
        document = folder.finish()
        gap = pcm(0, 241)
        expected = pcm(2) + gap + pcm(2) + pcm(0, 8000) + pcm(7) + gap + pcm(8)
        assert samples(tmp_path / "out/dialogue.wav") == expected
        starts = [round(item["start"] * RATE) for item in document["items"]]
        assert starts == [0, 0, 800, 800, 1041, 1841, 9841, 10882]
        assert round(document["duration"] * RATE) == len(expected) // 2
        assert not document["complete"]
        assert [item["file"] for item in document["items"]][:3] == [None, "0002-anna.wav", None]

    def test_only_what_was_said_is_captioned(self, tmp_path: Path) -> None:
        items = plan(line("Anna", "One. [pause:1s] Two."), line("Bob", "Three."))
        folder = new(tmp_path / "out", items)
        segments = [
            spoken("One.", 200),
            spoken("[pause:1s]", 200, 200, kind="silence"),
            spoken("Two.", 200, 400, outcome="no_end"),
        ]
        folder.save_item(1, pcm(1, 600), segments=segments)
        stand_in = spoken("Three.", 100, outcome="failed")
        folder.save_item(2, pcm(0, 100), segments=[stand_in], error="it broke")
        folder.finish()
        captions = (tmp_path / "out/captions.vtt").read_text()
        assert [text for text in ("One.", "pause", "Two.", "Three.") if text in captions] == [
            "One.",
            "Two.",
        ]

    def test_where_nothing_is_heard_there_is_no_joined_file(self, tmp_path: Path) -> None:
        folder = DialogueFolder(tmp_path / "out")
        folder.plan(plan(line("Anna", "a")), gap=1.0, seed=None)
        folder.save_item(1, b"", error="it broke")
        assert folder.finish()["duration"] == 0.0
        assert names(tmp_path / "out") == ["captions.srt", "captions.vtt", "timeline.json"]
        assert timeline(tmp_path / "out")["items"][0]["error"] == "it broke"

    def test_it_is_not_finished_while_an_item_was_never_made(self, tmp_path: Path) -> None:
        folder = new(tmp_path / "out", plan(*[line("Anna", text) for text in "abc"]))
        folder.save_item(1, pcm(1))
        with pytest.raises(ValueError, match=r"item 2 was not made, nor were 1 more$"):
            folder.finish()
        assert names(tmp_path / "out") == ["0001-anna.wav", "timeline.json"]

    @pytest.mark.parametrize(("audio", "bytes_"), [(b"", "0"), (b"abc", "3")])
    def test_an_item_has_whole_samples(self, tmp_path: Path, audio: bytes, bytes_: str) -> None:
        folder = new(tmp_path / "out", plan(line("Anna", "a")))
        with pytest.raises(ValueError, match=f"item 1 has {bytes_} bytes"):
            folder.save_item(1, audio)
        assert names(tmp_path / "out") == ["timeline.json"]

    def test_a_reuse_needs_its_original(self, tmp_path: Path) -> None:
        folder = new(tmp_path / "out", plan(line("Anna", "a", "a"), again("a")))
        with pytest.raises(ValueError, match="item 2 repeats nothing that was made"):
            folder.copy_item(2)
        with pytest.raises(ValueError, match="item 1 repeats nothing"):
            folder.copy_item(1)

    def test_fifty_megabytes_are_not_held_in_memory(self, tmp_path: Path) -> None:
        folder = new(tmp_path / "out", plan(*[line("Anna", f"{n}") for n in range(10)]))
        for number in range(1, 11):
            folder.save_item(number, pcm(number, 2_500_000))
        tracemalloc.start()
        folder.finish()
        folder.zip()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (tmp_path / "out/dialogue.wav").stat().st_size == 50_000_044
        assert peak < 8_000_000

    def test_more_than_a_wav_file_can_be_is_refused_before_it_is_written(
        self, tmp_path: Path
    ) -> None:
        """And the items stay; sparse files stand for 25 hours here."""
        count = 1_100_000_000
        items = plan(line("Anna", "a"), line("Anna", "b"))
        folder = new(tmp_path / "out", items)
        for number in (1, 2):
            folder.save_item(number, pcm(1))
        document = timeline(tmp_path / "out")
        for number, item in enumerate(document["items"]):
            item |= {"sample_count": count, "start": number * count / RATE}
            item["end"] = item["start"] + count / RATE
            with (tmp_path / "out" / item["file"]).open("r+b") as file:
                file.seek(4)
                file.write((36 + 2 * count).to_bytes(4, "little"))
                file.seek(40)
                file.write((2 * count).to_bytes(4, "little"))
                file.truncate(44 + 2 * count)
        document["duration"] = 2 * count / RATE
        (tmp_path / "out/timeline.json").write_text(json.dumps(document))
        folder, missing = resumed(tmp_path / "out", items)
        assert missing == []
        with pytest.raises(ValueError, match=r"would have 4,400,000,044 bytes, .* 4,294,967,303"):
            folder.finish()
        assert names(tmp_path / "out") == ["0001-anna.wav", "0002-anna.wav", "timeline.json"]

    def test_a_full_disk_leaves_what_was_there(self, tmp_path: Path) -> None:
        """An item is replaced whole or not at all: here a limit of the process stands for the
        disk."""
        program = """
import resource, signal, sys
from intone.v1 import tts_pb2
from intone_client._dialogues.folder import DialogueFolder
from intone_client._dialogues.plan import plan_items
item = tts_pb2.DialogueItem(speech={"text": "a"})
folder = DialogueFolder(sys.argv[1])
folder.plan(plan_items([item], {}, tts_pb2.SpeechConfig()), gap=0, seed=None)
folder.begin(8000)
folder.save_item(1, bytes(2000), error="in part")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    folder.save_item(1, bytes(20_000))
except OSError as error:
    print(error)
"""
        command = [sys.executable, "-c", program, f"{tmp_path}/out"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.stderr == ""
        assert "File too large" in done.stdout
        assert names(tmp_path / "out") == ["0001-voice.wav", "timeline.json"]
        assert samples(tmp_path / "out/0001-voice.wav") == bytes(2000)
        assert timeline(tmp_path / "out")["items"][0]["status"] == "failed"


class TestOthersFiles:
    """Nobody else's file is deleted or overwritten."""

    def test_the_folder_of_the_folder_has_to_exist(self, tmp_path: Path) -> None:
        with pytest.raises(NotADirectoryError, match="no/such is not a directory"):
            DialogueFolder(tmp_path / "no/such/out")

    def test_a_file_is_no_folder(self, tmp_path: Path) -> None:
        (tmp_path / "out").write_text("mine")
        with pytest.raises(NotADirectoryError, match="out is not a directory"):
            DialogueFolder(tmp_path / "out", resume=True)

    @pytest.mark.parametrize("resume", [True, False])
    def test_a_folder_with_anything_in_it_is_refused(self, tmp_path: Path, resume: bool) -> None:
        (tmp_path / "captions.srt").write_text("mine")
        with pytest.raises(FileExistsError, match="is not empty, and holds no dialogue"):
            DialogueFolder(tmp_path, resume=resume)
        assert names(tmp_path) == ["captions.srt"]

    @pytest.mark.parametrize("resume", [True, False])
    def test_an_empty_folder_will_do(self, tmp_path: Path, resume: bool) -> None:
        """So does one with hidden files only, such as file managers make."""
        (tmp_path / ".DS_Store").write_text("")
        (tmp_path / "timeline.json.part").write_text('{"ver')  # its maker was killed early
        folder = DialogueFolder(tmp_path, resume=resume)
        assert folder.plan(plan(line("Anna", "a")), gap=0, seed=None) == [1]
        assert names(tmp_path) == [".DS_Store", "timeline.json"]

    def test_a_dialogue_is_not_replaced_by_another_one(self, tmp_path: Path) -> None:
        new(tmp_path / "out", plan(line("Anna", "a"))).save_item(1, pcm(1))
        with pytest.raises(FileExistsError, match="holds a dialogue already"):
            DialogueFolder(tmp_path / "out")
        assert names(tmp_path / "out") == ["0001-anna.wav", "timeline.json"]

    def test_a_dialogue_without_any_audio_is_in_nobodys_way(self, tmp_path: Path) -> None:
        """It is what is left where the server refused the script."""
        new(tmp_path / "out", plan(line("Anna", "a")))
        folder = DialogueFolder(tmp_path / "out")
        assert folder.seed is None
        assert folder.plan(plan(line("Bob", "b")), gap=0, seed=None) == [1]

    def test_what_else_lies_in_the_folder_stays(self, tmp_path: Path) -> None:
        folder = new(tmp_path / "out", plan(line("Anna", "a")))
        for name in ("notes.txt", "0001-anna.txt", "0002-mine.wav"):
            (tmp_path / "out" / name).write_text("mine")
        folder.save_item(1, pcm(1))
        folder.finish()
        folder, _ = resumed(tmp_path / "out", plan(line("Bob", "b")))
        folder.save_item(1, pcm(2))
        folder.finish()
        assert {"notes.txt", "0001-anna.txt", "0002-mine.wav"} < set(names(tmp_path / "out"))
        assert (tmp_path / "out/0002-mine.wav").read_text() == "mine"

    def test_a_file_in_the_way_of_an_item_is_not_overwritten(self, tmp_path: Path) -> None:
        new(tmp_path / "out", plan(line("Anna", "a")))
        (tmp_path / "out/0002-bob.wav").write_text("mine")
        with pytest.raises(FileExistsError, match=r"0002-bob\.wav is not of this dialogue"):
            resumed(tmp_path / "out", plan(line("Anna", "a"), line("Bob", "b")))
        assert (tmp_path / "out/0002-bob.wav").read_text() == "mine"


class TestResume:
    """What is there is not made again."""

    def test_only_what_is_missing_is_to_be_made(self, tmp_path: Path) -> None:
        items = plan(*[line("Anna", text) for text in "abcd"])
        folder = new(tmp_path / "out", items)
        folder.save_item(1, pcm(1), segments=[spoken("a", 800)])
        folder.save_item(2, b"", error="it broke")
        folder.save_item(3, b"", skipped=True)  # there is nothing to say
        folder, missing = resumed(tmp_path / "out", items)
        assert missing == folder.missing() == [2, 4]
        assert (folder.seed, folder.sample_rate_hertz) == (7, RATE)
        folder.begin(RATE)
        folder.save_item(2, pcm(2))
        folder.save_item(4, pcm(4))
        document = folder.finish()
        assert document["complete"]
        assert document["items"][0]["segments"][0]["text"] == "a"
        assert samples(tmp_path / "out/dialogue.wav") == pcm(1) + pcm(2) + pcm(4)

    def test_a_resumed_dialogue_ends_as_one_that_was_never_interrupted(
        self, tmp_path: Path
    ) -> None:
        items = plan(*[line("Anna", text) for text in "abc"])
        for name, stops in (("whole", []), ("resumed", [1, 2])):
            folder = new(tmp_path / name, items)
            for number in (1, 2, 3):
                folder.save_item(number, pcm(number), segments=[spoken("x", 800)])
                if number in stops:
                    folder, _ = resumed(tmp_path / name, items)
            folder.finish()
        for name in names(tmp_path / "whole"):
            one, other = ((tmp_path / each / name).read_bytes() for each in ("whole", "resumed"))
            assert one == other

    def test_an_edited_line_is_made_again_and_nothing_else(self, tmp_path: Path) -> None:
        folder = new(tmp_path / "out", plan(*[line("Anna", text) for text in "abc"]))
        for number in (1, 2, 3):
            folder.save_item(number, pcm(number))
        folder.finish()
        edited = plan(line("Anna", "a"), line("Anna", "B"), line("Anna", "c"))
        folder, missing = resumed(tmp_path / "out", edited)
        assert missing == [2]
        folder.save_item(2, pcm(20))
        folder.finish()
        assert samples(tmp_path / "out/dialogue.wav") == pcm(1) + pcm(20) + pcm(3)

    def test_a_line_that_was_put_in_moves_the_others(self, tmp_path: Path) -> None:
        """They have ids, and so their seeds stay. What a name is in the script makes no sound."""
        folder = new(tmp_path / "out", plan(*[line("Anna", text, id=text) for text in "abc"]))
        for number in (1, 2, 3):
            folder.save_item(number, pcm(number))
        folder.finish()
        edited = [line("Anna", "new"), *[line("Ann", text, id=text) for text in "cab"]]
        folder, missing = resumed(tmp_path / "out", plan(*edited, cast={**CAST, "Ann": "alba"}))
        assert missing == [1]
        folder.save_item(1, pcm(10))
        folder.finish()
        assert samples(tmp_path / "out/dialogue.wav") == pcm(10) + pcm(3) + pcm(1) + pcm(2)
        assert [each for each in names(tmp_path / "out") if each[0] == "0"] == [
            "0001-anna.wav",
            "0002-ann.wav",
            "0003-ann.wav",
            "0004-ann.wav",
        ]

    def test_files_of_lines_that_are_gone_are_deleted_at_the_end(self, tmp_path: Path) -> None:
        """Not before: until then the dialogue is the old one, as a whole."""
        folder = new(tmp_path / "out", plan(line("Anna", "a"), line("Bob", "b"), pause(1)))
        for number in (1, 2, 3):
            folder.save_item(number, pcm(number))
        folder.finish()
        folder, missing = resumed(tmp_path / "out", plan(line("Anna", "a"), line("Anna", "c")))
        assert missing == [2]
        assert {"0002-bob.wav", "0003-silence.wav"} < set(names(tmp_path / "out"))
        folder, missing = resumed(tmp_path / "out", plan(line("Anna", "a"), line("Anna", "c")))
        folder.save_item(2, pcm(2))
        assert "leftovers" not in folder.finish()
        assert [each for each in names(tmp_path / "out") if each[0] == "0"] == [
            "0001-anna.wav",
            "0002-anna.wav",
        ]

    def test_an_item_that_fails_now_leaves_nothing_of_before(self, tmp_path: Path) -> None:
        folder = new(tmp_path / "out", plan(line("Anna", "a")))
        folder.save_item(1, pcm(1), error="it broke in the middle")
        folder, missing = resumed(tmp_path / "out", plan(line("Anna", "a")))
        assert missing == [1]
        folder.save_item(1, b"", error="it broke at once")
        folder.finish()
        assert "0001-anna.wav" not in names(tmp_path / "out")

    def test_an_item_without_audio_leaves_nothing_of_another_one(self, tmp_path: Path) -> None:
        """Whose name it has, since that one is gone from the script."""
        folder = new(tmp_path / "out", plan(line("Bob", "a", "a"), line("Bob", "b", "b")))
        folder.save_item(1, pcm(1))
        folder.save_item(2, b"", error="it broke")
        folder, missing = resumed(tmp_path / "out", plan(line("Bob", "b", "b")))
        assert missing == [1]
        folder.finish()
        assert names(tmp_path / "out") == ["captions.srt", "captions.vtt", "timeline.json"]

    @pytest.mark.parametrize("harm", ["removed", "cut", "emptied", "longer", "another rate"])
    def test_a_file_that_is_not_whole_counts_as_missing(self, tmp_path: Path, harm: str) -> None:
        items = plan(line("Anna", "a"), line("Anna", "b"))
        folder = new(tmp_path / "out", items)
        folder.save_item(1, pcm(1))
        folder.save_item(2, pcm(2))
        path = tmp_path / "out/0001-anna.wav"
        data = path.read_bytes()
        if harm == "removed":
            path.unlink()
        else:
            rate = (16_000).to_bytes(4, "little")
            path.write_bytes(
                {
                    "cut": data[:-2],
                    "emptied": b"",
                    "longer": data + b"\0\0",
                    "another rate": data[:24] + rate + data[28:],
                }[harm]
            )
        with pytest.raises(OSError, match=r"0001-anna\.wav was changed or removed"):
            folder.finish()
        assert "dialogue.wav.part" not in names(tmp_path / "out")
        assert resumed(tmp_path / "out", items)[1] == [1]

    def test_a_process_that_is_killed_loses_what_it_was_writing(self, tmp_path: Path) -> None:
        """Between the file of an item and its entry, or in the middle of a file."""
        items = plan(line("Anna", "a"), line("Anna", "b"), line("Anna", "c"))
        folder = new(tmp_path / "out", items)
        folder.save_item(1, pcm(1))
        before = (tmp_path / "out/timeline.json").read_bytes()
        folder.save_item(2, pcm(2))
        (tmp_path / "out/timeline.json").write_bytes(before)
        for name in ("0003-anna.wav", "timeline.json", "dialogue.wav"):
            (tmp_path / "out" / f"{name}.part").write_bytes(b"half")
        folder, missing = resumed(tmp_path / "out", items)
        assert missing == [2, 3]
        folder.save_item(2, pcm(20))
        folder.save_item(3, pcm(30))
        folder.finish()
        assert samples(tmp_path / "out/dialogue.wav") == pcm(1) + pcm(20) + pcm(30)
        assert not [each for each in names(tmp_path / "out") if each.endswith(".part")]

    def test_what_was_saved_is_there_when_the_process_is_killed(self, tmp_path: Path) -> None:
        program = """
import sys
from intone.v1 import tts_pb2
from intone_client._dialogues.folder import DialogueFolder
from intone_client._dialogues.plan import plan_items
items = [tts_pb2.DialogueItem(speech={"text": f"{n}"}) for n in range(1000)]
folder = DialogueFolder(sys.argv[1])
folder.plan(plan_items(items, {}, tts_pb2.SpeechConfig()), gap=0, seed=None)
folder.begin(8000)
for number in range(1, 1001):
    folder.save_item(number, number.to_bytes(2, "little") * 100_000)
    print(number, flush=True)
"""
        command = [sys.executable, "-c", program, f"{tmp_path}/out"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            while process.stdout.readline() != b"8\n":
                assert process.poll() is None
            process.kill()
        items = [tts_pb2.DialogueItem(speech={"text": f"{n}"}) for n in range(1000)]
        missing = resumed(tmp_path / "out", plan_items(items, {}, tts_pb2.SpeechConfig()))[1]
        assert 8 < missing[0] < 900
        assert missing == list(range(missing[0], 1001))
        for number in range(1, missing[0]):
            assert samples(tmp_path / f"out/{number:04}-voice.wav") == pcm(number, 100_000)

    def test_a_process_that_is_killed_while_files_move_mixes_nothing_up(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Wherever it is killed, an item that counts as there has its own sound."""
        before = plan(*[line("Anna", text, id=text) for text in "abc"])
        after = plan(*[line("Anna", text, id=text) for text in "xabc"])
        sounds = dict(zip("abc", (1, 2, 3), strict=True))

        class KilledError(BaseException):
            pass

        rename = Path.replace
        for steps in range(12):
            path = tmp_path / f"out{steps}"
            folder = new(path, before)
            for number in (1, 2, 3):
                folder.save_item(number, pcm(number))
            left = steps

            def replace(source: Path, target: Path) -> Path:
                nonlocal left
                if not left:
                    raise KilledError
                left -= 1
                return rename(source, target)

            with monkeypatch.context() as patched:
                patched.setattr(Path, "replace", replace)
                try:
                    resumed(path, after)
                except KilledError:
                    was_killed = True
                else:
                    was_killed = False
            folder, missing = resumed(path, after)
            for item in after:
                if item.number not in missing:
                    file = path / f"000{item.number}-anna.wav"
                    assert samples(file) == pcm(sounds[item.text])
        assert not was_killed
        assert missing == [1]

    @pytest.mark.parametrize(
        "damaged",
        [
            "",
            "{",
            "[]",
            "{}",
            '{"version": 1}',
            "\xff",
            '{"version": 1, "items": 5, "sample_rate_hertz": 1}',
        ],
    )
    def test_a_damaged_timeline_is_an_error_that_says_so(
        self, tmp_path: Path, damaged: str
    ) -> None:
        (tmp_path / "timeline.json").write_text(damaged, encoding="latin-1")
        with pytest.raises(ValueError, match=r"timeline\.json is damaged: name another folder"):
            DialogueFolder(tmp_path, resume=True)

    @pytest.mark.parametrize(
        "change",
        [
            {"sample_count": -1},
            {"sample_count": "800"},
            {"start": 1.0},
            {"kind": "/../../x", "file": "0001-/../../x.wav"},
            {"number": 2},
            {"segments": None},
            {"file": "../timeline.json"},
        ],
    )
    def test_a_timeline_that_contradicts_itself_is_damaged(
        self, tmp_path: Path, change: dict[str, Any]
    ) -> None:
        new(tmp_path / "out", plan(line("Anna", "a"))).save_item(1, pcm(1))
        document = timeline(tmp_path / "out")
        document["items"][0] |= change
        (tmp_path / "out/timeline.json").write_text(json.dumps(document))
        with pytest.raises(ValueError, match="is damaged"):
            DialogueFolder(tmp_path / "out", resume=True)

    @pytest.mark.parametrize("leftover", ["../x.wav", "notes.txt", "/0001-x.wav", "0001-/../x.wav"])
    def test_a_timeline_names_only_files_of_items(self, tmp_path: Path, leftover: str) -> None:
        new(tmp_path / "out", plan(line("Anna", "a")))
        document = timeline(tmp_path / "out") | {"leftovers": [leftover]}
        (tmp_path / "out/timeline.json").write_text(json.dumps(document))
        with pytest.raises(ValueError, match="is damaged"):
            DialogueFolder(tmp_path / "out", resume=True)

    def test_a_timeline_of_another_version_is_an_error_that_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "timeline.json").write_text('{"version": 2}')
        with pytest.raises(ValueError, match="is of version 2, and 1 is known here"):
            DialogueFolder(tmp_path, resume=True)

    def test_audio_of_two_rates_does_not_go_together(self, tmp_path: Path) -> None:
        items = plan(line("Anna", "a"), line("Anna", "b"))
        new(tmp_path / "out", items).save_item(1, pcm(1))
        folder, _ = resumed(tmp_path / "out", items)
        with pytest.raises(ValueError, match=r"holds audio at 8,000 Hz, .* 24,000 Hz"):
            folder.begin(24_000)
        folder.plan(plan(line("Anna", "all"), line("Anna", "new")), gap=0, seed=7)
        folder.begin(24_000)  # nothing is left of the other

    def test_a_reuse_is_as_missing_as_its_original(self, tmp_path: Path) -> None:
        folder = new(tmp_path / "out", plan(line("Anna", "a", "a"), again("a"), again("a")))
        folder.save_item(1, b"", error="it broke")
        folder.save_item(2, b"", skipped=True)
        folder.save_item(3, b"", skipped=True)
        assert folder.missing() == [1, 2, 3]
        folder.save_item(1, b"", skipped=True)  # and now there was nothing to say
        assert folder.missing() == []
        folder.save_item(1, pcm(1))
        folder.copy_item(2)
        folder.copy_item(3)
        edited = plan(line("Anna", "A", "a"), again("a"), again("a"))
        assert resumed(tmp_path / "out", edited)[1] == [1, 2, 3]


class TestPlan:
    """`plan_items`: what an item is, and when it sounds the same."""

    def test_items_are_as_the_script_says(self) -> None:
        items = [line("Bob", "Hi.", "b"), line("", "Ho."), again("b"), pause(1), again("b")]
        items[2].id = "again"
        items[4].reuse.item_id = "again"
        found = plan(*items)
        assert [(each.kind, each.speaker, each.voice, each.text) for each in found] == [
            ("speech", "Bob", "marius", "Hi."),
            ("speech", "", "alba", "Ho."),
            ("reuse", "Bob", "marius", "Hi."),
            ("silence", "", "", ""),
            ("reuse", "Bob", "marius", "Hi."),
        ]
        assert [each.reuse_of for each in found] == [None, None, 1, None, 1]
        assert [each.number for each in found] == [1, 2, 3, 4, 5]
        assert [each.id for each in found] == ["b", "", "again", "", ""]

    def test_mistakes_are_left_to_the_server(self) -> None:
        mistakes = [tts_pb2.DialogueItem(), again("nobody"), line("Nobody", "x")]
        assert [each.kind for each in plan(*mistakes)] == ["speech", "reuse", "speech"]

    @pytest.mark.parametrize(
        ("item", "more"),
        [
            (line("Anna", "Other text.", "a"), {}),
            (line("Bob", "Text.", "a"), {}),
            (line("Anna", "Text.", "b"), {}),
            (line("Anna", "Text."), {}),
            (line("Anna", "Text.", "a"), {"gain_db": 1.0}),
            (line("Anna", "Text.", "a"), {"format": {"sample_rate_hertz": 48_000}}),
            (line("Anna", "Text.", "a"), {"text": {"normalize": True}}),
            (
                tts_pb2.DialogueItem(
                    id="a",
                    speech={"speaker": "Anna", "text": "Text.", "sampling": {"temperature": 0.0}},
                ),
                {},
            ),
        ],
    )
    def test_what_changes_the_sound_changes_the_fingerprint(
        self, item: tts_pb2.DialogueItem, more: dict[str, Any]
    ) -> None:
        known = plan(line("Anna", "Text.", "a"))[0].fingerprint
        assert len(known) == 64
        assert plan(item, **more)[0].fingerprint != known

    def test_what_makes_no_sound_changes_nothing(self) -> None:
        known = plan(line("Anna", "Text.", "a"))[0].fingerprint
        moved = plan(
            pause(1),
            line("Ann", "Text.", "a"),
            cast={"Ann": "alba"},
            queue_events=True,
            segment_events=True,
            scheduling={"max_queue_wait": {"seconds": 9}},
        )
        assert moved[1].fingerprint == known

    def test_the_place_decides_where_there_is_neither_id_nor_seed(self) -> None:
        text = line("Anna", "Text.")
        first, second = plan(text, text)
        assert first.fingerprint != second.fingerprint
        text.speech.sampling.seed = 5
        first, second = plan(text, text)
        assert first.fingerprint == second.fingerprint


class TestNames:
    """`file_name`: every file system takes it."""

    @pytest.mark.parametrize(
        ("speaker", "name"),
        [
            ("Anna", "anna"),
            ("", "voice"),
            (" .. ", "voice"),
            ("../../etc/passwd", "etc-passwd"),
            ("C:\\x|y?*<>\"'", "c-x-y"),
            ("Dr. Anna  Müller", "dr-anna-müller"),
            ("Zoe\u0308", "zoë"),
            ("あかり", "あかり"),
            ("हिन्दी", "हिन्दी"),
            ("tab\tnul\0new\nline\u202e", "tab-nul-new-line"),
            ("a" * 100, "a" * 40),
            ("a" * 39 + " bc", "a" * 39),
            ("🎤", "voice"),
        ],
    )
    def test_a_speaker_has_a_short_name(self, speaker: str, name: str) -> None:
        assert file_name(speaker) == name
        assert unicodedata.is_normalized("NFC", name)

    def test_no_name_is_a_device_or_taken_twice(self, tmp_path: Path) -> None:
        """Not where capitals do not count, or a name such as `con` is reserved."""
        folder = new(tmp_path / "out", plan(*[line(each, "x") for each in ("CON", "con", "a/b")]))
        for number in (1, 2, 3):
            folder.save_item(number, pcm(number))
        assert names(tmp_path / "out")[:3] == ["0001-con.wav", "0002-con.wav", "0003-a-b.wav"]

    def test_numbers_go_on_beyond_four_digits(self, tmp_path: Path) -> None:
        folder = new(tmp_path / "out", plan(*[pause(1)] * 10_000))
        folder.save_item(10_000, pcm(1))
        assert names(tmp_path / "out") == ["10000-silence.wav", "timeline.json"]


class TestArchive:
    """`zip`: all of it in one file."""

    def finished(self, path: Path) -> DialogueFolder:
        folder = new(path, plan(line("Anna", "a"), line("Bob", "b")))
        folder.save_item(1, pcm(1), segments=[spoken("a", 800)])
        folder.save_item(2, b"", error="it broke")
        folder.finish()
        return folder

    def test_it_holds_the_files_and_lies_beside_the_folder(self, tmp_path: Path) -> None:
        folder = self.finished(tmp_path / "out.d")
        (tmp_path / "out.d/notes.txt").write_text("mine")
        folder.check_zip()
        assert folder.zip() == folder.zip_path == tmp_path.resolve() / "out.d.zip"
        with zipfile.ZipFile(tmp_path / "out.d.zip") as archive:
            assert archive.testzip() is None
            assert archive.namelist() == [
                "timeline.json",
                "captions.srt",
                "captions.vtt",
                "dialogue.wav",
                "0001-anna.wav",
            ]
            for name in archive.namelist():
                assert archive.read(name) == (tmp_path / "out.d" / name).read_bytes()
        assert names(tmp_path) == ["out.d", "out.d.zip"]

    def test_the_same_files_give_the_same_archive(self, tmp_path: Path) -> None:
        folder = self.finished(tmp_path / "out")
        first = folder.zip().read_bytes()
        os.utime(tmp_path / "out/dialogue.wav", (10**9, 10**9))
        assert folder.zip().read_bytes() == first

    @pytest.mark.parametrize("there", [b"mine", b"", "archive"])
    def test_somebody_elses_archive_is_not_replaced(
        self, tmp_path: Path, there: bytes | str
    ) -> None:
        folder = self.finished(tmp_path / "out")
        path = tmp_path / "out.zip"
        if isinstance(there, bytes):
            path.write_bytes(there)
        else:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("photos.txt", "mine")
        before = path.read_bytes()
        for put in (folder.check_zip, folder.zip):
            with pytest.raises(FileExistsError, match="is no archive of a dialogue"):
                put()
        assert path.read_bytes() == before
        assert names(tmp_path) == ["out", "out.zip"]

    def test_an_unfinished_dialogue_has_no_archive(self, tmp_path: Path) -> None:
        folder = new(tmp_path / "out", plan(line("Anna", "a")))
        folder.save_item(1, pcm(1))
        with pytest.raises(ValueError, match="is not finished"):
            folder.zip()
        assert names(tmp_path) == ["out"]
