"""The segments of a whole text, for tests."""

from typing import Any

from intone_server.synthesis.segmenter import CommitReason, Segment, Segmenter


def plan(text: str, **config: Any) -> list[Segment]:
    """All of them; `config` is the segmenter's."""
    segmenter = Segmenter(**config)
    segmenter.push(text)
    segmenter.commit(CommitReason.END_OF_INPUT)
    return [item for item in iter(segmenter.next, None) if isinstance(item, Segment)]
