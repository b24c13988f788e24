"""Scripts of dialogues, made in code and read from files."""
# ruff: noqa: E501 - messages stand here as they are told

import inspect
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from intone.v1 import tts_pb2
from intone_client import speech_config
from intone_client._scripts import file as script_file
from intone_client._scripts.document import schema
from intone_client._scripts.script import (
    Script,
    ScriptError,
    audio,
    line,
    request_of,
    reuse,
    silence,
)
from intone_client._scripts.words import shown

DOCS = Path(__file__).parent.parent
EXAMPLE = Path(__file__).parent.parent / "examples" / "podcast.yaml"
PROPERTY = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CAST = "cast: {anna: alba, bert: marius}\n"

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a file into the working directory, so that messages name it by its name alone."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, content: str | bytes) -> Path:
        path = Path(name)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For files that are written over and over."""
    return tmp_path_factory.mktemp("scripts")


def told(path: Path) -> list[str]:
    """What is said about the file, line by line."""
    with pytest.raises(ScriptError) as caught:
        Script.load(path)
    return str(caught.value).split("\n")


def said(script: Script) -> list[str]:
    return [item.speech.text for item in script.items]


class TestInCode:
    def test_a_script_becomes_the_request_of_the_contract(self) -> None:
        script = Script(
            [
                line("anna", "Hello.", id="hello", temperature=0.0, seed=7),
                silence(1.5, id="pause"),
                reuse("hello", id="again"),
                audio(b"RIFF", id="jingle"),
                line("", "The voice of the config."),
            ],
            cast={"anna": "alba"},
            config=speech_config(language="en"),
            gap=0.3,
            on_item_failure="abort",
            max_concurrency=2,
        )
        request = script.request()
        sampling = tts_pb2.Sampling(temperature=0.0, seed=7)
        assert list(request.items) == [
            tts_pb2.DialogueItem(
                id="hello",
                speech=tts_pb2.SpeechItem(speaker="anna", text="Hello.", sampling=sampling),
            ),
            tts_pb2.DialogueItem(
                id="pause", silence=tts_pb2.SilenceItem(duration={"seconds": 1, "nanos": 500000000})
            ),
            tts_pb2.DialogueItem(id="again", reuse=tts_pb2.ReuseItem(item_id="hello")),
            tts_pb2.DialogueItem(id="jingle", audio=tts_pb2.AudioItem(data=b"RIFF")),
            tts_pb2.DialogueItem(speech=tts_pb2.SpeechItem(text="The voice of the config.")),
        ]
        assert dict(request.cast) == {"anna": "alba"}
        assert request.config == tts_pb2.SpeechConfig(language="en")
        assert request.gap.ToMilliseconds() == 300
        assert request.on_item_failure == tts_pb2.ON_ITEM_FAILURE_ABORT
        assert request.max_concurrency == 2

    def test_what_is_left_out_is_the_default_of_the_server(self) -> None:
        request = Script([line("", "Hello.")]).request()
        assert not request.HasField("gap")
        assert request.max_concurrency == 0
        assert request.config == tts_pb2.SpeechConfig()
        assert request.on_item_failure == tts_pb2.ON_ITEM_FAILURE_SKIP
        assert not request.items[0].speech.HasField("sampling")

    def test_every_way_to_fail_has_a_name(self) -> None:
        named = {
            Script([], on_item_failure=name).request().on_item_failure
            for name in ("skip", "silence", "abort")
        }
        assert named == set(tts_pb2.OnItemFailure.values()) - {0}

    def test_a_script_made_in_code_knows_no_lines(self) -> None:
        assert list(Script([line("", "Hello.")]).lines) == []

    def test_samples_without_a_header_need_their_encoding(self) -> None:
        item = audio(b"\0\0", encoding="mulaw", sample_rate_hertz=8000)
        assert item.audio.format == tts_pb2.AudioFormat(
            encoding=tts_pb2.AUDIO_ENCODING_MULAW, sample_rate_hertz=8000
        )
        with pytest.raises(ValueError, match="give their encoding too"):
            audio(b"\0\0", sample_rate_hertz=8000)
        with pytest.raises(ValueError, match="encoding is 'mp3', samples without a header are pcm"):
            audio(b"\0\0", encoding="mp3")  # type: ignore[arg-type]

    def test_misuse_is_a_value_error(self) -> None:
        with pytest.raises(ValueError, match="needs the id"):
            reuse("")
        with pytest.raises(ValueError):
            line("anna", "Hello.", seed=-1)
        for seconds in (math.nan, math.inf):
            with pytest.raises(ValueError, match=f"silence is {seconds}"):
                silence(seconds)
            with pytest.raises(ValueError, match=f"gap is {seconds}"):
                Script([], gap=seconds).request()
        with pytest.raises(
            ValueError, match="on_item_failure is 'ignore', known are skip, silence"
        ):
            Script([], on_item_failure="ignore").request()  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("make", "told"),
        [
            (lambda: line("anna", 5), "text needs a text, not 5"),
            (lambda: line(None, "Hi."), "speaker needs a text, not None"),
            (lambda: line("anna", "Hi.", id=7), "id needs a text, not 7"),
            (lambda: line("anna", "Hi.", seed="7"), "seed needs a whole number, not '7'"),
            (lambda: line("anna", "Hi.", seed=7.0), "seed needs a whole number, not 7.0"),
            (lambda: silence("1s"), "silence needs a number of seconds, not '1s'"),
            (lambda: silence(None), "silence needs a number of seconds, not None"),
            (lambda: reuse(3), "reuse needs the id of an earlier item, a text, not 3"),
            (lambda: audio("a.wav"), r"audio needs the bytes of a file, as Path\(...\).read_bytes"),
            (lambda: Script("Hi.").request(), r"items\[0\] needs what line\(\) and so on make"),
            (lambda: Script(line("", "Hi.")).request(), "items needs a list of what line"),
            (lambda: Script([], cast=["anna"]).request(), "cast needs a mapping of speakers"),
            (lambda: Script([], cast={"a": 1}).request(), r"cast\['a'\] needs the name of a voice"),
            (
                lambda: Script([], config={"voice": "a"}).request(),
                "config needs what speech_config",
            ),
            (
                lambda: Script([], gap="300ms").request(),
                "gap needs a number of seconds, not '300ms'",
            ),
            (lambda: Script([], max_concurrency="2").request(), "max_concurrency needs a whole"),
            (lambda: request_of("a.yaml"), r"needs a Script; Script.load\(path\) reads a file"),
            (lambda: request_of([line("", "Hi.")]), "Script.items. takes a list"),
        ],
    )
    def test_a_value_of_another_kind_is_a_type_error_in_words(
        self, make: Callable[[], object], told: str
    ) -> None:
        with pytest.raises(TypeError, match=told):
            make()

    def test_whoever_makes_scripts_in_code_imports_neither_yaml_nor_jsonschema(self) -> None:
        program = (
            "import sys, intone_client, intone_client._scripts.script;"
            "print(sorted({'yaml', 'jsonschema'} & set(sys.modules)))"
        )
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert result.stdout == "[]\n"


class TestSchema:
    def test_it_is_a_schema_of_draft_2020_12_that_describes_itself(self) -> None:
        jsonschema.Draft202012Validator.check_schema(schema())
        assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert schema()["$id"] == "script.schema.json"
        described = [schema(), *schema()["properties"].values(), schema()["$defs"]["item"]]
        described += schema()["$defs"]["config"]["properties"].values()
        described += schema()["$defs"]["item"]["properties"].values()
        for rule in described:
            resolved = rule
            if "description" not in rule:
                resolved = schema()["$defs"][rule["$ref"].rpartition("/")[2]]
            assert resolved["description"].endswith(".")

    def test_its_config_has_the_keywords_of_speech_config(self) -> None:
        """All but those of the command line, and those that a dialogue has no use for."""
        keywords = set(inspect.signature(speech_config).parameters)
        keywords -= {"encoding", "sample_rate_hertz", "segment_events", "queue_events"}
        keywords -= {"first_max_characters", "max_text_delay"}
        assert set(schema()["$defs"]["config"]["properties"]) == keywords

    def test_its_lines_have_the_keywords_of_line(self) -> None:
        keywords = set(inspect.signature(line).parameters)
        assert set(schema()["$defs"]["speech"]["properties"]) == keywords
        items = set(schema()["$defs"]["item"]["properties"])
        assert items == keywords | {"silence", "reuse", "audio"}
        # Or "seed: Hello." could be two things.
        assert set(schema()["$defs"]["speaker"]["not"]["enum"]) == items

    def test_the_example_of_the_repository_fits_it_as_other_programs_read_it(self) -> None:
        document = yaml.safe_load(EXAMPLE.read_text())
        jsonschema.Draft202012Validator(schema()).validate(document)
        script = Script.load(EXAMPLE)
        kinds = [item.WhichOneof("content") for item in script.items]
        assert (kinds.count("speech"), kinds.count("silence"), kinds.count("reuse")) == (8, 1, 1)
        assert {item.speech.speaker for item in script.items} == {"anna", "bert", ""}
        assert script.request().gap.ToMilliseconds() == 300


FULL = """\
cast: {anna: alba, "no": marius}
gap: 300ms
on_item_failure: silence
max_concurrency: 2
config:
  voice: cosette
  language: en
  gain_db: -3
  temperature: 0.5
  segmentation: clause
  segment_gap: 1.5s
  priority: batch
  max_ahead: 500ms
  strip_markdown: true
  replacements: {Nguyen: win, dB: ""}

