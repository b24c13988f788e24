"""The Kubernetes manifests are valid, agree with the settings, and run without privileges.

Every layer under `k8s` is rendered here as `kustomize` would, so that Python is enough.
"""

import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import PrometheusRule, ServiceMonitor

from intone_server import flags, settings
from intone_server.__main__ import ENGINES
from intone_server.rpc.server import LIVENESS, READINESS, STARTUP
from kustomized import (
    K8S,
    Object,
    all_containers,
    identifier,
    kustomization,
    layers,
    of_kind,
    pod,
    rendered,
)

ROOT = Path(__file__).parent.parent
# Those with a server; k8s/monitoring has none.
LAYERS = [layer for layer in layers() if layer.name != "monitoring"]
OVERLAYS = K8S / "overlays"
# Files of other tools.
NO_MANIFESTS = {"alerts.yaml", "alerts_test.yaml"}
# Kinds of operators, of which kubernetes-validate has no schema: the models of those that have
# some. No package of PyPI has Gateway API's or Envoy Gateway's.
OPERATOR_KINDS: dict[str, Any] = {
    "ScaledObject": ScaledObject,
    "ServiceMonitor": ServiceMonitor,
    "PrometheusRule": PrometheusRule,
    "GRPCRoute": None,
    "BackendTLSPolicy": None,
    "BackendTrafficPolicy": None,
}
# The first with the `sleep` action switched on, and the newest that the validator knows.
VERSIONS = ["1.30", kubernetes_validate.latest_version()]
OTHER_PORTS = {"health": "INTONE_HEALTH_LISTEN", "metrics": "INTONE_METRICS_LISTEN"}
# Time to stop the workers and exit after the drain.
EXIT_MARGIN_SECONDS = 10
SUFFIXES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def environment(container: Object) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container["env"]}


def size(quantity: str) -> int:
    return int(quantity[:-2]) * SUFFIXES[quantity[-2:]]


@pytest.fixture(params=LAYERS, ids=lambda layer: layer.name)
def objects(request: pytest.FixtureRequest) -> list[Object]:
    return rendered(request.param)


@pytest.fixture
def deployment(objects: list[Object]) -> Object:
    [found] = of_kind(objects, "Deployment")
    return found


@pytest.fixture
def server(deployment: Object) -> Object:
    [container] = pod(deployment)["containers"]
    return dict(container)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("layer", layers(), ids=lambda layer: layer.name)
def test_every_object_matches_the_strict_schema(layer: Path, version: str) -> None:
    for item in rendered(layer):
        if item["kind"] not in OPERATOR_KINDS:
            kubernetes_validate.validate(item, version, strict=True)


@pytest.mark.parametrize("layer", layers(), ids=lambda layer: layer.name)
def test_every_object_of_an_operator_is_what_its_model_takes(layer: Path) -> None:
    for item in rendered(layer):
        model = OPERATOR_KINDS.get(item["kind"])
        if model is not None:
            assert taken(model, item) == item


def test_a_misspelt_field_of_an_operator_is_not_taken() -> None:
    [scaled] = of_kind(rendered(OVERLAYS / "production-shared"), "ScaledObject")
    scaled["spec"]["minReplicaCout"] = 2
    assert taken(ScaledObject, scaled) != scaled


def taken(model: Any, item: Object) -> Any:
    """An object as its model reads it: unknown fields are left out, wrong ones are an error."""
    read = model.model_validate(item)
    return read.model_dump(mode="json", by_alias=True, exclude_unset=True)


