"""From the name of an engine to an engine with its weights loaded, or the reason why not."""

import importlib
import json
import sys
import traceback
from dataclasses import asdict, dataclass

from intone_server.engines.base import Engine, EngineError, EngineOptions
from intone_server.logs import configure_logging

# Tell the fork server's preload what to load, and for whom: the environment is all that reaches it.
PRELOAD_VARIABLE = "INTONE_PRELOAD_SPEC"
FRONT_PID_VARIABLE = "INTONE_PRELOAD_FRONT_PID"


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What a worker runs: `engine` is "package.module:Class", called without arguments. It is to
    have so many `replicas`; 0 leaves it to the engine. `debug_signal`: SIGUSR2 has it write where
    its threads are."""

    engine: str
    options: EngineOptions
    log_format: str
    replicas: int = 0
    debug_signal: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "WorkerSpec":
        values = json.loads(text)
        options = values["options"]
        voices = tuple((name, path) for name, path in options["voices"])
        return cls(**(values | {"options": EngineOptions(**(options | {"voices": voices}))}))


class Loading:
    """An attempt to load an engine: afterwards `engine`, or `error` and whether it is expected.

    An expected error is one that the operator can mend; any other carries its traceback.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec = spec
        self.engine: Engine | None = None
        self.error = ""
        self.expected = False

    def run(self) -> None:
        """Load. Never raises."""
        configure_logging(self.spec.log_format)
        try:
            module, _, name = self.spec.engine.partition(":")
            engine: Engine = getattr(importlib.import_module(module), name)()
            engine.load(self.spec.options)
            self.engine = engine
        except EngineError as error:
            self.error, self.expected = str(error), True
        except Exception:  # noqa: BLE001 - whatever a model library raises, the front must hear it
            self.error = traceback.format_exc()


def loaded_engine(spec: WorkerSpec) -> Engine:
    """The engine that the fork server has loaded, or else one loaded here.

    Raises EngineError if the operator can mend what is wrong, otherwise RuntimeError.
    """
    preload = sys.modules.get("intone_server.workers.preload")
    loading: Loading | None = getattr(preload, "loading", None)
    if loading is None:
        loading = Loading(spec)
        loading.run()
    if loading.engine is None:
        raise EngineError(loading.error) if loading.expected else RuntimeError(loading.error)
    return loading.engine
