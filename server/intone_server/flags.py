"""Settings from the command line and the environment."""

import argparse
import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from intone_server import __version__
from intone_server.settings import Settings, SettingsError, contradictions

_PREFIX = "INTONE_"


def environment_names() -> set[str]:
    """The environment variables that are settings."""
    return {_variable(f.name) for f in dataclasses.fields(Settings)}


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Variables that look like settings and are none: probably misspelt.

    Not an error: Kubernetes sets some by itself for a Service named "intone".
    """
    return sorted(
        name
        for name in environment
        if name.startswith(_PREFIX)
        and name not in environment_names() | _OTHER_VARIABLES
        and not _KUBERNETES_VARIABLE.search(name)
    )


# The client's, which may be set in the same shell.
_OTHER_VARIABLES = {"INTONE_SERVER"}
_KUBERNETES_VARIABLE = re.compile(r"_SERVICE_(HOST|PORT)|_PORT($|_\d+_(TCP|UDP))")


def parse_settings(
    arguments: Sequence[str], environment: Mapping[str, str], engines: Sequence[str]
) -> Settings:
    """Settings from the command line and the environment.

    Raises SettingsError with every fault at once; exits for --help and --version.
    """
    flags = vars(_parser().parse_args(arguments))
    values: dict[str, Any] = {}
    faults = []
    for item in dataclasses.fields(Settings):
        text, source = flags[item.name], _flag(item.name)
        if text is None:
            text, source = environment.get(_variable(item.name)), _variable(item.name)
        if text is None:
            continue
        try:
            values[item.name] = item.metadata["parse"](text)
        except ValueError as error:
            faults.append(f"{source}={text}: {error}")
    settings = Settings(**values)
    faults += contradictions(settings, engines)
    if faults:
        raise SettingsError(faults)
    return settings


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="intone-server",
        description="Streaming text-to-speech over gRPC.",
        epilog="Every flag is also an environment variable: --max-streams is INTONE_MAX_STREAMS.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"intone-server {__version__}")
    for item in dataclasses.fields(Settings):
        help_text = item.metadata["help"].replace("%", "%%")
        if item.default not in ("", (), False):
            help_text += f" (default {item.default})"
        if item.name == "voice":
            parser.add_argument("--voice", action=_AppendVoice, metavar="NAME=FILE", help=help_text)
        elif isinstance(item.default, bool):
            parser.add_argument(
                _flag(item.name), nargs="?", const="true", metavar="BOOL", help=help_text
            )
        else:
            metavar = item.name.rsplit("_", 1)[-1].upper()
            parser.add_argument(_flag(item.name), metavar=metavar, help=help_text)
    return parser


class _AppendVoice(argparse.Action):
    """Repeated --voice flags become what the variable holds: a comma-separated list."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, values if before is None else f"{before},{values}")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _variable(name: str) -> str:
    return _PREFIX + name.upper()
