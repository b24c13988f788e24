"""What `intone bench` writes for programs, against the fake engine."""

import json
from pathlib import Path
from typing import Any

import pytest

from client_command import Capture, in_process
from processes import ServerProcess

pytestmark = pytest.mark.timeout(60)


def keys(document: Any) -> Any:
    """The shape of a document: the names in it, and what kind of thing is there."""
    if isinstance(document, dict):
        return {name: keys(value) for name, value in document.items()}
    if isinstance(document, list):
        return [keys(document[0])] if document else []
    return type(document).__name__


PERCENTILES = {"count": "int", "p50": "float", "p95": "float", "p99": "float"}


async def test_the_shape_of_the_json(
    fake_server: ServerProcess, tmp_path: Path, capfdbinary: Capture
) -> None:
    """Programs read it: a change needs a new `format`. The text is slower than speech here."""
    texts = tmp_path / "texts"
    texts.write_text("One two three four. Five six seven eight.\n")
    arguments = ["--rate", "4", "--duration", "1", "--seed", "2", "--text-file", str(texts)]
    pieces = ["--pieces", "--tokens-per-second", "10", "--plot", str(tmp_path / "bench.svg")]
    path = tmp_path / "bench.json"
    server = ["--server", fake_server.address, "--json", str(path)]
    code, table, err = await in_process(capfdbinary, "bench", *server, *arguments, *pieces)
    out, found = table.decode(), json.loads(path.read_text())
    assert code == 0
    assert err == (
        "intone: 4 calls per second for 1 s, own texts at 10 tokens per second, seed 2\n"
    )
    assert keys(found) == {
        "format": "int",
        "began_at": "str",
        "server": {
            "address": "str",
            "server_version": "str",
            "engine": "str",
            "engine_version": "str",
            "model": "str",
            "replicas": "int",
            "open_streams_before": "int",
        },
        "load": {
            "rate": "float",
            "streams": "NoneType",
            "think_seconds": "float",
            "duration_seconds": "float",
            "seed": "int",
            "tokens_per_second": "float",
            "max_calls": "int",
            "concurrency_limit": "int",
            "timeout_seconds": "float",
            "texts": "str",
            "voice": "str",
            "connections": "int",
        },
        "this_machine": {
            "lag_p99_seconds": "float",
            "lag_max_seconds": "float",
            "warnings": [],
        },
        "summary": {
            "calls": {
                "spoken": "int",
                "refused": "int",
                "failed": "int",
                "not_sent": "int",
                "unfinished": "int",
            },
            "problems": [],
            "first_audio": PERCENTILES,
            "answer": PERCENTILES,
            "server_first_audio": PERCENTILES,
            "server_queue_wait": PERCENTILES,
            "audio_seconds": "float",
            "speed": "float",
            "listeners": "int",
            "listeners_without_gap": "int",
            "heard_nothing": "int",
            "gaps": "int",
            "silence_seconds": "float",
            "longest_silence_seconds": "float",
            "text_silence_seconds": "float",
            "deadline_misses": "int",
        },
        "calls": [
            {
                "number": "int",
                "stream": "NoneType",
                "outcome": "str",
                "status": "str",
                "reason": "str",
                "message": "str",
                "retry_delay_seconds": "NoneType",
                "request_id": "str",
                "characters": "int",
                "planned_at": "float",
                "started_at": "float",
                "first_audio_at": "float",
                "last_audio_at": "float",
                "ended_at": "float",
                "first_audio_seconds": "float",
                "answer_seconds": "float",
                "server_first_audio_seconds": "float",
                "server_queue_wait_seconds": "float",
                "audio_seconds": "float",
                "speed": "float",
                "gaps": "int",
                "silence_seconds": "float",
                "longest_silence_seconds": "float",
                "text_silence_seconds": "float",
                "deadline_misses": "int",
                "silences": [{"at": "float", "server_seconds": "float", "text_seconds": "float"}],
            }
        ],
    }
    assert found["format"] == 1
    for call in found["calls"]:
        # Eight words of 80 ms; the second sentence comes a second after the first.
        assert call["audio_seconds"] == pytest.approx(0.64)
        assert call["text_silence_seconds"] > 0
        assert call["answer_seconds"] < call["first_audio_seconds"]
    assert "for want of text" in out
    assert "after its text" in out
    assert (tmp_path / "bench.svg").read_text().startswith("<?xml")
