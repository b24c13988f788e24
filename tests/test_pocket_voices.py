"""Voices of the real pocket-tts, tiny: made, read, checked, and kept in memory."""

import json
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pocket_tts import TTSModel
from pocket_tts.models.model_state import export_model_state
from safetensors.torch import load, load_file, save, save_file

from intone_server.engines import pocket_making, pocket_voices
from intone_server.engines.base import (
    BadState,
    CloningUnavailable,
    Ending,
    EngineError,
    EngineOptions,
    Job,
    Sampling,
    VoiceRef,
    VoiceState,
)
from intone_server.engines.pocket import PocketEngine
from intone_server.engines.pocket_cache import ByteCache
from intone_server.engines.pocket_state import FINGERPRINT_KEY, MODEL_KEY
from intone_server.voices.making import VoiceMaker
from intone_server.workers.loading import WorkerSpec
from test_voice_making import recording, running_launcher
from tiny_pocket import TinyPocket, make_config

TEXT = "Hello there."
# Every frame passes this threshold, so speech has its shortest length: six frames.
SHORT = Sampling(eos_threshold=-100.0)
LAYER = "transformer.layers.0.self_attn"
PROMPT = np.random.default_rng(5).normal(0, 0.1, 24000).astype(np.float32)


def options(tiny: TinyPocket, **changes: Any) -> EngineOptions:
    voices = tuple((name, str(path)) for name, path in tiny.voices.items())
    return EngineOptions(
        **{"model": str(tiny.config), "voices": voices, "default_voice": "anna", **changes}
    )


def attached(chosen: EngineOptions) -> PocketEngine:
    engine = PocketEngine()
    engine.load(chosen)
    engine.attach(1)
    return engine


@pytest.fixture(scope="module")
def engine(tiny_pocket: TinyPocket) -> PocketEngine:
    return attached(options(tiny_pocket))


@pytest.fixture(scope="module")
def model(tiny_pocket: TinyPocket) -> TTSModel:
    """The same model through the library alone, with speech of the same length."""
    model = tiny_pocket.load()
    model.eos_threshold = SHORT.eos_threshold
    return model


@pytest.fixture(scope="module")
def made(engine: PocketEngine) -> VoiceState:
    return engine.make_state(PROMPT)


def speak(engine: PocketEngine, voice: VoiceRef) -> tuple[np.ndarray, Ending, str]:
    """The samples of TEXT, how it ended, and the error."""
    engine.start(Job(1, TEXT, voice, SHORT, seed=0))
    samples = []
    while True:
        for output in engine.step():
            if output.samples is not None:
                samples.append(output.samples)
            if output.ending is not None:
                return np.concatenate([[], *samples]), output.ending, output.error


def stored(state: VoiceState, directory: Path) -> VoiceRef:
    file = directory / "voice.safetensors"
    file.write_bytes(state.data)
    return VoiceRef(state.digest, str(file))


# Making and exchanging voices.


def test_a_voice_of_a_recording_speaks_as_through_the_library(
    engine: PocketEngine,
    made: VoiceState,
    model: TTSModel,
    tmp_path: Path,
) -> None:
    state = model.get_state_for_audio_prompt(torch.from_numpy(PROMPT)[None])
    ours, _, _ = speak(engine, stored(made, tmp_path))
    assert np.allclose(ours, model.generate_audio(state, TEXT).numpy(), rtol=0, atol=1e-6)
    assert not np.array_equal(ours, speak(engine, VoiceRef("anna"))[0])


def test_an_exported_voice_is_read_by_the_library(
    made: VoiceState, model: TTSModel, tmp_path: Path
) -> None:
    voice = stored(made, tmp_path)
    theirs = model.get_state_for_audio_prompt(torch.from_numpy(PROMPT)[None])
    ours = model.get_state_for_audio_prompt(Path(voice.file))
    assert theirs.keys() == ours.keys()
    for module, tensors in theirs.items():
        assert tensors.keys() == ours[module].keys()
        for key, tensor in tensors.items():
            assert torch.equal(tensor, ours[module][key])