def test_the_schemas_refuse_a_misspelt_field_and_an_unknown_kind(deployment: Object) -> None:
    pod(deployment)["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)
    with pytest.raises(kubernetes_validate.SchemaNotFoundError):
        kubernetes_validate.validate({**deployment, "kind": "Deploiment"}, VERSIONS[-1], True)


def test_every_object_is_unique(objects: list[Object]) -> None:
    identities = [identifier(o) for o in objects]
    assert len(identities) == len(set(identities))


def test_every_file_belongs_to_a_layer_and_every_component_to_an_overlay() -> None:
    chosen = set()
    for folder in {path.parent for path in K8S.rglob("kustomization.yaml")}:
        content = kustomization(folder)
        used = {"kustomization.yaml", *content.get("resources", []), *NO_MANIFESTS}
        used |= {entry["path"] for entry in content.get("patches", [])}
        used |= {file for entry in content.get("configMapGenerator", []) for file in entry["files"]}
        assert {path.name for path in folder.iterdir() if path.is_file()} <= used
        chosen |= {(folder / path).resolve() for path in content.get("components", [])}
    assert chosen == set((K8S / "components").iterdir())


def test_the_container_and_the_services_use_the_port_that_the_server_listens_on(
    objects: list[Object], server: Object
) -> None:
    host, _, port = environment(server)["INTONE_LISTEN"].rpartition(":")
    assert host == "0.0.0.0", "loopback is not reachable from outside the pod"
    assert port == settings.Settings().listen.rpartition(":")[2], "documentation names one port"
    ports = {entry["name"]: entry["containerPort"] for entry in server["ports"]}
    values = environment(server)
    assert ports == {"grpc": int(port)} | {
        name: int(values[variable].rpartition(":")[2])
        for name, variable in OTHER_PORTS.items()
        if variable in values
    }
    for service in of_kind(objects, "Service"):
        [entry] = service["spec"]["ports"]
        assert entry["targetPort"] == entry["name"]
        assert entry["port"] == ports[entry["name"]]


def test_each_probe_asks_the_server_for_its_own_health_service(server: Object) -> None:
    values = environment(server)
    listen = values.get("INTONE_HEALTH_LISTEN", values["INTONE_LISTEN"])
    port = int(listen.rpartition(":")[2])
    for name in (STARTUP, READINESS, LIVENESS):
        assert server[f"{name}Probe"]["grpc"] == {"port": port, "service": name}


def test_the_first_start_has_ten_minutes_and_a_dead_server_goes_within_two(server: Object) -> None:
    probes = [server[f"{name}Probe"] for name in (STARTUP, READINESS, LIVENESS)]
    start, ready, live = (p["periodSeconds"] * p["failureThreshold"] for p in probes)
    assert start >= 600
    assert ready <= 15
    assert 30 <= live <= 120


def test_the_grace_period_covers_pre_stop_drain_and_exit(
    deployment: Object, server: Object
) -> None:
    sleep = server["lifecycle"]["preStop"]["sleep"]["seconds"]
    drain = float(environment(server)["INTONE_DRAIN_TIMEOUT_SECONDS"])
    assert drain == settings.Settings().drain_timeout_seconds
    assert pod(deployment)["terminationGracePeriodSeconds"] >= sleep + drain + EXIT_MARGIN_SECONDS


def test_the_server_accepts_its_environment_and_no_service_adds_to_it(
    deployment: Object, server: Object
) -> None:
    # Paths are those inside the pod: files that are mounted there.
    values = {k: v for k, v in environment(server).items() if not v.startswith("/")}
    flags.parse_settings([], values, sorted(ENGINES))
    assert flags.unknown_variables(environment(server)) == []
    assert pod(deployment)["enableServiceLinks"] is False


def test_no_user_is_root_and_no_privilege_is_left(deployment: Object, server: Object) -> None:
    context = pod(deployment)["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == context["runAsGroup"] == context["fsGroup"] == 10001
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod(deployment)["automountServiceAccountToken"] is False
    assert server["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_model_cache_and_tmp_are_on_volumes_of_bounded_size(
    deployment: Object, server: Object
) -> None:
    volumes = {volume["name"]: volume for volume in pod(deployment)["volumes"]}
    mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in server["volumeMounts"]}
    models = mounts.get("/models", mounts["/cache"])
    home = Path(environment(server)["HF_HOME"])
    assert home == Path("/models/huggingface" if "/models" in mounts else "/cache/huggingface")
    assert "emptyDir" in models or models["persistentVolumeClaim"]["readOnly"] is True
    assert size(mounts["/cache"]["emptyDir"]["sizeLimit"]) >= 2**30
    assert size(mounts["/tmp"]["emptyDir"]["sizeLimit"]) >= 2**27


def test_memory_is_reserved_and_the_processor_has_no_quota(server: Object) -> None:
    resources = server["resources"]
    assert set(resources["requests"]) == {"cpu", "memory"}
    assert resources["limits"] == {"memory": resources["requests"]["memory"]}
    assert size(resources["limits"]["memory"]) >= 256 * 2**20


def test_selectors_choose_the_pods_and_one_service_is_headless(
    objects: list[Object], deployment: Object
) -> None:
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    services = of_kind(objects, "Service")
    selectors = [service["spec"]["selector"] for service in services]
    matched = [deployment, *of_kind(objects, "PodDisruptionBudget")]
    selectors += [o["spec"]["selector"]["matchLabels"] for o in matched]
    assert all(selector and selector.items() <= labels.items() for selector in selectors)
    addresses = {s["metadata"]["name"]: s["spec"].get("clusterIP") for s in services}
    # Only for Prometheus.
    assert addresses.pop("intone-metrics", "None") == "None"
    assert addresses == {"intone": None, "intone-headless": "None"}
    assert {o["metadata"]["labels"]["app.kubernetes.io/name"] for o in objects} == {"intone"}


def test_a_rollout_keeps_its_capacity_and_a_node_can_always_be_drained(
    objects: list[Object], deployment: Object
) -> None:
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    [budget] = of_kind(objects, "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1
    assert "minAvailable" not in budget["spec"]
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_the_base_runs_this_version_and_the_overlay_a_local_build_without_download() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    [base] = all_containers(rendered(K8S / "base"))
    assert base["image"] == f"intone:{version}"
    assert environment(base)["INTONE_ENGINE"] == settings.Settings().engine
    overlay = rendered(OVERLAYS / "local")
    [local] = all_containers(overlay)
    assert local["image"] == "intone:local"
    assert local["imagePullPolicy"] == "Never"
    assert environment(local)["INTONE_ENGINE"] == "builtin"
    assert [o["spec"]["replicas"] for o in of_kind(overlay, "Deployment")] == [1]
