"""The cells of a table's row."""

import re

from intone_server.synthesis.mapped import MappedText

# Text between pipes. A backslash makes a pipe text, also in code.
CELL = re.compile(r"(?:[^|]|(?<=\\)\|)+")


def unescape_pipes(cell: MappedText) -> MappedText:
    """The cell without the backslashes before its pipes."""
    parts, at = MappedText(), 0
    while (escape := cell.text.find("\\|", at)) >= 0:
        parts += cell[at:escape]
        parts.append("|", cell.starts[escape], cell.ends[escape + 1])
        at = escape + 2
    return parts + cell[at:]
