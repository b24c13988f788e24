"""Whether a full stop ends a sentence: the library's decision, with what it needs to be right.

sentencex knows the abbreviations, initials, ordinals and month names of some 300 languages. It is
shown a few words before the full stop and one behind it, never whole text: quotes and brackets are
taken out because it pairs them over any distance, which would let text that has not arrived yet
change a decision.
"""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re

import sentencex

# Code points of the next word that the library is shown; its longest listed word is shorter.
WORD_CHARACTERS = 30
# Code points before a full stop that the library is shown; it looks at the last two words.
HEAD_CHARACTERS = 40

_WHITE_SPACE = re.compile(r"\s")
# Surrogates cannot be passed to it at all.
_HIDDEN = re.compile(r"[\"“”„‟«»‹›`()\[\]{}<>（）《》「」\ud800-\udfff]|\B'|'\B|[‘’‚‛]\B|\B[‘’‚‛]")
# At the head of a window the library would take these for a list and cut nothing behind them.
_LEADING_MARKER = re.compile(r"^\s*(?:(?:[-*+•‣▪–—]|\d{1,3}[.)]|[A-Za-z][.)]|#{1,6})\s+)+")
# In common speech and missing in the library's lists (1.0.32).
_MORE_ABBREVIATIONS = {
    "de": frozenset({"Abs", "Dipl", "Frl", "Hrn", "Tel", "bspw", "inkl"}),
    "en": frozenset({"Messrs", "Ms", "Mx", "Vol", "approx", "vol"}),
    "es": frozenset({"D", "Dña"}),
    "fr": frozenset(
        {"Dr", "M", "MM", "Me", "Mgr", "Mlle", "Mlles", "Mme", "Mmes", "Pr", "St", "Ste"}
    ),
    "it": frozenset({"pag"}),
    "nl": frozenset({"mevr", "mw"}),
    "pt": frozenset({"Av", "Profa", "Srta", "nº", "pág"}),
}
# States of the USA and months to the library; before a capital letter they are plain words.
_PLAIN_WORDS = {"en": frozenset({"OK", "Ok", "ok", "No", "no", "me", "ill", "miss", "may"})}


def base_language(language: str) -> str:
    """`pt` for `pt-BR`: the library knows no regions and would fall back to English."""
    return re.split("[-_]", language.lower(), maxsplit=1)[0] or "en"


def ends_sentence(
    language: str,
    text: str,
    start: int,
    first: int,
    after: int,
    word: int,
    stop: int,
    closed: bool,
) -> bool | None:
    """Whether the full stops `text[first:after]` end the sentence that began at `start`.

    `word` is the first speakable character behind them; text is visible up to `stop` and nothing
    follows there if `closed`. None: the rest of the next word has to be seen.
    """
    longest = min(stop, word + WORD_CHARACTERS)
    space = _WHITE_SPACE.search(text, word, longest)
    complete = closed or space is not None or longest == word + WORD_CHARACTERS
    stops = text[first:after].replace("…", "...")
    head = _head(text, start, first)
    token = head.rsplit(" ", 1)[-1]
    if stops == ".":
        if token in _MORE_ABBREVIATIONS.get(language, ()):
            return False
        if token in _PLAIN_WORDS.get(language, ()) and text[word].isupper():
            return True
    # What can depend on more than one letter of the next word: abbreviations, initials, numbers and
    # ellipses, by the library's lists of words that start sentences and of months.
    in_doubt = len(stops) > 1 or (
        stops == "." and (len(token) < 2 or "." in token or token[-1].isdigit())
    )
    if not in_doubt:
        ends = _library_ends(language, head, stops, text[word])
        if ends or stops != ".":
            return ends
    if not complete:
        return None
    return _library_ends(language, head, stops, text[word : space.start() if space else longest])


def _head(text: str, start: int, first: int) -> str:
    """The last words of `text[start:first]`, as the library is shown them."""
    begin = max(start, first - HEAD_CHARACTERS)
    head = text[begin:first]
    if begin > start and (space := _WHITE_SPACE.search(head)):
        head = head[space.end() :]
    # Plain spaces only: sentencex 1.0.32 panics at any other white space before a full stop.
    before_stop = " " if head[-1:].isspace() else ""
    head = " ".join(_HIDDEN.sub("", head).split()) + before_stop
    return _LEADING_MARKER.sub("", head)


def _library_ends(language: str, head: str, stops: str, word: str) -> bool:
    """Whether the library puts a boundary between `head` with its full stops and `word`."""
    before = head + stops
    found = _boundaries(language, f"{before} {_HIDDEN.sub('', word)}")
    # Indices count code points; the white space behind a full stop is part of the sentence.
    return any(len(before) <= boundary["end_index"] <= len(before) + 1 for boundary in found)


def _boundaries(language: str, text: str) -> list[dict[str, int]]:
    try:
        found: list[dict[str, int]] = sentencex.get_sentence_boundaries(language, text)
    except BaseException as error:
        # A panic of the Rust library is no Exception. One text must not cost the worker that it is
        # on its way to; without the library's word nothing is cut here.
        if type(error).__name__ != "PanicException":
            raise
        return []
    return found
