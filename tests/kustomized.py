"""Renders `k8s` as `kustomize` would, so that tests of manifests need Python alone.

Knows what the project's kustomizations use; anything else is an error. A system test compares it
with kubectl.
"""

import copy
from pathlib import Path
from typing import Any

import yaml

K8S = Path(__file__).parent.parent / "k8s"
KNOWN = {
    "apiVersion",
    "kind",
    "namespace",
    "resources",
    "components",
    "configMapGenerator",
    "images",
    "patches",
}
# What identifies an item of a list that patches merge into, in order of preference.
LIST_KEYS = ("mountPath", "topologyKey", "name")
WITHOUT_NAMESPACE = {"PriorityClass"}

Object = dict[str, Any]


def documents(path: Path) -> list[Object]:
    """The objects of a file."""
    return [document for document in yaml.safe_load_all(path.read_text("utf-8")) if document]


def layers() -> list[Path]:
    """The folders that can be applied: those with a Kustomization that is no Component."""
    found = (path.parent for path in K8S.rglob("kustomization.yaml"))
    return sorted(layer for layer in found if kustomization(layer)["kind"] == "Kustomization")


def kustomization(layer: Path) -> Object:
    """The kustomization of a folder."""
    [found] = documents(layer / "kustomization.yaml")
    return found


def rendered(layer: Path) -> list[Object]:
    """What `kubectl kustomize LAYER` prints."""
    return _applied(layer, [])


def identifier(item: Object) -> tuple[str, str, str]:
    """What no two objects share."""
    return (item["apiVersion"], item["kind"], item["metadata"]["name"])


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    """Those of one kind."""
    return [item for item in objects if item["kind"] == kind]


def pod(workload: Object) -> Object:
    """The pod of a Deployment or a Job."""
    return dict(workload["spec"]["template"]["spec"])


def all_containers(objects: list[Object]) -> list[Object]:
    """Every container of every pod, those that run first included."""
    pods = [pod(o) for kind in ("Deployment", "Job") for o in of_kind(objects, kind)]
    return [c for p in pods for c in p.get("initContainers", []) + p["containers"]]


def _applied(layer: Path, objects: list[Object]) -> list[Object]:
    """`objects` with what a kustomization adds to them and does with them."""
    content = kustomization(layer)
    assert set(content) <= KNOWN, "teach kustomized.py the new field"
    objects = list(objects)
    for resource in content.get("resources", []):
        path = layer / resource
        objects += rendered(path) if path.is_dir() else documents(path)
    objects += [_config_map(layer, entry) for entry in content.get("configMapGenerator", [])]
    for component in content.get("components", []):
        objects = _applied((layer / component).resolve(), objects)
    for entry in content.get("patches", []):
        assert set(entry) == {"path"}
        for patch in documents(layer / entry["path"]):
            matches = [o for o in objects if identifier(o) == identifier(patch)]
            assert len(matches) == 1, f"patch of {identifier(patch)} matches {len(matches)} objects"
            objects[objects.index(matches[0])] = _merged(matches[0], patch)
    for item in objects if "namespace" in content else []:
        if item["kind"] not in WITHOUT_NAMESPACE:
            item["metadata"]["namespace"] = content["namespace"]
    for image in content.get("images", []):
        _set_image(image, objects)
    return objects


def _config_map(layer: Path, entry: Object) -> Object:
    assert set(entry) == {"name", "files", "options"}
    assert entry["options"]["disableNameSuffixHash"] is True
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": entry["name"], "labels": entry["options"]["labels"]},
        "data": {name: (layer / name).read_text("utf-8") for name in entry["files"]},
    }


def _merged(base: Any, patch: Any) -> Any:
    """Strategic merge: maps by key, null deletes, lists of named things by name, the rest whole."""
    if isinstance(base, dict) and isinstance(patch, dict):
        result = {**base, **{key: _merged(base.get(key), value) for key, value in patch.items()}}
        return {key: value for key, value in result.items() if value is not None}
    if isinstance(base, list) and isinstance(patch, list):
        for key in LIST_KEYS:
            if all(isinstance(item, dict) and key in item for item in base + patch):
                by_key = {item[key]: item for item in base}
                for item in patch:
                    by_key[item[key]] = _merged(by_key.get(item[key]), item)
                return list(by_key.values())
    return copy.deepcopy(patch)


def _set_image(image: Object, objects: list[Object]) -> None:
    assert set(image) <= {"name", "newName", "newTag"}
    hits = [c for c in all_containers(objects) if c["image"].split(":")[0] == image["name"]]
    assert hits, f"no container uses the image {image['name']}"
    for container in hits:
        name, _, tag = container["image"].partition(":")
        container["image"] = f"{image.get('newName', name)}:{image.get('newTag', tag)}"
