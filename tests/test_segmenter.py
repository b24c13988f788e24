"""How growing text becomes segments."""


# ruff: noqa: RUF001 (the marks of many scripts look alike)

import time

import pytest

from intone_server.synthesis import sentences
from intone_server.synthesis.boundaries import View, natural_end
from intone_server.synthesis.segmenter import (
    CommitReason,
    Segment,
    SegmentationMode,
    Segmenter,
)
from segments import plan

SENTENCE, CLAUSE, MANUAL = SegmentationMode


def segmenter(
    language: str = "en",
    mode: SegmentationMode = SENTENCE,
    most: int = 200,
    first: int | None = None,
) -> Segmenter:
    return Segmenter(
        language=language, mode=mode, max_characters=most, first_max_characters=first or most
    )


def segments(
    text: str,
    language: str = "en",
    mode: SegmentationMode = SENTENCE,
    most: int = 200,
    first: int | None = None,
) -> list[Segment]:
    return plan(
        text,
        language=language,
        mode=mode,
        max_characters=most,
        first_max_characters=first or most,
    )


def texts(text: str, language: str = "en", **options: object) -> list[str]:
    return [segment.text for segment in segments(text, language, **options)]  # type: ignore[arg-type]


def sentence_texts(text: str, language: str = "en") -> list[str]:
    """The sentences and lines of a text, before short ones are joined."""
    found: list[str] = []
    while text := text.lstrip():
        view = View(text, 0, len(text), len(text), closed=True)
        end, _, _ = natural_end(view, 0, sentences.base_language(language), clauses=False)
        if not isinstance(end, int):
            return [*found, text.rstrip()]
        found.append(text[:end].rstrip())
        text = text[end:]
    return found


def drain(target: Segmenter) -> list[object]:
    return [
        (item.text, item.reason) if isinstance(item, Segment) else item
        for item in iter(target.next, None)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "I saw Bob. | He left.",
        "Really?! | Yes! | No.",
        "Dr. Smith met Prof. Xu. | Ms. Jones left.",
        "See e.g. this one.",
        "In the U.S.A. it rains. | We know.",
        "J. K. Rowling wrote. | J. R. R. Tolkien too.",
        "Apples, pears, etc. and so on.",
        "Pi is 3.14. | Yes.",
        "It costs 1,234.56. | Fine.",
        "Dr. Lee paid 1,234.56 to a.b@example.org at 9:30 a.m. v2.1.0.",
        "See https://a.org/b?c=d. | Then go.",
        "OK. | Let me see. | No. | Sure.",
        "Wait... what? | Hmm... | Well. | No… | Yes.",
        "One.Two is glued. | Three.",
        "so it goes. | and goes.",
    ],
)
def test_sentences_end_at_full_stops_but_not_at_those_of_abbreviations_and_numbers(
    text: str,
) -> None:
    assert sentence_texts(text.replace("| ", "")) == text.split(" | ")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("fr", "Il a vu M. Dupont. | Mme. X est là. | « Quoi ? » dit-il. | « Bon ! » | Il part."),
        ("de", "Am 3. Januar kam Dr. Müller. | Das ist z. B. gut. | „Ja.“ | »Komm!« | Er ging."),
        ("es", "El Sr. Pérez vino. | ¿Qué? | ¡Hola!"),
        ("it", "Il Dott. Rossi parla. | Bene."),
        ("pt-BR", "A Sra. Silva chegou. | Ela viu."),
        ("hi", "यह है। | वह है।"),
        ("unknown", "Dr. Smith came. | He left."),
    ],
)
def test_each_language_has_its_own_abbreviations_and_marks(language: str, text: str) -> None:
    assert sentence_texts(text.replace("| ", ""), language) == text.split(" | ")


