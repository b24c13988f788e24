"""How fast the replicas are together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intone_server.scheduling.speed import FIRST_SPEED, MEMORY_SECONDS, Meter, Speed


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


def test_what_was_measured_is_told() -> None:
    speed = Speed({1: 3.6, 4: 7.2})
    assert speed.is_known
    assert (speed.total(1), speed.total(4)) == pytest.approx((3.6, 7.2))


def test_between_measured_numbers_of_replicas_it_is_interpolated() -> None:
    assert Speed({2: 4.0, 6: 8.0}).total(3) == pytest.approx(5.0)


def test_beyond_them_it_goes_with_the_square_root() -> None:
    speed = Speed({4: 8.0})
    assert (speed.total(1), speed.total(16)) == pytest.approx((4.0, 16.0))


def test_a_speed_is_assumed_until_one_is_measured() -> None:
    assert not Speed().is_known
    assert Speed().total(1) == FIRST_SPEED


def test_a_moment_says_nothing() -> None:
    speed = Speed()
    speed.observe(1, 0.4, 0.1)
    assert not speed.is_known
    speed.observe(1, 3.0, 1.0)
    assert speed.total(1) == pytest.approx(3.4 / 1.1, rel=0.01)


def test_new_measurements_replace_old_ones_slowly_and_then_for_good() -> None:
    speed = Speed({2: 4.0})
    speed.observe(2, 1.0, 0.5)  # one at half the speed moves it a little
    assert 3.7 < speed.total(2) < 4.0
    for _ in range(int(6 * MEMORY_SECONDS)):
        speed.observe(2, 2.0, 1.0)
    assert speed.total(2) == pytest.approx(2.0, rel=0.01)


@given(st.dictionaries(st.integers(1, 32), st.floats(0.5, 20), max_size=5), st.integers(1, 64))
def test_every_number_of_replicas_has_a_speed(measured: dict[int, float], busy: int) -> None:
    assert Speed(measured).total(busy) > 0


def test_audio_counts_for_the_number_that_were_busy_when_it_was_made() -> None:
    speed, clock = Speed(), Clock()
    meter = Meter(speed, clock)
    for count, made_seconds in ((1, 6.0), (2, 10.0), (1, 6.0), (0, 0.0)):
        meter.busy(count)
        clock.now += 2.0
        meter.made(made_seconds)
    meter.busy(0)
    assert (speed.total(1), speed.total(2)) == pytest.approx((3.0, 5.0))


def test_time_with_a_worker_that_was_lost_does_not_count() -> None:
    speed, clock = Speed({1: 3.0}), Clock()
    meter = Meter(speed, clock)
    meter.busy(1)
    clock.now += 10.0  # it hung
    meter.restart(0)
    assert speed.total(1) == pytest.approx(3.0)


def test_as_many_listeners_as_there_are_replicas_in_real_time() -> None:
    speed = Speed({1: 3.0, 2: 3.4, 4: 4.8, 8: 5.6})
    assert [speed.fed(n) for n in (1, 2, 4, 8)] == [1, 2, 4, 5]
    assert speed.listeners(8) == 5


def test_replicas_that_are_faster_than_that_take_turns_between_more() -> None:
    speed = Speed({1: 3.6, 4: 7.2})
    assert [speed.listeners(n) for n in (1, 4)] == [3, 7]


def test_a_machine_that_is_slower_than_real_time_serves_one() -> None:
    assert Speed({1: 0.7}).listeners(4) == 1