def test_a_voice_that_the_library_exported_has_the_digest_of_ours(
    engine: PocketEngine, made: VoiceState, model: TTSModel, tmp_path: Path
) -> None:
    state = model.get_state_for_audio_prompt(torch.from_numpy(PROMPT)[None])
    export_model_state(state, tmp_path / "theirs.safetensors")
    theirs = engine.check_state((tmp_path / "theirs.safetensors").read_bytes())
    assert theirs.digest == made.digest
    assert load(theirs.data).keys() == load(made.data).keys()


def test_export_and_import_keep_the_digest(engine: PocketEngine, made: VoiceState) -> None:
    assert engine.check_state(made.data).digest == made.digest


def test_a_voice_file_of_an_older_library_is_the_same_voice(
    engine: PocketEngine, made: VoiceState
) -> None:
    """It tells the number of positions by the length of a tensor, and knows no padding."""
    tensors = load(made.data)
    for name in list(tensors):
        if name.endswith("/offset"):
            length = int(tensors.pop(name)[0])
            tensors[name.replace("offset", "current_end")] = torch.zeros(length)
        if name.endswith("/pad"):
            del tensors[name]
    assert engine.check_state(save(tensors)).digest == made.digest


def test_positions_that_are_not_used_are_left_out(engine: PocketEngine, made: VoiceState) -> None:
    tensors = load(made.data)
    for name, tensor in tensors.items():
        if name.endswith("/cache"):
            tensors[name] = torch.nn.functional.pad(tensor, (0, 0, 0, 0, 0, 9), value=torch.nan)
    assert engine.check_state(save(tensors)).digest == made.digest


def test_the_longest_recording_makes_a_voice_that_can_be_imported(engine: PocketEngine) -> None:
    prompt = np.random.default_rng(5).normal(0, 0.1, 40 * 24000).astype(np.float32)
    state = pocket_making.encode(engine._model, prompt)
    assert 375 <= state[LAYER]["cache"].shape[2] <= pocket_making.MAX_POSITIONS
    assert engine.check_state(engine._format.pack(state).data)


def test_a_new_voice_that_never_ends_is_told(made: VoiceState) -> None:
    """This model never ends."""
    assert len(made.warnings) == 1
    assert "did not end" in made.warnings[0]


@pytest.mark.parametrize(("shortest", "said"), [(0.8, ["too short"]), (0.2, [])])
def test_a_new_voice_that_says_next_to_nothing_is_told(
    engine: PocketEngine,
    made: VoiceState,
    monkeypatch: pytest.MonkeyPatch,
    shortest: float,
    said: list[str],
) -> None:
    """Reported case 84."""
    monkeypatch.setattr(engine._model, "eos_threshold", -100.0)
    monkeypatch.setattr(pocket_making, "SHORTEST_TEST_SECONDS", shortest)
    warnings = pocket_making.try_out(engine._model, engine._format.read(made.data))
    assert [warning for warning in warnings if "too short" in warning] == list(warnings)
    assert len(warnings) == len(said)


def test_a_model_that_cannot_clone_takes_states_alone(
    engine: PocketEngine, made: VoiceState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine._model, "has_voice_cloning", False)
    assert "voice_cloning" not in engine._features()
    assert "voice_import" in engine._features()
    with pytest.raises(CloningUnavailable):
        engine.make_state(PROMPT)
    assert engine.check_state(made.data).digest == made.digest


async def test_int8_makes_voices_in_a_process_of_its_own(
    tiny_pocket: TinyPocket, engine: PocketEngine
) -> None:
    """Reported case 91."""
    chosen = options(tiny_pocket, quantize=True)
    spec = WorkerSpec("intone_server.engines.pocket:PocketEngine", chosen, "json")
    with running_launcher(spec) as launcher:
        maker = VoiceMaker(launcher.launch_maker, 24000)
        made = await maker.make(prompt=recording(1.5))
        again = await maker.make(state=made.state.data)
    assert again.state.digest == made.state.digest
    assert made.report is not None
    assert engine.check_state(made.state.data).digest == made.state.digest


