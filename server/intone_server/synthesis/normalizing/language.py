"""What the rules need to know of a language, and how it says plain numbers."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal

from intone_server.synthesis.normalizing.patterns import TIME, number, whole_number

# Of the noun that is counted; "" where nothing is counted or where it makes no difference.
Gender = Literal["", "m", "f"]


@dataclass(frozen=True, slots=True)
class Noun:
    """A unit, a currency or a counted word. `cent` is the hundredth of a currency."""

    singular: str
    plural: str
    gender: Gender = ""
    cent: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written: its digits, and the mark before its decimals ("" if none)."""

    whole: str
    mark: str = ""
    decimals: str = ""
    minus: bool = False

    @property
    def integer(self) -> int | None:
        """Its value; None with decimals, or with a zero in front ("007")."""
        is_code = self.whole.startswith("0") and self.whole != "0"
        return None if self.decimals or is_code else int(self.whole)


def nouns(table: str) -> dict[str, Noun]:
    """A table of lines `symbols|singular|plural|gender|cent|cents`; "+s" adds to the singular."""
    found = {}
    for line in table.strip().splitlines():
        symbols, singular, *rest = (cell.strip() for cell in line.split("|"))
        plural, gender, cent, cents = (*rest, "", "", "", "")[:4]
        hundredth = (cent, _plural(cent, cents)) if cent else None
        checked: Gender = "f" if gender == "f" else "m" if gender == "m" else ""
        noun = Noun(singular, _plural(singular, plural), checked, hundredth)
        found.update(dict.fromkeys(symbols.split(","), noun))
    return found


