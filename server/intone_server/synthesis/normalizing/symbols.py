"""Signs between words, and characters that nobody says: by table, said or dropped."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re

from intone_server.synthesis.boundaries import SILENT
from intone_server.synthesis.normalizing.language import Language
from intone_server.synthesis.normalizing.rule import Rule

# Between blanks, digits or brackets a sign is one of arithmetic; elsewhere it may be anything.
_BEFORE = r"(?<![^\s0-9)\]%])"
_BEHIND = r"(?=[\s0-9(\[.]|[-−][0-9])"
_SAME_SIGN = {"*": "×", "x": "×", "⋅": "×", "∗": "×", "/": "÷", "-": "−", "~": "≈"}

# Emoji, and marks that are seen rather than said.
DROPPED = re.compile(rf"[{SILENT}]++|(?:(?<!\w)[*`]++|[*`]++(?!\w)|[\\|•·‣▪◦®™†‡¶])|#++(?!\w)")
# Marks between words that are heard as a pause.
PAUSES = re.compile(r"(?<=\s)(?:[|•·‣▪◦\u2190-\u21ff]|[-=]{1,2}>|<[-=]{1,2})(?=\s)")
# A bracket that does not belong to a word, as those of "f(x)" and ":(" do.
OPENING = re.compile(r"(?<![^\s(\[{])[(\[{](?=\s{0,8}[^\s)\]}])")
# The bracket behind the number of a list item.
ITEM = re.compile(r"(?<=[0-9])\)(?=\s)")


def symbol_rules(language: Language) -> list[Rule]:
    """Signs that are said."""
    names = language.symbols

    def say(found: re.Match[str]) -> str:
        return names[_SAME_SIGN.get(found[0], found[0])]

    def number_word(_found: re.Match[str]) -> str:
        return names["#"]

    def hashtag(_found: re.Match[str]) -> str:
        return "hashtag"

    return [
        Rule(re.compile(rf"{_BEFORE}[+=<>×÷±≈≠≤≥⋅∗@]{_BEHIND}"), say),
        Rule(re.compile(r"(?<=[0-9)] )[*x/](?= [0-9(])|(?<=[0-9])\*(?=[0-9])"), say),
        # A difference, where a result follows; else it may as well be a range.
        Rule(re.compile(r"(?<=[0-9)] )-(?= [0-9.,]{1,20} ?=)"), say),
        Rule(re.compile(r"−(?= ?[0-9])|~(?=[0-9])"), say),
        Rule(re.compile(r"(?<=\w)\^(?=[-−]?[0-9])"), say),
        Rule(re.compile(r"[&%‰§°©]"), say),
        Rule(re.compile(r"#(?=[0-9])|№|[nN][°º]\.?(?= ?[0-9])"), number_word),
        Rule(re.compile(r"#(?=[^\W\d])"), hashtag),
    ]
