"""The production overlays: what is open, what is mounted, who scales, and nothing that is vague."""

import ast
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from intone_server.settings import Settings
from kustomized import K8S, Object, all_containers, layers, of_kind, pod, rendered

OVERLAYS = [K8S / "overlays" / name for name in ("production", "production-shared")]
DOCUMENTATION = (K8S.parent / "docs" / "kubernetes.md").read_text("utf-8")
HARDENED = {
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@pytest.fixture(params=OVERLAYS, ids=lambda layer: layer.name)
def objects(request: pytest.FixtureRequest) -> list[Object]:
    return rendered(request.param)


@pytest.fixture
def deployment(objects: list[Object]) -> Object:
    [found] = of_kind(objects, "Deployment")
    return found


def policies(objects: list[Object], component: str) -> list[Object]:
    """The network policies of the pods of a component."""
    return [
        o["spec"]
        for o in of_kind(objects, "NetworkPolicy")
        if o["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == component
    ]


def open_ports(rules: list[Object]) -> set[Any]:
    return {port["port"] for rule in rules for port in rule["ports"]}


def volumes_by_path(container: Object, deployment: Object) -> dict[str, Object]:
    volumes = {volume["name"]: volume for volume in pod(deployment)["volumes"]}
    return {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}


def test_every_container_is_hardened_and_from_the_same_image(objects: list[Object]) -> None:
    containers = all_containers(objects)
    assert len(containers) == 2
    assert all(container["securityContext"] == HARDENED for container in containers)
    assert len({container["image"] for container in containers}) == 1
    for kind in ("Deployment", "Job"):
        for workload in of_kind(objects, kind):
            context = pod(workload)["securityContext"]
            assert context["runAsNonRoot"] is True
            assert context["runAsUser"] == 10001
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}


def test_callers_and_monitoring_reach_one_port_each_and_anyone_health_alone(
    objects: list[Object],
) -> None:
    ingress = [rule for policy in policies(objects, "server") for rule in policy.get("ingress", [])]
    opened = {
        port["port"]: [peer["namespaceSelector"]["matchLabels"] for peer in rule.get("from", [])]
        for rule in ingress
        for port in rule["ports"]
    }
    assert opened == {
        "grpc": [{"intone.dev/caller": "true"}],
        "metrics": [{"intone.dev/monitoring": "true"}],
        "health": [],
    }


def test_only_what_downloads_may_leave_the_cluster() -> None:
    """A policy knows no containers: with an init container that downloads, the server may too."""
    for layer, component in zip(OVERLAYS, ("server", "models"), strict=True):
        rules = {
            name: [rule for policy in policies(rendered(layer), name) for rule in policy["egress"]]
            for name in ("server", "models")
        }
        assert {name for name, found in rules.items() if 443 in open_ports(found)} == {component}
        assert open_ports(rules["server"]) <= {53, 443}
        for found in rules.values():
            for rule in found:
                assert rule["to"], "an empty list would allow everything"


def test_the_server_reads_its_secrets_and_keeps_its_voices_where_they_are_mounted(
    deployment: Object,
) -> None:
    [server] = pod(deployment)["containers"]
    settings = {entry["name"]: entry["value"] for entry in server["env"]}
    mounts = volumes_by_path(server, deployment)
    for name in ("TLS_CERTIFICATE", "TLS_KEY", "TOKENS"):
        volume = mounts[str(Path(settings[f"INTONE_{name}"]).parent)]
        # Readable by the pod's group (fsGroup) and nobody else; 0440 as YAML 1.1 reads it.
        assert volume["secret"]["defaultMode"] == 0o440
    assert mounts[settings["INTONE_VOICE_DIR"]]["persistentVolumeClaim"]
    assert not any("subPath" in mount for mount in server["volumeMounts"])


def test_all_pods_can_write_the_voices(objects: list[Object]) -> None:
    claims = {c["metadata"]["name"]: c["spec"] for c in of_kind(objects, "PersistentVolumeClaim")}
    assert claims["intone-voices"]["accessModes"] == ["ReadWriteMany"]


def test_the_model_is_there_before_the_server_starts_and_it_asks_nobody(
    objects: list[Object], deployment: Object
) -> None:
    [server] = pod(deployment)["containers"]
    settings = {entry["name"]: entry["value"] for entry in server["env"]}
    assert settings["HF_HUB_OFFLINE"] == "1"
    [filling] = [c for c in all_containers(objects) if c["name"] == "fill-cache"]
    assert filling["command"] == ["python", "/scripts/fill_cache.py"]
    assert filling["args"] == [settings.get("INTONE_MODEL", Settings().model)]
    homes = {e["name"]: e.get("value") for e in filling["env"]}
    assert homes["HF_HOME"] == settings["HF_HOME"]


def test_the_script_that_fills_the_cache_fetches_the_model_and_every_voice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With what the library itself does on a download recorded instead."""
    import pocket_tts
    from pocket_tts.utils import utils

    asked: list[str] = []
    monkeypatch.setattr(utils, "download_if_necessary", asked.append)
    monkeypatch.setattr(
        pocket_tts.TTSModel, "load_model", lambda language: asked.append(f"model {language}")
    )
    source = (K8S / "components" / "fill-cache-script" / "fill_cache.py").read_text("utf-8")
    script: dict[str, Any] = {"__name__": "fill_cache"}
    exec(compile(ast.parse(source), "fill_cache.py", "exec"), script)
    script["fill"]("english")
    assert asked[0] == "model english"
    names = [re.findall(r"embeddings/(\w+)[.]safetensors", reference) for reference in asked[1:]]
    assert [name for [name] in names] == sorted(utils._ORIGINS_OF_PREDEFINED_VOICES)


def test_the_autoscaler_alone_says_how_many_pods_there_are(
    objects: list[Object], deployment: Object
) -> None:
    assert "replicas" not in deployment["spec"]
    [scaler] = of_kind(objects, "HorizontalPodAutoscaler") + of_kind(objects, "ScaledObject")
    reference = scaler["spec"]["scaleTargetRef"]
    assert (reference["kind"], reference["name"]) == ("Deployment", "intone")
    least = scaler["spec"].get("minReplicas") or scaler["spec"]["minReplicaCount"]
    assert least >= 2


def test_pods_are_spread_over_zones_and_nodes_and_have_a_priority(
    objects: list[Object], deployment: Object
) -> None:
    spread = pod(deployment)["topologySpreadConstraints"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert [c["topologyKey"] for c in spread] == [
        "topology.kubernetes.io/zone",
        "kubernetes.io/hostname",
    ]
    assert all(c["labelSelector"]["matchLabels"].items() <= labels.items() for c in spread)
    [priority] = of_kind(objects, "PriorityClass")
    assert pod(deployment)["priorityClassName"] == priority["metadata"]["name"]
    assert priority["globalDefault"] is False
    assert 0 < priority["value"] < 1_000_000_000


def test_the_gateway_ends_no_stream_and_leads_to_the_service(objects: list[Object]) -> None:
    [route] = of_kind(objects, "GRPCRoute")
    [rule] = route["spec"]["rules"]
    [backend] = rule["backendRefs"]
    services = {s["metadata"]["name"]: s for s in of_kind(objects, "Service")}
    assert backend["port"] == services[backend["name"]]["spec"]["ports"][0]["port"]
    [policy] = of_kind(objects, "BackendTrafficPolicy")
    assert policy["spec"]["timeout"]["http"] == {
        "requestTimeout": "0s",
        "maxStreamDuration": "0s",
        "streamIdleTimeout": "0s",
    }
    assert policy["spec"]["targetRefs"][0]["name"] == route["metadata"]["name"]
    [tls] = of_kind(objects, "BackendTLSPolicy")
    assert tls["spec"]["targetRefs"][0]["name"] == backend["name"]


def test_prometheus_finds_the_metrics_of_pods_that_are_not_ready(objects: list[Object]) -> None:
    [monitor] = of_kind(objects, "ServiceMonitor")
    services = {s["metadata"]["name"]: s for s in of_kind(objects, "Service")}
    service = services["intone-metrics"]
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    assert service["spec"]["publishNotReadyAddresses"] is True
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]


def test_each_finding_of_the_scanner_that_is_accepted_says_why(objects: list[Object]) -> None:
    skips = [
        value
        for item in objects
        for key, value in item["metadata"].get("annotations", {}).items()
        if key.startswith("checkov.io/skip")
    ]
    assert skips
    for skip in skips:
        number, _, reason = skip.partition("=")
        assert re.fullmatch(r"CKV2?_K8S_\d+", number)
        assert len(reason) > 20


def test_the_documentation_says_what_each_object_is_for(objects: list[Object]) -> None:
    for item in objects:
        name = item["metadata"]["name"]
        assert re.search(rf"^\| {item['kind']}[^|]*`{name}`", DOCUMENTATION, re.MULTILINE), (
            f"docs/kubernetes.md has no row for {item['kind']} `{name}`"
        )


@pytest.mark.system
@pytest.mark.parametrize("layer", layers(), ids=lambda layer: layer.name)
def test_kubectl_renders_what_these_tests_render(layer: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl")
    run = subprocess.run(
        ["kubectl", "kustomize", layer], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert in_order(list(yaml.safe_load_all(run.stdout))) == in_order(rendered(layer))


def in_order(value: Any) -> Any:
    """With every list sorted: the order in which patches add to a list means nothing here."""
    if isinstance(value, dict):
        return {key: in_order(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(
            (in_order(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True)
        )
    return value
