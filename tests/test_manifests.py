"""The Kubernetes manifests are valid, agree with the settings, and run without privileges.

Every layer under `k8s` is rendered here as `kustomize` would, so that Python is enough.
"""

import copy
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from intone_server import flags, settings
from intone_server.__main__ import ENGINES
from intone_server.rpc.server import LIVENESS, READINESS, STARTUP

ROOT = Path(__file__).parent.parent
LAYERS = sorted(path.parent for path in (ROOT / "k8s").rglob("kustomization.yaml"))
# The first with the `sleep` action switched on, and the newest that the validator knows.
VERSIONS = ["1.30", kubernetes_validate.latest_version()]
# Time to stop the workers and exit after the drain.
EXIT_MARGIN_SECONDS = 10
SUFFIXES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}

Object = dict[str, Any]


def documents(path: Path) -> list[Object]:
    return [document for document in yaml.safe_load_all(path.read_text("utf-8")) if document]


def merged(base: Any, patch: Any) -> Any:
    """Strategic merge: maps by key, null deletes, lists of named things by name, the rest whole."""
    if isinstance(base, dict) and isinstance(patch, dict):
        result = {**base, **{key: merged(base.get(key), value) for key, value in patch.items()}}
        return {key: value for key, value in result.items() if value is not None}
    if isinstance(base, list) and isinstance(patch, list) and all("name" in i for i in base):
        by_name = {item["name"]: item for item in base}
        for item in patch:
            by_name[item["name"]] = merged(by_name.get(item["name"]), item)
        return list(by_name.values())
    return copy.deepcopy(patch)


def rendered(layer: Path) -> list[Object]:
    """What `kubectl kustomize LAYER` prints. A feature that is not known here is an error."""
    kustomization = documents(layer / "kustomization.yaml")[0]
    assert kustomization["kind"] == "Kustomization"
    known = {"apiVersion", "kind", "resources", "images", "patches"}
    assert set(kustomization) <= known, "teach rendered() the new field"
    objects: list[Object] = []
    for resource in kustomization["resources"]:
        path = layer / resource
        objects += rendered(path) if path.is_dir() else documents(path)
    for entry in kustomization.get("patches", []):
        assert set(entry) == {"path"}
        for patch in documents(layer / entry["path"]):
            identity = (patch["apiVersion"], patch["kind"], patch["metadata"]["name"])
            matches = [o for o in objects if identifier(o) == identity]
            assert len(matches) == 1, f"patch of {identity} matches {len(matches)} objects"
            objects[objects.index(matches[0])] = merged(matches[0], patch)
    for image in kustomization.get("images", []):
        assert set(image) <= {"name", "newName", "newTag"}
        hits = [c for c in containers(objects) if c["image"].split(":")[0] == image["name"]]
        assert hits, f"no container uses the image {image['name']}"
        for container in hits:
            name, _, tag = container["image"].partition(":")
            container["image"] = f"{image.get('newName', name)}:{image.get('newTag', tag)}"
    return objects


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [item for item in objects if item["kind"] == kind]


def identifier(item: Object) -> tuple[str, str, str]:
    return (item["apiVersion"], item["kind"], item["metadata"]["name"])


def containers(objects: list[Object]) -> list[Object]:
    return [c for o in of_kind(objects, "Deployment") for c in pod(o)["containers"]]


def pod(deployment: Object) -> Object:
    return dict(deployment["spec"]["template"]["spec"])


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
def test_every_object_matches_the_strict_schema(objects: list[Object], version: str) -> None:
    for item in objects:
        kubernetes_validate.validate(item, version, strict=True)


def test_the_schemas_refuse_a_misspelt_field_and_an_unknown_kind(deployment: Object) -> None:
    pod(deployment)["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)
    with pytest.raises(kubernetes_validate.SchemaNotFoundError):
        kubernetes_validate.validate({**deployment, "kind": "Deploiment"}, VERSIONS[-1], True)


def test_every_file_belongs_to_a_layer_and_every_object_is_unique(objects: list[Object]) -> None:
    identities = [identifier(o) for o in objects]
    assert len(identities) == len(set(identities))
    for layer in LAYERS:
        kustomization = documents(layer / "kustomization.yaml")[0]
        used = {"kustomization.yaml", *kustomization["resources"]}
        used |= {entry["path"] for entry in kustomization.get("patches", [])}
        assert {path.name for path in layer.glob("*.yaml")} <= used


def test_the_container_and_the_services_use_the_port_that_the_server_listens_on(
    objects: list[Object], server: Object
) -> None:
    host, _, port = environment(server)["INTONE_LISTEN"].rpartition(":")
    assert host == "0.0.0.0", "loopback is not reachable from outside the pod"
    assert port == settings.Settings().listen.rpartition(":")[2], "documentation names one port"
    assert server["ports"] == [{"name": "grpc", "containerPort": int(port)}]
    for service in of_kind(objects, "Service"):
        [entry] = service["spec"]["ports"]
        assert entry["targetPort"] == "grpc"
        assert entry["port"] == int(port)


def test_each_probe_asks_the_server_for_its_own_health_service(server: Object) -> None:
    port = server["ports"][0]["containerPort"]
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
    flags.parse_settings([], environment(server), sorted(ENGINES))
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
    assert set(mounts) == {"/cache", "/tmp"}
    assert Path(environment(server)["HF_HOME"]).is_relative_to("/cache")
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
    selectors = [s["spec"]["selector"] for s in of_kind(objects, "Service")]
    matched = [deployment, *of_kind(objects, "PodDisruptionBudget")]
    selectors += [o["spec"]["selector"]["matchLabels"] for o in matched]
    assert all(selector and selector.items() <= labels.items() for selector in selectors)
    addresses = {
        s["metadata"]["name"]: s["spec"].get("clusterIP") for s in of_kind(objects, "Service")
    }
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
    [base] = containers(rendered(ROOT / "k8s" / "base"))
    assert base["image"] == f"intone:{version}"
    assert environment(base)["INTONE_ENGINE"] == settings.Settings().engine
    overlay = rendered(ROOT / "k8s" / "overlays" / "local")
    [local] = containers(overlay)
    assert local["image"] == "intone:local"
    assert local["imagePullPolicy"] == "Never"
    assert environment(local)["INTONE_ENGINE"] == "builtin"
    assert [o["spec"]["replicas"] for o in of_kind(overlay, "Deployment")] == [1]
