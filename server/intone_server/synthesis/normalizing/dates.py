"""Dates and times of day."""

import re
from datetime import date

from intone_server.synthesis.normalizing.english import English
from intone_server.synthesis.normalizing.german import German
from intone_server.synthesis.normalizing.language import Language
from intone_server.synthesis.normalizing.patterns import DASH, END
from intone_server.synthesis.normalizing.rule import Rule
from intone_server.synthesis.normalizing.years import YEAR

# strptime's %y: 69 to 99 are of the last century (POSIX).
_FIRST_SHORT_YEAR = 69

_DAY = "(0?[1-9]|[12][0-9]|3[01])"
_ANY_YEAR = "([0-9]{4}|[0-9]{2})"
_EN_MONTH = (
    "(January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)


def date_rules(language: Language) -> list[Rule]:
    """Dates in digits, and in words where the digits are read otherwise for that."""

    def by_year(found: re.Match[str]) -> str | None:
        return _say_date(language, found, day=found[3], month=found[2], year=found[1])

    def by_day(found: re.Match[str]) -> str | None:
        return _say_date(language, found, day=found[1], month=found[2], year=found[3])

    def in_local_order(found: re.Match[str]) -> str | None:
        first, second, year = found[1], found[3], found[4]
        day_first = _say_date(language, found, day=first, month=second, year=year)
        month_first = _say_date(language, found, day=second, month=first, year=year)
        return month_first or day_first if language.month_first else day_first or month_first

    rules = [
        Rule(re.compile(rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}}){END}"), by_year),
        Rule(re.compile(rf"{_DAY}\.([0-9]{{1,2}})\.{_ANY_YEAR}{END}"), by_day),
        Rule(re.compile(rf"([0-9]{{1,2}})([/-])([0-9]{{1,2}})\2{_ANY_YEAR}{END}"), in_local_order),
    ]
    if isinstance(language, English):
        return rules + _english_rules(language)
    months = "|".join(language.months)

    def first_day(found: re.Match[str]) -> str:
        return language.day(1, found.string[: found.start()])

    def without_year(found: re.Match[str]) -> str | None:
        # 2000 has a 29th of February.
        spoken = _say_date(language, found, day=found[1], month=found[2], year="2000")
        return spoken.rpartition(" ")[0] if spoken else None

    if isinstance(language, German):
        pattern = rf"{_DAY}\.(0?[1-9]|1[0-2])\.(?=[\s,;)]|$)"
        return [*rules, Rule(re.compile(pattern), without_year)]
    rules.append(Rule(re.compile(rf"1(?= (?:de )?(?:{months})\b)", re.IGNORECASE), first_day))
    return rules


def time_rules(language: Language) -> list[Rule]:
    """Times of day, and from one to another."""
    single = [re.compile(pattern) for pattern in language.clock_patterns]
    one = f"(?:{'|'.join(language.clock_patterns)})"

    def say(found: re.Match[str]) -> str | None:
        times = []
        for written in re.split(DASH, found[0]):
            parts = next(match for pattern in single if (match := pattern.fullmatch(written)))
            hour, minute = int(parts[1]), int(parts[2] or 0)
            if hour == 24 and minute:
                return None
            times.append(language.clock(hour, minute, parts[3]))
        return f" {language.to} ".join(times)

    return [Rule(re.compile(f"{one}(?:{DASH}{one})?{END}"), say)]


def _say_date(
    language: Language, found: re.Match[str], *, day: str, month: str, year: str
) -> str | None:
    """The date in words; None if there is no such day."""
    full_year = int(year)
    if len(year) == 2:
        full_year += 1900 if full_year >= _FIRST_SHORT_YEAR else 2000
    try:
        date(full_year, int(month), int(day))
    except ValueError:
        return None
    return language.date(int(day), int(month), full_year, found.string[: found.start()])


def _english_rules(english: English) -> list[Rule]:
    def month(written: str) -> str:
        return next(name for name in english.months if name.startswith(written[:3]))

    def year(written: str | None) -> str:
        return f", {english.year(int(written))}" if written else ""

    def month_first(found: re.Match[str]) -> str:
        return f"{month(found[1])} {english.ordinal(int(found[2]))}{year(found[3])}"

    def day_first(found: re.Match[str]) -> str:
        article = (
            "" if re.search(r"\bthe $", found.string[: found.start()], re.IGNORECASE) else "the "
        )
        return f"{article}{english.ordinal(int(found[1]))} of {month(found[2])}{year(found[3])}"

    def month_only(found: re.Match[str]) -> str:
        return f"{month(found[1])} {english.year(int(found[2]))}"

    optional_year = f"(?:,? ({YEAR}))?"
    ordinal = "(?:st|nd|rd|th)?"
    return [
        Rule(re.compile(rf"{_EN_MONTH} {_DAY}{ordinal}{optional_year}{END}"), month_first),
        Rule(re.compile(rf"{_DAY}{ordinal}(?: of)? {_EN_MONTH}{optional_year}{END}"), day_first),
        Rule(re.compile(rf"{_EN_MONTH},? ({YEAR}){END}"), month_only),
    ]
