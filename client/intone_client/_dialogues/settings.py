"""What the flags of a dialogue's first run say about its samples, for the runs that go on."""

from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Settings:
    """Values of `--rate`, `--gain` and `--seed`; None where there was no such flag."""

    #: In hertz.
    rate: int | None = None
    #: In decibels.
    gain: float | None = None
    seed: int | None = None


NO_FLAGS = Settings()


def read_settings(document: dict[str, Any]) -> Settings:
    """Of a timeline. Raises TypeError or ValueError for what are none."""
    settings = Settings(**document)
    for value, kinds in ((settings.rate, int), (settings.gain, (int, float)), (settings.seed, int)):
        if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            raise ValueError(f"{value!r} is no setting")
    return settings


def resumed(given: Settings, first: Settings, made_with: Settings, folder: object) -> Settings:
    """The settings to go on with in `folder`: those of the `first` run, and what is `given` now.

    `made_with` is what its samples have, whoever said so. Raises ValueError where that and a flag
    contradict each other.
    """
    for each in fields(Settings):
        value, there = getattr(given, each.name), getattr(made_with, each.name)
        if value is not None and value != there:
            flag = f"--{each.name}"
            made = f"begun with {there}" if there is not None else "begun without one"
            raise ValueError(
                f"{flag} is {value}, but the dialogue in {folder} was {made}: leave {flag} out to "
                "go on with it, or begin another one in another folder, without --resume"
            )
    # A rate that nobody asked for was the server's choice, and is so again.
    return replace(merged(given, first), rate=first.rate)


def merged(given: Settings, first: Settings) -> Settings:
    """What is `given`, and what the `first` run had where nothing is."""
    return Settings(
        rate=first.rate if given.rate is None else given.rate,
        gain=first.gain if given.gain is None else given.gain,
        seed=first.seed if given.seed is None else given.seed,
    )
