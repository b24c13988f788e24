"""Pins everything that goes into the image, with hashes: `make image-lock`.

Writes image/server.txt and image/builtin.txt, one for each choice of ENGINES in the Dockerfile,
codecs.txt on top of either, and tools.txt for what works at build time alone. torch has a file of
its own, written by hand: its build without CUDA is not on PyPI.
"""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = {
    "server": ("server", "builtin", "otel"),
    "builtin": ("builtin", "otel"),
    "codecs": ("codecs",),
}
TOOLS = ["cyclonedx-bom==7.5.0", "hatchling==1.33.0"]


def requirements(extras: tuple[str, ...]) -> Iterator[str]:
    """What these extras of the project need, those that they name among them."""
    for extra in extras:
        for requirement in PROJECT["optional-dependencies"][extra]:
            name, _, inner = requirement.partition("[")
            if name == PROJECT["name"]:
                yield from requirements(tuple(inner.rstrip("]").split(",")))
            else:
                yield requirement


def lock(name: str, wanted: list[str]) -> None:
    """Write image/NAME.txt."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "requirements.in")
        source.write_text("\n".join(wanted))
        command = ["-m", "piptools", "compile", "--quiet", "--generate-hashes", "--strip-extras"]
        # No addresses of indexes: those are the builder's business.
        command += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
        command += ["--no-emit-options", "--unsafe-package", "torch"]
        command += ["--constraint", str(ROOT / "constraints.txt")]
        locked = Path(folder, "locked.txt")
        arguments = ["--output-file", str(locked), str(source)]
        subprocess.run([sys.executable, *command, *arguments], check=True)
        lines = locked.read_text().splitlines()
    pins = [line for line in lines if line.strip() and not line.startswith("#")]
    (ROOT / "image" / f"{name}.txt").write_text("\n".join(pins) + "\n")


if __name__ == "__main__":
    for name, extras in FILES.items():
        base = [] if name == "codecs" else PROJECT["dependencies"]
        lock(name, [*base, *requirements(extras)])
    lock("tools", TOOLS)