def names(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


def words(table: str) -> dict[str, str]:
    """A table `key word words|key word…`."""
    rows = (row.strip().partition(" ") for row in table.split("|"))
    return {key: word for key, _, word in rows}


def _plural(singular: str, plural: str) -> str:
    return singular + plural[1:] if plural.startswith("+") else plural or singular


@cache
def library_words(value: int, code: str, to: str) -> str:
    """The words of num2words. Raises OverflowError where it knows none."""
    # It takes some 50 ms to import, and most streams are not normalized.
    from num2words import num2words

    return str(num2words(value, lang=code, to=to)).replace(",", "")


class Language:
    """Tables and number words of one language; the defaults suit Romance ones."""

    code: ClassVar[str]  # of num2words
    decimal: ClassVar[str] = ","
    spaced: ClassVar[bool] = False  # plain spaces group digits
    minus: ClassVar[str]
    marks: ClassVar[dict[str, str]]  # the words for "." and "," in decimals
    to: ClassVar[str]  # between the ends of a range
    months: ClassVar[tuple[str, ...]]
    date_format: ClassVar[str] = "{day} {month} {year}"
    month_first: ClassVar[bool] = False  # in 03/04/2026
    symbols: ClassVar[dict[str, str]]
    units: ClassVar[dict[str, Noun]]
    currencies: ClassVar[dict[str, Noun]]
    cents_join: ClassVar[str]  # between euros and cents
    magnitudes: ClassVar[dict[str, Noun]]  # "M" and "million" behind money
    of: ClassVar[str] = ""  # between millions and what they are of
    fractions: ClassVar[dict[int, tuple[str, str]]]
    half_more: ClassVar[str]  # "and a half"
    # Counted words that stand for no unit, and what may follow a number that counts nothing.
    counted_words: ClassVar[dict[str, Gender]] = {}
    followers: ClassVar[frozenset[str]] = frozenset()
    ordinal_pattern: ClassVar[str]  # groups: digits, suffix
    # Times of day: groups hour, minute, suffix.
    clock_patterns: ClassVar[tuple[str, ...]] = (TIME + r"((?: ?h(?![\w'’]))?)",)
    phones: ClassVar[tuple[str, ...]] = ()  # telephone numbers that elsewhere are other numbers
    # How decimals are read: digit by digit, or two at most as one number.
    pairs: ClassVar[bool] = True

    def __init__(self) -> None:
        self.number_pattern = number(self.decimal, spaced=self.spaced)
        whole = whole_number(self.decimal, spaced=self.spaced)
        self._own_number = re.compile(rf"({whole})(?:[{self.decimal}]([0-9]+))?")
        self._genders: dict[str, Gender] = {}
        for noun in (*self.units.values(), *self.currencies.values(), *self.magnitudes.values()):
            for name in (noun.singular, noun.plural):
                self._genders[name.lower()] = noun.gender
        self._genders |= dict.fromkeys((*self.months, *self.followers), "")
        self._genders |= self.counted_words

    def read(self, text: str) -> Number:
        """The number that a match of `number_pattern` stands for, with a sign or without."""
        digits = text.lstrip("-−")
        minus = text != digits
        if own := self._own_number.fullmatch(digits):
            whole, decimals = re.sub("[^0-9]", "", own[1]), own[2] or ""
            return Number(whole, self.decimal if decimals else "", decimals, minus)
        if "," in digits:
            return Number(digits.replace(",", ""), minus=minus)
        whole, mark, decimals = digits.partition(".")
        return Number(whole, mark, decimals, minus)

    def say(self, number: Number, gender: Gender = "") -> str:
        """The words of a number. Raises what the library raises."""
        value = number.integer
        if value is not None:
            spoken = self.cardinal(value, gender)
        elif not number.decimals:
            spoken = self.spell(number.whole)
        else:
            whole = self.cardinal(int(number.whole))
            spoken = f"{whole} {self.marks[number.mark]} {self.say_decimals(number.decimals)}"
        return f"{self.minus} {spoken}" if number.minus else spoken

    def say_decimals(self, digits: str) -> str:
        """`14` as one number where that is usual, everything else digit by digit."""
        if self.pairs and len(digits) == 2 and digits[0] != "0":
            return self.cardinal(int(digits))
        return self.spell(digits)

    def spell(self, digits: str) -> str:
        """Digit by digit."""
        return " ".join(self.cardinal(int(digit)) for digit in digits)

    def count(self, number: Number, noun: Noun) -> str:
        """A number of something."""
        name = noun.singular if self.is_singular(number) else noun.plural
        return f"{self.say(number, noun.gender)} {name}"

    def is_singular(self, number: Number) -> bool:
        """Whether a noun behind the number stands in the singular."""
        return number.integer == 1

    def cardinal(self, value: int, _gender: Gender = "") -> str:
        """A whole number ≥ 0."""
        return library_words(value, self.code, "cardinal")

    def ordinal(self, value: int, _suffix: str = "") -> str:
        """An ordinal ≥ 1; the suffix as it was written tells gender and number."""
        return library_words(value, self.code, "ordinal")

    def year(self, value: int) -> str:
        """A year."""
        return self.cardinal(value)

    def day(self, value: int, _before: str) -> str:
        """A day of the month, behind the text `_before`."""
        return self.ordinal(1, "m") if value == 1 else self.cardinal(value)

    def date(self, day: int, month: int, year: int, before: str) -> str:
        """A date, behind the text `before`."""
        return self.date_format.format(
            day=self.day(day, before), month=self.months[month - 1], year=self.year(year)
        )

    def clock(self, hour: int, minute: int, _suffix: str = "") -> str:
        """A time of day; `_suffix` is what was written behind the digits."""
        raise NotImplementedError

    def fraction(self, numerator: int, denominator: int) -> str | None:
        """A fraction below 1; None for denominators without a common name."""
        names = self.fractions.get(denominator)
        if names is None:
            return None
        return f"{self.cardinal(numerator, 'm')} {names[numerator > 1]}"

    def mixed(self, whole: int, fraction: str, *, is_half: bool) -> str:
        """A whole number and a fraction below 1 in words."""
        if is_half:
            return f"{self.cardinal(whole)} {self.half_more}"
        return f"{self.cardinal(whole)} {self.symbols['&']} {fraction}"

    def of_many(self, plural: str, magnitude: Noun) -> str:
        """What stands behind millions: "de euros" in Romance languages, which count them as nouns.

        A magnitude without a gender is a mere number.
        """
        return f"{self.of} {plural}" if self.of and magnitude.gender else plural

    def gender(self, word: str) -> Gender | None:
        """The gender of a counted word; "" if it makes no difference, None if it is not known."""
        word = word.lower()
        return self._genders[word] if word in self._genders else self.guess_gender(word)

    def guess_gender(self, _word: str) -> Gender | None:
        """The gender of a word that no table has, by its ending."""
        return None
