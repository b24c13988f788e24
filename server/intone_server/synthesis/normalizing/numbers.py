"""Plain numbers, ordinals, ranges, fractions and runs of digits."""

import re

from intone_server.synthesis.normalizing.german import German
from intone_server.synthesis.normalizing.language import Language, Number
from intone_server.synthesis.normalizing.patterns import DASH, END, SIGN, WORD_BEHIND
from intone_server.synthesis.normalizing.rule import Rule

# Runs of digits from this length on are codes: nobody follows a number of hundreds of millions.
_CODE_DIGITS = 9
# Digits between two pauses.
_GROUP_DIGITS = 3
# The longest are those of cards (ISO/IEC 7812); shorter ones are too much like other numbers.
_PHONE_DIGITS = range(7, 20)

_SIGNS = {
    "½": (1, 2),
    "⅓": (1, 3),
    "⅔": (2, 3),
    "¼": (1, 4),
    "¾": (3, 4),
    "⅕": (1, 5),
    "⅖": (2, 5),
    "⅗": (3, 5),
    "⅘": (4, 5),
    "⅙": (1, 6),
    "⅚": (5, 6),
    "⅛": (1, 8),
    "⅜": (3, 8),
    "⅝": (5, 8),
    "⅞": (7, 8),
}
# The rest of a compound as in "20-year-old", and nothing that looks like a code.
_COMPOUND = r"(?=-[a-zß-ÿ]{2,20}(?:-[a-zß-ÿ]{1,20}){0,4}(?![\w@/\\]|[-.:]\w))"
# Telephone numbers: with a country; as in North America; behind a zero; and any three groups.
_PHONES = (
    r"\+[0-9]{1,3}(?:[ .-]?(?:\([0-9]{1,5}\)|[0-9]{1,14})){1,7}",
    r"\([0-9]{2,5}\) ?[0-9]{2,5}(?:[ .-][0-9]{3,5}){1,2}",
    r"[0-9]{3}[ .-][0-9]{3}[ .-][0-9]{4}",
    r"0[0-9]{1,5}(?:[ ./-][0-9]{2,8}){1,5}",
    r"[0-9]{1,5}(?:-[0-9]{1,7}){2,6}",
    r"[0-9]{3}-[0-9]{4}",
)


def phone_rules(language: Language) -> list[Rule]:
    """Digit by digit, with a pause between the groups."""

    def say(found: re.Match[str]) -> str | None:
        groups = re.findall("[0-9]+", found[0])
        if sum(map(len, groups)) not in _PHONE_DIGITS:
            return None
        plus = f"{language.symbols['+']} " if found[0].startswith("+") else ""
        return plus + ", ".join(map(language.spell, groups))

    return [Rule(re.compile(f"(?:{'|'.join((*_PHONES, *language.phones))}){END}"), say)]


def number_rules(language: Language) -> list[Rule]:
    """What is left when dates, money and units are taken."""
    number = language.number_pattern

    def ordinal(found: re.Match[str]) -> str | None:
        value = int(found[1])
        return language.ordinal(value, found[2]) if value else None

    def span(found: re.Match[str]) -> str | None:
        return say_range(language, found[1], found[2])

    def fraction(found: re.Match[str]) -> str | None:
        return _say_fraction(language, found[1], (int(found[2]), int(found[3])))

    def fraction_sign(found: re.Match[str]) -> str | None:
        return _say_fraction(language, found[1], _SIGNS[found[2]])

    def code(found: re.Match[str]) -> str:
        digits = found[0]
        parts = range(0, len(digits), _GROUP_DIGITS)
        return ", ".join(language.spell(digits[at : at + _GROUP_DIGITS]) for at in parts)

    def plain(found: re.Match[str]) -> str | None:
        return _say_before_word(language, found)

    def point_first(found: re.Match[str]) -> str:
        return f"{language.marks['.']} {language.spell(found[1])}"

    whole = "(?:([0-9]{1,3})[ \u00a0])?"
    return [
        _german_ordinals(language)
        if isinstance(language, German)
        else Rule(re.compile(f"{language.ordinal_pattern}{END}"), ordinal),
        Rule(re.compile(f"({SIGN}{number}){DASH}({number}){END}"), span),
        Rule(re.compile(rf"{whole}([1-9])/([0-9]{{1,2}}){END}"), fraction),
        Rule(re.compile(rf"(?:([0-9]{{1,3}}) ?)?([{''.join(_SIGNS)}]){END}"), fraction_sign),
        Rule(re.compile(f"[0-9]{{{_CODE_DIGITS},}}+{END}"), code),
        Rule(re.compile(f"{SIGN}{number}{END}"), plain),
        Rule(re.compile(f"[1-9][0-9]{{0,5}}{_COMPOUND}"), plain),
        Rule(re.compile(rf"(?<![\w.)\]])\.([0-9]{{1,15}}){END}"), point_first),
    ]


def say_range(language: Language, low: str, high: str) -> str | None:
    """From one number to another; None if the second is no greater ("3-2")."""
    first, last = language.read(low), language.read(high)
    if _value(first) >= _value(last):
        return None
    return f"{language.say(first)} {language.to} {language.say(last)}"


def _value(number: Number) -> float:
    size = float(f"{number.whole}.{number.decimals or 0}")
    return -size if number.minus else size


def _say_before_word(language: Language, found: re.Match[str]) -> str | None:
    """A number as the word behind it wants it; None if that cannot be known."""
    number = language.read(found[0])
    value = number.integer
    if value is None:
        return language.say(number)
    forms = {language.cardinal(value, gender) for gender in ("", "m", "f")}
    word = WORD_BEHIND.match(found.string, found.end())
    if len(forms) == 1 or word is None:
        return language.say(number)
    gender = language.gender(word[1])
    return None if gender is None else language.say(number, gender)


def _say_fraction(language: Language, whole: str | None, part: tuple[int, int]) -> str | None:
    numerator, denominator = part
    spoken = language.fraction(numerator, denominator) if numerator < denominator else None
    if whole is None or spoken is None:
        return spoken
    return language.mixed(int(whole), spoken, is_half=part == (1, 2))


def _german_ordinals(german: German) -> Rule:
    months = "|".join(german.months)
    is_month = re.compile(rf" (?:{months})\b")

    def say(found: re.Match[str]) -> str | None:
        value = int(found[1])
        ending = german.ordinal_ending(found.string[: found.start()])
        if ending is None and is_month.match(found.string, found.end()):
            ending = "r"
        return german.ordinal(value, ending) if value and ending is not None else None

    return Rule(re.compile(german.ordinal_pattern), say)