def test_chinese_and_japanese_sentences_need_no_white_space() -> None:
    assert sentence_texts("你好。我们走吧！“什么？”他说。「はい。」次です", "zh") == [
        "你好。",
        "我们走吧！",
        "“什么？”",
        "他说。",
        "「はい。」",
        "次です",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "“Go!” she said. | “Stop.” | He did.",
        '"Go!" she said. | "Stop." | He did.',
        "He left (by car.) | She stayed.",
        "*Hi.* | **Bold.** | _It._ | Bye.",
        "Great! 😀 | Let's go. 😀",
        "Great!😀 | Let's go.",
        "Hello.\u200b | Bye.",
        "Yes. | — Sure. | #1 wins. | “Quote.”",
    ],
)
def test_closing_marks_and_emoji_stay_with_their_sentence_and_opening_marks_with_the_next(
    text: str,
) -> None:
    assert sentence_texts(text.replace("| ", "")) == text.split(" | ")


def test_a_blank_line_ends_a_sentence_and_a_line_break_alone_does_not() -> None:
    assert sentence_texts("A title\n\nOne line\nand the next\r\n \r\nEnd") == [
        "A title",
        "One line\nand the next",
        "End",
    ]


def test_lines_that_end_in_full_stops_list_items_and_headings_are_sentences() -> None:
    text = "# Title\nWe need:\n- milk\n* eggs\n1. First this\n12) Then that.\nDone.\nBye"
    assert sentence_texts(text) == [
        "# Title",
        "We need:",
        "- milk",
        "* eggs",
        "1. First this",
        "12) Then that.",
        "Done.",
        "Bye",
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Oui. Pause. Non. Il est parti. Bon.", ["Oui. Pause. Non.", "Il est parti.", "Bon."]),
        ("Yes. I think so. No.", ["Yes. I think so.", "No."]),
        ("I think so. Yes. No. Well.", ["I think so.", "Yes. No. Well."]),
        ("One. Two.", ["One. Two."]),
        ("- 50 % … Go there.", ["- 50 % … Go there."]),
        ("# Overview\n\nThe text. Go.", ["# Overview\n\nThe text.", "Go."]),
        ("- milk\n- eggs\n- old bread\n- oil", ["- milk\n- eggs\n- old bread", "- oil"]),
        ("Yes.\n\n---\n\nThat is it.\n\n---", ["Yes.\n\n---\n\nThat is it.", "---"]),
        ("He left. “Go!” she said. “Go.” Yes.", ["He left. “Go!” she said.", "“Go.” Yes."]),
        ("Sure. 1. First do it. 2. Then so.", ["Sure. 1. First do it.", "2. Then so."]),
    ],
)
def test_a_sentence_of_one_or_two_words_goes_on_with_the_next_until_there_are_three(
    text: str, parts: list[str]
) -> None:
    assert texts(text) == parts


def test_four_characters_are_enough_for_a_chinese_or_japanese_sentence() -> None:
    assert texts("你好。我们走吧！他说好。「はい。」次です。", "zh") == [
        "你好。我们走吧！",
        "他说好。「はい。」",
        "次です。",
    ]
    assert texts("안녕. 반갑습니다. 또 만나.", "ko") == ["안녕. 반갑습니다. 또 만나."]


