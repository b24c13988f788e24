"""Years where they stand alone, and decades."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re

from intone_server.synthesis.normalizing.english import English
from intone_server.synthesis.normalizing.language import Language
from intone_server.synthesis.normalizing.patterns import DASH, END, WORD_BEHIND
from intone_server.synthesis.normalizing.rule import Rule

# Years that are read as such where nothing but the digits says so.
YEAR = "(?:1[1-9]|20)[0-9]{2}"

# Code points before a number that are looked at.
_BEFORE_CHARACTERS = 40
# What makes four digits a year in English: a word before them…
_YEAR_FOLLOWS = re.compile(
    r"(?:\b(?:in|since|during|circa|year|early|late|mid|between|born|spring|summer|autumn|fall"
    rf"|winter|(?:between|from|in|since) {YEAR} (?:and|to|or|until)) |[(©] ?)$",
    re.IGNORECASE,
)
# … or one that may as well go with a quantity: "the 2026 election", but "the 2000 people".
_YEAR_MAY_FOLLOW = re.compile(
    r"\b(?:the|of|from|by|until|till|before|after|around) $", re.IGNORECASE
)
_QUANTITY = re.compile("[a-z]+s|people")
_VERB = re.compile("was|saw|is|will|and|or")
_DECADE_FOLLOWS = re.compile(r"\b(?:the|his|her|their|my|our|your|early|late|mid) $", re.IGNORECASE)


def year_rules(language: Language) -> list[Rule]:
    """Years and spans of years."""

    def span(found: re.Match[str]) -> str | None:
        first, last = int(found[1]), int(found[2])
        if first >= last:
            return None
        return f"{language.year(first)} {language.to} {language.year(last)}"

    def single(found: re.Match[str]) -> str | None:
        word = WORD_BEHIND.match(found.string, found.end())
        # Counted things in the plural: "1500 personas".
        if word and word[1].endswith("s") and language.gender(word[1]):
            return None
        return language.year(int(found[0]))

    rules = [Rule(re.compile(f"({YEAR}){DASH}({YEAR}){END}"), span)]
    if isinstance(language, English):
        return [*rules, _english_year(language)]
    return [*rules, Rule(re.compile(f"{YEAR}{END}"), single)]


def decade_rules(language: Language) -> list[Rule]:
    """The 1990s and the 90s, which are no seconds."""
    if not isinstance(language, English):
        return []
    english = language

    def decade(found: re.Match[str]) -> str:
        return _plural(english.year(int(found[1])))

    def short_decade(found: re.Match[str]) -> str | None:
        if found[1] or _DECADE_FOLLOWS.search(_before(found)):
            return _plural(english.cardinal(int(found[2])))
        return None

    return [
        Rule(re.compile(rf"((?:1[1-9]|20)[0-9]0)['’]?s{END}"), decade),
        Rule(re.compile(rf"(['’])?([2-9]0)['’]?s{END}"), short_decade),
    ]


def _english_year(english: English) -> Rule:
    def say(found: re.Match[str]) -> str | None:
        behind = WORD_BEHIND.match(found.string, found.end())
        # Pairs of digits suit any number that counts nothing.
        if behind is None or _YEAR_FOLLOWS.search(_before(found)):
            is_year = True
        elif _YEAR_MAY_FOLLOW.search(_before(found)):
            is_year = not _QUANTITY.fullmatch(behind[1])
        else:
            is_year = _VERB.fullmatch(behind[1]) is not None
        return english.year(int(found[0])) if is_year else None

    return Rule(re.compile(f"{YEAR}{END}"), say)


def _before(found: re.Match[str]) -> str:
    return found.string[max(0, found.start() - _BEFORE_CHARACTERS) : found.start()]


def _plural(number: str) -> str:
    """The last word in the plural."""
    return number[:-1] + "ies" if number.endswith("y") else number + "s"
