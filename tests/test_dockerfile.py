"""The Dockerfile makes a small image that runs as a plain user and hears SIGTERM."""

import json
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from image import lock
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from intone_server import flags, settings
from intone_server.__main__ import ENGINES

ROOT = Path(__file__).parent.parent


class Instruction(NamedTuple):
    """One instruction: `RUN`, and what follows on its line and the continued ones."""

    name: str
    value: str


def instructions() -> list[Instruction]:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    parts = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [Instruction(name.upper(), value) for name, value in parts]


def stages() -> list[list[Instruction]]:
    found: list[list[Instruction]] = []
    for instruction in instructions():
        if instruction.name == "FROM":
            found.append([])
        if found:
            found[-1].append(instruction)
    return found


def final(name: str) -> list[str]:
    return [value for found, value in stages()[-1] if found == name]


def environment() -> dict[str, str]:
    pairs = [pair for value in final("ENV") for pair in value.split()]
    return dict(pair.split("=", 1) for pair in pairs)


def position(needle: str) -> int:
    """Place of the one instruction of the build stage that contains `needle`."""
    hits = [i for i, (_, value) in enumerate(stages()[0]) if needle in value]
    assert len(hits) == 1, f"{needle!r} is in {len(hits)} instructions"
    return hits[0]


def test_the_image_has_two_stages_on_one_replaceable_base_with_a_fixed_tag() -> None:
    before = [i for i in instructions() if i.name in {"ARG", "FROM"}]
    name, _, default = before[0].value.partition("=")
    assert (before[0].name, name) == ("ARG", "BASE_IMAGE")
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", default)
    froms = [value for name, value in instructions() if name == "FROM"]
    assert froms == ["${BASE_IMAGE} AS build", "${BASE_IMAGE}"]
    assert "latest" not in " ".join(i.value for i in instructions())


def test_the_final_stage_takes_the_environment_and_nothing_else() -> None:
    assert final("COPY") == ["--from=build /opt/intone /opt/intone"]
    assert not final("ADD")
    assert not [value for value in final("RUN") if re.search(r"\b(pip|apt|apt-get)\b", value)]


def test_the_user_is_a_number_other_than_root_and_the_one_of_the_manifests() -> None:
    [user] = final("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    base = yaml.safe_load((ROOT / "k8s/base/deployment.yaml").read_text("utf-8"))
    context = base["spec"]["template"]["spec"]["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"
    [setup] = final("RUN")
    uid, gid = user.split(":")
    assert f"--uid {uid} --gid {gid}" in setup


def test_sigterm_reaches_the_server_because_no_shell_starts_it() -> None:
    [entrypoint] = final("ENTRYPOINT")
    assert json.loads(entrypoint) == ["intone-server"]
    assert 'intone-server = "intone_server.__main__:main"' in (ROOT / "pyproject.toml").read_text()
    assert not final("CMD")
    assert final("STOPSIGNAL") in ([], ["SIGTERM"])


def test_the_server_listens_on_the_exposed_port_of_every_address() -> None:
    port, *more = final("EXPOSE")[0].split()
    assert more == ["50052", "9464"]  # health and metrics, as the manifests have them
    assert environment()["INTONE_LISTEN"] == f"0.0.0.0:{port}"
    assert settings.Settings().listen.endswith(f":{port}")


def test_the_server_accepts_its_environment() -> None:
    flags.parse_settings([], environment(), sorted(ENGINES))
    assert flags.unknown_variables(environment()) == []


def test_the_cache_is_a_volume_that_the_user_may_write() -> None:
    assert final("VOLUME") == ["/cache"]
    assert Path(environment()["HF_HOME"]).is_relative_to("/cache")
    assert Path(environment()["HOME"]).is_relative_to("/cache")
    names = [i.name for i in stages()[-1]]
    [setup] = final("RUN")
    uid, gid = final("USER")[0].split(":")
    assert f"install --directory --owner={uid} --group={gid} /cache {environment()['HF_HOME']}" in (
        setup
    )
    assert names.index("RUN") < names.index("VOLUME") < names.index("USER")


def commands(program: str) -> list[str]:
    """What the build stage runs that holds these words."""
    runs = [value for name, value in stages()[0] if name == "RUN"]
    return [c for run in runs for c in re.split(r"&&|;", run) if program in c]


def test_every_installation_is_of_listed_files_with_hashes_and_leaves_no_cache() -> None:
    installs = commands("pip install")
    assert len(installs) == 5
    for command in installs:
        assert "--no-deps" in command
        assert "--require-hashes" in command or "--no-index" in command
    assert "--no-build-isolation --no-deps" in commands("pip wheel")[0]
    assert any("PIP_NO_CACHE_DIR=1" in value for name, value in stages()[0] if name == "ENV")


def locked(name: str) -> dict[str, Version]:
    """Versions by package in one of the files of hashes. Every pin has one."""
    text = (ROOT / "image" / f"{name}.txt").read_text("utf-8")
    pins = re.sub(r"#.*\n", "", text).replace("\\\n", " ").splitlines()
    assert pins
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", pin) for pin in pins)
    return {name: Version(version) for name, version in (p.split()[0].split("==") for p in pins)}


@pytest.mark.parametrize("name", lock.FILES)
def test_what_is_listed_is_what_the_project_needs(name: str) -> None:
    found = locked(name) | (locked("torch") if name == "server" else {})
    base = [] if name == "codecs" else lock.PROJECT["dependencies"]
    for wanted in map(Requirement, [*base, *lock.requirements(lock.FILES[name])]):
        version = found[canonicalize_name(wanted.name)]
        assert version in wanted.specifier, f"{wanted}: run `make image-lock`"


def test_torch_is_the_tested_release_without_cuda_from_one_replaceable_index() -> None:
    arguments = dict(v.split("=", 1) for name, v in stages()[0] if name == "ARG")
    assert arguments["TORCH_INDEX_URL"] == "https://download.pytorch.org/whl/cpu"
    install = stages()[0][position('--index-url "${TORCH_INDEX_URL}"')].value
    assert "--extra-index-url" not in install
    tested = re.search(r"^torch==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert tested is not None
    assert str(locked("torch")["torch"]) == f"{tested[1]}+cpu"
    assert not [package for package in locked("server") if package.startswith("nvidia")]


def test_the_build_lists_what_is_in_the_image_and_leaves_no_installer_in_it() -> None:
    last = stages()[0][-1].value
    assert "cyclonedx-py environment" in last
    assert last.endswith("/opt/intone/bin/pip uninstall --yes pip")


def test_a_change_of_the_source_does_not_install_torch_again() -> None:
    torch = position("-r image/torch.txt")
    dependencies = position('-r "image/${ENGINES}.txt"')
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    sources = [position(f"{path} {path}") for path in packages]
    assert torch < dependencies < position("pyproject.toml README.md LICENSE ./") < min(sources)
    last = position("--no-index --no-deps")
    assert max(sources) < last == len(stages()[0]) - 1


def test_the_build_context_is_a_list_of_what_is_needed() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {
        source for name, value in stages()[0] if name == "COPY" for source in value.split()[:-1]
    }
    assert copied == allowed
    assert all((ROOT / path).exists() for path in allowed)