# What is no voice of this model.


def changed(made: VoiceState, **changes: torch.Tensor) -> bytes:
    """The state with some tensors of one layer replaced."""
    return save({**load(made.data), **{f"{LAYER}/{key}": t for key, t in changes.items()}})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cache": torch.zeros(2, 1, 15, 4, 8)}, "has shape [2, 1, 15, 4, 8]"),
        ({"cache": torch.zeros(2, 1, 15, 4, 8)}, "needs [2, 1, N, 4, 16]"),
        ({"cache": torch.zeros(2, 15, 4, 16)}, "has shape"),
        ({"cache": torch.zeros(2, 1, 15, 4, 16).half()}, "torch.float16"),
        ({"cache": torch.zeros(2, 1, 3, 4, 16)}, "its cache has 3 positions"),
        ({"cache": torch.full((2, 1, 15, 4, 16), torch.inf)}, "values up to inf"),
        ({"cache": torch.full((2, 1, 15, 4, 16), torch.nan)}, "values up to nan"),
        ({"cache": torch.full((2, 1, 15, 4, 16), 3e38)}, "values up to 3e"),
        ({"offset": torch.zeros(1)}, "torch.float32"),
        ({"offset": torch.zeros(2, dtype=torch.long)}, "has shape [2]"),
        ({"offset": torch.tensor([9])}, "disagree"),
        ({"pad": torch.tensor([1])}, "pad is 1"),
        ({"more": torch.zeros(1)}, f"no {LAYER}/more"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_with_the_reason(
    engine: PocketEngine, made: VoiceState, changes: dict[str, torch.Tensor], said: str
) -> None:
    with pytest.raises(BadState) as caught:
        engine.check_state(changed(made, **changes))
    assert said in str(caught.value)


@pytest.mark.parametrize("offset", [-1, 0, 401, 2**62])
def test_a_number_of_positions_that_cannot_be_is_refused(
    engine: PocketEngine, made: VoiceState, offset: int
) -> None:
    tensors = load(made.data)
    offsets = {name: torch.tensor([offset]) for name in tensors if name.endswith("/offset")}
    with pytest.raises(BadState):
        engine.check_state(save({**tensors, **offsets}))


def test_missing_tensors_are_named_and_counted(engine: PocketEngine, made: VoiceState) -> None:
    tensors = {f"other.{name}": tensor for name, tensor in load(made.data).items()}
    with pytest.raises(BadState) as caught:
        engine.check_state(save(tensors))
    assert f"it has no {LAYER}/cache" in str(caught.value)
    assert "and 3 more, and this model has no other." in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "head of 0 bytes"),
        (b"RIFF0000WAVEfmt ", "1,000,000 are allowed"),
        ((2**40).to_bytes(8, "little") + b"{}", "1,099,511,627,776 bytes"),
        ((2).to_bytes(8, "little") + b"{}", "it has no"),
        ((2).to_bytes(8, "little") + b"[]", "not a voice state"),
        ((900).to_bytes(8, "little") + b"{" * 900, "not a voice state"),
    ],
)
def test_what_is_no_safetensors_file_is_refused(
    engine: PocketEngine, data: bytes, said: str
) -> None:
    with pytest.raises(BadState) as caught:
        engine.check_state(data)
    assert said in str(caught.value)


@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_no_bytes_do_more_than_be_refused(
    engine: PocketEngine, made: VoiceState, data: st.DataObject
) -> None:
    upload = bytearray(made.data)
    head = 8 + int.from_bytes(upload[:8], "little")
    for at, value in data.draw(
        st.lists(st.tuples(st.integers(0, head), st.integers(0, 255)), max_size=8)
    ):
        upload[at] = value
    cut = data.draw(st.integers(0, len(upload)) | st.just(len(upload)))
    try:
        state = engine.check_state(bytes(upload[:cut]))
    except BadState:
        return
    assert engine.check_state(state.data).digest == state.digest


