"""Captions: what `to_srt` and `to_vtt` write, read back by a parser of somebody else."""

import html
import io
import re

import pytest
import webvtt
from hypothesis import given
from hypothesis import strategies as st

from intone_client._dialogues.captions import Cue, to_srt, to_vtt

LONG = (
    "This is a rather long sentence that certainly does not fit into two lines of forty-two "
    "characters, so that it has to be cut somewhere, does it not?"
)


def read_vtt(text: str) -> list[webvtt.Caption]:
    return list(webvtt.WebVTT.from_buffer(io.BytesIO(text.encode()), strict=True).captions)


def read_srt(text: str) -> list[webvtt.Caption]:
    if not text:  # which the parser refuses
        return []
    return list(webvtt.WebVTT.from_buffer(io.BytesIO(text.encode()), format="srt").captions)


def milliseconds(caption: webvtt.Caption) -> tuple[int, int]:
    return caption.start_time.in_milliseconds(), caption.end_time.in_milliseconds()


def spoken(caption: webvtt.Caption) -> str:
    """The text of a WebVTT caption without its voice, with its escapes resolved."""
    text = re.sub(r"^<v [^<>&]*(?:&\w+;[^<>&]*)*>", "", caption.raw_text)
    assert "<" not in text
    assert ">" not in text
    return html.unescape(text)


def test_a_cue_becomes_a_caption_with_its_voice() -> None:
    cues = [Cue(0.0, 1.5, "Anna", "Hello there."), Cue(1.75, 2.0, "Bob", "Hi.")]
    assert to_vtt(cues) == (
        "WEBVTT\n\n"
        "00:00:00.000 --> 00:00:01.500\n<v Anna>Hello there.\n\n"
        "00:00:01.750 --> 00:00:02.000\n<v Bob>Hi.\n"
    )


def test_subrip_names_a_speaker_where_another_one_begins() -> None:
    cues = [
        Cue(0, 1, "Anna", "One."),
        Cue(1, 2, "Anna", "Two."),
        Cue(2, 3, "", "A voice."),
        Cue(3, 4, "Anna", "Three."),
    ]
    assert to_srt(cues[:2]) == (
        "1\n00:00:00,000 --> 00:00:01,000\nAnna: One.\n\n2\n00:00:01,000 --> 00:00:02,000\nTwo.\n"
    )
    said = [caption.text for caption in read_srt(to_srt(cues))]
    assert said == ["Anna: One.", "Two.", "A voice.", "Anna: Three."]


def test_what_means_something_in_webvtt_is_escaped() -> None:
    text = "if a < b && b > c --> d, <v Eve>&amp; &lt;"
    written = to_vtt([Cue(0, 1, "A & B <C> --> D", text)])
    assert written.count("-->") == 1
    assert "<v A &amp; B &lt;C&gt; --&gt; D>if a &lt; b &amp;&amp; b &gt; c --&gt; d" in written
    assert spoken(read_vtt(written)[0]).replace("\n", " ") == text


def test_line_breaks_and_control_characters_are_spaces() -> None:
    cue = Cue(0, 1, "An\nna", "One\n\n\r\ntwo\x00\u2028three\t\v four ")
    assert to_vtt([cue]).endswith("\n<v An na>One two three four\n")
    assert to_srt([cue]).endswith("\nAn na: One two three four\n")


def test_a_no_break_space_holds_words_together() -> None:
    cue = Cue(0, 1, "", "Combien de temps faut-il pour aller là-bas\u00a0? Une heure.")
    assert "là-bas\u00a0?" in to_vtt([cue])


def test_what_is_not_said_has_no_caption() -> None:
    cues = [Cue(0, 1, "Anna", " \n\u00a0"), Cue(1, 2, "Anna", "")]
    assert (to_srt(cues), to_vtt(cues)) == ("", "WEBVTT\n")
    assert read_vtt(to_vtt(cues)) == []


def test_times_go_on_beyond_an_hour_and_a_hundred() -> None:
    cues = [Cue(3600.1234, 3661.0006, "", "x"), Cue(360_000.5, 360_001, "", "y")]
    assert "\n01:00:00.123 --> 01:01:01.001\n" in to_vtt(cues)
    assert "\n100:00:00.500 --> 100:00:01.000\n" in to_vtt(cues)
    assert "\n01:00:00,123 --> 01:01:01,001\n" in to_srt(cues)


