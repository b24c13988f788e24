"""Options of the text, and their way back."""

import asyncio

from intone.v1 import tts_pb2
from intone_server.rpc.faults import Faults
from intone_server.synthesis.manuscript import TextOptions, WholeText
from intone_server.synthesis.replacements import (
    MAX_RULES,
    MAX_SPOKEN_CHARACTERS,
    MAX_WORD_CHARACTERS,
    Replacements,
    Rule,
)


def read_text_options(options: tts_pb2.TextOptions, faults: Faults) -> TextOptions:
    """What is to be done to the text. Faults are noted."""
    rules = []
    if len(options.replacements) > MAX_RULES:
        faults.add(
            "config.text.replacements", f"are {len(options.replacements):,}, limit {MAX_RULES}"
        )
    for index, replacement in enumerate(options.replacements[:MAX_RULES]):
        field = f"config.text.replacements[{index}]"
        word, spoken = replacement.word, replacement.spoken
        if not word.strip():
            faults.add(f"{field}.word", "is empty or blank")
        elif len(word) > MAX_WORD_CHARACTERS:
            faults.add(
                f"{field}.word", f"has {len(word):,} characters, limit {MAX_WORD_CHARACTERS}"
            )
        elif len(spoken) > MAX_SPOKEN_CHARACTERS:
            faults.add(
                f"{field}.spoken", f"has {len(spoken):,} characters, limit {MAX_SPOKEN_CHARACTERS}"
            )
        else:
            rules.append(Rule(word, spoken, replacement.match_case))
    return TextOptions(
        strip_markdown=options.strip_markdown,
        inline_pauses=options.inline_pauses,
        normalize=options.normalize,
        replacements=Replacements(rules) if rules else None,
    )


async def whole_text(text: str, options: TextOptions) -> WholeText:
    """A text that is complete, read beside the event loop if that is work."""
    if options.strip_markdown:
        return await asyncio.to_thread(WholeText.of, text, options)
    return WholeText.of(text, options)


def text_options(options: TextOptions) -> tts_pb2.TextOptions:
    """The options as the client sent them."""
    rules = options.replacements.rules if options.replacements else ()
    return tts_pb2.TextOptions(
        strip_markdown=options.strip_markdown,
        inline_pauses=options.inline_pauses,
        normalize=options.normalize,
        replacements=[
            tts_pb2.Replacement(word=r.word, spoken=r.spoken, match_case=r.match_case)
            for r in rules
        ],
    )
