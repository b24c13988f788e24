"""What others wrote, made fit for a terminal."""

import re

# Controls of ASCII and Latin-1 steer terminals; the others turn the direction of what follows
# (Unicode, UAX #9) or begin a line. Joiners stay: emoji and Indic scripts need them.
_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """`text` on one line, with what steers a terminal spelled as Python does: `\\x1b`, `\\n`."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
