"""Alerts, dashboard and autoscalers: what they name exists, and a real Prometheus takes them."""

import contextlib
import json
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import prometheus_client
import pytest
import yaml

from intone.v1 import tts_pb2, tts_pb2_grpc
from intone_server.errors import Reason
from kustomized import K8S, documents, of_kind, rendered
from metric_names import labels_of, registry_with_everything, series
from processes import running_server, wait_for

MONITORING = K8S / "monitoring"
RUNBOOK = (K8S.parent / "docs" / "runbook.md").read_text("utf-8")
RULES = [r for g in documents(MONITORING / "alerts.yaml")[0]["groups"] for r in g["rules"]]
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
# What Grafana fills in.
GRAFANA = {"$__rate_interval": "1m", "$instance": ".*"}
# Labels that Prometheus adds to each series.
TARGET_LABELS = {"job", "instance"}
SELECTOR = re.compile(r"\b((?:intone|grpc_server)_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|on|ignoring|group_left)\s*\(([^)]*)\)")


def dashboard_queries() -> list[str]:
    queries = [target["expr"] for panel in PANELS for target in panel["targets"]]
    for name, value in GRAFANA.items():
        queries = [query.replace(name, value) for query in queries]
    return queries


def autoscaler_queries() -> list[str]:
    [scaled] = of_kind(rendered(K8S / "overlays" / "production-shared"), "ScaledObject")
    [autoscaler] = of_kind(rendered(K8S / "overlays" / "production"), "HorizontalPodAutoscaler")
    metrics = [entry["external"]["metric"] for entry in autoscaler["spec"]["metrics"]]
    return [trigger["metadata"]["query"] for trigger in scaled["spec"]["triggers"]] + [
        "sum({}{{{}}})".format(
            metric["name"],
            ", ".join(f'{k}="{v}"' for k, v in metric["selector"]["matchLabels"].items()),
        )
        for metric in metrics
    ]


QUERIES = [rule["expr"] for rule in RULES] + dashboard_queries() + autoscaler_queries()


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_names_metrics_labels_and_values_that_exist(query: str) -> None:
    groupings = {name.strip() for group in GROUPING.findall(query) for name in group.split(",")}
    found: set[str] = set()
    # `up` of a target is Prometheus's own.
    assert SELECTOR.search(query) or query.startswith("up{")
    for name, matchers in SELECTOR.findall(query):
        if name in groupings:  # grpc_method and the like are no metrics
            continue
        assert name in series(), f"no metric {name}"
        labels = labels_of(name)
        found |= set(labels)
        for label, operator, value in MATCHER.findall(matchers):
            assert label in {*labels, *TARGET_LABELS}, f"{name} has no label {label}"
            allowed = labels.get(label)
            if label == "reason" and "decision" in labels:
                allowed = tuple(reason.value for reason in Reason)
            for each in value.split("|") if allowed else []:
                assert each in allowed, f"{name}: {label} is never {each}"
            if operator in ("=~", "!~"):
                re.compile(value)
    assert groupings - {""} <= found | TARGET_LABELS


def test_the_same_work_scales_pods_in_both_autoscalers() -> None:
    def names(queries: list[str]) -> list[str]:
        return sorted(re.findall(r"intone_\w+", " ".join(queries)))

    by_keda, by_hpa = autoscaler_queries()[:2], autoscaler_queries()[2:]
    assert names(by_keda) == names(by_hpa) == ["intone_queue_work_seconds", "intone_streams_open"]


def test_the_dashboard_shows_every_metric() -> None:
    shown = " ".join(dashboard_queries())
    bases = {re.sub(r"_(bucket|sum|count)$", "", name) for name in series()}
    assert {name for name in bases if name not in shown} == set()


def test_panels_have_a_place_a_title_and_an_identity_each() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_each_alert_says_how_bad_it_is_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"] in ({"severity": "critical"}, {"severity": "warning"})
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"
    [section] = re.findall(
        rf"^## {rule['alert']}\n(.*?)(?=^## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL
    )
    for part in ("Means", "First look", "Do"):
        assert f"**{part}**" in section


def test_the_runbook_has_no_section_of_an_alert_that_is_gone() -> None:
    assert set(re.findall(r"^## (Intone\w+)$", RUNBOOK, re.MULTILINE)) == {
        r["alert"] for r in RULES
    }


