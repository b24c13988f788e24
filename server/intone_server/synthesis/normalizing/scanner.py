"""The one pass over a text that finds what is said otherwise than it is written."""

import re
from collections.abc import Callable
from functools import cache

from intone_server.synthesis.boundaries import SPEAKABLE
from intone_server.synthesis.normalizing.dates import date_rules, time_rules
from intone_server.synthesis.normalizing.dutch import Dutch
from intone_server.synthesis.normalizing.english import English
from intone_server.synthesis.normalizing.french import French
from intone_server.synthesis.normalizing.german import German
from intone_server.synthesis.normalizing.italian import Italian
from intone_server.synthesis.normalizing.language import Language
from intone_server.synthesis.normalizing.left_alone import ADDRESSES, TOKEN
from intone_server.synthesis.normalizing.measures import money_rules, unit_rules
from intone_server.synthesis.normalizing.numbers import number_rules, phone_rules
from intone_server.synthesis.normalizing.output import Output
from intone_server.synthesis.normalizing.portuguese import EuropeanPortuguese, Portuguese
from intone_server.synthesis.normalizing.rule import Rule
from intone_server.synthesis.normalizing.spanish import Spanish
from intone_server.synthesis.normalizing.symbols import DROPPED, ITEM, OPENING, PAUSES, symbol_rules
from intone_server.synthesis.normalizing.years import decade_rules, year_rules

# With a region where that makes a difference.
_LANGUAGES: dict[str, Callable[[], Language]] = {
    "de": German,
    "en": English,
    "es": Spanish,
    "fr": French,
    "it": Italian,
    "nl": Dutch,
    "pt": Portuguese,
    "pt-pt": EuropeanPortuguese,
}

# Letters, blanks and the marks of plain sentences: in these there is nothing to do.
_PLAIN = re.compile(r"""(?:[^\W\d]|[\s.,;:!?…'’‘"“”„«»¿¡–—-])*+""")  # noqa: RUF001
# A plain word, behind which nothing can belong to it.
_WORD = re.compile(r"[^\W\d_]++(?=[\s,;!?]|[.:](?:\s|$)|$)")


def normalize(text: str, language: str) -> str:
    """`text`, a sentence of the client, as it is said in `language` ("en", "pt-PT").

    Numbers, money, dates, times, units, telephone numbers and signs become words; brackets become
    commas; emoji and marks that nobody says are left out. What may be a code, a version, an address
    or a file stays, and so does a number whose words depend on a gender that is not known. Text
    that is not in one of the seven languages is returned as it is, and so is text that would have
    nothing left to say. Never raises. Takes time in proportion to the text; gives at most 32 times
    as many code points.
    """
    if _PLAIN.fullmatch(text):
        return text
    code = language.lower().replace("_", "-")
    known = code if code in _LANGUAGES else code.partition("-")[0]
    if known not in _LANGUAGES:
        return text
    spoken = _speak(text, _rules(known), _first_words(known))
    return spoken if SPEAKABLE.search(spoken) else text


@cache
def _rules(code: str) -> tuple[Rule, ...]:
    """What is tried at every position, the first that has an answer wins."""
    language = _LANGUAGES[code]()
    return (
        *ADDRESSES,
        *date_rules(language),
        *decade_rules(language),
        *time_rules(language),
        *phone_rules(language),
        *money_rules(language),
        *unit_rules(language),
        *year_rules(language),
        *number_rules(language),
        *symbol_rules(language),
        TOKEN,
    )


@cache
def _first_words(code: str) -> frozenset[str]:
    """Words, in lower case, that a rule may begin with. Others are not tried, to save time."""
    language = _LANGUAGES[code]()
    months = {month.lower() for month in language.months}
    currencies = {symbol.lower() for symbol in language.currencies if symbol.isalpha()}
    return frozenset(months | {month[:3] for month in months} | currencies | {"sept", "x"})


def _speak(text: str, rules: tuple[Rule, ...], first_words: frozenset[str]) -> str:
    output = Output()
    brackets: list[bool] = []  # open ones; whether each became a pause
    position = 0
    while position < len(text):
        start, character = position, text[position]
        position += 1
        if character.isspace():
            output.copy(character)
        elif (
            character.isalpha()
            and (found := _WORD.match(text, start))
            and found[0].lower() not in first_words
        ):
            position = found.end()
            output.copy(found[0])
        elif found := PAUSES.match(text, start):
            position = found.end()
            output.pause()
        elif answer := _first_answer(text, start, rules):
            position, words = answer
            if words == text[start:position]:
                output.copy(words)
            else:
                output.say(words)
        elif found := DROPPED.match(text, start):
            position = found.end()
            output.drop()
        elif character in "([{" and OPENING.match(text, start):
            brackets.append(True)
            output.pause()
        elif character in ")]}" and (brackets.pop() if brackets else ITEM.match(text, start)):
            output.pause()
        else:
            if character in "([{":
                brackets.append(False)
            output.copy(character)
    return output.finish()


def _first_answer(text: str, position: int, rules: tuple[Rule, ...]) -> tuple[int, str] | None:
    """The end of what a rule has words for, and these."""
    for pattern, say in rules:
        if found := pattern.match(text, position):
            try:
                words = say(found)
            except (ArithmeticError, LookupError, NotImplementedError, ValueError):
                continue  # the library has no words for it
            if words is not None:
                return found.end(), words
    return None