def test_short_sentences_are_spoken_alone_where_a_commit_ends_the_text() -> None:
    """Reported case 49."""
    target = segmenter()
    for reason in (CommitReason.FLUSH, CommitReason.PAUSE, CommitReason.END_OF_INPUT):
        target.push("Yes. ")
        assert target.next() is None
        target.commit(reason)
        assert drain(target) == [("Yes.", reason)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        # The next sentence would be cut between two words: better a short segment.
        ("Wait! The brown fox jumps over dogs.", ["Wait!", "The brown fox jumps over dogs."]),
        ("Yes. No. The brown fox jumps over.", ["Yes. No.", "The brown fox jumps over."]),
        ("Intro\n\nThe brown fox jumps over dogs.", ["Intro", "The brown fox jumps over dogs."]),
        # Where it is cut a speaker would pause anyway.
        (
            "Wait! When it rains, the old dog sleeps.",
            ["Wait! When it rains,", "the old dog sleeps."],
        ),
        (
            "Wait! The dog slept because it was late.",
            ["Wait! The dog slept", "because it was late."],
        ),
        ("Wait! The brown fox jumps.", ["Wait! The brown fox jumps."]),
    ],
)
@pytest.mark.parametrize("first", [None, 30])
def test_a_short_sentence_is_spoken_alone_rather_than_the_next_one_cut_inside(
    text: str, parts: list[str], first: int | None
) -> None:
    assert texts(text, most=200 if first else 30, first=first) == parts


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Overview\n\nThe text", "Overview. The text"),
        ("# Title\nWe need:\n\n- milk,\n* an egg", "# Title. We need:"),
        ("- milk\n* eggs\n- bread", "- milk. * eggs. - bread"),
        ("Ready?\n\nSet!\n\nGo", "Ready? Set! Go"),
        ("(below)\n\n**Bold**\n\nText", "(below). **Bold**. Text"),
        ("“Go.”\n\n« Bon ! »\n\nText", "“Go.” « Bon ! » Text"),
        ("Party 😀\n\nYes. 😀\n\nText", "Party 😀. Yes. 😀 Text"),
        ("Yes\n\n---\n\n😀\n\nthat is it", "Yes. that is it"),
        ("Yes\u2029that is it", "Yes. that is it"),
        ("One\nline that goes\non", "One line that goes on"),
        ("概要\n\n本文", "概要。 本文"),
        ("はい\n\nカ\n\nOK", "はい。 カ。 OK"),
        ("परिचय\n\nपाठ", "परिचय। पाठ"),
        ("你好。再见", "你好。再见"),
        ("Title", "Title"),
    ],
)
def test_a_line_that_others_follow_in_a_segment_is_given_a_full_stop(
    text: str, spoken: str
) -> None:
    assert segments(text)[0].spoken_text == spoken


def test_manual_mode_joins_nothing_and_adds_no_full_stops() -> None:
    assert [s.spoken_text for s in segments("Title\n\nText", mode=MANUAL)] == ["Title Text"]


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("\n\nThe first one. And one more.", [False, False]),
        ("The first one.\n\nAnd one more.", [False, True]),
        ("The first one.\r\n \t\r\nAnd one more.", [False, True]),
        ("The first one.\nAnd one more.", [False, False]),
        ("The first one.\u2028And one more.", [False, False]),
        ("The first one.\u2029And one more.", [False, True]),
        ("- the first item\n- and one more\n\n\nThe end is here.", [False, False, True]),
        ("Overview\n\nThe first one. And one more.", [False, False]),
        ("The first one.\n\n---\n\nAnd one more.", [False, True, True]),
    ],
)
def test_a_segment_says_whether_a_blank_line_is_before_it(text: str, begins: list[bool]) -> None:
    assert [segment.paragraph for segment in segments(text)] == begins


@pytest.mark.parametrize("mode", SegmentationMode)
def test_a_blank_line_may_have_a_commit_or_the_end_of_a_piece_inside(
    mode: SegmentationMode,
) -> None:
    target = segmenter(mode=mode)
    begins = []
    for pieces in (
        ["The first.", "\n"],
        [" ", "\nThe second. ", "\n"],
        ["The third.\n\n"],
        ["Yes"],
    ):
        for piece in pieces:
            target.push(piece)
            target.next()
        target.commit(CommitReason.FLUSH)
        begins += [item.paragraph for item in iter(target.next, None) if isinstance(item, Segment)]
    assert begins == [False, True, False, True]


def test_nothing_lies_before_the_first_segment_after_a_drop() -> None:
    target = segmenter()
    target.push("The first one. Then")
    assert isinstance(target.next(), Segment)
    target.drop()
    target.push("\n\nSorry, go ahead.\n\nPlease do.")
    target.commit(CommitReason.FLUSH)
    found = [item for item in iter(target.next, None) if isinstance(item, Segment)]
    assert [(item.text, item.paragraph) for item in found] == [
        ("Sorry, go ahead.", False),
        ("Please do.", True),
    ]