@given(data=st.binary(max_size=64))
@settings(max_examples=50, deadline=None)
def test_random_bytes_are_refused(engine: PocketEngine, data: bytes) -> None:
    with pytest.raises(BadState):
        engine.check_state(data)


# Models.


@dataclass(frozen=True)
class Other:
    """Another training of the same architecture, with another name."""

    config: Path


@pytest.fixture(scope="module")
def other(tiny_pocket: TinyPocket, tmp_path_factory: pytest.TempPathFactory) -> Other:
    directory = tmp_path_factory.mktemp("other")
    weights = directory / "other.safetensors"
    tensors = load_file(tiny_pocket.config.parent / "tiny.safetensors")
    tensors["flow_lm.bos_emb"] = tensors["flow_lm.bos_emb"] + 1
    save_file(tensors, weights)
    config = make_config(directory, weights_path=str(weights))
    return Other(config.rename(directory / "other.yaml"))


def test_a_voice_of_another_training_is_refused_by_name(
    tiny_pocket: TinyPocket, other: Other, made: VoiceState
) -> None:
    engine = PocketEngine()
    engine.load(options(tiny_pocket, model=str(other.config), voices=()))
    with pytest.raises(BadState) as caught:
        engine.check_state(made.data)
    assert str(caught.value) == (
        "this voice state was made with the model 'tiny'; this server runs 'other'"
    )
    assert engine.check_state(save(load(made.data))).digest == made.digest


def test_other_weights_under_the_same_name_are_told(engine: PocketEngine, made: VoiceState) -> None:
    head = {FINGERPRINT_KEY: "0" * 64, MODEL_KEY: "tiny"}
    with pytest.raises(BadState, match="other weights of the model 'tiny'"):
        engine.check_state(save(load(made.data), head))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_int8_has_the_fingerprint_of_float32(tiny_pocket: TinyPocket, engine: PocketEngine) -> None:
    int8 = PocketEngine()
    int8.load(options(tiny_pocket, quantize=True))
    assert int8._format.fingerprint == engine._format.fingerprint


def test_a_made_voice_tells_its_model(engine: PocketEngine, made: VoiceState) -> None:
    head = json.loads(made.data[8 : 8 + int.from_bytes(made.data[:8], "little")])
    assert head["__metadata__"] == {
        FINGERPRINT_KEY: engine._format.fingerprint,
        MODEL_KEY: "tiny",
    }


# Voices in a worker.


