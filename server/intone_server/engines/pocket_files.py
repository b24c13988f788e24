"""Which files a pocket-tts model needs, and whether they can be had. Runs before torch is
imported, so that a wrong path or a missing network is told in a second."""

import importlib.util
import json
import os
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import structlog

from intone_server.audio.containers import BadRecording
from intone_server.audio.recording import read_recording
from intone_server.engines.base import EngineError

log = structlog.stdlib.get_logger("intone.engine")

# One short request tells whether the hub can be reached.
PROBE_SECONDS = 3.0

# Keys of a model config that name files, as (section, key); a section of "" is the top level.
_FILE_KEYS = (
    ("flow_lm", "weights_path"),
    ("mimi", "weights_path"),
    ("", "weights_path"),
)
# The model's own rate is known once it is loaded; whether a recording can be read does not hang on
# it.
NOMINAL_HERTZ = 24_000
# The head of a voice state names some twenty tensors, about 100 bytes each.
MAX_STATE_HEAD_BYTES = 1_000_000
ADVICE = (
    "Give the server access to the hub once, mount a filled cache and set HF_HOME to it, "
    "or use --engine builtin, which needs no download."
)


def is_config_file(model: str) -> bool:
    """Whether `--model` names a config YAML rather than a language."""
    return model.endswith((".yaml", ".yml"))


def check_files(model: str) -> None:
    """See to it that loading `model` can work. Raises EngineError that says what to do.

    Opens no socket if every file is on this machine. If the hub cannot be reached but the files
    without voice cloning are cached, the rest of the process is put into offline mode.
    """
    config = _read_config(_config_path(model))
    for section, key in _FILE_KEYS:
        values = config.get(section) if section else config
        reference = (values or {}).get(key)
        fallback = config.get("weights_path_without_voice_cloning") if not section else None
        if reference:
            check_reference("--model", reference, fallback)
    check_reference("--model", config["flow_lm"]["lookup_table"]["tokenizer_path"])


def check_voice(name: str, file: Path) -> None:
    """See to it that a voice file is what its name says. Raises EngineError.

    Of a voice state only the head is read; the model has the last word on the rest.
    """
    if is_voice_state(file):
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            head = opened.read(min(length, MAX_STATE_HEAD_BYTES))
        try:
            json.loads(head)
        except ValueError as error:
            raise EngineError(f"--voice {name}: {file} is not a voice state: {error}") from error
        return
    try:
        read_recording(file.read_bytes(), NOMINAL_HERTZ, judge=False)
    except BadRecording as error:
        raise EngineError(
            f"--voice {name}: {file} cannot be read as a recording: {error}"
        ) from error


def is_voice_state(file: Path) -> bool:
    """Whether a voice file is an exported state; anything else is a recording."""
    return file.suffix == ".safetensors"


def _config_path(model: str) -> Path:
    if is_config_file(model):
        path = Path(model)
        if not path.is_file():
            raise EngineError(f"--model: no file {model}")
        return path
    spec = importlib.util.find_spec("pocket_tts")
    if spec is None or not spec.submodule_search_locations:
        raise EngineError(
            "--engine pocket: pocket-tts is not installed; in a clone of intone: "
            "pip install '.[server]' -c constraints.txt, or use --engine builtin"
        )
    configs = Path(spec.submodule_search_locations[0]) / "config"
    languages = sorted(path.stem for path in configs.glob("*.yaml"))
    if model not in languages:
        raise EngineError(
            f"--model: no model {model!r}; there are {', '.join(languages)}, "
            "or a path to a config ending in .yaml"
        )
    return configs / f"{model}.yaml"


def _read_config(path: Path) -> dict[str, Any]:
    import yaml  # a dependency of pocket-tts, absent beside the builtin engine

    try:
        config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        config["flow_lm"]["lookup_table"]["tokenizer_path"]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise EngineError(f"--model: {path} cannot be read: {error}") from error
    except (KeyError, TypeError) as error:
        raise EngineError(
            f"--model: {path} is not a pocket-tts config: "
            "it has no flow_lm.lookup_table.tokenizer_path"
        ) from error
    return config


def check_reference(setting: str, reference: str, fallback: str | None = None) -> None:
    """See to it that a file of the library's notation can be had: hf://, https:// or a path.

    `fallback` is what the library takes if it cannot have `reference`. Raises EngineError, which
    names `setting`, within PROBE_SECONDS; the library itself would retry for 20 s.
    """
    if reference.startswith("hf://"):
        if _is_cached(reference) or _hub_answers():
            return
        if fallback is None or not _is_cached(fallback):
            raise EngineError(
                f"{setting}: {reference} is not in the cache and the hub cannot be reached. "
                f"{ADVICE}"
            )
        _go_offline()
        log.warning("model hub not reachable, using the cached model without voice cloning")
    elif not reference.startswith(("http://", "https://")) and not Path(reference).is_file():
        raise EngineError(f"{setting}: {reference}, which is not a file, is needed")


def _is_cached(reference: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    owner, repository, filename = reference.removeprefix("hf://").split("/", 2)
    filename, _, revision = filename.partition("@")
    found = try_to_load_from_cache(f"{owner}/{repository}", filename, revision=revision or None)
    return isinstance(found, str)


def _hub_answers() -> bool:
    """Whether the hub can be reached; False in offline mode."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    request = urllib.request.Request(constants.ENDPOINT, method="HEAD")  # noqa: S310 - the hub's own setting
    answered: list[bool] = []

    def probe() -> None:
        try:
            with urllib.request.urlopen(request, timeout=PROBE_SECONDS):  # noqa: S310 - as above
                answered.append(True)
        except urllib.error.HTTPError:
            answered.append(True)  # whatever it said
        except OSError:
            pass

    # A thread, because looking up a name has no timeout of its own.
    probing = threading.Thread(target=probe, name="hub-probe", daemon=True)
    probing.start()
    probing.join(PROBE_SECONDS)
    return bool(answered)


def _go_offline() -> None:
    from huggingface_hub import constants

    os.environ["HF_HUB_OFFLINE"] = "1"
    constants.HF_HUB_OFFLINE = True