def test_five_paragraphs_of_three_sentences_are_fifteen_segments() -> None:
    """Reported case 43."""
    paragraph = "The first one is here. Is it the second? That was the third!"
    assert len(segments("\n\n".join([paragraph] * 5))) == 15


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Hello out there. H", "en"),
        ("Hello out there! h", "en"),
        ("Hello out there.\n\n", "en"),
        ("“Hello out there.” 5", "en"),
        ("It is OK. L", "en"),
        ("Hello. Out there. H", "en"),
        ("我们走吧。你", "zh"),
        ("Bonjour à tous. E", "fr"),
        ("He met Dr. Lee. The ", "en"),
    ],
)
def test_a_sentence_is_returned_as_soon_as_the_next_word_has_begun(
    text: str, language: str
) -> None:
    target = segmenter(language)
    target.push(text)
    assert [reason for _, reason in drain(target)] == [CommitReason.SENTENCE]


@pytest.mark.parametrize(
    "text",
    [
        "Hello out there.",
        "Hello out there. ",
        "Hello there. How",
        "Hello\n\nYou",
        "I met Dr. S",
        "So he left. 😀",
        "A.",
    ],
)
def test_nothing_is_returned_while_later_text_could_change_it(text: str) -> None:
    target = segmenter()
    target.push(text)
    assert target.next() is None
    assert target.has_text


def test_clause_mode_also_cuts_at_clauses_that_are_long_enough() -> None:
    text = (
        "Well, I think that we should go, and then, at about 10:30, we could eat 1,5 eggs: now. Ok."
    )
    assert [(segment.text, segment.reason) for segment in segments(text, mode=CLAUSE)] == [
        ("Well, I think that we should go,", CommitReason.CLAUSE),
        ("and then, at about 10:30,", CommitReason.CLAUSE),
        ("we could eat 1,5 eggs:", CommitReason.CLAUSE),
        ("now. Ok.", CommitReason.END_OF_INPUT),
    ]
    assert texts("我们今天去公园玩，然后回家吃饭最后睡觉了，明天再说吧。", "zh", mode=CLAUSE) == [
        "我们今天去公园玩，然后回家吃饭最后睡觉了，",
        "明天再说吧。",
    ]


def test_manual_mode_cuts_only_at_commits_and_at_the_limit() -> None:
    target = segmenter(mode=MANUAL, most=40)
    target.push("One. Two.\n\nThree.")
    assert target.next() is None
    target.commit(CommitReason.FLUSH)
    target.push("This sentence is first. This one is not and it goes on")
    target.commit(CommitReason.END_OF_INPUT)
    assert drain(target) == [
        ("One. Two.\n\nThree.", CommitReason.FLUSH),
        ("This sentence is first.", CommitReason.MAX_CHARACTERS),
        ("This one is not and it goes on", CommitReason.END_OF_INPUT),
    ]


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("We walked to the shop, | then we went home again", 40),  # the last clause end
        ("We walked (slowly) | with the old dog to the shop", 30),
        ("We walked to the old shop | because it was so late", 40),  # a conjunction
        ("We walked to the old shop in | town on foot again", 30),  # a word
        ("the answer is about a very | long question end.", 44),  # no two-word tail
        ("Ah, my very old | dog who sleeps", 18),  # no one-word head
        ("it was 12 June 2024 in | 10 000 000 houses ok", 30),
        ("we go to | https://example.org/a,b-c ok", 32),
        ("漢字仮名交じり文、漢字仮名交じり文、|漢字仮名交じり文", 20),
        ("漢字仮名交じり文漢字仮名交じり文漢字仮名|交じり文漢字", 20),
        ("x" * 20 + "|" + "x" * 20 + "|" + "x" * 5, 20),
        ("x" * 15 + "|" + "12,345.67" + "x" * 5, 20),  # a number is kept whole
        ("e\u0301" * 9 + "|" + "e\u0301" * 3, 19),  # a letter keeps its accent
    ],
)
def test_long_sentences_are_cut_at_the_best_place_before_the_limit(text: str, most: int) -> None:
    parts = [part.strip() for part in text.split("|")]
    found = segments(text.replace("| ", "").replace("|", ""), most=most)
    assert [segment.text for segment in found] == parts
    assert {segment.reason for segment in found[:-1]} == {CommitReason.MAX_CHARACTERS}


