"""Rules about the code itself."""

import ast
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from intone_server.errors import IntoneError, InvalidRequest, Overloaded, Reason, Violation
from intone_server.rpc.statuses import CODES, trailers_of

ROOT = Path(__file__).parent.parent
SOURCES = [
    path
    for folder in ("server", "client", "tests", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
]


def test_every_reason_has_one_status_code() -> None:
    assert set(CODES) == set(Reason)
    assert grpc.StatusCode.OK not in CODES.values()
    assert grpc.StatusCode.UNKNOWN not in CODES.values()


def test_details_stay_small_enough_for_trailers() -> None:
    violations = [Violation("field" * 10, "x" * 80) for _ in range(500)]
    trailers = trailers_of(InvalidRequest(Reason.BAD_CONFIG, violations))
    assert sum(len(k) + len(v) for k, v in trailers) < 8192


def test_both_retry_delays_are_one_value_and_never_zero() -> None:
    error = Overloaded(Reason.QUEUE_FULL, "full", retry_after=0.0)
    trailers = dict(trailers_of(error))
    assert trailers["grpc-retry-pushback-ms"] == "1"
    status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
    retry = error_details_pb2.RetryInfo()
    assert any(detail.Unpack(retry) for detail in status.details)
    assert retry.retry_delay.ToMilliseconds() == 1


@pytest.mark.parametrize("delay", [None, 3600.0])
def test_libraries_do_not_repeat_what_fails_again_or_waits_for_an_hour(delay: float | None) -> None:
    trailers = dict(trailers_of(Overloaded(Reason.CLIENT_LIMIT, "full", retry_after=delay)))
    assert trailers["grpc-retry-pushback-ms"] == "-1"


def test_an_error_that_would_come_again_has_no_retry_delay() -> None:
    trailers = dict(trailers_of(IntoneError(Reason.SYNTHESIS_FAILED, "failed")))
    assert "grpc-retry-pushback-ms" not in trailers


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), path


def test_the_front_imports_neither_torch_nor_an_engine() -> None:
    program = (
        "import sys, intone_server.app, intone_server.__main__;"
        "print(sorted({'torch', 'pocket_tts', 'hibari', 'onnxruntime'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_the_client_needs_no_server_package() -> None:
    program = (
        "import sys, intone_client.cli;"
        "print(sorted({'numpy', 'intone_server', 'structlog', 'sentencex'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"
