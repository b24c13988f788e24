"""Words that a stream wants said otherwise than they are written."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intone_server.synthesis.replacements import MAX_RESULT_CHARACTERS, Replacements, Rule

PROPERTY = settings(deadline=None)


def said(text: str, *rules: tuple[str, str], match_case: bool = False) -> str:
    return Replacements([Rule(word, spoken, match_case) for word, spoken in rules]).apply(text)[0]


def test_a_word_is_replaced_wherever_it_stands_alone() -> None:
    assert said("SQL, (SQL) SQL.", ("SQL", "sequel")) == "sequel, (sequel) sequel."


@pytest.mark.parametrize("text", ["MySQL", "SQLite", "SQL2", "2SQL", "SQL_", "_SQL", "SQL\u0301"])
def test_a_part_of_a_word_is_not_replaced(text: str) -> None:
    assert said(text, ("SQL", "sequel")) == text


@pytest.mark.parametrize(
    ("word", "text", "expected"),
    [
        ("C++", "C++ and C++.", "X and X."),
        ("C++", "C++11 or VC++", "C++11 or VC++"),
        (".NET", "use .NET now", "use X now"),
        (".NET", "ASP.NET", "ASP.NET"),
        ("a.b", "axb a.b", "axb X"),
        ("[x]", "say [x] now", "say X now"),
        (r"\d", r"5 \d", "5 X"),
    ],
)
def test_punctuation_of_a_word_is_meant_as_it_is(word: str, text: str, expected: str) -> None:
    assert said(text, (word, "X")) == expected


@pytest.mark.parametrize("blanks", [" ", "  ", "\n", "\u00a0", " \t "])
def test_white_space_of_a_word_matches_any_white_space(blanks: str) -> None:
    assert said(f"in New{blanks}York now", ("New York", "N Y")) == "in N Y now"
    assert said("in NewYork now", ("New  York", "N Y")) == "in NewYork now"


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("sql", "SQL"),
        ("SQL", "sql"),
        ("Éa", "éA"),
        ("straße", "STRASSE"),
        ("STRASSE", "straße"),
        ("Strasse", "STRAẞE"),
        ("σας", "ΣΑΣ"),
        ("ﬁn", "ﬁn"),
        ("İ", "İ"),
    ],
)
def test_case_does_not_matter_by_default(word: str, text: str) -> None:
    assert said(text, (word, "X")) == "X"


def test_case_matters_on_request() -> None:
    assert said("US us Us", ("US", "U S"), match_case=True) == "U S us Us"


def test_rules_are_applied_in_order_each_to_the_result_of_the_one_before() -> None:
    assert said("a", ("a", "b"), ("b", "c d"), ("d", "e")) == "c e"
    assert said("a", ("b", "c"), ("a", "b")) == "b"


def test_a_rule_is_not_applied_to_its_own_result() -> None:
    assert said("a b", ("a", "a a")) == "a a b"


@pytest.mark.parametrize("spoken", [r"\1", r"\g<0>", "$1", "\\", "{}"])
def test_what_is_said_is_put_there_as_it_is(spoken: str) -> None:
    assert said("a", ("a", spoken)) == spoken


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Well um yes.", "Well yes."),
        ("Um yes.", "yes."),
        ("Well, um, yes.", "Well,, yes."),
        ("Yes um.", "Yes."),
        ("Yes um", "Yes"),
        ("um um x um um", "x"),
        ("a  um  b", "a   b"),
        ("um", ""),
        ("(um)", "()"),
    ],
)
def test_a_word_that_is_dropped_takes_one_of_its_blanks_with_it(text: str, expected: str) -> None:
    assert said(text, ("um", "")) == expected


def test_a_blank_word_is_refused() -> None:
    with pytest.raises(ValueError, match="blank"):
        Replacements([Rule(" \n", "x", match_case=False)])


def test_rules_that_would_blow_the_text_up_are_not_applied() -> None:
    growing = [(f"w{at}", f"w{at + 1} " * 100) for at in range(20)]
    text = said("w0 and x", *growing, ("x", "y"))
    assert text.startswith("w1 w1")
    assert text.endswith("and y")
    assert len(text) <= MAX_RESULT_CHARACTERS


def test_rules_that_are_left_out_are_counted() -> None:
    rules = [Rule("a", "b" * 500, match_case=False), Rule("c", "d", match_case=False)]
    assert Replacements(rules).apply("a " * 50 + "c") == ("a " * 50 + "d", 1)


def test_a_text_that_is_long_already_may_still_become_shorter() -> None:
    text = "a b " * MAX_RESULT_CHARACTERS
    assert said(text, ("a", "aa"), ("b", "")).split() == ["a"] * MAX_RESULT_CHARACTERS


def test_rules_can_be_read_back() -> None:
    rules = [Rule("a", "b", match_case=True), Rule("c", "", match_case=False)]
    assert Replacements(rules).rules == tuple(rules)


WORDS = st.text(st.sampled_from("aAsSßẞiİ .+[\\\u0301\ud800"), min_size=1, max_size=6)
RULES = st.builds(Rule, WORDS.filter(str.strip), WORDS, st.booleans())


@PROPERTY
@given(st.lists(RULES, max_size=5), st.one_of(st.text(max_size=30), WORDS))
def test_no_text_and_no_rule_is_too_odd(rules: list[Rule], text: str) -> None:
    assert len(Replacements(rules).apply(text)[0]) <= MAX_RESULT_CHARACTERS


@PROPERTY
@given(RULES)
def test_a_word_that_stands_alone_is_always_found(rule: Rule) -> None:
    applied, _ = Replacements([rule]).apply(f"({rule.word.strip()})")
    beside_mark = rule.word.strip()[0] == "\u0301"  # it is part of the bracket
    assert beside_mark or applied == f"({rule.spoken})"