def test_conjunctions_are_those_of_the_language() -> None:
    text = "Wir gingen zu dem alten Laden weil es schon so spät geworden war"
    assert texts(text, "de", most=40)[0] == "Wir gingen zu dem alten Laden"
    assert texts(text, "en", most=40)[0] == "Wir gingen zu dem alten Laden weil es"


def test_a_comma_rich_sentence_keeps_all_its_clauses() -> None:
    text = ", ".join(f"it was the X of Y{number}" for number in range(12))
    found = texts(text, most=60)
    assert " ".join(found) == text
    assert all(part.endswith(",") for part in found[:-1])


def test_text_without_any_space_is_cut_at_the_limit() -> None:
    found = segments("x" * 20_000)
    assert [len(segment.text) for segment in found] == [200] * 100


def test_only_the_first_segment_of_a_stream_has_the_first_limit() -> None:
    found = texts("one two three four five six seven eight nine ten, and more", first=20)
    assert found == ["one two three four", "five six seven eight nine ten, and more"]


def test_a_commit_ends_the_segment_and_names_the_reason_and_text_after_it_starts_a_new_one() -> (
    None
):
    target = segmenter()
    target.push("Hello the")
    target.commit(CommitReason.FLUSH, "flushed")
    target.push("night is here. Bye")
    target.commit(CommitReason.PAUSE)
    target.commit(CommitReason.FLUSH, "empty")
    target.push(" now is over. End.")
    target.commit(CommitReason.END_OF_INPUT, "end")
    assert drain(target) == [
        ("Hello the", CommitReason.FLUSH),
        "flushed",
        ("night is here.", CommitReason.SENTENCE),
        ("Bye", CommitReason.PAUSE),
        "empty",
        ("now is over.", CommitReason.SENTENCE),
        ("End.", CommitReason.END_OF_INPUT),
        "end",
    ]
    assert target.next() is None


@pytest.mark.parametrize("text", ["", " ", "\n", " \t\r\n\u00a0\u2003 "])
def test_white_space_is_no_segment_and_does_not_count_as_text(text: str) -> None:
    target = segmenter()
    target.push(text)
    assert not target.has_text
    target.commit(CommitReason.FLUSH, "mark")
    assert drain(target) == ["mark"]
    assert target.buffered_characters == 0
    assert target.position == len(text)


@pytest.mark.parametrize(
    ("text", "committed", "rest"),
    [
        ("Well, I think that we", "Well,", "I think that we"),
        ("Hello there. How are", "Hello there.", "How are"),
        ("Sure", "Sure", None),
        ("Sure. No", "Sure.", "No"),
        ("Overview\n\nThe te", "Overview", "The te"),
        ("- milk\n- eg", "- milk", "- eg"),
        ("One line\nand the ne", "One line\nand the", "ne"),
        ("I met Dr. Smi", "I met Dr.", "Smi"),  # the last word, not the full stop
        ("Hello wor", "Hello", "wor"),
        ("Hello wor ", "Hello wor", None),
        ("Hel", "Hel", None),
        ("Hello there.", "Hello there.", None),
        ("Hello there,", "Hello there,", None),
        ("“Hello.” ", "“Hello.”", None),
        ("It costs 1,", "It costs", "1,"),
        ("It costs 10 000", "It costs", "10 000"),
        ("我们走，你", "我们走，", "你"),
    ],
)
@pytest.mark.parametrize("asked_before", [False, True])
def test_a_text_pause_commits_up_to_the_last_clause_or_word(
    text: str, committed: str, rest: str | None, asked_before: bool
) -> None:
    target = segmenter()
    target.push(text)
    if asked_before:
        assert target.next() is None
    assert target.commit_at_boundary()
    assert drain(target) == [(committed, CommitReason.TEXT_DELAY)]
    target.commit(CommitReason.END_OF_INPUT)
    assert drain(target) == ([(rest, CommitReason.END_OF_INPUT)] if rest else [])


