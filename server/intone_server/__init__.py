"""intone: a gRPC text-to-speech service. `docs/architecture.md` is the map of this package."""

from importlib.metadata import version

__version__ = version("intone")
