"""One thing that is said otherwise than it is written."""

import re
from collections.abc import Callable
from typing import NamedTuple


class Rule(NamedTuple):
    """Text that may be said in other words.

    `say` gets a match and returns what is said, or None to leave it to later rules.
    """

    pattern: re.Pattern[str]
    say: Callable[[re.Match[str]], str | None]
