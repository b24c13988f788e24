"""How many pods for N callers? A simulation with the server's own scheduler and admission.

    # what 5 and 10 callers hear of one pod, and of four
    python -m benchmarks.scaling --callers 5,10 --pods 1,4
    # how many pods they need
    python -m benchmarks.scaling --callers 10,100,1000 --max-first-audio-p95 400
    # whether it is true: the same calls on a real server here, and simulated
    python -m benchmarks.scaling --check

See docs/scaling.md.
"""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks import check, report, scaling_plot
from benchmarks.callers import POLICIES, Balancing, Setup
from benchmarks.pod_speed import PodSpeed, parse_speeds, read_result
from benchmarks.pods import Answer, Limits, Summary, pods_needed, simulate
from benchmarks.scaling_report import answers_table, summaries_table
from intone_client._bench.texts import TextLengths

# An example, about what int8 makes on two cores; docs/scaling.md has its tables from it.
SPEEDS = "1:3.0,2:3.5,4:4.8,8:7.4"
FIRST_AUDIO_MILLISECONDS = 100.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for; returns the exit code: 0, also if no number of pods is enough."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.check:
        # As with Ctrl-C: leave every `with` block, so that no server stays behind.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        flags = ["--replicas", str(asked.replicas)]
        int8 = not asked.float32
        return check.main(asked.streams, turns=asked.turns, int8=int8, flags=flags, tell=_tell)
    if not asked.callers or (asked.pods is None) == (asked.max_first_audio_p95 is None):
        parser.error("--callers, and either --pods or --max-first-audio-p95 (or --check)")
    try:
        speed = _speed(asked)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    setups = [_setup(asked, speed, callers) for callers in asked.callers]
    seeds = range(asked.seed, asked.seed + asked.seeds)
    _tell(_describe(setups[0], seeds) + "\n")
    if asked.pods is None:
        limits = Limits(asked.max_first_audio_p95 / 1000, asked.max_silent_share)
        answers = list(_answers(setups, limits, seeds))
        _tell("\n" + answers_table(answers, limits))
        found = [each for answer in answers for each in answer.by_seed if each is not None]
    else:
        found = list(_summaries(setups, asked.pods, seeds, for_each_pod=asked.for_each_pod))
        _tell("\n" + summaries_table(found))
    if asked.json:
        setup = {**asdict(setups[0]), "balancing": asked.balancing.value}
        report.write_json(asked.json, {"setup": setup, "simulations": [*map(asdict, found)]})
    if asked.plot:
        scaling_plot.write_plot(asked.plot, found, _describe(setups[0], seeds))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    group = parser.add_argument_group("who calls")
    group.add_argument("--callers", type=_numbers, metavar="N,...")
    group.add_argument(
        "--think", type=float, default=5.0, metavar="SECONDS", help="on average (default 5)"
    )
    group.add_argument(
        "--text-lengths",
        default="20-180",
        type=lambda text: TextLengths(text).name,
        metavar="WHICH",
        help="short, long, mixed, or MIN-MAX characters (default 20-180: one to three sentences)",
    )
    group.add_argument(
        "--attempts", type=int, default=4, help="of a call before it is given up (default 4)"
    )
    group = parser.add_argument_group("whom they call")
    group.add_argument(
        "--speeds",
        default=SPEEDS,
        metavar="N:SPEED,...|FILE",
        help="of one pod with N replicas busy, or a result of python -m benchmarks (%(default)s)",
    )
    group.add_argument(
        "--replicas", type=int, default=0, help="of a pod (default: as --replicas auto chooses)"
    )
    group.add_argument(
        "--first-audio-ms",
        type=float,
        help=f"of an idle pod (default {FIRST_AUDIO_MILLISECONDS:g}, or that of the file)",
    )
    group.add_argument("--scheduling", choices=list(POLICIES), default="deadline")
    group.add_argument(
        "--balancing",
        type=Balancing,
        default=Balancing.LEAST_LOADED,
        metavar="HOW",
        help=f"{', '.join(each.value for each in Balancing)} (default: the first)",
    )
    group = parser.add_argument_group("what is asked")
    group.add_argument(
        "--pods", type=_numbers, metavar="P,...", help="what callers hear of so many"
    )
    group.add_argument(
        "--for-each-pod", action="store_true", help="--callers are for each of --pods"
    )
    group.add_argument(
        "--max-first-audio-p95", type=float, metavar="MS", help="the least number of pods for that"
    )
    group.add_argument(
        "--max-silent-share",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="of listeners who may hear any silence, 0 to 1 (default 1)",
    )
    group.add_argument("--calls", type=int, default=2000, help="of one simulation (default 2000)")
    group.add_argument("--seeds", type=int, default=5, metavar="COUNT", help="default 5")
    group.add_argument("--seed", type=int, default=1, help="the first of them (default 1)")
    group.add_argument("--json", type=Path, metavar="FILE")
    group.add_argument("--plot", type=Path, metavar="FILE", help=".png")
    group = parser.add_argument_group("whether it is true")
    group.add_argument("--check", action="store_true", help="on a real server (some minutes)")
    group.add_argument("--streams", type=_numbers, default=(1, 2, 4, 8), metavar="N,...")
    group.add_argument("--turns", type=int, default=2, help="of each (default 2)")
    group.add_argument("--float32", action="store_true", help="weights (default: int8)")
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split(","))
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text}: each must be 1 or more")
    return numbers


def _speed(asked: argparse.Namespace) -> PodSpeed:
    """Raises OSError, ValueError."""
    first = (asked.first_audio_ms or FIRST_AUDIO_MILLISECONDS) / 1000
    if ":" in asked.speeds:
        return PodSpeed.of(parse_speeds(asked.speeds), first, asked.replicas)
    found = read_result(Path(asked.speeds))
    if asked.first_audio_ms is None:
        first = found.first_audio_seconds
    speeds = dict(enumerate(found.totals, 1))
    return PodSpeed.of(speeds, first, asked.replicas or len(speeds))


def _setup(asked: argparse.Namespace, speed: PodSpeed, callers: int) -> Setup:
    return Setup(
        callers=callers,
        pods=1,
        speed=speed,
        think_seconds=asked.think,
        lengths=asked.text_lengths,
        balancing=asked.balancing,
        scheduling=asked.scheduling,
        attempts=asked.attempts,
        calls=asked.calls,
    )


def _describe(setup: Setup, seeds: range) -> str:
    totals = setup.speed.totals
    return (
        f"pods with {len(totals)} replicas, {totals[0]:.1f}x to {totals[-1]:.1f}x real time, "
        f"first audio {setup.speed.first_audio_seconds * 1000:.0f} ms; texts of {setup.lengths} "
        f"characters, {setup.think_seconds:g} s of thought; {setup.balancing.value}; "
        f"{setup.calls} calls, seeds {seeds[0]} to {seeds[-1]}"
    )


def _answers(setups: Sequence[Setup], limits: Limits, seeds: Sequence[int]) -> Iterator[Answer]:
    for setup in setups:
        answer = pods_needed(setup, limits, seeds)
        _tell(f"{answer.callers} callers: {answer.pods or 'no number of'} pods")
        yield answer


def _summaries(
    setups: Sequence[Setup], pods: Sequence[int], seeds: Sequence[int], *, for_each_pod: bool
) -> Iterator[Summary]:
    for setup in setups:
        for count in pods:
            callers = setup.callers * (count if for_each_pod else 1)
            _tell(f"{callers} callers, {count} pods")
            for seed in seeds:
                yield simulate(replace(setup, callers=callers, pods=count, seed=seed))


def _tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