@pytest.mark.parametrize(
    "key", ["/etc/passwd", "file:///etc/passwd", "https://localhost/a.wav", "hf://a/b/c", "a\0b"]
)
def test_a_name_is_never_opened_as_a_path_or_an_address(
    engine: PocketEngine, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Reported case 97."""

    def opened(*_: object) -> None:
        pytest.fail("it was opened")

    monkeypatch.setattr(pocket_voices, "download_if_necessary", opened)
    monkeypatch.setattr(Path, "read_bytes", opened)
    with pytest.raises(EngineError, match="there is no voice"):
        engine.load_voice(VoiceRef(key))
    _, ending, error = speak(engine, VoiceRef(key))
    assert ending is Ending.FAILED
    assert "there is no voice" in error


def test_a_loaded_voice_tells_where_its_state_is(
    engine: PocketEngine, tiny_pocket: TinyPocket, made: VoiceState, tmp_path: Path
) -> None:
    assert engine.load_voice(VoiceRef("anna")).file == str(tiny_pocket.voices["anna"])
    voice = stored(made, tmp_path)
    loaded = engine.load_voice(voice)
    assert (loaded.file, loaded.digest, loaded.loaded) == (voice.file, made.digest, True)


def test_a_file_that_holds_another_voice_is_not_spoken_with(
    engine: PocketEngine, made: VoiceState, tiny_pocket: TinyPocket
) -> None:
    with pytest.raises(EngineError, match="holds another voice"):
        engine.load_voice(VoiceRef("0" * 64, str(tiny_pocket.voices["anna"])))


def test_an_evicted_voice_is_read_again_and_a_lost_one_fails_its_job_alone(
    tiny_pocket: TinyPocket, made: VoiceState, tmp_path: Path
) -> None:
    """A cache of one byte keeps only what is in use."""
    engine = attached(options(tiny_pocket, voice_cache_bytes=1))
    voice = stored(made, tmp_path)
    engine.load_voice(voice)
    first, _, _ = speak(engine, voice)
    speak(engine, VoiceRef("anna"))
    again, _, _ = speak(engine, voice)
    assert np.abs(first - again).max() < 1e-5
    Path(voice.file).unlink()
    _, ending, error = speak(engine, voice)
    assert ending is Ending.FAILED
    assert "cannot be read" in error
    assert speak(engine, VoiceRef("bert"))[1] is Ending.COMPLETE


def test_a_recording_of_the_operator_is_in_any_format(
    tiny_pocket: TinyPocket, tmp_path: Path
) -> None:
    import soundfile

    file = tmp_path / "carl.flac"
    soundfile.write(file, PROMPT, 24000)
    engine = attached(
        options(
            tiny_pocket,
            voices=(("carl", str(file)),),
            default_voice="carl",
            state_directory=str(tmp_path),
        )
    )
    voice = engine.load_voice(VoiceRef("carl"))
    assert voice.operator
    assert voice.file == str(tmp_path / "carl.safetensors")
    shutil.rmtree(tmp_path)
    assert len(speak(engine, VoiceRef("carl"))[0])


# The cache.


@dataclass(frozen=True)
class Thing:
    bytes: int = 10


def touch(cache: ByteCache[Thing], *keys: str) -> None:
    for key in keys:
        with cache.use(key, Thing):
            pass


def test_what_was_not_used_for_longest_goes_first() -> None:
    cache: ByteCache[Thing] = ByteCache(30)
    touch(cache, "a", "b", "c", "a", "d")
    assert cache.keys() == ["c", "a", "d"]


def test_what_is_in_use_stays_until_it_is_not() -> None:
    cache: ByteCache[Thing] = ByteCache(10)
    with cache.use("a", Thing), cache.use("b", Thing):
        touch(cache, "c")
        assert cache.keys() == ["a", "b"]
    assert cache.keys() == ["a"] or cache.keys() == ["b"]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 40)), max_size=30))
def test_what_is_kept_is_never_more_than_the_limit(uses: list[tuple[str, int]]) -> None:
    cache: ByteCache[Thing] = ByteCache(50)
    sizes: dict[str, int] = {}
    for key, size in uses:
        with cache.use(key, lambda size=size: Thing(size)) as thing:  # type: ignore[misc]
            sizes[key] = thing.bytes
        assert sum(sizes[key] for key in cache.keys()) <= 50  # noqa: SIM118


def test_what_many_want_at_once_is_loaded_once() -> None:
    cache: ByteCache[Thing] = ByteCache(100)
    loads: list[Thing] = []
    waiting = threading.Barrier(5)
    go_on = threading.Event()

    def load_slowly() -> Thing:
        go_on.wait(5)
        loads.append(Thing())
        return loads[-1]

    found: list[Thing] = []

    def want() -> None:
        waiting.wait(5)
        with cache.use("a", load_slowly) as thing:
            found.append(thing)

    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    waiting.wait(5)
    go_on.set()
    for thread in threads:
        thread.join(5)
    assert len(loads) == 1
    assert found == loads * 4


def test_a_load_that_failed_is_tried_again() -> None:
    cache: ByteCache[Thing] = ByteCache(100)

    def fail() -> Thing:
        raise EngineError("not now")

    with pytest.raises(EngineError), cache.use("a", fail):
        pass
    touch(cache, "a")
    assert cache.keys() == ["a"]
