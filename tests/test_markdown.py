"""What is heard of markdown, from the streaming rule and from the parser of whole texts."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re
from collections.abc import Callable

import pytest

from intone_server.synthesis.mapped import MappedText
from intone_server.synthesis.markdown.parser import strip_markdown
from intone_server.synthesis.markdown.stream import MarkdownFilter
from intone_server.synthesis.markdown.writer import BREAK


def stream(*pieces: str, markdown: MarkdownFilter | None = None) -> MappedText:
    """What the streaming rule makes of text in pieces. "" stands for a `close`; one ends it."""
    markdown, out, position = markdown or MarkdownFilter(), MappedText(), 0
    for piece in pieces:
        out += markdown.feed(MappedText.verbatim(piece, position)) if piece else markdown.close()
        position += len(piece)
    return out + markdown.close()


BOTH = pytest.mark.parametrize("strip", [stream, strip_markdown])


def heard(text: str) -> str:
    """Text with one blank for white space, and `/` for where a segment ends in any case."""
    lines = re.sub(rf"\s*(?:{BREAK}|\n[ \t\r]*\n|\r\n[ \t]*\r\n)\s*", " / ", text.strip())
    return " ".join(lines.split())


CASES = {
    # blocks
    "# Title\nText": "Title / Text",
    "## Closed ##\n\nText": "Closed / Text",
    "#\nText": "Text",
    "Title\n=====\nText": "Title / Text",
    "Title\nof two\n---\nText": "Title of two / Text",
    "One\n\n---\n\nTwo": "One / Two",
    "One\n***\nTwo\n_ _ _\nThree": "One / Two / Three",
    "- one\n- two\n  goes on\n* three\n+ four": "one / two goes on / three / four",
    "Text\n- one\n\n  more of it": "Text / one / more of it",
    "1. one\n2. two\n\n10) ten": "1. one / 2. two / 10) ten",
    "1. one\n   - inner\n     1. deep\n2. two": "1. one / inner / 1. deep / 2. two",
    "It was in\n1984. And then\n1. now": "It was in 1984. And then / 1. now",
    "- [ ] to do\n- [x] done": "to do / done",
    "-\n- two": "two",
    "> quoted\n> text\n\nafter": "quoted text / after",
    "before\n> quoted\nlazily": "before / quoted lazily",
    "> > deep\n\n> - item": "deep / item",
    "> # Title\n> text": "Title / text",
    "Run:\n```sh\nrm -rf *\n```\nDone.": "Run: / Done.",
    "~~~\na\n```\nb\n~~~\nDone.": "Done.",
    "1. Run:\n\n   ```\n   code\n\n   code\n   ```\n\n2. Done": "1. Run: / 2. Done",
    "> ```\n> code\n> ```\n> text": "text",
    "> ```\n> code\n\ntext": "text",
    "```\nnever closed": "",
    "    indented": "indented",
    "| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 | |\n\nText": "a, b / 1, 2 / 3 / Text",
    "a | b\n--|--\n1 | 2": "a, b / 1, 2",
    "| a | b |\n|---|---|\n| `x \\| y` | **z** \\| _w_ |": "a, b / x | y, z | w",
    "| a |\n|---|\n| 1 |\n# Title": "a / 1 / Title",
    "one\r\ntwo\r\n\r\n# Title\r\n- item\r\n": "one two / Title / item",
    "[a]: https://x.org 'Title'\nText [it][a] [a][].": "Text it a.",
    # emphasis
    "*a* _b_ **c** __d__ ***e*** ~~f~~": "a b c d e f",
    "**H**yper**T**ext, *one **two** three*": "HyperText, one two three",
    "**Note:**text, 这是**重点：**内容": "Note:text, 这是重点：内容",
    "内容**“重点”**后面": "内容“重点”后面",
    "**two\nlines**": "two lines",
    "你**好*": "你好*",
    "*open": "open",
    "price* and \\*stars\\*": "price* and *stars*",
    # code and escapes
    "Use `a*b*c` and `` a ` b ``.": "Use a*b*c and a ` b .",
    "a ` tick, `two\nlines`": "a tick, two lines`",
    "AT&amp;T, &#65;&#x42;, &nosuch; R&D": "AT&T, AB, &nosuch; R&D",
    "1\\. C:\\dir \\\\ a\\\nb": "1. C:\\dir \\ a b",
    # links
    "See [the **docs**](https://x.org/a_(b) 'Title').": "See the docs.",
    "[a](<b c>) [d]( e ) [f]() [g] [h](i j)": "a d f [g] [h](i j)",
    "![alt *text*](a.png) [![logo](a.png)](https://x.org) ![](a.png)": "alt text logo",
    "word[text](https://x.org)": "wordtext",
    "[`a]b`](c) [d\\]](e) [f [g] h](i)": "a]b d] f [g] h",
    "<https://www.x.org/a> <me@x.org> <mailto:me@x.org> <tel:+12>": "x.org me@x.org me@x.org +12",
    "At https://www.example.org/a/b?c=d, www.x.org.": "At example.org, x.org.",
    "(http://x.org:80/a_(b)) **https://me:pw@x.org/~a**": "(x.org) x.org",
    "请看https://x.org/a。谢谢 https:// xhttp://y.z": "请看x.org。谢谢 https:// xhttp://y.z",
    # HTML
    "<b>bold</b>, H<sub>2</sub>O<!-- a\nb -->!": "bold, H2O!",
    "one<br>two<br/>three": "one two three",
    "<p class='a'>One</p>\n<p>Two</p>": "One / Two",
    # emoji
    "🎉 Great 🎉 job 🙂! 👍🏽": "Great job!",
    "Hi🙂there 👩‍👩‍👧 1️⃣ one #️⃣ ❤️‍🔥 🇩🇪 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ↔️ © ©️": "Hi there one © ©",
    "✅ one\n✅ two": "one / two",
    "می‌خواهم": "می‌خواهم",
    # pauses of a later stage
    "a [pause:300ms] b [PAUSE: 1s](c) <break time=\"0.3s\"/> d": (
        "a [pause:300ms] b [PAUSE: 1s](c) <break time=\"0.3s\"/> d"
    ),
    "- *a* <break/> `b`[pause:1s]": "a <break/> b[pause:1s]",
    # the reported one
    "### Title\n- **bold** [link](http://x.y) `code` 🙂": "Title / bold link code",
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("source", CASES)
def test_markdown_is_heard_as_meant(source: str, strip: Callable[[str], MappedText]) -> None:
    """Of each source the words are heard, and segments end where its blocks do.
    Reported case 59."""
    assert heard(strip(source).text) == CASES[source]


_PLAIN = r"""5 * 3 = 15
2*3*4 and 2**8 and n*m
a_b_c, snake_case_name and __
C# and F#, #1 fan, # 5?
I have $5 and 10% of it
1. of May
e-mail - said he, 3 - 2
<3 and a < b and c > d
f(x)[0](y) and a[i][j]
x = {y} | z || w ~ 5 ~~~ 6
[sic] (really) [1][2] !
Hello, wor-
ld AT&T; R&D & co
5* hotel and ** and `
C:\path \ "q" 'r' “s”
2024 was. 12) yes
    indented
a @ b: c; d… e-mail@x.org"""
PLAIN = [
    *_PLAIN.split("\n"),
    "one\ntwo\n\nthree\n",
    " \n ",
    "",
    "你好。\n再见",
    "[Alice]: Hello.",
    "\ttext   \n\n\n  of text  \n",
]


@BOTH
@pytest.mark.parametrize("source", PLAIN)
def test_plain_text_stays_as_it_is(source: str, strip: Callable[[str], MappedText]) -> None:
    """Text without markdown comes out unchanged, each character mapped to itself."""
    assert strip(source) == MappedText.verbatim(source, 0)


DOCUMENT = """# **A** *title* #
Text with `code`, [a **link**](https://x.org/a_(b) "t"), https://www.x.org/a?b. And ~~more~~ 👍🏽!
> quoted *text
> on* two lines &amp; \\*stars\\* <b>x</b><br>y [pause:300ms] <break time="1s"/>

1. one\r
2. two | pipes
   - [x] **inner**

| a | b |
|---|:-:|
| `x \\| y` | 2 |
```py
print("x")
```
Title
===
[a]: https://x.org

***The*** end 1️⃣.
"""


def test_the_document_is_heard_from_both() -> None:
    """A document with every kind of block says the same as a stream and as a whole."""
    said = (
        "A title / Text with code, a link, x.org. And more! / quoted text on two lines & *stars* x"
        ' y [pause:300ms] <break time="1s"/> / 1. one / 2. two | pipes / inner / a, b / x | y, 2'
        " / Title / The end."
    )
    assert heard(stream(DOCUMENT).text) == heard(strip_markdown(DOCUMENT).text) == said
