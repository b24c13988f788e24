"""Text that has more tokens than its length suggests."""

from collections.abc import Callable, Iterator


def pieces(text: str, tokens: Callable[[str], int], limit: int) -> Iterator[str]:
    """`text` in pieces of at most `limit` tokens, cut between words where there are any.

    Segments fit almost always: then it is one piece.
    """
    if tokens(text) <= limit:
        yield text
        return
    piece = ""
    for word in text.split(" "):
        longer = f"{piece} {word}" if piece else word
        if tokens(longer) <= limit:
            piece = longer
            continue
        if piece:
            yield piece
        while tokens(word) > limit:
            half = len(word) // 2
            while tokens(word[:half]) > limit:
                half //= 2
            yield word[:half]
            word = word[half:]
        piece = word
    if piece:
        yield piece
