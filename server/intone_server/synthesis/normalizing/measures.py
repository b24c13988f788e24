"""Money, units and percentages."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re
from collections.abc import Iterable

from intone_server.synthesis.normalizing.language import Language, Noun, Number
from intone_server.synthesis.normalizing.numbers import say_range
from intone_server.synthesis.normalizing.patterns import DASH, END, GAP, SIGN
from intone_server.synthesis.normalizing.rule import Rule

# Behind letters an apostrophe makes another word: "5 l'altro".
_SYMBOL_END = rf"(?!['’]\w){END}"
# "$10/month".
_PER = r"(?P<per>/)(?=[a-zà-ÿ]{2,20}(?![\w./]))"
# "5,- €".
_NO_CENTS = "(?:,[-–—]{1,2}(?!\\w))?"


def money_rules(language: Language) -> list[Rule]:
    """A currency before or behind a number, a range, or millions."""
    number = language.number_pattern
    magnitude = rf"{GAP}?(?P<magnitude>{_any_of(language.magnitudes)})(?!\w)"

    def amount(again: str = "") -> str:
        return f"(?P<low>{number})(?:{DASH}{again}(?P<high>{number}))?{_NO_CENTS}(?:{magnitude})?"

    currency = f"(?P<currency>{_any_of(language.currencies)})"

    def say(found: re.Match[str]) -> str | None:
        spoken = _say_money(language, found)
        per = f" {language.symbols['/']}" if found["per"] else ""
        return spoken + per if spoken else None

    return [
        Rule(re.compile(pattern), say)
        for pattern in (
            rf"(?P<sign>{SIGN})(?<!\w){currency}{GAP}?{amount('(?:(?P=currency))?')}(?:{_PER}|{END})",
            rf"(?P<sign>{SIGN}){amount()}{GAP}?{currency}(?:{_PER}|{_SYMBOL_END})",
        )
    ]


def unit_rules(language: Language) -> list[Rule]:
    """A number or a range with a unit."""
    number = language.number_pattern
    # Millions of anything; a single letter may be anything as well.
    long = {symbol: noun for symbol, noun in language.magnitudes.items() if len(symbol) > 1}
    nouns = long | language.units
    units = _any_of(nouns)

    def say(found: re.Match[str]) -> str | None:
        low, high, unit = found.groups()
        noun = nouns[unit]
        if high is None:
            return language.count(language.read(low), noun)
        spoken = say_range(language, low, high)
        return f"{spoken} {noun.plural}" if spoken else None

    pattern = f"({SIGN}{number})(?:{DASH}({number}))?{GAP}?({units}){_SYMBOL_END}"
    return [Rule(re.compile(pattern), say)]


def _any_of(symbols: Iterable[str]) -> str:
    """A pattern for any of them, the longest first."""
    longest_first = sorted(symbols, key=len, reverse=True)
    # The full stop of an abbreviation is that of the sentence if nothing follows.
    return "|".join(re.escape(s) + (r"(?=\s+\S)" if s.endswith(".") else "") for s in longest_first)


def _say_money(language: Language, found: re.Match[str]) -> str | None:
    noun = language.currencies[found["currency"]]
    number = language.read(found["sign"] + found["low"])
    span = found["high"] and say_range(language, found["low"], found["high"])
    if found["high"] and not span:
        return None
    if found["magnitude"]:
        magnitude = language.magnitudes[found["magnitude"]]
        counted = f"{span} {magnitude.plural}" if span else language.count(number, magnitude)
        return f"{counted} {language.of_many(noun.plural, magnitude)}"
    if span:
        return f"{span} {noun.plural}"
    if noun.cent and len(number.decimals) == 2:
        return _say_cents(language, number, noun, Noun(*noun.cent, gender="m"))
    return language.count(number, noun)


def _say_cents(language: Language, number: Number, noun: Noun, cent: Noun) -> str:
    """Whole units and cents, without those of which there are none."""
    parts = []
    cents = int(number.decimals)
    if int(number.whole) or not cents:
        parts.append(language.count(Number(number.whole), noun))
    if cents:
        parts.append(language.count(Number(str(cents)), cent))
    spoken = f" {language.cents_join} ".join(parts)
    return f"{language.minus} {spoken}" if number.minus else spoken