def test_the_operator_gets_the_same_rules() -> None:
    [plain] = documents(MONITORING / "alerts.yaml")
    [wrapped] = documents(MONITORING / "prometheusrule.yaml")
    assert wrapped["spec"] == plain


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_silent() -> None:
    [cases] = documents(MONITORING / "alerts_test.yaml")
    names = [case["name"].partition(":")[0] for case in cases["tests"]]
    expected = [name for rule in RULES for name in (rule["alert"], f"no {rule['alert']}")]
    assert names == expected
    for case in cases["tests"]:
        checks = case["promql_expr_test"]
        fires = any(check["exp_samples"] for check in checks)
        assert fires is not case["name"].startswith("no ")
        alert = case["name"].partition(":")[0].removeprefix("no ")
        assert all(f'alertname="{alert}"' in check["expr"] for check in checks)


@pytest.mark.system
def test_promtool_finds_the_rules_right_and_each_case_as_it_says() -> None:
    for command in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
        run = subprocess.run(
            ["promtool", *command], cwd=MONITORING, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def metrics_address() -> Iterator[str]:
    """HOST:PORT of an endpoint on which every metric has a value: a server would have to have
    failed in every way."""
    server, thread = prometheus_client.start_http_server(
        0, "127.0.0.1", registry=registry_with_everything()
    )
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def prometheus(metrics_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with scraping(metrics_address, tmp_path_factory.mktemp("prometheus")) as url:
        yield url


@contextlib.contextmanager
def scraping(target: str, folder: Path) -> Iterator[str]:
    """URL of a real Prometheus that has the rules and has scraped the target twice."""
    assert shutil.which("prometheus"), "apt-get install --no-install-recommends prometheus"
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(MONITORING / "alerts.yaml")],
        "scrape_configs": [
            {"job_name": "intone-metrics", "static_configs": [{"targets": [target]}]}
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        url = f"http://{address}"
        wait_for(lambda: scrapes(url) >= 2 or process.poll() is not None, 60)
        assert process.poll() is None, (folder / "log").read_text()
        yield url
    finally:
        process.terminate()
        process.wait(30)


def ask(url: str, path: str, **parameters: str) -> Any:
    """The `data` of an answer of Prometheus's API."""
    query = urllib.parse.urlencode(parameters)
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}?{query}", timeout=10) as response:
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()) from error
    assert answer["status"] == "success", answer
    return answer["data"]


def scrapes(url: str) -> int:
    """How often the endpoint was read; 0 while Prometheus starts."""
    try:
        found = ask(url, "query", query="count_over_time(intone_build_info[5m])")["result"]
    except (OSError, AssertionError):
        return 0
    return int(found[0]["value"][1]) if found else 0


@pytest.mark.system
def test_a_real_prometheus_runs_every_rule_without_an_error(prometheus: str) -> None:
    def rules() -> list[dict[str, Any]]:
        groups = ask(prometheus, "rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    wait_for(lambda: all(rule["health"] != "unknown" for rule in rules()), 60)
    assert {rule["name"]: rule["health"] for rule in rules()} == {
        rule["alert"]: "ok" for rule in RULES
    }


@pytest.mark.system
@pytest.mark.parametrize("query", dashboard_queries() + autoscaler_queries())
def test_a_real_prometheus_answers_every_query_with_a_value(prometheus: str, query: str) -> None:
    assert ask(prometheus, "query", query=query)["result"], query


@pytest.mark.system
def test_the_list_of_pods_comes_from_a_query_that_is_answered(prometheus: str) -> None:
    [pods] = [v for v in DASHBOARD["templating"]["list"] if v["name"] == "instance"]
    assert pods["query"]["query"] == "label_values(intone_build_info, instance)"
    found = ask(prometheus, "label/instance/values", **{"match[]": "intone_build_info"})
    assert len(found) == 1


@pytest.mark.system
def test_a_real_prometheus_scrapes_a_real_server(tmp_path: Path) -> None:
    with running_server("--engine", "fake", "--metrics-listen", "127.0.0.1:0") as server:
        (started,) = [line for line in server.logs() if line["event"] == "starting"]
        with grpc.insecure_channel(server.address) as channel:
            stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
            list(stub.SynthesizeText(tts_pb2.SynthesizeTextRequest(text="One two.")))
        with scraping(started["metrics"], tmp_path) as url:
            known = set(ask(url, "label/__name__/values"))
            assert known >= {name for name in series() if name.startswith(("intone_", "grpc_"))} - {
                # Nothing has happened that these count by a label.
                "intone_worker_restarts_total",
                "intone_wasted_audio_seconds_total",
            }
            [audio] = ask(url, "query", query="intone_audio_seconds_total")["result"]
            assert float(audio["value"][1]) == pytest.approx(2 * 0.08)
            firing = [a for a in ask(url, "alerts")["alerts"] if a["state"] == "firing"]
            assert firing == []
