"""markdown-it, set up so that every inline token knows where it starts.

`token.meta["at"]` counts code points in the content of the block that the token is in.
"""

from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_inline import StateInline, emphasis
from markdown_it.token import Token

from intone_server.synthesis.markdown.constructs import NEVER, PAUSE, construct_end
from intone_server.synthesis.markdown.lines import DEFINITION
from intone_server.synthesis.markdown.marks import ADDRESS_START, find_address, flanks, is_index

# Quotes in each other, or twice as many as lists. The parser drops what is deeper.
_MAX_NESTING = 40
# The longest start of an address: the text before it is looked through.
_ADDRESS_START_CHARACTERS = len("https://")


class _State(StateInline):
    """Notes where tokens start. Rules move `pos` only after they made their tokens."""

    _pending_at = 0

    def append_pending(self, text: str) -> None:
        if not self.pending:
            self._pending_at = self.pos
        super().append_pending(text)

    def pushPending(self) -> Token:  # noqa: N802 (named by the library)
        token = super().pushPending()
        token.meta["at"] = self._pending_at
        return token

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta["at"] = self.pos
        return token


class _Inline(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: Any, tokens: list[Token]) -> list[Token]:
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _Markdown(MarkdownIt):
    """Targets of links are not said, so that none is refused or rewritten."""

    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802 (named by the library)
        return True

    def normalizeLink(self, url: str) -> str:  # noqa: N802 (named by the library)
        return url

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 (named by the library)
        return link


def parser() -> MarkdownIt:
    """A parser of CommonMark with tables, strikethrough and task lists, for `strip_markdown`."""
    options = {"maxNesting": _MAX_NESTING, "tasklists": True}
    markdown = _Markdown("commonmark", options)
    markdown.inline = _Inline()
    markdown.configure("commonmark", options)
    markdown.enable(["table", "strikethrough"])
    markdown.disable(["code", "html_block", "text_join", "fragments_join"])
    markdown.block.ruler.at("reference", _definition)
    markdown.inline.ruler.at("text", _text)
    markdown.inline.ruler.before("text", "address", _address)
    markdown.inline.ruler.before("strikethrough", "marks", _marks)
    markdown.inline.ruler.before("link", "brackets", _brackets)
    markdown.inline.ruler2.push("leave_out", _leave_out)
    return markdown


def _definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    first = state.bMarks[start] + state.tShift[start]
    if not DEFINITION.fullmatch(state.src, first, state.eMarks[start]):
        return False
    return reference(state, start, end, silent)


def _text(state: StateInline, silent: bool) -> bool:
    """Text up to the next character that may be a mark, or the next address."""
    found = state.md.inline.terminator_re.search(state.src, state.pos, state.posMax)
    end = found.start() if found else state.posMax
    stop = min(end + _ADDRESS_START_CHARACTERS, state.posMax)
    address = ADDRESS_START.search(state.src, state.pos + 1, stop)
    if address:
        end = min(end, address.start())
    if end == state.pos:
        return False
    if not silent:
        state.append_pending(state.src[state.pos : end])
    state.pos = end
    return True


def _address(state: StateInline, silent: bool) -> bool:
    if not ADDRESS_START.match(state.src, state.pos, state.posMax):
        return False
    address = find_address(state.src, state.pos, state.posMax)
    if address is None:
        return False
    if not silent:
        state.push("address", "", 0).meta["address"] = address
    state.pos = address[0]
    return True


def _marks(state: StateInline, silent: bool) -> bool:
    """Runs of marks that are not what CommonMark takes them for."""
    mark, start = state.src[state.pos], state.pos
    if silent or mark not in "*_~":
        return False
    length = state.scanDelims(start, canSplitWord=True).length
    if mark == "~":
        if length != 2:
            state.append_pending(mark * length)
            state.pos += length
        return length != 2
    end = start + length
    before = state.src[start - 1 : start] if start else ""
    if flanks(mark, length, before, state.src[end : min(end + 1, state.posMax)]).arithmetic:
        emphasis.tokenize(state, silent)
        for delimiter in state.delimiters[-length:]:
            delimiter.open = False
            state.tokens[delimiter.token].meta["arithmetic"] = True
        return True
    return False


def _brackets(state: StateInline, silent: bool) -> bool:
    """Brackets that are no link although they look like one."""
    start, text = state.pos, state.src
    if text[start] != "[":
        return False
    end = construct_end(PAUSE, text, start, state.posMax, closed=True)
    if end == NEVER:
        before = text[start - 1 : start] if start else ""
        if not is_index(before, "", 0):
            return False
        close = state.md.helpers.parseLinkLabel(state, start, True)
        if not text.startswith("(", close + 1) or not is_index(before, text, close + 1):
            return False
        end = start + 1
    assert end is not None  # nothing follows
    if not silent:
        state.append_pending(text[start:end])
    state.pos = end
    return True


def _leave_out(state: StateInline) -> None:
    """Marks that emphasise nothing and yet are not said."""
    nested = [meta["delimiters"] for meta in state.tokens_meta if meta and "delimiters" in meta]
    for delimiter in [it for each in [state.delimiters, *nested] for it in each]:
        token = state.tokens[delimiter.token]
        length = delimiter.length or len(token.content)
        many = length > 1 and "arithmetic" not in token.meta
        is_mark = token.type == "text" and token.content
        if is_mark and (delimiter.open or (delimiter.close and many)):
            token.meta["left_out"] = len(token.content)
            token.content = ""