items:
- anna: Hello there.
- speaker: no
  text: Hi.
  id: hi
  temperature: 0
  decode_steps: 2
  seed: 18446744073709551615
- silence: 1.5
- {silence: 20 ms, id: pause}
- reuse: hi
  id: again
- audio: sounds/jingle.wav
  id: jingle
- text: The voice of the config.
"""


class TestDocuments:
    def test_a_document_says_all_that_code_can(self, write: Write) -> None:
        Path("sounds").mkdir()
        write("sounds/jingle.wav", b"RIFF")
        script = Script.load(write("full.yaml", FULL))
        assert script == Script(
            [
                line("anna", "Hello there."),
                line("no", "Hi.", id="hi", temperature=0, decode_steps=2, seed=2**64 - 1),
                silence(1.5),
                silence(0.02, id="pause"),
                reuse("hi", id="again"),
                audio(b"RIFF", id="jingle"),
                line("", "The voice of the config."),
            ],
            cast={"anna": "alba", "no": "marius"},
            config=speech_config(
                voice="cosette",
                language="en",
                gain_db=-3,
                temperature=0.5,
                segmentation="clause",
                segment_gap=1.5,
                priority="batch",
                max_ahead=0.5,
                strip_markdown=True,
                replacements={"Nguyen": "win", "dB": ""},
            ),
            gap=0.3,
            on_item_failure="silence",
            max_concurrency=2,
            lines=[18, 19, 25, 26, 27, 29, 31],
        )

    def test_json_is_the_same(self, write: Write) -> None:
        Path("sounds").mkdir()
        write("sounds/jingle.wav", b"RIFF")
        document = yaml.safe_load(FULL.replace("speaker: no", "speaker: 'no'"))
        document["$schema"] = "script.schema.json"
        written = json.dumps(document, indent="\t")
        script = Script.load(write("full.json", written))
        assert script.request() == Script.load(write("full.yml", FULL)).request()
        numbered = enumerate(written.split("\n"), 1)
        assert script.lines == [number for number, text in numbered if text == "\t\t{"]

    def test_sounds_are_found_beside_the_script_wherever_one_is(
        self, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write("one.wav", b"RIFF")
        path = write(
            "script.yaml", "items: [{audio: one.wav}, {audio: " + f"{tmp_path}/one.wav" + "}]"
        )
        monkeypatch.chdir("/")
        script = Script.load(tmp_path / path)
        assert [item.audio.data for item in script.items] == [b"RIFF", b"RIFF"]

    def test_replacements_may_mind_upper_and_lower_case(self, write: Write) -> None:
        text = (
            "config: {replacements: [{word: US, spoken: you ess, match_case: true}, {word: um}]}\n"
        )
        script = Script.load(write("a.yaml", text + "items: [{text: Hello}]\n"))
        assert list(script.config.text.replacements) == [
            tts_pb2.Replacement(word="US", spoken="you ess", match_case=True),
            tts_pb2.Replacement(word="um"),
        ]

    def test_text_in_yaml_comes_out_as_it_is_written(self, write: Write) -> None:
        """YAML 1.1 makes numbers, truths and days of these."""
        texts = ["12:30", "750", "1.50", "0x10", "010", "1_000", "2020-01-01", "yes", "no", "on"]
        texts += ["null", "~", "true", "1e3", ".5", "=", "<<", "Hello: there", "C#", "a #b"]
        lines = [f"- on: {text}" for text in texts[:-3]]
        lines += [f'- on: "{text}"' for text in texts[-3:]]
        script = Script.load(write("a.yaml", "cast: {on: 750}\nitems:\n" + "\n".join(lines)))
        assert said(script) == texts
        assert dict(script.cast) == {"on": "750"}

    def test_ids_speakers_and_words_in_yaml_come_out_as_they_are_written(
        self, write: Write
    ) -> None:
        text = """\
            cast: {yes: 1, 2: no, null: off}
            config: {language: no, voice: 007, replacements: {1: one, no: 2, yes: on}}
            items:
            - {speaker: yes, text: on, id: 1.0}
            - {speaker: 2, text: off, id: 1}
            - {reuse: 1.0}
            - null: null
            """
        script = Script.load(write("a.yaml", dedent(text)))
        assert script.request() == tts_pb2.SynthesizeDialogueRequest(
            cast={"yes": "1", "2": "no", "null": "off"},
            config=speech_config(
                language="no", voice="007", replacements={"1": "one", "no": "2", "yes": "on"}
            ),
            items=[
                line("yes", "on", id="1.0"),
                line("2", "off", id="1"),
                reuse("1.0"),
                line("null", "null"),
            ],
            on_item_failure=tts_pb2.ON_ITEM_FAILURE_SKIP,
        )

    def test_escapes_in_pairs_are_one_character_in_json_and_in_yaml(self, write: Write) -> None:
        text = '{"items": [{"text": "\\ud83d\\ude00\\t\\u00e9"}]}'
        assert said(Script.load(write("a.json", text))) == ["😀\té"]
        assert said(Script.load(write("a.yaml", text))) == ["😀\té"]

    def test_a_question_needs_no_quotes_in_braces(self, write: Write) -> None:
        """As in YAML 1.2, which editors read; PyYAML reads 1.1."""
        texts = ["What?", "Vraiment ?", "Who? Me?", "a?b", "¿Qué?", "\ue000?", "???"]
        items = ", ".join(f"{{text: {text}, id: i{n}?}}" for n, text in enumerate(texts))
        script = Script.load(write("a.yaml", f'items: [{items}, {{text: "Quoted?"}}]\n'))
        assert said(script) == [*texts, "Quoted?"]
        assert script.items[2].id == "i2?"

    def test_what_stands_in_for_a_question_mark_is_never_seen(self, write: Write) -> None:
        (what,) = told(write("a.yaml", 'items: [{text: "\\?"}]\n'))
        assert "found unknown escape character '?'" in what

    def test_yaml_keeps_the_lines_of_a_block(self, write: Write) -> None:
        text = "items:\n- text: |\n    One.\n\n    Two.\n- text: >\n    Three\n    four.\n"
        assert said(Script.load(write("a.yaml", text))) == ["One.\n\nTwo.\n", "Three four.\n"]

    def test_a_whole_number_may_be_written_with_a_point(self, write: Write) -> None:
        script = Script.load(write("a.json", '{"items": [{"text": "Hi.", "seed": 3.0}]}'))
        assert script.items[0].speech.sampling.seed == 3

    def test_lengths_are_seconds_or_say_their_unit(self, write: Write) -> None:
        lengths = ["2", "0.25", ".5", "300ms", "'1.5 s'", '" 20 MS "', "1e-1"]
        text = "items:\n" + "\n".join(f"- silence: {length}" for length in lengths)
        script = Script.load(write("a.yaml", text))
        found = [item.silence.duration.ToMilliseconds() for item in script.items]
        assert found == [2000, 250, 500, 300, 1500, 20, 100]

    @pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("mark", ["", "\ufeff"])
    def test_files_of_every_system_are_read(self, write: Write, ends: str, mark: str) -> None:
        text = mark + (CAST + "items:\n- anna: Hello.\n\n- text: |\n   One.\n   Two.\n").replace(
            "\n", ends
        )
        script = Script.load(write("a.yaml", text))
        assert said(script) == ["Hello.", "One.\nTwo.\n"]
        assert list(script.lines) == [3, 5]
        script = Script.load(write("a.txt", f"{mark}alba: One.{ends}Two.{ends}{ends}alba: Three."))
        assert said(script) == ["One.\nTwo.", "Three."]

    def test_lines_are_counted_as_editors_do(self, write: Write) -> None:
        """YAML 1.1 takes U+2028 and U+0085 for the end of a line, too."""
        text = 'items:\n- text: "a\u2028b\u0085c"\n- txt: d\n'
        (what,) = told(write("a.yaml", text))
        assert what.startswith("a.yaml:3: items[1]: unknown key 'txt' (did you mean 'text'?)")


ITEM_KEYS = "speaker, text, id, temperature, decode_steps, eos_threshold, noise_clamp, frames_after_eos, seed"
QUOTES = (
    "text needs quotes if there is ': ' or ' #' in it, or if it begins with - and a space, or with "
    "one of [ ] { } * & ! | > % @ ` \" '"
)
SHARED = (
    "text that begins with & * or ! needs quotes (anchors, aliases and tags are not for scripts; to "
    "hear an item once more, 'reuse' its id)"
)
FLOW = "inside { } and [ ], text needs quotes if one of , [ ] { } or a ': ' is in it"
AN_ITEM = "needs a mapping such as 'anna: Hello there.', 'text: Hello there.' or 'silence: 1.5'"
A_LENGTH = "needs seconds such as 1.5, or a text such as '300ms' or '1.5s'"
ENDINGS = ".yaml and .yml are YAML, .json is JSON, any other is plain text"

# Items of a document that has a cast of anna and bert, and what is told about them.
ITEMS = {
    "- {speaker: anna, txt: Hi}": f"2: items[0]: unknown key 'txt' (did you mean 'text'?), allowed: {ITEM_KEYS}",
    "- {speaker: anna}": "2: items[0]: the key 'text' is missing",
    "- {text: Hi, voice: alba}": f"2: items[0]: unknown key 'voice', allowed: {ITEM_KEYS}",
    "- {silence: 1, seed: 3}": "2: items[0]: unknown key 'seed', allowed: silence, id",
    "- silense: 1.5": "2: items[0]: unknown key 'silense' (did you mean 'silence'?), allowed: text, silence, reuse, audio, or a speaker of the cast (anna, bert)",
    "- ana: Hi": "2: items[0]: unknown key 'ana' (did you mean 'anna'?), allowed: text, silence, reuse, audio, or a speaker of the cast (anna, bert)",
    "- {speaker: ana, text: Hi}": "2: items[0].speaker: 'ana' is not in the cast (anna, bert) (did you mean 'anna'?)",
    "- {text: Hi, silence: 3}": "2: items[0]: has 'text' and 'silence': an item is only one of text, silence, reuse, audio",
    "- {anna: Hi, id: x}": "2: items[0]: the short form 'anna: ...' takes no other key, but here is 'id': write 'speaker: anna' and 'text: ...' as keys of their own",
    "- {id: x}": "2: items[0]: is nothing that can be heard: it needs one of text, silence, reuse, audio",
    "- {}": "2: items[0]: is nothing that can be heard: it needs one of text, silence, reuse, audio",
    "-": f"2: items[0]: {AN_ITEM}, not nothing",
    "- Hello.": f"2: items[0]: {AN_ITEM}, not 'Hello.'",
    "- anna:Hello.": f"2: items[0]: {AN_ITEM}, not 'anna:Hello.'; there has to be a space after the ':'",
    "- [anna, Hello]": f"2: items[0]: {AN_ITEM}, not a list",
    "- anna:": "2: items[0].anna: is empty",
    "- text: '  '": "2: items[0].text: is empty",
    "- text: [laughs]": "2: items[0].text: needs text, not a list; text that begins with [ or { needs quotes",
    "- anna: We are #1": "2: items[0].anna: the rest of its line is a comment: put it in quotes, or a space after the '#'",
    "- silence: 5 minutes": f"2: items[0].silence: {A_LENGTH}, not '5 minutes'",
    "- silence: 12:30": f"2: items[0].silence: {A_LENGTH}, not '12:30'",
    "- silence: true": f"2: items[0].silence: {A_LENGTH}, not true",
    "- silence: -1": "2: items[0].silence: is -1, the least is 0",
    "- silence: 1e300": "2: items[0].silence: 1e+300 is too long",
    "- silence: 1e999": f"2: items[0].silence: {A_LENGTH}, not '1e999'",
    "- {text: Hi, seed: -1}": "2: items[0].seed: is -1, the least is 0",
    "- {text: Hi, seed: 1.5}": "2: items[0].seed: needs a whole number from 0 to 18446744073709551615, not 1.5",
    "- {text: Hi, decode_steps: 4294967296}": "2: items[0].decode_steps: is 4294967296, the most is 4294967295",
    "- {text: Hi, temperature: hot}": "2: items[0].temperature: needs a number, not 'hot'",
    "- {text: Hi, id: []}": "2: items[0].id: needs text, not a list; text that begins with [ or { needs quotes",
    "- text: One\n  id: a\n- text: Two\n  id: a": "5: items[1].id: 'a' is the id of items[0] on line 2 already",
    "- reuse: b\n- {text: Hi, id: b}": "2: items[0].reuse: 'b' is the id of items[1] on line 3; it takes an earlier one",
    "- {reuse: c, id: c}": "2: items[0].reuse: 'c' is the id of this item itself; it takes an earlier one",
    "- {text: Hi, id: intro}\n- reuse: intr": "3: items[1].reuse: no item has the id 'intr' (did you mean 'intro'?)",
    "- text: One\n  text: Two": "3: items[0].text: is here a second time, first on line 2",
    "- {audio: no.wav}": "2: items[0].audio: 'no.wav' cannot be read: No such file or directory (no.wav)",
    "- {audio: .}": "2: items[0].audio: '.' is not a file",
    "- {speaker: anna, text: Hello, you., id: x}": "2: items[0]: 'you.' has no value: inside { }, text with a ',' needs quotes",
    "- {anna: One, two, and three.}": "2: items[0]: 'two' has no value: inside { }, text with a ',' needs quotes\na.yaml:2: items[0]: 'and three.' has no value: inside { }, text with a ',' needs quotes",
    '- text: "\\ud83d"': "2: items[0].text: an escape in it is half of a character",
    "- ? [a]\n  : b\n  text: Hi": f"2: items[0]: a key is text, nothing else; {QUOTES}",
}

# Whole files, and what is told about them.
FILES: dict[str, tuple[str | bytes, list[str]]] = {
    "nothing.yaml": ("", ["1: the file is empty"]),
    "blank.json": (" \n", ["1: the file is empty"]),
    "blank.txt": ("\n\n", ["1: the file is empty"]),
    "comment.yaml": ("# One\n", ["1: there is nothing in it but comments"]),
    "latin.yaml": (
        b"items:\n- text: caf\xe9\n",
        ["2: is not UTF-8 text: there is a byte 0xE9 which cannot be in it"],
    ),
    "colon.yaml": (
        "items:\n- text: Hi.\n- text: Note: this\n",
        [f"3: this is not YAML: mapping values are not allowed here; {QUOTES}"],
    ),
    "quote.yaml": (
        'items:\n- text: "Hi\n- text: Ho\n',
        [
            "2: this is not YAML: found unexpected end of stream (while scanning a quoted scalar); "
            + QUOTES
        ],
    ),
    "pause.yaml": (
        "items:\n- text: [pause:300ms] Hi\n",
        [
            f"2: this is not YAML: expected <block end>, but found '<scalar>' (while parsing a block mapping); {QUOTES}"
        ],
    ),
    "braces.yaml": (
        "items:\n- {text: Hello [pause:1s] you}\n",
        [
            f"2: this is not YAML: expected ',' or '}}', but got '[' (while parsing a flow mapping); {FLOW}"
        ],
    ),
    "commas.yaml": (
        "items:\n- {text: Well, what?, id: x}\n- {text: Hi, seed: no}\n- reuse: y\n",
        [
            "2: items[0]: 'what?' has no value: inside { }, text with a ',' needs quotes",
            "3: items[1].seed: needs a whole number from 0 to 18446744073709551615, not 'no'",
            "4: items[2].reuse: no item has the id 'y'",
        ],
    ),
    "tab.yaml": (
        "items:\n\t- text: Hi\n",
        [
            "2: this is not YAML: found character '\\t' that cannot start any token (while scanning for the next token); indent with spaces, not with tabs"
        ],
    ),
    "alias.yaml": ("items:\n- text: *really* good\n", [f"2: {SHARED}"]),
    "anchor.yaml": ("items:\n- text: &more Hi\n", [f"2: {SHARED}"]),
    "tag.yaml": ("items:\n- text: !!python/object:os.system Hi\n", [f"2: {SHARED}"]),
    "two.yaml": (
        "items:\n- text: Hi\n---\nitems: []\n",
        ["3: a second document begins here, but a script is one: remove the '---'"],
    ),
    "escape.yaml": (
        'items:\n- text: "\\Uffffffff"\n',
        ["2: there is no character \\Uffffffff"],
    ),
    "version.yaml": (
        f"%YAML {'9' * 5000}.1\n---\nitems: []\n",
        ["1: this is not YAML: %YAML is wrong"],
    ),
    "bell.yaml": ("items:\n- text: \x07\n", ["2: the character U+0007 is not allowed in YAML"]),
    "list.yaml": (
        "- anna: Hi\n",
        ["1: needs a mapping of keys to values, such as 'items:', not a list"],
    ),
    "none.yaml": (
        "cast: {anna: alba}\n",
        ["1: the key 'items' is missing"],
    ),
    "no_items.yaml": ("items: []\n", ["1: items: is empty, but a script has at least one item"]),
    "a_mapping.yaml": (
        "items:\n  text: Hi\n",
        [
            "1: items: needs a list of items, each after a '-' such as '- anna: Hello there.', not a mapping"
        ],
    ),
    "keys.yaml": (
        """\
        itmes: []
        cast: {anna: alba}
        gap: soon
        on_item_failure: ignore
        max_concurrency: many
        config:
          encoding: mp3
          normalize: yes
          segmentation: word
          gain_db: loud
          segment_gap: -1
        """,
        [
            "1: unknown key 'itmes' (did you mean 'items'?), allowed: cast, gap, on_item_failure, max_concurrency, config, items",
            f"3: gap: {A_LENGTH}, not 'soon'",
            "4: on_item_failure: is 'ignore', known are skip, silence, abort",
            "5: max_concurrency: needs a whole number from 0 to 4294967295, not 'many'",
            "7: config: unknown key 'encoding', allowed: voice, language, gain_db, temperature, decode_steps, eos_threshold, noise_clamp, frames_after_eos, seed, segmentation, max_characters, segment_gap, paragraph_gap, strip_markdown, inline_pauses, normalize, replacements, priority, max_queue_wait, max_ahead",
            "8: config.normalize: needs true or false, not 'yes'",
            "9: config.segmentation: is 'word', known are sentence, clause, manual",
            "10: config.gain_db: needs a number, not 'loud'",
            "11: config.segment_gap: is -1, the least is 0",
        ],
    ),
    "cast.yaml": (
        """\
        cast:
          anna:
          seed: alba
          anna: alba
          "": alba
        items:
        - anna: Hi
        """,
        [
            "2: cast.anna: is empty",
            "3: cast.seed: cannot be the name of a speaker: it is a key of items",
            "4: cast.anna: is here a second time, first on line 2",
            "5: cast.: is the name of a speaker, but empty",
        ],
    ),
    "cast_list.yaml": (
        "cast: [anna]\nitems:\n- anna: Hi\n- {speaker: anna, text: Hi}\n",
        ["1: cast: needs a mapping of speakers to their voices, such as 'anna: alba', not a list"],
    ),
    "no_cast.yaml": (
        "items:\n- {speaker: anna, text: Hi}\n",
        ["2: items[0].speaker: 'anna' is not in the cast (which is empty)"],
    ),
    "rules.yaml": (
        """\
        config:
          replacements:
          - word: a
            spoken: []
          - wrd: b
          - c
          segment_gap: 1e300
        items: [{text: Hi}]
        """,
        [
            "4: config.replacements[0].spoken: needs text, not a list; text that begins with [ or { needs quotes",
            "5: config.replacements[1]: unknown key 'wrd' (did you mean 'word'?), allowed: word, spoken, match_case",
            "6: config.replacements[2]: needs a mapping with 'word' and 'spoken', not 'c'",
            "7: config.segment_gap: is 1e+300, the most is 10",
        ],
    ),
    "long.yaml": (
        """\
        gap: 10.1
        config:
          segment_gap: 11s
          paragraph_gap: 10001ms
          max_queue_wait: 1e300
        items: [{text: Hi}]
        """,
        [
            "1: gap: is 10.1, the most is 10",
            "3: config.segment_gap: is 11 s, the most is 10 s",
            "4: config.paragraph_gap: is 10.001 s, the most is 10 s",
            "5: config.max_queue_wait: 1e+300 is too long",
        ],
    ),
    "comma.json": (
        '{"items": [\n {"text": "Hi"},\n]}',
        ["3: this is not JSON: Expecting value; the comma before it is one too many"],
    ),
    "comment.json": (
        '{\n // One\n "items": []}',
        [
            "2: this is not JSON: Expecting property name enclosed in double quotes; JSON has no comments"
        ],
    ),
    "numbers.json": ('{\n "gap": NaN}', ["2: this is not JSON: NaN is no number"]),
    "number.json": ('{"items":\n [{"text": 750}]}', ["2: items[0].text: needs text, not 750"]),
    "half.json": (
        '{"items":\n [{"text": "\\ude00"}]}',
        ["2: items[0].text: an escape in it is half of a character"],
    ),
    "twice.json": (
        '{"items": [{"text": "a"}],\n "items": []}',
        ["2: items: is here a second time, first on line 1"],
    ),
    "deep.json": (
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        ["1: this is nested too deeply for a script"],
    ),
    "deep.yaml": ("items: " + "[" * 100_000, ["1: this is nested too deeply for a script"]),
    # What is in one format and called another.
    "lines.yaml": (
        "# A scene\nanna: Hi.\nbert: Ho.\nanna: Hi.\n",
        [f"1: this looks like plain text, but the ending of the file means YAML: {ENDINGS}"],
    ),
    "yaml.txt": (
        "items:\n# First\n\n- text: Hi\n",
        [f"1: this looks like YAML, but the ending of the file means plain text: {ENDINGS}"],
    ),
    "json": (
        ' {"items": []}',
        [f"1: this looks like JSON, but the ending of the file means plain text: {ENDINGS}"],
    ),
    "yaml.json": (
        "items:\n- text: Hi\n",
        [
            f"1: this looks like YAML, but the ending of the file means JSON: {ENDINGS}",
            "1: this is not JSON: Expecting value",
        ],
    ),
    "lines.json": (
        "anna: Hi.\n",
        [
            f"1: this looks like plain text, but the ending of the file means JSON: {ENDINGS}",
            "1: this is not JSON: Expecting value",
        ],
    ),
}


# Each has something that may be compared with everything else.
JUNK_FILES = {
    "cast.txt": "".join(f"@cast a{n} = b\n" for n in range(40_000))
    + "".join(f"z{n}: hello\n" for n in range(20_000)),
    "cast.yaml": "cast:\n"
    + "".join(f"  s{n}: b\n" for n in range(12_000))
    + "items:\n"
    + "".join(f"- k{n}: a\n" for n in range(5_000)),
    "reuse.json": json.dumps(
        {"items": [{"text": "a", "id": f"i{n}"} for n in range(6_000)] + [{"reuse": "j"}] * 2_000}
    ),
    "keys.yaml": "items:\n- " + "  ".join(f"k{n}: v\n" for n in range(20_000)),
    "nothing.yaml": "items:\n" + "-\n" * 40_000,
    "percent.yaml": "%a\n" * 300_000,
}


class TestFaults:
    @pytest.mark.parametrize("items", ITEMS)
    def test_a_faulty_item_is_told_with_its_line_and_place(self, write: Write, items: str) -> None:
        assert (
            "\n".join(told(write("a.yaml", f"items:\n{items}\n{CAST}"))) == f"a.yaml:{ITEMS[items]}"
        )

    @pytest.mark.parametrize("name", FILES)
    def test_a_faulty_file_is_told_with_every_line(self, write: Write, name: str) -> None:
        content, faults = FILES[name]
        path = write(name, content if isinstance(content, bytes) else dedent(content))
        assert told(path) == [f"{name}:{fault}" for fault in faults]

    def test_faults_come_all_at_once_in_the_order_of_the_file(self, write: Write) -> None:
        """Those of the schema, of names and of files alike; what they are in is read no further."""
        text = CAST + dedent(
            """\
            items:
            - {audio: no.wav}
            - {txt: Hi}
            - reuse: x
            - {speaker: zoe, text: Hi}
            gap: x
            """
        )
        path = write("a.yaml", text)
        with pytest.raises(ScriptError) as caught:
            Script.load(path)
        assert [number for number, _ in caught.value.faults] == [3, 4, 5, 6, 7]
        assert caught.value.faults[2] == (5, "items[2].reuse: no item has the id 'x'")
        assert caught.value.name == "a.yaml"

    def test_a_file_that_cannot_be_read_has_no_line(self, write: Write) -> None:
        assert told(Path("no.yaml")) == ["no.yaml: cannot be read: No such file or directory"]
        Path("a").mkdir()
        assert told(Path("a")) == ["a: cannot be read: Is a directory"]
        assert told(Path("a\0b")) == ["a\\x00b: is no name of a file: embedded null byte"]

    def test_a_script_that_is_too_long_is_refused(self, write: Write) -> None:
        assert told(Path("/dev/zero")) == [
            "/dev/zero: has more than 4,194,304 bytes, limit 4,194,304: cut the script in two"
        ]
        path = write("long.yaml", "items: []\n" + "#" * 4_194_304)
        assert told(path) == [
            "long.yaml: has 4,194,314 bytes, limit 4,194,304: cut the script in two"
        ]

    def test_sounds_have_a_limit(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        write("empty.wav", b"")
        write("long.wav", b"")
        os.truncate("long.wav", 20_000_001)
        os.mkfifo("pipe.wav")
        items = "[{audio: empty.wav}, {audio: long.wav}, {audio: pipe.wav}, {audio: a.wav/b}]"
        write("a.wav", b"RIFF")
        assert told(write("a.yaml", f"items: {items}")) == [
            "a.yaml:1: items[0].audio: 'empty.wav' is empty",
            "a.yaml:1: items[1].audio: 'long.wav' has more than 20,000,000 bytes, the limit",
            "a.yaml:1: items[2].audio: 'pipe.wav' is not a file",
            "a.yaml:1: items[3].audio: 'a.wav/b' cannot be read: Not a directory (a.wav/b)",
        ]
        monkeypatch.setattr(script_file, "_MAX_ALL_AUDIO_BYTES", 10)
        assert told(write("a.yaml", "items: [{audio: a.wav}, {audio: a.wav}, {audio: a.wav}]")) == [
            "a.yaml:1: items[2].audio: 'a.wav' is too much: limit 10 bytes in all items"
        ]

    def test_text_that_would_fill_the_memory_is_refused_at_once(self, write: Write) -> None:
        laughs = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 40))
        (what,) = told(write("a.yaml", f"l0: &l0 lol\n{laughs}\nitems: *l39\n"))
        assert what == f"a.yaml:1: {SHARED}"

    @pytest.mark.parametrize("name", ["../one.wav", "/one.wav", "sub/../../one.wav", "link.wav"])
    def test_sounds_outside_the_folder_of_the_script_need_leave(
        self, write: Write, tmp_path: Path, name: str
    ) -> None:
        """Nor does a link lead there."""
        outside = tmp_path / "one.wav"
        Path("script/sub").mkdir(parents=True)
        write("one.wav", b"RIFF")
        Path("script/link.wav").symlink_to(outside)
        name = name.replace("/one.wav", str(outside)) if name.startswith("/") else name
        path = write("script/a.yaml", f"items:\n- audio: {name}\n")
        (what,) = told(path)
        assert what.startswith(f"script/a.yaml:2: items[0].audio: {shown(name)} lies outside the ")
        assert "--allow-outside" in what
        script = Script.load(path, allow_outside=True)
        assert script.items[0].audio.data == b"RIFF"

    def test_no_more_than_a_hundred_faults_are_told(self, write: Write) -> None:
        faults = told(write("a.yaml", "items:\n" + "- txt: a\n" * 1000))
        assert len(faults) == 101
        assert faults[99].startswith("a.yaml:101: items[99]: unknown key 'txt'")
        assert faults[100] == "a.yaml:101: these are 100, and no more were looked for"
        assert len(told(write("a.txt", "nobody\n\n" * 1000))) == 101

    @pytest.mark.parametrize("name", JUNK_FILES)
    def test_a_megabyte_of_junk_takes_seconds(self, write: Write, name: str) -> None:
        """Or the test would reach its time limit: each of these took minutes."""
        told(write(name, JUNK_FILES[name]))

    def test_a_script_has_so_many_marks_and_no_more(self, write: Write) -> None:
        (what,) = told(write("a.yaml", "items: [" + "a," * 60_000 + "]"))
        assert (
            what
            == "a.yaml:1: there are more than 100,000 marks and words in it: cut the script in two"
        )
        (what,) = told(write("a.json", '{"items": [' + "1," * 60_000 + "1]}"))
        assert (
            what
            == "a.json:1: there are more than 100,000 marks and words in it: cut the script in two"
        )

    def test_what_steers_a_terminal_is_spelled_out(self, write: Write) -> None:
        path = write("a.json", json.dumps({"items": [{"text": ""}], "ca\x1b[2Jst\u202e\n": 1}))
        assert told(path)[1].startswith("a.json:1: unknown key 'ca\\x1b[2Jst\\u202e\\n'")
        document = {"cast": {"an\x1b[2J\u202e\nna": ""}, "items": [{"text": "a"}]}
        assert told(write("a.json", json.dumps(document))) == [
            "a.json:1: cast.an\\x1b[2J\\u202e\\nna: is empty"
        ]

    def test_what_is_shown_of_a_value_is_short(self, write: Write) -> None:
        (what,) = told(write("a.json", json.dumps({"items": [{"silence": "x" * 100_000}]})))
        assert what.endswith(f"not '{'x' * 40}…'")


PLAIN = """\
# Two speakers.
@cast Anna Smith = alba
@cast bert = marius
@gap 0.3s

