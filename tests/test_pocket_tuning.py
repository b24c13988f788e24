"""How many rows the pocket engine runs when nobody says."""

from pathlib import Path

import pytest

from intone_server.engines import pocket_tuning
from intone_server.engines.base import EngineOptions, Job, Sampling, VoiceRef
from intone_server.engines.pocket import PocketEngine
from intone_server.engines.pocket_tuning import chosen_replicas
from tiny_pocket import TinyPocket


def options(tiny: TinyPocket, *, workers: int = 1) -> EngineOptions:
    voices = tuple((name, str(path)) for name, path in tiny.voices.items())
    return EngineOptions(
        model=str(tiny.config), voices=voices, default_voice="anna", workers=workers, threads=2
    )


@pytest.mark.parametrize(
    ("speeds", "rows"),
    [
        ({1: 3.0, 2: 3.5, 4: 4.8, 8: 7.4}, 8),
        ({1: 3.0, 2: 3.5, 4: 4.8, 8: 5.0}, 4),
        ({1: 3.0, 2: 3.2}, 1),
        ({1: 0.7, 2: 0.9}, 2),
    ],
)
def test_it_runs_as_many_as_are_worth_it(speeds: dict[int, float], rows: int) -> None:
    assert chosen_replicas(speeds) == rows


def test_it_measures_when_it_starts_and_leaves_nothing_behind(tiny_pocket: TinyPocket) -> None:
    engine = PocketEngine()
    engine.load(options(tiny_pocket))
    engine.attach(0)
    assert engine.capacity == chosen_replicas(engine.speeds)
    assert set(engine.speeds) <= set(pocket_tuning.ROWS)
    assert all(speed > 0 for speed in engine.speeds.values())
    assert not engine.step()
    heard = []
    for number in range(engine.capacity):
        engine.start(Job(number, "Hello.", VoiceRef("anna"), Sampling(), seed=0))
    while len(heard) < engine.capacity:
        heard += [output for output in engine.step() if output.ending]


def test_workers_share_the_cores(tiny_pocket: TinyPocket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four workers with two threads each, on two cores: each gets a quarter of what it measured."""
    monkeypatch.setattr("intone_server.engines.pocket.available_cores", lambda: 2)
    monkeypatch.setattr("intone_server.engines.pocket.measured_speeds", lambda *_: {1: 4.0, 2: 8.0})
    engine = PocketEngine()
    engine.load(options(tiny_pocket, workers=4))
    engine.attach(0)
    assert engine.speeds == {1: 1.0, 2: 2.0}
    assert engine.capacity == 2


@pytest.mark.parametrize(
    ("said", "cores"), [("150000 100000", 2), ("50000 100000", 1), ("max 100000", 8), ("", 8)]
)
def test_the_quota_of_a_container_counts(
    said: str, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(said)
    monkeypatch.setattr(pocket_tuning, "CPU_MAX", tmp_path / "cpu.max")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert pocket_tuning.available_cores() == cores


def test_a_number_that_was_set_is_not_measured(tiny_pocket: TinyPocket) -> None:
    engine = PocketEngine()
    engine.load(options(tiny_pocket))
    engine.attach(3)
    assert engine.capacity == 3
    assert not engine.speeds
