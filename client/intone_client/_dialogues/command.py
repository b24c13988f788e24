"""`intone dialogue`: a script goes in, a folder of audio files comes out."""

import argparse
import asyncio
import functools
import hashlib
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from intone.v1 import tts_pb2
from intone_client._access import client_of
from intone_client._client import Client
from intone_client._config import Priority, speech_config
from intone_client._errors import InvalidArgumentError
from intone_client._scripts.places import Place
from intone_client._scripts.script import Script, ScriptError
from intone_client._terminal import UsageError, tell
from intone_client._text_options import add_priority

from .claim import FolderClaim
from .folder import DialogueFolder
from .mistakes import script_faults
from .plan import plan_items
from .plot import check_plot, plot_timeline
from .progress import DialogueProgress
from .settings import Settings
from .spoken import SpokenItem
from .summary import Summary
from .timeline import ItemSegment

_INFO_SECONDS = 10.0
# JavaScript reads them exactly in timeline.json.
_SEED_BITS = 53


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
    parser.add_argument("--rate", metavar="HERTZ", type=int, help="8000 to 48000")
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
    parser.add_argument(
        "--allow-outside",
        action="store_true",
        help="let `audio:` name files outside the folder of SCRIPT",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")


async def _dialogue(options: argparse.Namespace) -> int:
    """Make what is missing; the exit code: 1 if any item failed. Raises UsageError, IntoneError,
    OSError."""
    load = functools.partial(Script.load, allow_outside=options.allow_outside)
    given = Settings(rate=options.rate or None, gain=options.gain, seed=options.seed)
    with ExitStack() as stack:
        try:
            script = await asyncio.to_thread(load, options.script)
            stack.enter_context(FolderClaim(options.output))
            folder = await asyncio.to_thread(DialogueFolder, options.output, resume=options.resume)
            # Of six digits, as people write them: the config has 32 bits.
            settings = folder.settings(given, gain=round(script.config.gain_db, 6))
            script = _with_options(
                _with_ids(script),
                settings,
                concurrency=options.concurrency,
                priority=options.priority,
            )
            if options.zip:
                folder.check_zip()
            if options.plot:
                check_plot(options.plot)
        except (ValueError, OSError) as error:
            raise UsageError(str(error)) from None
        async with client_of(options) as client:
            try:
                return await _Making(client, script, folder, settings, options).run()
            except ValueError as error:  # the script in the eyes of the server, or of the folder
                raise UsageError(str(error)) from None


def _with_ids(script: Script) -> Script:
    """Each item has an id, which for one without is made from what it says: its seed comes from
    that, so that a line keeps its sound when it is moved, and when it is asked for alone."""
    taken = {item.id for item in script.items}
    repeats: dict[str, int] = {}
    items = []
    for item in script.items:
        named = tts_pb2.DialogueItem()
        named.CopyFrom(item)
        if not named.id:
            content = item.SerializeToString(deterministic=True)
            name = hashlib.sha256(content).hexdigest()[:12]
            named.id = name
            while named.id in taken:  # the same line once more
                repeats[name] = repeats.get(name, 1) + 1
                named.id = f"{name}-{repeats[name]}"
            taken.add(named.id)
        items.append(named)
    return replace(script, items=items)


def _with_options(
    script: Script, settings: Settings, *, concurrency: int | None, priority: Priority | None
) -> Script:
    config = tts_pb2.SpeechConfig()
    config.CopyFrom(script.config)
    config.format.encoding = tts_pb2.AUDIO_ENCODING_PCM_S16LE
    if settings.rate is not None:
        config.format.sample_rate_hertz = settings.rate
    if settings.gain is not None:
        config.gain_db = settings.gain
    if settings.seed is not None:
        config.sampling.seed = settings.seed
    if priority is not None:
        config.scheduling.priority = speech_config(priority=priority).scheduling.priority
    config.queue_events = True  # they tell how long it will be
    if concurrency is not None:
        script = replace(script, max_concurrency=concurrency)
    return replace(script, config=config)


class _Making:
    """One run of the command."""

    def __init__(
        self,
        client: Client,
        script: Script,
        folder: DialogueFolder,
        settings: Settings,
        options: argparse.Namespace,
    ) -> None:
        self._client = client
        self._script = script
        self._folder = folder
        self._settings = settings
        self._options = options
        self._progress = DialogueProgress(quiet=options.quiet)
        self._done = 0

    async def run(self) -> int:
        missing = await self._plan()
        there = len(self._script.items) - len(missing)
        if there and not self._options.quiet:
            tell(f"{there} of {len(self._script.items)} items are there already")
        if (outdated := self._folder.outdated) and not self._options.quiet:
            tell(f"{outdated} of the items that are there are no longer in the script as they were")
        try:
            await self._make(missing)
        except BaseException:
            self._progress.close()
            for line in self._summary(self._folder.timeline()).failures():
                tell(line)
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
        summary = self._summary(timeline)
        if not self._options.quiet:
            tell(f"{self._options.output}: {summary.line()}")
        for line in summary.failures():
            tell(line)
        return 1 if summary.failed else 0

    def _summary(self, timeline: dict[str, Any]) -> Summary:
        return Summary(timeline, self._script, self._options.script)

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
        return await asyncio.to_thread(
            self._folder.plan,
            planned,
            gap=self._script.gap,
            seed=seed,
            settings=self._settings,
        )

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
        """The error in the words of the script instead of those of the request."""
        if not error.violations:
            return error
        options = {
            ("config", "sample_rate_hertz"): ("--rate", self._settings.rate),
            ("config", "gain_db"): ("--gain", self._settings.gain),
            ("config", "seed"): ("--seed", self._settings.seed),
            ("max_concurrency",): ("--concurrency", self._options.concurrency),
        }
        flags: dict[Place, str] = {
            place: flag for place, (flag, value) in options.items() if value is not None
        }
        faults = script_faults(error.violations, self._script, asked, flags)
        return ScriptError(self._options.script, faults)
