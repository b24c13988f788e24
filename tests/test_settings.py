"""Settings: flags, variables, and every fault at once."""

from pathlib import Path

import pytest

from intone_server.flags import environment_names, parse_settings, unknown_variables
from intone_server.settings import Settings, SettingsError

ENGINES = ["builtin", "pocket"]


def parse(*flags: str, **environment: str) -> Settings:
    return parse_settings(flags, environment, ENGINES)


def test_the_defaults_are_for_production() -> None:
    settings = parse()
    assert (settings.listen, settings.engine, settings.model) == (
        "127.0.0.1:50051",
        "pocket",
        "english",
    )


def test_every_setting_is_a_variable_and_the_flag_wins() -> None:
    settings = parse("--workers", "3", INTONE_WORKERS="2", INTONE_QUANTIZE="true")
    assert settings.workers == 3
    assert settings.quantize


def test_switches_work_with_and_without_a_value() -> None:
    assert parse("--quantize").quantize
    assert not parse("--quantize=false", INTONE_QUANTIZE="1").quantize


def test_voices_repeat_or_are_separated_by_commas(tmp_path: Path) -> None:
    for name in ("a.wav", "b.wav"):
        (tmp_path / name).touch()
    a, b = f"a={tmp_path / 'a.wav'}", f"b={tmp_path / 'b.wav'}"
    expected = (("a", str(tmp_path / "a.wav")), ("b", str(tmp_path / "b.wav")))
    assert parse("--voice", a, "--voice", b).voice == expected
    assert parse(INTONE_VOICE=f"{a},{b}").voice == expected


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (["--listen", "nowhere"], "--listen=nowhere: must be HOST:PORT or unix:PATH"),
        (["--listen", "host:70000"], "must be HOST:PORT"),
        (["--workers", "0"], "--workers=0: must be from 1 to 64"),
        (["--workers", "two"], "must be a whole number"),
        (["--drain-timeout-seconds", "nan"], "must be from 0"),
        (["--drain-timeout-seconds", "soon"], "must be a number"),
        (["--engine", "espeak"], "must be one of builtin, pocket"),
        (["--log-format", "xml"], "must be one of auto, json, text"),
        (["--voice", "Big=/dev/null"], "must match"),
        (["--voice", "x=/no/such/file"], "/no/such/file is not a readable file"),
        (["--voice", "x"], "must be NAME=FILE"),
        (["--model", "own.yaml"], "--model=own.yaml: no such file"),
        (["--model", "/dev/null/x.yaml"], "no such file"),
    ],
)
def test_a_wrong_setting_says_what_is_right(flags: list[str], fault: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(*flags)
    assert fault in caught.value.faults[0]


def test_all_faults_come_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        parse("--workers", "0", "--engine", "x", INTONE_LOG_FORMAT="y")
    assert len(caught.value.faults) == 3


def test_variables_of_kubernetes_and_of_the_client_are_no_mistakes() -> None:
    environment = {
        "INTONE_PORT": "tcp://10.0.0.1:50051",
        "INTONE_SERVICE_HOST": "10.0.0.1",
        "INTONE_PORT_50051_TCP_ADDR": "10.0.0.1",
        "INTONE_SERVER": "here",
        "INTONE_WORKERS": "1",
        "INTONE_WROKERS": "1",
    }
    assert unknown_variables(environment) == ["INTONE_WROKERS"]
    assert "INTONE_MAX_STREAMS" in environment_names()
