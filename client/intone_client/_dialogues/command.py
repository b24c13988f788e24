"""`intone dialogue`: a script goes in, a folder of audio files comes out."""

import argparse
import asyncio
import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from intone.v1 import tts_pb2
from intone_client._client import Client
from intone_client._config import speech_config
from intone_client._errors import InvalidArgumentError
from intone_client._scripts.script import Script, ScriptError
from intone_client._terminal import UsageError, tell
from intone_client._text_options import add_priority

from .folder import DialogueFolder
from .plan import plan_items
from .plot import check_plot, plot_timeline
from .progress import DialogueProgress
from .spoken import SpokenItem
from .timeline import ItemSegment

_INFO_SECONDS = 10.0
# JavaScript reads them exactly in timeline.json.
_SEED_BITS = 53
_ITEM_FIELD = re.compile(r"items\[(\d+)\]")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what only `dialogue` has to its parser."""
    parser.set_defaults(command=_dialogue)
    parser.add_argument(
        "script",
        metavar="SCRIPT",
        help=".yaml or .json as the schema says, or plain text: lines of `SPEAKER: text`",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        required=True,
        help="gets dialogue.wav, a file for each item, timeline.json and captions",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on in FOLDER: make only what is missing or failed"
    )
    parser.add_argument("--zip", action="store_true", help="all of it in FOLDER.zip, too")
    parser.add_argument("--plot", metavar="FILE", help="draw the timeline: .png or .svg")
    parser.add_argument("--rate", metavar="HERTZ", type=int, default=0, help="8000 to 48000")
    parser.add_argument("--gain", metavar="DB", type=float, help="louder or softer, -40 to 20")
    parser.add_argument(
        "--seed", metavar="NUMBER", type=int, help="repeats what was said with it before"
    )
    parser.add_argument(
        "--concurrency",
        metavar="NUMBER",
        type=int,
        help="segments at the same time, 1 to 64; default: the server's",
    )
    add_priority(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")


async def _dialogue(options: argparse.Namespace) -> int:
    """Make what is missing; the exit code: 1 if any item failed. Raises UsageError, IntoneError,
    OSError."""
    try:
        script = await asyncio.to_thread(Script.load, options.script)
        script = _with_options(_with_ids(script), options)
        folder = await asyncio.to_thread(DialogueFolder, options.output, resume=options.resume)
        if options.zip:
            folder.check_zip()
        if options.plot:
            check_plot(options.plot)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None
    async with Client(options.server) as client:
        try:
            return await _Making(client, script, folder, options).run()
        except ValueError as error:  # the script in the eyes of the server, or of the folder
            raise UsageError(str(error)) from None


def _with_ids(script: Script) -> Script:
    """Each item has an id, which for one without is made from what it says: its seed comes from
    that, so that a line keeps its sound when it is moved, and when it is asked for alone."""
    taken = {item.id for item in script.items}
    items = []
    for item in script.items:
        named = tts_pb2.DialogueItem()
        named.CopyFrom(item)
        if not named.id:
            content = item.SerializeToString(deterministic=True)
            name = hashlib.sha256(content).hexdigest()[:12]
            # The same line once more.
            ids = (name, *(f"{name}-{n}" for n in range(2, len(script.items) + 2)))
            named.id = next(each for each in ids if each not in taken)
            taken.add(named.id)
        items.append(named)
    return replace(script, items=items)


def _with_options(script: Script, options: argparse.Namespace) -> Script:
    config = tts_pb2.SpeechConfig()
    config.CopyFrom(script.config)
    config.format.encoding = tts_pb2.AUDIO_ENCODING_PCM_S16LE
    if options.rate:
        config.format.sample_rate_hertz = options.rate
    if options.gain is not None:
        config.gain_db = options.gain
    if options.seed is not None:
        config.sampling.seed = options.seed
    if options.priority is not None:
        config.scheduling.priority = speech_config(priority=options.priority).scheduling.priority
    config.queue_events = True  # they tell how long it will be
    if options.concurrency is not None:
        script = replace(script, max_concurrency=options.concurrency)
    return replace(script, config=config)


class _Making:
    """One run of the command."""

    def __init__(
        self, client: Client, script: Script, folder: DialogueFolder, options: argparse.Namespace
    ) -> None:
        self._client = client
        self._script = script
        self._folder = folder
        self._options = options
        self._progress = DialogueProgress(quiet=options.quiet)
        self._done = 0

    async def run(self) -> int:
        missing = await self._plan()
        there = len(self._script.items) - len(missing)
        if there and not self._options.quiet:
            tell(f"{there} of {len(self._script.items)} items are there already")
        try:
            await self._make(missing)
        except BaseException:
            self._progress.close()
            left = len(missing) - self._done
            if left < len(self._script.items):  # also on Ctrl-C: what was made is there
                tell(f"{left} of {len(self._script.items)} items are missing; go on with --resume")
            raise
        self._progress.close()
        timeline = await asyncio.to_thread(self._folder.finish)
        if self._options.zip:
            await asyncio.to_thread(self._folder.zip)
        if self._options.plot:
            await asyncio.to_thread(plot_timeline, timeline, self._options.plot)
        return self._summary(timeline)

    async def _plan(self) -> list[int]:
        """Numbers of the items that are to be made."""
        config = self._script.config
        timeout = self._options.timeout or _INFO_SECONDS
        info = await self._client.info(timeout=timeout)
        if "seed" in info.features and not config.sampling.HasField("seed"):
            # The client's, so that a later run can go on with it.
            known = self._folder.seed
            config.sampling.seed = secrets.randbits(_SEED_BITS) if known is None else known
        seed = config.sampling.seed if config.sampling.HasField("seed") else None
        planned = plan_items(self._script.items, self._script.cast, config)
        return await asyncio.to_thread(self._folder.plan, planned, gap=self._script.gap, seed=seed)

    async def _make(self, missing: Sequence[int]) -> None:
        """Copy what repeats something that is there, and ask the server for the rest."""
        items = self._script.items
        by_id = {item.id: number for number, item in enumerate(items, 1)}
        wanted = set(missing)
        asked = []
        for number in missing:
            item = items[number - 1]
            original = by_id.get(item.reuse.item_id) if item.HasField("reuse") else None
            if original is not None and original not in wanted:
                await asyncio.to_thread(self._folder.copy_item, number)
                wanted.discard(number)
                self._done += 1
            else:
                asked.append(number)
        if not asked:
            return
        # The folder puts the gaps: it knows of what was made before, too.
        part = replace(self._script, items=[items[number - 1] for number in asked], gap=0.0)
        try:
            async with self._client.dialogue(
                part, on_event=self._progress.on_event, timeout=self._options.timeout
            ) as dialogue:
                async for spoken in dialogue:
                    assert dialogue.started is not None
                    self._folder.begin(dialogue.started.format.sample_rate_hertz)
                    number = asked[spoken.index]
                    await asyncio.to_thread(self._save, number, spoken)
                    self._done += 1
                    if spoken.error is not None:
                        self._progress.tell(f"{self._name(number)} failed: {spoken.error}")
        except InvalidArgumentError as error:
            raise self._in_the_script(error, asked) from None

    def _save(self, number: int, item: SpokenItem) -> None:
        segments = [
            ItemSegment(s.kind, s.text, s.sample_offset, s.sample_count, s.seed, s.outcome)
            for s in item.segments
        ]
        error = None if item.error is None else str(item.error)
        self._folder.save_item(
            number, item.audio, segments=segments, error=error, skipped=item.skipped
        )

    def _in_the_script(self, error: InvalidArgumentError, asked: Sequence[int]) -> Exception:
        """The error with the lines of the script instead of places in the request."""
        if not error.violations:
            return error
        faults = []
        for field, description in error.violations:
            found = _ITEM_FIELD.match(field)
            if found is None or int(found[1]) >= len(asked):
                faults.append((0, f"{field}: {description}" if field else description))
                continue
            number = asked[int(found[1])]
            what = f"items[{number - 1}]{field[found.end() :]}: {description}"
            line = self._script.lines[number - 1] if self._script.lines else 0
            faults.append((line, what))
        return ScriptError(self._options.script, faults)

    def _name(self, number: int) -> str:
        """Of an item, for people."""
        speaker = self._script.items[number - 1].speech.speaker
        name = f"item {number} ({speaker})" if speaker else f"item {number}"
        if not self._script.lines:
            return name
        return f"{self._options.script}:{self._script.lines[number - 1]}: {name}"

    def _summary(self, timeline: dict[str, Any]) -> int:
        failed = [item for item in timeline["items"] if item["status"] == "failed"]
        skipped = [item for item in timeline["items"] if item["status"] == "skipped"]
        if not self._options.quiet:
            made = len(timeline["items"]) - len(failed) - len(skipped)
            seconds = timeline["duration"]
            tell(f"{self._options.output}: {made} items, {seconds:.2f} s of audio")
        for item in failed:
            tell(f"{self._name(item['number'])} failed: {item['error']}")
        for item in skipped:
            tell(f"{self._name(item['number'])} was skipped: there is nothing of it to be heard")
        return 1 if failed else 0
