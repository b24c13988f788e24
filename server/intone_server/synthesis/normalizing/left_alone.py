"""Tokens that hold digits and signs, and are no numbers: addresses, codes, versions, files."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re

from intone_server.synthesis.normalizing.rule import Rule

_LABEL = r"[\w-]{1,63}"  # the longest label of a domain name, RFC 1035
_REST = r"[^\s<>\"]*+"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"


def _verbatim(found: re.Match[str]) -> str:
    return found[0]


# These come before all numbers.
ADDRESSES = [
    Rule(re.compile(pattern), _verbatim)
    for pattern in (
        rf"[A-Za-z][A-Za-z0-9+.-]{{0,20}}://{_REST}",
        rf"(?:mailto:|www\.)(?=\w){_REST}",
        rf"[\w.+-]{{1,64}}@{_LABEL}(?:\.{_LABEL}){{1,8}}",
        # A domain or a file, which have letters behind their last point ("3.er" is Spanish).
        rf"\w[\w-]{{0,62}}(?:\.{_LABEL}){{0,8}}\.(?!er\b)[A-Za-z]{{2,}}+(?::[0-9]++)?+(?:[/?#]{_REST})?",
        rf"localhost:[0-9]++{_REST}",
        rf"(?:~|\.{{1,2}}|[A-Za-z]:)?[/\\](?=[\w.]){_REST}",
        rf"{_BYTE}(?:\.{_BYTE}){{3}}(?!\.?\w)(?:[:/][0-9]++)?",
        # IPv6 and MAC addresses, and times with seconds.
        r"(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{1,4}(?!\w)",
        r"0[xX][0-9A-Fa-f]++",
        r"#(?=[0-9]{0,8}[A-Fa-f])[0-9A-Fa-f]{3,8}(?!\w)",  # a colour
        r"&#?\w{1,10};",
        r"@[A-Za-z_]\w*+",
    )
]

# What no rule has taken: a word, and whatever hangs together with it.
TOKEN = Rule(
    re.compile(r"\w++(?:(?:[-./'’@\\=+*]|(?<=[0-9])[,:–](?=[0-9]))\w++)*+[+#]{0,2}"), _verbatim
)