def test_a_long_cue_is_cut_at_words_and_its_time_divided_by_characters() -> None:
    captions = read_vtt(to_vtt([Cue(10, 20, "Anna", LONG)]))
    assert [spoken(caption) for caption in captions] == [
        "This is a rather long sentence that\ncertainly does not fit into two lines",
        "of forty-two characters, so that it\nhas to be cut somewhere, does it not?",
    ]
    (start, cut), (again, end) = map(milliseconds, captions)
    assert (start, again, end) == (10_000, cut, 20_000)
    assert cut == pytest.approx(15_000, abs=100)


def test_lines_of_a_caption_are_of_about_the_same_length() -> None:
    lines = read_vtt(to_vtt([Cue(0, 1, "", "A sentence that is a little too long for a line.")]))
    assert lines[0].text == "A sentence that is a little\ntoo long for a line."


def test_a_short_text_stays_on_one_line() -> None:
    text = "Exactly forty-two characters are in here.."
    assert len(text) == 42
    assert read_vtt(to_vtt([Cue(0, 1, "", text)]))[0].text == text


def test_a_word_longer_than_a_line_is_cut() -> None:
    captions = read_vtt(to_vtt([Cue(0, 1, "", "x" * 100)]))
    assert [len(line) for caption in captions for line in caption.lines] == [42, 42, 16]


def test_a_name_is_no_part_of_the_time_and_leaves_room_for_text() -> None:
    captions = read_srt(to_srt([Cue(0, 10, "N" * 128, LONG)]))
    assert captions[0].text.startswith("N" * 29 + "…: ")
    assert all(len(line) <= 42 for caption in captions for line in caption.lines)
    said = len("\n".join(captions[0].lines)) - len("N" * 29 + "…: ")
    assert milliseconds(captions[0])[1] / 10_000 == pytest.approx(said / len(LONG), abs=0.02)


def test_captions_never_overlap_and_are_never_empty() -> None:
    """Also if the cues do, come in any order, or last no time at all."""
    cues = [
        Cue(5, 6, "", "last"),
        Cue(0, 3, "", "cut short"),
        Cue(1, 2, "", "whole"),
        Cue(4, 4, "", "a moment"),
        Cue(4, 4, "", "another"),
    ]
    captions = read_vtt(to_vtt(cues))
    assert [caption.text for caption in captions] == [
        "cut short",
        "whole",
        "a moment",
        "another",
        "last",
    ]
    assert [milliseconds(caption) for caption in captions] == [
        (0, 1000),
        (1000, 2000),
        (4000, 4001),
        (4001, 4002),
        (5000, 6000),
    ]


times = st.floats(0, 400_000)
cues_of_any_kind = st.lists(
    st.builds(
        lambda start, length, speaker, text: Cue(start, start + length, speaker, text),
        times,
        st.floats(0, 100),
        st.text(max_size=60),
        st.text(max_size=300) | st.lists(st.sampled_from(LONG.split()), max_size=90).map(" ".join),
    ),
    max_size=6,
)


@given(cues_of_any_kind)
def test_any_cues_give_captions_by_the_rules(cues: list[Cue]) -> None:
    """Of WebVTT: a blank line ends a block; the arrow is in no text; `&`, `<` and `>` only as an
    escape or a voice; an end is after its start. Of this project: two lines of 42, no overlap, all
    words."""
    written = to_vtt(cues)
    assert written.startswith("WEBVTT\n")
    last = 0
    blocks = written.split("\n\n")[1:]
    captions = read_vtt(written)
    assert len(blocks) == len(captions)
    for block, caption in zip(blocks, captions, strict=True):
        times, *payload = block.removesuffix("\n").split("\n")
        assert re.fullmatch(r"\d{2,}:\d\d:\d\d\.\d{3} --> \d{2,}:\d\d:\d\d\.\d{3}", times)
        assert "-->" not in "".join(payload)
        assert re.fullmatch(r"(?s)(<v [^<>\n]+>)?[^<>]+", "\n".join(payload))
        assert not re.search(r"&(?!amp;|lt;|gt;)", block)
        start, end = milliseconds(caption)
        assert last <= start < end
        last = end
        lines = spoken(caption).split("\n")
        assert 1 <= len(lines) <= 2
        assert all(1 <= len(line) <= 42 for line in lines)
    told = "".join(spoken(caption) for caption in captions)
    expected = "".join(cue.text for cue in sorted(cues, key=lambda cue: cue.start))
    assert letters(told) == letters(expected)
    subtitles = read_srt(to_srt(cues))
    assert all(len(line) <= 42 for caption in subtitles for line in caption.lines)


def letters(text: str) -> str:
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", "", text)
