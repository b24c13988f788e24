"""Pieces of regular expressions that the rules share.

Every repetition is bounded or possessive, so that a match at one position costs a bounded time
however long the text is.
"""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re

# Blanks that keep a number and its unit together.
GAP = "[ \u00a0\u202f]"
# Nothing follows that belongs to the same token: "5" ends in "5, then" and "5.", not in "5.x".
END = r"(?!\w|[\\@]|[-./]\w|[,:'’–][0-9])"
# A minus rather than a hyphen.
SIGN = r"(?:(?<![\w)\]%.+-])[-−])?"
DASH = "[-–]"
WORD_BEHIND = re.compile("[ \u00a0]([^\\W\\d_]{1,40})")  # a word behind a number
HOUR = "([01]?[0-9]|2[0-4])"
MINUTE = "([0-5][0-9])"
TIME = f"{HOUR}:{MINUTE}"
# Blanks and apostrophes that group digits in any language.
_THIN = "[\u00a0\u202f'’]"


def _grouped(mark: str, least: int = 1) -> str:
    """Digits in groups of three between marks, below 10^15."""
    return f"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}}){{{least},4}}"


def whole_number(decimal: str, *, spaced: bool) -> str:
    """A whole number, its digits in groups or not. `spaced`: plain spaces group as well."""
    own = _grouped("[,]" if decimal == "." else "[.]")
    forms = [own, _grouped(_THIN), *([_grouped(" ")] if spaced else []), "[0-9]{1,15}"]
    return f"(?:{'|'.join(forms)})(?![0-9])"


def number(decimal: str, *, spaced: bool) -> str:
    """A number without a sign, with decimals behind the mark `decimal`.

    Where that is a comma, a point that groups no thousands is taken for one too ("GPT 3.5"), and
    commas that can only group are ("1,234,567").
    """
    forms = [rf"{whole_number(decimal, spaced=spaced)}(?:[{decimal}][0-9]{{1,15}}(?![0-9]))?"]
    if decimal == ",":
        forms[0] += "(?![.,][0-9])"
        forms += [r"[0-9]{1,15}\.[0-9]{1,15}(?![0-9])", _grouped(",", 2) + "(?![0-9])"]
    return f"(?:{'|'.join(forms)})"
