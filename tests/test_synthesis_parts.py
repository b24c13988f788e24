"""The pure pieces of a session: deadlines, the listener's clock, the transcript, chunks."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intone_server.audio.buffer import SampleBuffer
from intone_server.synthesis.deadlines import Deadlines, Due, SessionLimits, Situation
from intone_server.synthesis.events import Outcome, SegmentKind
from intone_server.synthesis.markdown.parser import strip_markdown
from intone_server.synthesis.part import Part
from intone_server.synthesis.playout import Playout
from intone_server.synthesis.segmenter import CommitReason
from intone_server.synthesis.speech import draw_seed, segment_seed
from intone_server.synthesis.transcript import Transcript

RATE = 24000
LIMITS = SessionLimits(
    idle_timeout_seconds=60,
    session_limit_seconds=3600,
    slow_client_timeout_seconds=30,
    max_unsent_seconds=10,
    max_buffered_characters=100,
)


def situation(**changes: Any) -> Situation:
    values = {
        "listening": True,
        "idle": True,
        "starving": False,
        "open": True,
        "draining": False,
    }
    return Situation(**(values | changes))


class TestDeadlines:
    """Time runs from 0."""

    def test_an_idle_stream_is_told_and_then_ended(self) -> None:
        deadlines = Deadlines(LIMITS, 0.8, 0)
        assert deadlines.first(0, situation()) == (50, Due.IDLE_NOTICE)
        deadlines.done(Due.IDLE_NOTICE)
        assert deadlines.first(50, situation()) == (60, Due.IDLE_END)

    def test_any_message_resets_the_idle_clock(self) -> None:
        deadlines = Deadlines(LIMITS, 0.8, 0)
        deadlines.done(Due.IDLE_NOTICE)
        deadlines.heard(55)
        assert deadlines.first(55, situation()) == (105, Due.IDLE_NOTICE)

    def test_speaking_is_not_idle(self) -> None:
        deadlines = Deadlines(LIMITS, 0.8, 0)
        assert deadlines.first(40, situation(idle=False)) == (3540, Due.SESSION_NOTICE)
        assert deadlines.first(41, situation()) == (90, Due.IDLE_NOTICE)

    def test_unfinished_text_is_due_after_the_text_delay(self) -> None:
        deadlines = Deadlines(LIMITS, 0.8, 0)
        deadlines.heard(5, text=True)
        deadlines.heard(5.5)
        assert deadlines.first(5.5, situation(starving=True)) == (5.8, Due.TEXT_DELAY)

    def test_text_that_waits_for_commands_is_never_due(self) -> None:
        deadlines = Deadlines(LIMITS, None, 0)
        deadlines.heard(5, text=True)
        first = deadlines.first(5, situation(starving=True))
        assert first == (55, Due.IDLE_NOTICE)

    def test_a_stream_that_is_too_far_ahead_goes_on_when_its_listener_has_come_nearer(self) -> None:
        deadlines = Deadlines(LIMITS, 0.8, 0)
        held = situation(idle=False, paused_until=7.5)
        assert deadlines.first(5, held) == (7.5, Due.RESUME)
        held = situation(idle=False, listening=False, paused_until=7.5, tail_due_at=7.5)
        assert deadlines.first(5, held) == (7.5, Due.RESUME)

    def test_a_draining_stream_ends_once_it_is_idle(self) -> None:
        deadlines = Deadlines(LIMITS, 0.8, 0)
        deadlines.heard(5, text=True)
        assert deadlines.first(5, situation(draining=True)) == (5.8, Due.DRAINED)

    def test_a_client_is_slow_when_a_write_hangs(self) -> None:
        deadlines = Deadlines(LIMITS, 0.8, 0)
        deadlines.writing(7)
        assert deadlines.first(8, situation(idle=False)) == (37, Due.SLOW_CLIENT)
        assert deadlines.first(8, situation(open=False, idle=False)) == (37, Due.SLOW_CLIENT)
        deadlines.writing(None)
        assert deadlines.first(8, situation(idle=False)) == (3540, Due.SESSION_NOTICE)
        assert deadlines.first(8, situation(open=False, idle=False)) is None

    def test_a_session_that_was_ended_has_nothing_due(self) -> None:
        deadlines = Deadlines(LIMITS, 0.8, 0)
        deadlines.done(Due.SESSION_NOTICE)
        deadlines.done(Due.SESSION_END)
        assert deadlines.first(3600, situation(listening=False, idle=False)) is None

    def test_short_limits_are_told_half_way(self) -> None:
        limits = SessionLimits(4, 10, 30, 10, 100)
        deadlines = Deadlines(limits, 0.8, 0)
        assert deadlines.first(0, situation()) == (2, Due.IDLE_NOTICE)


class TestPlayout:
    """Time runs from 0; a second has ten samples."""

    def test_a_listener_plays_as_audio_arrives(self) -> None:
        playout = Playout(10)
        assert playout.dry_at() is None
        playout.sent(10, 20)
        assert playout.dry_at() == 12
        assert (playout.ahead(11), playout.position(11)) == (1, 10)
        assert not playout.is_dry(11)
        assert playout.is_dry(12.5)

    def test_audio_sent_to_a_dry_listener_plays_from_then(self) -> None:
        playout = Playout(10)
        playout.sent(0.5, 10)
        playout.sent(5, 10)
        assert playout.ahead(5) == 1

    def test_after_a_report_the_rest_plays_on_from_then(self) -> None:
        playout = Playout(10)
        playout.sent(0, 100)
        playout.reported(5, 20)  # its player began late
        assert (playout.position(5), playout.position(6), playout.dry_at()) == (20, 30, 13)
        playout.reported(6, 90)  # and jumped
        assert playout.dry_at() == 7

    def test_a_report_may_say_that_a_dry_listener_is_not(self) -> None:
        playout = Playout(10)
        playout.sent(0, 100)
        playout.all_said()
        playout.text_came(20)
        assert playout.dry_at() is None
        playout.reported(20, 90)
        assert playout.dry_at() == 21

    @pytest.mark.parametrize("played", [100, 101, 2**64 - 1])
    def test_one_who_has_played_all_or_more_is_dry(self, played: int) -> None:
        playout = Playout(10)
        playout.sent(0, 100)
        playout.reported(3, played)
        assert (playout.position(3), playout.dry_at()) == (100, 3)
        assert playout.is_dry(3)
        playout.reported(4, played)
        assert playout.dry_at() == 3

    def test_what_was_heard_once_stays_heard(self) -> None:
        playout = Playout(10)
        playout.sent(0, 100)
        playout.reported(5, 50)
        playout.reported(6, 10)
        assert playout.position(6) == 50

    def test_a_report_before_any_audio_changes_nothing(self) -> None:
        playout = Playout(10)
        playout.reported(1, 7)
        assert (playout.dry_at(), playout.position(1)) == (None, 0)
        playout.sent(2, 10)
        assert playout.position(2.5) == 5

    def test_what_a_listener_dropped_is_not_ahead_of_it(self) -> None:
        """Reports go on with the place where it stopped, until there is new audio."""
        playout = Playout(10)
        playout.sent(0, 100)
        playout.reported(2, 20)
        playout.stopped()
        playout.reported(3, 20)
        assert (playout.dry_at(), playout.ahead(3), playout.position(3)) == (None, 0, 100)
        playout.sent(4, 10)
        playout.reported(4.5, 20)
        assert playout.dry_at() == 5.5

    def test_silence_after_a_text_is_no_wait(self) -> None:
        playout = Playout(10)
        playout.sent(0, 10)
        playout.all_said()
        assert not playout.is_dry(5)
        playout.text_came(0.5)  # while the one before is heard
        assert playout.dry_at() == 1
        playout.text_came(5)
        assert playout.dry_at() is None
        playout.sent(6, 10)
        assert playout.is_dry(8)

    def test_a_text_that_goes_on_is_no_new_one(self) -> None:
        playout = Playout(10)
        playout.sent(0, 10)
        playout.text_came(5)
        assert playout.dry_at() == 1

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["sent", "reported", "stopped", "said", "came"]),
                st.integers(0, 10**9),
                st.floats(0, 5),
            )
        )
    )
    def test_a_position_never_goes_back_behind_a_report_or_beyond_what_was_sent(
        self, history: list[tuple[str, int, float]]
    ) -> None:
        playout, now, sure = Playout(24000), 0.0, 0
        for what, samples, seconds in history:
            now += seconds
            match what:
                case "sent":
                    playout.sent(now, samples % 100_000)
                case "reported":
                    playout.reported(now, samples % 1_000_000)
                    sure = playout.position(now)
                case "stopped":
                    playout.stopped()
                    sure = playout.sent_samples
                case "said":
                    playout.all_said()
                case "came":
                    playout.text_came(now)
            # Of seconds since the start of the machine, the rounding is far below a sample.
            assert sure <= playout.position(now) <= playout.sent_samples
            dry_at = playout.dry_at()
            assert playout.ahead(now) == (0 if dry_at is None else max(0, dry_at - now))


def part(index: int, text: str, start: int, *, offset: int, sent: int, made: int) -> Part:
    result = Part(
        segment=index,
        kind=SegmentKind.SPEECH,
        start=start,
        end=start + len(text),
        text=text,
        seed=0,
        reason=CommitReason.SENTENCE,
        on_change=lambda _: None,
    )
    result.announced, result.sample_offset = True, offset
    result.sent_samples, result.made_samples = sent, made
    return result


class TestTranscript:
    TEXT = "One two three. Four five six."

    def transcript(self, *, complete: bool = True) -> Transcript:
        transcript = Transcript(RATE, RATE)
        transcript.push(self.TEXT)
        first = part(0, "One two three.", 0, offset=0, sent=14000, made=14000)
        first.end_with(Outcome.COMPLETE)
        second = part(1, "Four five six.", 15, offset=14000, sent=14000, made=14000)
        first.all_sent = True
        if complete:
            second.end_with(Outcome.COMPLETE)
            second.all_sent = True
        transcript.add(first)
        transcript.add(second)
        return transcript

    def test_nothing_heard_is_nothing_spoken(self) -> None:
        assert self.transcript().split(0) == ("", self.TEXT, False)

    def test_whole_segments_are_exact(self) -> None:
        spoken, unspoken, estimated = self.transcript().split(14000)
        assert (spoken, unspoken, estimated) == ("One two three.", " Four five six.", False)

    def test_everything_heard_is_everything_spoken(self) -> None:
        assert self.transcript().split(28000) == (self.TEXT, "", False)

    def test_inside_a_segment_the_split_is_at_a_word(self) -> None:
        spoken, _, estimated = self.transcript().split(14000 + 7500)
        assert (spoken, estimated) == ("One two three. Four", True)

    def test_an_unfinished_segment_is_measured_by_its_estimate(self) -> None:
        spoken, _, estimated = self.transcript(complete=False).split(28000)
        assert spoken in ("One two three. Four", "One two three. Four five")
        assert estimated

    @given(st.integers(0, 40000))
    def test_both_parts_are_always_all_of_the_text(self, heard: int) -> None:
        spoken, unspoken, _ = self.transcript().split(heard)
        assert spoken + unspoken == self.TEXT

    def test_a_new_epoch_begins_with_no_text(self) -> None:
        transcript = self.transcript()
        transcript.restart()
        transcript.push("More.")
        assert transcript.split(10**9) == ("", "More.", False)

    def test_marks_that_take_no_time_to_say_do_not_count(self) -> None:
        source = "See [the docs](https://example.org/a/very/long/address) for one."
        transcript = Transcript(RATE, RATE)
        transcript.push(source)
        only = part(0, "See the docs for one.", 0, offset=0, sent=2000, made=2000)
        only.end = len(source)
        only.cleaned = strip_markdown(source)
        only.end_with(Outcome.COMPLETE)
        transcript.add(only)
        assert (
            transcript.split(1300)[0] == "See [the docs](https://example.org/a/very/long/address)"
        )

    def test_text_without_spaces_is_split_between_characters(self) -> None:
        transcript = Transcript(RATE, RATE)
        transcript.push("你好吗朋友")
        only = part(0, "你好吗朋友", 0, offset=0, sent=5000, made=5000)
        only.end_with(Outcome.COMPLETE)
        transcript.add(only)
        assert transcript.split(2000)[0] == "你好"


class TestAudio:
    @given(st.lists(st.integers(1, 40000), max_size=6))
    def test_chunks_hold_every_sample_once_and_none_is_tiny(self, sizes: list[int]) -> None:
        buffer = SampleBuffer()
        whole = np.arange(sum(sizes), dtype=np.float32)
        start = 0
        for size in sizes:
            buffer.append(whole[start : start + size])
            start += size
        chunks = []
        while len(buffer):
            chunks.append(buffer.take_chunk(RATE))
        assert np.array_equal(np.concatenate([whole[:0], *chunks]), whole)
        assert all(len(c) <= 0.32 * RATE for c in chunks)
        if len(whole) > 0.32 * RATE:
            assert min(map(len, chunks)) >= 0.08 * RATE


class TestSeeds:
    def test_the_first_segment_has_the_streams_seed(self) -> None:
        assert segment_seed(2**64 - 1, 0) == 2**64 - 1

    def test_later_segments_have_fixed_seeds_that_javascript_reads(self) -> None:
        assert segment_seed(1, 1) == segment_seed(1, 1) != segment_seed(1, 2)
        assert all(segment_seed(7, n) < 2**53 for n in range(1, 100))

    def test_drawn_seeds_are_below_two_to_53(self) -> None:
        assert all(draw_seed() < 2**53 for _ in range(100))


@pytest.mark.parametrize("kind", [Outcome, CommitReason, SegmentKind])
def test_every_domain_value_has_its_proto_value(kind: type) -> None:
    from intone.v1 import tts_pb2

    prefix = {
        "Outcome": "SEGMENT_OUTCOME",
        "CommitReason": "COMMIT_REASON",
        "SegmentKind": "SEGMENT_KIND",
    }[kind.__name__]
    for member in kind:  # type: ignore[var-annotated]
        assert hasattr(tts_pb2, f"{prefix}_{member.name}")