Anna Smith: Hello there,
it is 12:30 [pause:300ms] on
  Note: http://example.org
# A comment ends nothing.
and on.
bert:Hi!
[pause:1500ms]
[Pause: .5 S ]
Anna Smith:
  Bye.
"""


class TestPlainText:
    def test_lines_say_who_speaks(self, write: Write) -> None:
        hello = "Hello there,\nit is 12:30 [pause:300ms] on\nNote: http://example.org\nand on."
        expected = Script(
            [
                line("Anna Smith", hello),
                line("bert", "Hi!"),
                silence(1.5),
                silence(0.5),
                line("Anna Smith", "Bye."),
            ],
            cast={"Anna Smith": "alba", "bert": "marius"},
            config=speech_config(inline_pauses=True),
            gap=0.3,
            lines=[6, 11, 12, 13, 14],
        )
        for name in ("a.txt", "a", "a.script", "a.md"):
            assert Script.load(write(name, PLAIN)) == expected

    @pytest.mark.parametrize(
        "text",
        ["12:30", "https://example.org", "Nice one :-)", "10:1, they say", "No colon"],
    )
    def test_not_every_colon_is_a_speaker(self, write: Write, text: str) -> None:
        """What has a word before the colon is one, or is indented."""
        script = Script.load(write("a.txt", f"alba: Hi,\n{text}\n"))
        assert said(script) == [f"Hi,\n{text}"]

    @pytest.mark.parametrize("text", ["Hi", "'Hi'", "¿Qué?", "3", "/", "...", "", " Hi"])
    def test_the_space_after_a_speaker_is_not_needed(self, write: Write, text: str) -> None:
        header = "@cast Anna B. = alba\n\nAnna B.: One.\n"
        script = Script.load(write("a.txt", f"{header}Anna B.:{text}\n  and two.\n"))
        assert said(script)[1].split() == [*text.split(), "and", "two."]

    def test_without_a_cast_speakers_are_voices(self, write: Write) -> None:
        script = Script.load(write("a.txt", "alba: Hi.\nmarius: Ho.\nalba: Bye.\n"))
        assert dict(script.cast) == {"alba": "alba", "marius": "marius"}

    @pytest.mark.parametrize(
        ("text", "faults"),
        [
            (
                "alba: Hi.\n\nWho says this,\nand this?\n",
                ["3: nobody says this: a line begins with 'SPEAKER: ' or comes right after one"],
            ),
            (
                "[pause:1s]\n  alba: Hi.\n",
                [
                    "2: nobody says this: a line begins with 'SPEAKER: ' or comes right after one; an indented line always continues the last"
                ],
            ),
            (
                "Anna: Hi.\nAnna: Ho.\n",
                [
                    "1: 'Anna' is not the name of a voice: write '@cast Anna = VOICE' above the first line, or, if nobody is called 'Anna', indent this line to continue the last"
                ],
            ),
            (
                "@cast a = alba\na: Hi,\nand then: Ho\n",
                [
                    "3: 'and then' is not in the cast (a): write '@cast and then = VOICE' above the first line, or, if nobody is called 'and then', indent this line to continue the last"
                ],
            ),
            ("alba:\n\nalba: Hi.\n", ["1: alba says nothing"]),
            (
                "alba: Hi.\n[pause 1s]\n[pause]\n",
                [
                    f"{number}: a pause is written as [pause:1500ms] or [pause:1.5s]"
                    for number in (2, 3)
                ],
            ),
            (f"[pause:{'9' * 400}s]\n", ["1: no silence is so long"]),
            ("# One\n", ["1: nobody says anything: write lines such as 'alba: Hello there.'"]),
            (
                "@cast a\n@cast b = alba\n@cast b = marius\n@gap 3\n@gap 3s\n@gap 3s\n@voice x\n",
                [
                    "1: write '@cast SPEAKER = VOICE', without a ':' in the speaker",
                    "3: 'b' is in the cast already, as 'alba'",
                    "4: write '@gap 300ms' or '@gap 0.3s', not '3'",
                    "6: @gap is here a second time",
                    "7: @voice is unknown: there are @cast and @gap",
                ],
            ),
            (
                "@gap 10.5 s\nalba: Hi.\n",
                ["1: @gap is 10.5 s, the most is 10 s"],
            ),
            (
                "alba: Hi.\n@gap 3s\n",
                ["2: @gap has to be above the first line (indent it if it is text)"],
            ),
        ],
    )
    def test_a_faulty_line_is_told(self, write: Write, text: str, faults: list[str]) -> None:
        assert told(write("a.txt", text)) == [f"a.txt:{fault}" for fault in faults]

    @pytest.mark.parametrize(
        "text",
        [f"alba{' ' * 1_000_000}x", f"items:\n{'# # ' * 250_000}\nx", "[pause:" + " " * 10**6],
    )
    def test_a_long_line_takes_no_time(self, write: Write, text: str) -> None:
        """Or the test would reach its time limit."""
        parses_or_not(Path("a.txt"), text)

    @pytest.mark.parametrize("page", ["README.md", "docs/dialogue.md"])
    def test_the_examples_of_the_pages_are_scripts(self, write: Write, page: str) -> None:
        blocks = re.findall(r"```\n((?:#|@).*?)```", (DOCS / page).read_text(), re.DOTALL)
        assert len(blocks) == 1
        script = Script.load(write("a.txt", blocks[0]))
        kinds = [item.WhichOneof("content") for item in script.items]
        assert kinds == ["speech", "silence", "speech"]
        assert "\n" in said(script)[0]

    def test_the_example_in_the_documentation_is_one(self, write: Write) -> None:
        documentation = inspect.getdoc(Script.load) or ""
        lines = [text[4:] for text in documentation.split("\n") if text[:4] in ("    ", "")]
        script = Script.load(write("a.txt", "\n".join(lines)))
        assert [item.WhichOneof("content") for item in script.items] == [
            "speech",
            "silence",
            "speech",
        ]
        assert said(script)[0].endswith("which is text: always.")


# Properties

_NAMES = st.text(st.characters(exclude_characters=":\r\n", exclude_categories=["Cs"]), min_size=1)
SPEAKERS = _NAMES.map(str.strip).filter(
    lambda name: name and name[0] not in "#@[{=" and "=" not in name
)
LINES = (
    st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))
    .map(str.strip)
    .filter(bool)
)
SPOKEN = st.lists(LINES, min_size=1, max_size=3)
SILENT = st.integers(1, 100_000).map(lambda milliseconds: milliseconds / 1000)


@st.composite
def _scenes(draw: st.DrawFn) -> tuple[dict[str, str], list[tuple[str, list[str]] | float]]:
    names = st.sampled_from(["alba", "marius", "jean"])
    cast = draw(st.dictionaries(SPEAKERS, names, max_size=3))
    speakers = st.sampled_from(sorted(cast)) if cast else names
    return cast, draw(st.lists(st.tuples(speakers, SPOKEN) | SILENT, min_size=1, max_size=6))


@given(_scenes())
@PROPERTY
def test_what_is_written_as_plain_text_is_what_is_read(
    folder: Path, scene: tuple[dict[str, str], list[tuple[str, list[str]] | float]]
) -> None:
    cast, items = scene
    written = [f"@cast {speaker} = {voice}" for speaker, voice in cast.items()]
    expected = []
    for item in items:
        if isinstance(item, float):
            written.append(f"[pause:{item}s]")
            expected.append(silence(item))
        else:
            speaker, texts = item
            written.append(f"{speaker}: {texts[0]}")
            written += [f"  {text}" for text in texts[1:]]
            expected.append(line(speaker, "\n".join(texts)))
    path = folder / "scene.txt"
    path.write_bytes("\n".join(written).encode())
    script = Script.load(path)
    assert list(script.items) == expected
    if cast:
        assert dict(script.cast) == cast


ATOMS = [
    *"aB1 \t.,:;!?()[]<>{}|*_~`#+-=>&\\/\"'%@\n\r\0é你\u2028\u0085\ufeff😀",
    *("items:", "items: ", "\n- ", "\n  ", "cast: {anna: alba}\n", "- anna: ", "anna: ", "text: "),
    *("silence: ", "reuse: ", "id: ", "seed: ", "gap: ", "config: ", "speaker: ", "audio: "),
    *("1.5", "300ms", "1e999", "NaN", "0x1", "~", "null", "true", "<<: ", "&a ", "*a", "!!str "),
    *('{"items": [', '{"text": "', '"}', "]}", '": ', '"\\ud83d"', '"\\Uffffffff"', "? ", "---\n"),
    *("@cast ", "@gap ", "[pause:1s]", "[pause ", "%YAML 1.1\n", "|\n", ">-\n", "...\n"),
]
JUNK = st.lists(st.sampled_from(ATOMS), max_size=40).map("".join) | st.text(max_size=40)
# A document with something else in the place of a part of it.
EDITED = st.builds(
    lambda text, start, length, atom: text[:start] + atom + text[start + length :],
    st.sampled_from([FULL, PLAIN, json.dumps(yaml.safe_load(FULL))]),
    st.integers(0, len(FULL)),
    st.integers(0, 20),
    st.sampled_from(ATOMS),
)
KEYS = st.sampled_from(
    [*schema()["properties"], *schema()["$defs"]["item"]["properties"], "anna", "txt", "", "word"]
) | st.text(max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | JUNK | st.just("alba")
VALUES = st.recursive(
    SCALARS, lambda part: st.lists(part, max_size=4) | st.dictionaries(KEYS, part, max_size=4)
)
DOCUMENTS = st.fixed_dictionaries(
    {
        "items": st.lists(
            st.dictionaries(KEYS, SCALARS, min_size=1, max_size=3) | VALUES, max_size=4
        )
    },
    optional={
        "cast": st.dictionaries(KEYS, SCALARS, max_size=3) | VALUES,
        "config": st.dictionaries(
            st.sampled_from(list(schema()["$defs"]["config"]["properties"])), SCALARS | VALUES
        ),
        "gap": SCALARS,
        "max_concurrency": SCALARS,
        "on_item_failure": st.sampled_from(["skip", "silence", "abort"]) | SCALARS,
    },
)


def parses_or_not(path: Path, text: str) -> Script | None:
    """A script that can be sent, or None if the file has faults, each with its line."""
    path.write_bytes(text.encode(errors="surrogatepass"))
    try:
        script = Script.load(path)
    except ScriptError as error:
        faults = error.faults
    else:
        assert script.request().SerializeToString()
        assert len(script.lines) == len(script.items)
        return script
    line_count = len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    assert faults
    for number, what in faults:
        assert 1 <= number <= line_count
        assert what.encode()
    return None


@given(text=JUNK | EDITED, name=st.sampled_from(["junk.yaml", "junk.json", "junk.txt"]))
@example(text='"\\ud83d": 1\nitems: []', name="junk.yaml")
@example(text="\ud83d", name="junk.txt")
@PROPERTY
def test_any_text_is_a_script_or_a_script_error(folder: Path, text: str, name: str) -> None:
    parses_or_not(folder / name, text)


@given(document=DOCUMENTS | VALUES)
@PROPERTY
def test_any_json_is_a_script_or_a_script_error(folder: Path, document: object) -> None:
    """And what is a script fits the published schema."""
    script = parses_or_not(folder / "any.json", json.dumps(document))
    if script is not None:
        jsonschema.Draft202012Validator(schema()).validate(document)


@given(document=DOCUMENTS | VALUES, style=st.sampled_from([None, '"', "'"]), flow=st.booleans())
@PROPERTY
def test_any_yaml_is_a_script_or_a_script_error(
    folder: Path, document: object, style: str | None, flow: bool
) -> None:
    text = yaml.safe_dump(document, default_style=style, default_flow_style=flow)
    parses_or_not(folder / "any.yaml", text)


@given(st.lists(LINES, min_size=1, max_size=5))
@PROPERTY
def test_texts_survive_yaml_and_json_as_they_are(folder: Path, texts: list[str]) -> None:
    document = {"items": [{"text": text} for text in texts]}
    for name, written in [
        ("texts.json", json.dumps(document)),
        ("texts.yaml", json.dumps(document)),
        ("texts.yml", yaml.safe_dump(document)),
    ]:
        script = parses_or_not(folder / name, written)
        assert script is not None
        assert said(script) == texts
