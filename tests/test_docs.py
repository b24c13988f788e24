"""The documentation is true: its examples run, its tables match the code."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

import recordings
from intone_server.access.grants import NO_LIMITS
from intone_server.access.tokens import parse_tokens
from intone_server.errors import Reason
from intone_server.rpc.access import SCOPES
from intone_server.rpc.statuses import CODES
from intone_server.settings import Settings
from processes import ServerProcess, running_server

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent
LOAD_TESTING = (ROOT / "docs" / "load-testing.md").read_text()
BLOCKS = re.findall(r"<!-- run -->\n```(\w+)\n(.*?)```", README + LOAD_TESTING, re.DOTALL)
LINES = [line for kind, block in BLOCKS if kind == "bash" for line in block.splitlines()]
PROGRAMS = [block for kind, block in BLOCKS if kind == "python"]
(PODCAST,) = re.findall(r"<!-- file podcast.yaml -->\n```yaml\n(.*?)```", README, re.DOTALL)
(DIALOGUE_LINE,) = re.findall(r"<!-- run dialogue -->\n```bash\n(.*?)\n```", README, re.DOTALL)
(VOICE_LINES,) = re.findall(r"<!-- run voices -->\n```bash\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--engine", "builtin") as server:
        yield server


def run(command: list[str], server: ServerProcess, directory: Path) -> str:
    """Run as a reader would, but with the test's server; returns the standard output."""
    result = subprocess.run(
        [word.replace("localhost:50051", server.address) for word in command],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "INTONE_SERVER": server.address,
        },
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("line", LINES)
def test_each_command_line_runs(line: str, server: ServerProcess, tmp_path: Path) -> None:
    """Where a line pipes through jq, which may not be here, Python takes its place.
    Reported case 93. Load is put on for a second, with a seed that has a call in it."""
    command, _, after = line.partition(" | jq ")
    command = re.sub(r"--duration \d+", "--duration 1 --seed 1", command)
    output = run(["bash", "-euo", "pipefail", "-c", command], server, tmp_path)
    if after:
        (tmp_path / "hello.wav").write_bytes(b64decode(json.loads(output)["audio"]))
    if "hello.wav" in line:
        assert (tmp_path / "hello.wav").read_bytes().startswith(b"RIFF")
    elif made := re.search(r"hello\.\w+", line):
        assert (tmp_path / made[0]).stat().st_size > 5_000
    else:
        assert output.strip()


def test_the_lines_on_voices_run_in_their_order(
    pocket_server: ServerProcess, tmp_path: Path
) -> None:
    (tmp_path / "me.wav").write_bytes(recordings.wav(recordings.speech()))
    outputs = {
        line: run(["bash", "-euo", "pipefail", "-c", line], pocket_server, tmp_path)
        for line in VOICE_LINES.splitlines()
    }
    assert '"mine-again"' in list(outputs.values())[-1]
    # Made, shown, and made again of what was exported: one voice.
    digests = [re.findall(r"\b[0-9a-f]{64}\b", output) for output in outputs.values()]
    assert len({digest for found in digests for digest in found}) == 3  # with anna and bert
    assert (tmp_path / "mine.wav").read_bytes().startswith(b"RIFF")


@pytest.mark.system
@pytest.mark.parametrize("line", [line for line in LINES if "| jq " in line])
def test_the_lines_with_jq_run_as_written(line: str, server: ServerProcess, tmp_path: Path) -> None:
    run(["bash", "-euo", "pipefail", "-c", line], server, tmp_path)
    assert (tmp_path / "hello.wav").read_bytes().startswith(b"RIFF")


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_python_example_runs(program: str, server: ServerProcess, tmp_path: Path) -> None:
    output = run([sys.executable, "-W", "error", "-c", program], server, tmp_path)
    if "streamed.wav" in program:
        assert (tmp_path / "streamed.wav").read_bytes().startswith(b"RIFF")
    else:
        assert output.strip()


def test_the_dialogue_gives_what_is_shown(server: ServerProcess, tmp_path: Path) -> None:
    """The files that the README names, and the timeline that docs/dialogue.md links to."""
    (tmp_path / "podcast.yaml").write_text(PODCAST)
    line = f"{DIALOGUE_LINE} --seed 1"
    run(["bash", "-euo", "pipefail", "-c", line], server, tmp_path)
    for name in re.findall(r"\d{4}-\w+\.wav|dialogue\.wav|timeline\.json", README):
        assert (tmp_path / "podcast" / name).exists(), name
    assert (tmp_path / "podcast.zip").exists()
    made, shown = (
        json.loads((folder / "timeline.json").read_text())
        for folder in (tmp_path / "podcast", ROOT / "docs" / "dialogue")
    )
    for timeline in (made, shown):
        for item in timeline["items"]:
            assert item["end"] > item["start"]
            for key in ("start", "end", "sample_count", "segments"):  # the model's
                del item[key]
        del timeline["duration"]
    assert made == shown


def settings_table() -> str:
    rows = ["| flag | default | |", "| --- | --- | --- |"]
    for item in dataclasses.fields(Settings):
        default = item.default if item.default not in ("", (), False) else ""
        flag = "--" + item.name.replace("_", "-")
        rows.append(f"| `{flag}` | {default} | {item.metadata['help']} |")
    return "\n".join(rows)


def test_the_table_of_settings_is_complete() -> None:
    """Paste what this prints when it fails."""
    assert f"<!-- settings -->\n{settings_table()}\n" in README, settings_table()


def test_the_table_of_errors_is_complete() -> None:
    rows = dict(re.findall(r"^\| ([A-Z_]+) \| ([A-Z_, ]+) \|", README, re.MULTILINE))
    told = {reason: code for code, reasons in rows.items() for reason in reasons.split(", ")}
    assert told == {reason.value: CODES[reason].name for reason in Reason}


def test_the_table_of_scopes_is_complete() -> None:
    page = (ROOT / "docs" / "access.md").read_text()
    rows = re.findall(r"^\| `([a-z:]+)` \| ([A-Za-z, ]+) \|$", page, re.MULTILINE)
    told = {method: scope for scope, methods in rows for method in methods.split(", ")}
    assert told == {method.rpartition("/")[2]: scope.value for method, scope in SCOPES.items()}


def test_a_token_is_made_as_the_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "access.md").read_text()
    (lines,) = re.findall(r"<!-- run token -->\n```bash\n(.*?)```", page, re.DOTALL)
    script = f"{lines}\necho $token"
    output = subprocess.check_output(["bash", "-euo", "pipefail", "-c", script], text=True)
    digest, _, token = output.split()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    first = re.search(r'sha256 = "(\w+)"', example)
    assert first is not None
    tokens = parse_tokens([example.replace(first[1], digest).encode()], NO_LIMITS)
    grant = tokens.find(token)
    assert grant is not None
    assert grant.subject == "web"


def test_links_to_files_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_tests_that_pages_name_exist() -> None:
    """What a page says is proved by a test that is really there."""
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    files = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for name in re.findall(r"\b(test_\w+(?:\.py)?)", page.read_text()):
            known = name in files if name.endswith(".py") else f"def {name}(" in tests
            assert known or f"{name}.py" in files, f"{page.name}: {name}"