def test_a_text_pause_without_text_commits_nothing() -> None:
    target = segmenter()
    target.push(" \n")
    assert not target.commit_at_boundary()
    target.push("Hello")
    target.commit(CommitReason.FLUSH)
    assert not target.commit_at_boundary()


@pytest.mark.parametrize("text", ["---", "...", "😀", "?!", "\ufeff", "\x00", "* * *", "👩‍👩‍👧"])
def test_text_that_no_voice_can_say_is_a_segment_that_is_not_speakable(text: str) -> None:
    (segment,) = segments(text)
    assert (segment.text, segment.speakable) == (text, False)
    assert [s.speakable for s in segments(f"{text}\n\nHello.")] == [False, True]


@pytest.mark.parametrize("text", ["50", "%", "€", "é", "ß", "字", "ठ", "½", "a\x00", "C#"])
def test_letters_digits_and_signs_with_a_name_are_speakable(text: str) -> None:
    (segment,) = segments(text)
    assert segment.speakable


def test_punctuation_alone_gets_no_segment_inside_a_text() -> None:
    assert all(s.speakable for s in segments("... Hello! ?! There. — ... 😀 Bye. 😀 --"))


def test_spoken_text_is_clean_and_spans_count_what_was_sent() -> None:
    first, second = segments("\ufeff He\x00llo\n\tto you😀. B\u200bye\x07 \x1b\x85now")
    assert first.spoken_text == "Hello to you😀."
    assert (first.start, first.end) == (0, 18)
    assert second.spoken_text == "Bye now"
    assert (second.start, second.end) == (19, 30)


def test_spans_go_on_after_a_commit() -> None:
    target = segmenter()
    target.push("Hello my dear. How are")
    assert drain(target) == [("Hello my dear.", CommitReason.SENTENCE)]
    target.commit(CommitReason.FLUSH, "mark")
    assert target.pending_commits == 1
    assert len(list(iter(target.next, None))) == 2
    assert (target.pending_commits, target.has_text) == (0, False)
    target.push("Bye")
    target.commit(CommitReason.END_OF_INPUT)
    segment = target.next()
    assert isinstance(segment, Segment)
    assert (segment.start, segment.end) == (22, 25)


def test_the_library_never_sees_more_than_a_few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    library = sentences.sentencex.get_sentence_boundaries

    def spy(language: str, text: str) -> object:
        seen.append(len(text))
        return library(language, text)

    monkeypatch.setattr(sentences.sentencex, "get_sentence_boundaries", spy)
    segments("x" * 3_000 + ". " + "Some words. " * 500 + "y" * 3_000 + ". Z" + "z" * 3_000)
    assert seen
    assert max(seen) < 100


PROSE = (
    "The quick brown fox, Dr. Smith and 3.14 dogs went home; it was late. What a day! He said so. "
)


def test_a_long_text_is_segmented_in_linear_time_and_one_segment_at_a_time() -> None:
    text = (PROSE * 1200)[:100_000]
    started = time.process_time()
    target = segmenter()
    target.push(text)
    assert isinstance(target.next(), Segment)
    assert time.process_time() - started < 0.1  # typically 0.2 ms
    assert len(drain(target)) > 2_000
    assert time.process_time() - started < 2  # typically 0.1 s


def test_text_that_comes_one_character_at_a_time_costs_linear_time() -> None:
    started = time.process_time()
    target = segmenter()
    for character in (PROSE * 1200)[:100_000]:
        target.push(character)
        target.next()
    assert time.process_time() - started < 6  # typically 1 s
