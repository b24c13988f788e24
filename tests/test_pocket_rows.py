"""Several generations at a time on one real pocket-tts, tiny: each as if it were alone."""

import gc
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from pocket_tts import TTSModel
from pocket_tts.models import text_chunking
from pocket_tts.models.flow_lm import FlowLMModel

from intone_server.engines import pocket_private, pocket_rows
from intone_server.engines.base import Ending, EngineError, EngineOptions, Job, Sampling, VoiceRef
from intone_server.engines.pocket import PocketEngine
from intone_server.engines.pocket_batch import DecoderRows
from intone_server.engines.pocket_linear import EachRow, OneByOne, each_row
from intone_server.engines.pocket_private import DecoderParts
from tiny_pocket import TinyPocket, make_config, make_tiny_pocket

FRAME = 1920
ROWS = 4
TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "It was a bright cold day in April.",
    "How are you today?",
    "Hello there.",
]
VOICES = ["anna", "bert", "anna", "bert"]


def options(tiny: TinyPocket, **changes: Any) -> EngineOptions:
    voices = tuple((name, str(path)) for name, path in tiny.voices.items())
    chosen = {"model": str(tiny.config), "voices": voices, "default_voice": "anna"}
    return EngineOptions(**(chosen | changes))


def attached(chosen: EngineOptions) -> PocketEngine:
    engine = PocketEngine()
    engine.load(chosen)
    engine.attach(ROWS)
    return engine


@pytest.fixture(scope="module")
def engine(tiny_pocket: TinyPocket) -> PocketEngine:
    return attached(options(tiny_pocket))


@pytest.fixture(scope="module")
def model(tiny_pocket: TinyPocket) -> TTSModel:
    """The same model, through the library alone."""
    return tiny_pocket.load()


@pytest.fixture(autouse=True)
def all_rows_are_free_again(request: pytest.FixtureRequest) -> Any:
    """Whatever a test did to the shared engine, nothing of it is left."""
    yield
    if "engine" in request.fixturenames:
        engine = request.getfixturevalue("engine")
        assert sorted(engine._rows._free) == list(range(ROWS))
        assert not engine._rows._running
        assert not engine.step()


@dataclass
class Heard:
    """What came of one job: its samples, its ending, and the steps of its first audio and end."""

    samples: list[np.ndarray] = field(default_factory=list)
    ending: Ending | None = None
    error: str = ""
    first_step: int | None = None
    last_step: int | None = None

    @property
    def audio(self) -> np.ndarray:
        return np.concatenate(self.samples) if self.samples else np.zeros(0, np.float32)


def speak(
    engine: PocketEngine, jobs: dict[int, Job], stops: dict[int, Job] | None = None
) -> dict[int, Heard]:
    """Start each job at its step (the key), stop others, and step until all are over."""
    heard: dict[int, Heard] = defaultdict(Heard)
    step = 0
    while len([h for h in heard.values() if h.ending]) < len(jobs):
        if step in jobs:
            engine.start(jobs[step])
        if stops and step in stops:
            stops[step].stop.set()
        for output in engine.step():
            one = heard[output.generation_id]
            assert one.ending is None, "an output after the end"
            if output.samples is not None:
                assert len(output.samples) in (FRAME, 2 * FRAME)
                assert output.samples.dtype == np.float32
                one.samples.append(output.samples)
                one.first_step = step if one.first_step is None else one.first_step
            if output.ending is not None:
                one.ending, one.error, one.last_step = output.ending, output.error, step
        step += 1
        assert step < 2000
    return heard


def job(
    number: int, text: str = TEXTS[0], voice: str = "anna", seed: int = 0, **sampling: Any
) -> Job:
    return Job(number, text, VoiceRef(voice), Sampling(**sampling), seed)


def jobs_at_different_steps(**sampling: Any) -> dict[int, Job]:
    made = [
        job(number, text, voice, seed=number, **sampling)
        for number, (text, voice) in enumerate(zip(TEXTS, VOICES, strict=True))
    ]
    return dict(zip((0, 5, 9, 30), made, strict=True))


def solo(model: TTSModel, tiny: TinyPocket, one: Job) -> np.ndarray:
    """The library's own audio for a job."""
    wanted = one.sampling
    before = (model.temp, model.sampler_decode_steps, model.eos_threshold, model.noise_clamp)
    for name, value in {
        "temp": wanted.temperature,
        "sampler_decode_steps": wanted.decode_steps,
        "eos_threshold": wanted.eos_threshold,
        "noise_clamp": wanted.noise_clamp,
    }.items():
        if value is not None:
            setattr(model, name, value)
    torch.manual_seed(one.seed)
    state = model.get_state_for_audio_prompt(tiny.voices[one.voice.key])
    audio: np.ndarray = model.generate_audio(
        state, one.text, frames_after_eos=wanted.frames_after_eos
    ).numpy()
    model.temp, model.sampler_decode_steps, model.eos_threshold, model.noise_clamp = before
    return audio


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    assert len(ours) == len(theirs)
    return float(np.abs(ours - theirs).max())


# The same audio, alone and in company.


@pytest.mark.parametrize("number", range(ROWS))
def test_a_row_alone_equals_the_library(
    engine: PocketEngine, model: TTSModel, tiny_pocket: TinyPocket, number: int
) -> None:
    one = job(number, TEXTS[number], VOICES[number])
    heard = speak(engine, {0: one})[number]
    theirs = solo(model, tiny_pocket, one)
    assert difference(heard.audio, theirs) < 1e-5
    assert np.abs(theirs).max() > 1e-2


def test_rows_that_join_at_different_steps_each_equal_the_library(
    engine: PocketEngine, model: TTSModel, tiny_pocket: TinyPocket
) -> None:
    jobs = jobs_at_different_steps()
    heard = speak(engine, jobs)
    for one in jobs.values():
        ours, theirs = heard[one.generation_id].audio, solo(model, tiny_pocket, one)
        assert difference(ours, theirs) < 1e-5


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_int8_rows_equal_the_library_within_a_thousandth(tiny_pocket: TinyPocket) -> None:
    engine = attached(options(tiny_pocket, quantize=True))
    model = TTSModel.load_model(config=str(tiny_pocket.config), quantize=True)
    jobs = jobs_at_different_steps()
    heard = speak(engine, jobs)
    for one in jobs.values():
        ours, theirs = heard[one.generation_id].audio, solo(model, tiny_pocket, one)
        assert difference(ours, theirs) < 1e-3


def test_a_seed_gives_the_same_audio_alone_in_company_and_in_the_library(
    engine: PocketEngine, model: TTSModel, tiny_pocket: TinyPocket
) -> None:
    jobs = jobs_at_different_steps(temperature=1.0)
    heard = speak(engine, jobs)
    for one in jobs.values():
        number = one.generation_id
        alone = speak(engine, {0: one})[number].audio
        assert difference(heard[number].audio, alone) < 1e-5
        assert difference(alone, solo(model, tiny_pocket, one)) < 1e-5


def test_another_seed_or_voice_gives_other_audio(engine: PocketEngine) -> None:
    jobs = [
        job(0, seed=1, temperature=1.0),
        job(1, seed=2, temperature=1.0),
        job(2, seed=1, temperature=1.0, voice="bert"),
    ]
    heard = speak(engine, dict(enumerate(jobs)))
    assert difference(heard[0].audio, heard[1].audio) > 1e-4
    assert difference(heard[0].audio, heard[2].audio) > 1e-4


def test_each_row_has_its_own_sampling(
    engine: PocketEngine, model: TTSModel, tiny_pocket: TinyPocket
) -> None:
    jobs = [
        job(0, seed=4, temperature=0.7, eos_threshold=0.1, frames_after_eos=0),
        job(1, seed=5, temperature=1.2, decode_steps=3),
        job(2, seed=6, temperature=1.0, noise_clamp=0.5, eos_threshold=-100.0, frames_after_eos=9),
        job(3, seed=7, temperature=1.0, noise_clamp=2.0, decode_steps=3, eos_threshold=0.2),
    ]
    heard = speak(engine, dict(enumerate(jobs)))
    for one in jobs:
        ours = heard[one.generation_id].audio
        assert difference(ours, solo(model, tiny_pocket, one)) < 1e-5
    assert len(heard[2].audio) == (6 + 9) * FRAME
    # What differs from row to row does make a difference.
    assert len({len(one.audio) for one in heard.values()}) > 1


@pytest.mark.parametrize("threshold", [-0.5, -0.2, 0.0, 0.2, 0.4])
def test_speech_ends_where_the_library_ends_it(
    engine: PocketEngine, model: TTSModel, tiny_pocket: TinyPocket, threshold: float
) -> None:
    jobs = [
        job(number, TEXTS[number], seed=number, temperature=1.0, eos_threshold=threshold)
        for number in range(ROWS)
    ]
    heard = speak(engine, dict(enumerate(jobs)))
    for one in jobs:
        theirs = solo(model, tiny_pocket, one)
        assert difference(heard[one.generation_id].audio, theirs) < 1e-5


# Text.


def test_more_tokens_than_the_model_takes_are_spoken_piece_by_piece(
    engine: PocketEngine, model: TTSModel, tiny_pocket: TinyPocket
) -> None:
    """Each piece is a prompt of its own; nobody else hears of the change."""
    words = " ".join(["zyxwvq"] * 12)
    other = job(1, seed=1, temperature=1.0, eos_threshold=-100.0)
    heard = speak(engine, {0: job(0, words, eos_threshold=-100.0), 8: other})
    pieces = list(pocket_rows.pieces(words, engine._rows._tokens, pocket_rows.MAX_TOKENS))
    assert len(pieces) > 1
    theirs = [solo(model, tiny_pocket, job(0, piece, eos_threshold=-100.0)) for piece in pieces]
    assert difference(heard[0].audio, np.concatenate(theirs)) < 1e-5
    assert difference(heard[1].audio, solo(model, tiny_pocket, other)) < 1e-5


def test_a_text_is_read_in_bounded_steps(
    engine: PocketEngine,
    model: TTSModel,
    tiny_pocket: TinyPocket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pocket_rows, "TOKENS_PER_STEP", 3)
    jobs = jobs_at_different_steps(eos_threshold=-100.0)
    heard = speak(engine, jobs)
    for step, one in jobs.items():
        theirs = solo(model, tiny_pocket, one)
        assert difference(heard[one.generation_id].audio, theirs) < 1e-5
        tokens = model.flow_lm.conditioner.prepare(one.text).shape[1]
        first_step = heard[one.generation_id].first_step
        assert first_step is not None
        assert first_step >= step + -(-tokens // 3) - 1


def test_the_first_frame_comes_with_the_step_that_has_read_the_text(
    engine: PocketEngine,
) -> None:
    heard = speak(engine, {0: job(0), 7: job(1, TEXTS[2])})
    assert heard[0].first_step == 1, "one step for others whose texts came meanwhile"
    assert heard[1].first_step == 7


# Endings.


def test_a_row_without_an_end_is_told_from_one_with(engine: PocketEngine) -> None:
    heard = speak(engine, {0: job(0), 1: job(1, eos_threshold=-100.0)})
    assert heard[0].ending is Ending.NO_END
    assert heard[1].ending is Ending.COMPLETE


def test_speech_that_ends_just_before_the_cap_has_an_end(engine: PocketEngine) -> None:
    """Also if the frames that were to follow it do not fit."""
    one = job(0, eos_threshold=-100.0, frames_after_eos=100)
    assert speak(engine, {0: one})[0].ending is Ending.COMPLETE


def test_texts_that_come_together_are_read_before_anyone_begins(engine: PocketEngine) -> None:
    """Who began first would run dry while the others' texts are read."""
    heard: dict[int, list[int]] = defaultdict(list)
    for step in range(12):
        if step < 3:  # each comes while the one before is read
            engine.start(job(step))
        for output in engine.step():
            if output.samples is not None:
                heard[output.generation_id].append(step)
        if len(heard) == 3:
            break
    assert {steps[0] for steps in heard.values()} == {3}
    for row in engine._rows._running:
        row.job.stop.set()
    engine.step()


def test_what_is_over_is_forgotten(engine: PocketEngine) -> None:
    speak(engine, {0: job(0, eos_threshold=-100.0)})
    engine.step()
    assert not engine._rows._decoding._order


def test_products_that_are_not_exact_here_are_made_row_by_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = torch.nn.Linear(48, 96)
    x = torch.randn(5, 1, 48)
    alone = torch.cat([module(row) for row in x.split(1)])
    with torch.inference_mode():
        assert torch.equal(each_row(module)(x), alone)
        inexact = lambda self, x: torch.nn.functional.linear(x, self._module.weight)  # noqa: E731
        monkeypatch.setattr(EachRow, "__call__", inexact)
        assert isinstance(each_row(module), OneByOne)
        assert torch.equal(each_row(module)(x), alone)


def test_a_stopped_row_leaves_at_the_next_step_and_the_others_hear_nothing_of_it(
    engine: PocketEngine, model: TTSModel, tiny_pocket: TinyPocket
) -> None:
    jobs = jobs_at_different_steps(temperature=1.0)
    after = job(9, TEXTS[3], "bert", seed=9, temperature=1.0)
    heard = speak(engine, {**jobs, 33: after}, stops={12: jobs[5]})
    assert (heard[1].ending, heard[1].last_step) == (Ending.STOPPED, 12)
    for one in [jobs[0], jobs[9], jobs[30], after]:
        ours = heard[one.generation_id].audio
        assert difference(ours, solo(model, tiny_pocket, one)) < 1e-5
    cut = heard[1].audio
    assert 0 < len(cut) <= (12 - 5) * FRAME
    assert difference(cut, solo(model, tiny_pocket, jobs[5])[: len(cut)]) < 1e-5


def test_a_job_stopped_before_it_begins_says_nothing(engine: PocketEngine) -> None:
    jobs = {step: job(step) for step in range(3)}
    for one in jobs.values():
        one.stop.set()
    heard = speak(engine, jobs)
    assert all(h.ending is Ending.STOPPED and not h.samples for h in heard.values())


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (job(7, voice="nobody"), "there is no voice 'nobody'"),
        (job(7, text=" \n "), "ValueError at text_chunking.py"),
        (job(7, temperature=float("inf")), pocket_rows.NOT_FINITE),
        (job(7, temperature=-1.0), "ValueError at pocket_batch.py"),
        (job(7, decode_steps=0), "ValueError at pocket_batch.py"),
        (job(7, noise_clamp=-1.0, temperature=1.0), "Error"),
    ],
    ids=["voice", "text", "numbers", "temperature", "steps", "clamp"],
)
def test_what_is_wrong_with_a_row_ends_it_alone(
    engine: PocketEngine, model: TTSModel, tiny_pocket: TinyPocket, bad: Job, said: str
) -> None:
    jobs = jobs_at_different_steps(temperature=1.0)
    del jobs[30]
    heard = speak(engine, {**jobs, 12: bad, 13: job(8, TEXTS[3])})
    assert heard[7].ending is Ending.FAILED
    assert said in heard[7].error
    for one in [*jobs.values(), job(8, TEXTS[3])]:
        ours = heard[one.generation_id].audio
        assert difference(ours, solo(model, tiny_pocket, one)) < 1e-5


def test_a_bad_voice_state_ends_its_row_alone(
    engine: PocketEngine,
    model: TTSModel,
    tiny_pocket: TinyPocket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def begin(slot: int, voice: Any, needed: int) -> None:
        if slot_of_bad == slot:
            voice = {}
        whole(slot, voice, needed)

    whole = engine._rows._flow.begin
    slot_of_bad = engine._rows._free[-2]
    monkeypatch.setattr(engine._rows._flow, "begin", begin)
    good, bad = job(0), job(1)
    heard = speak(engine, {0: good, 4: bad})
    assert heard[1].ending is Ending.FAILED
    assert heard[1].error.startswith("ValueError at pocket_private.py")
    assert difference(heard[0].audio, solo(model, tiny_pocket, good)) < 1e-5


def test_a_voice_that_is_too_long_for_the_caches_is_told(
    engine: PocketEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine._rows._flow, "positions", 30)
    assert "ValueError" in speak(engine, {0: job(0)})[0].error


@pytest.mark.parametrize("part", ["begin", "finish"])
def test_an_error_of_all_rows_together_is_raised(
    engine: PocketEngine, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """The worker then gives its process up."""

    def fail(*arguments: Any) -> Any:
        raise RuntimeError("no memory")

    one = job(0)
    with monkeypatch.context() as patched:
        patched.setattr(engine._rows._decoding._rows, part, fail)
        engine.start(one)
        assert not engine.step()  # it reads the text
        with pytest.raises(RuntimeError, match="no memory"):
            engine.step()
    one.stop.set()
    assert engine.step()[0].ending is Ending.STOPPED


# Rows used again and again.


def test_rows_are_used_fifty_times_over_without_growing(
    engine: PocketEngine, model: TTSModel, tiny_pocket: TinyPocket
) -> None:
    def one_round(number: int) -> dict[int, Heard]:
        jobs = [job(row, TEXTS[row], VOICES[row], eos_threshold=-100.0) for row in range(ROWS)]
        if number % 5 == 4:
            jobs[1].stop.set()
        return speak(engine, dict(enumerate(jobs)))

    process = psutil.Process()
    for number in range(10):
        one_round(number)
    gc.collect()
    before = process.memory_info().rss
    caches = [c.keys.data_ptr() for c in engine._rows._flow._caches.values()]
    for number in range(50):
        heard = one_round(number)
    gc.collect()
    assert process.memory_info().rss - before < 4 << 20
    assert [c.keys.data_ptr() for c in engine._rows._flow._caches.values()] == caches
    theirs = solo(model, tiny_pocket, job(0, TEXTS[3], "bert", eos_threshold=-100.0))
    assert difference(heard[3].audio, theirs) < 1e-5


def test_a_voice_is_let_go_with_its_row(engine: PocketEngine) -> None:
    speak(engine, {0: job(0), 1: job(1, voice="bert")}, stops={20: job(1)})
    assert all(not entry.users for entry in engine._voices._cache._entries.values())


# Other models than the default.


SMALL = {
    "d_model": 48,
    "hidden_scale": 1,
    "max_period": 10000,
    "num_heads": 6,
    "num_layers": 3,
    "dim_feedforward": 40,
    "attn_dim": 96,
}


@pytest.mark.parametrize(
    ("flow", "heads", "z_dim"),
    [("pointwise", 1, 24), ("drifting", 2, None), ("flow_matching", 6, None), ("lsd", 3, 16)],
)
def test_the_shapes_of_other_models_are_known(
    tmp_path: Path, flow: str, heads: int, z_dim: int | None
) -> None:
    """Shared keys, narrow heads, and a decoder unlike the encoder, as in the small models."""
    import yaml

    config = yaml.safe_load(make_config(tmp_path).read_text())
    language, codec = config["flow_lm"], config["mimi"]
    language["flow"]["type"] = flow
    language["transformer"] = {**SMALL, "num_kv_heads": heads}
    language["lookup_table"] |= {"dim": 48, "rank": 8}
    language["z_dim"] = z_dim
    codec["outer_dim"] = codec["quantizer"]["output_dimension"] = 24
    codec["decoder_seanet"] = {
        **codec["seanet"],
        "dimension": 24,
        "n_filters": 3,
        "kernel_size": 3,
        "n_residual_layers": 2,
    }
    codec["decoder_transformer"] = {
        **codec["transformer"],
        "d_model": 16,
        "input_dimension": 24,
        "output_dimensions": [24],
        "num_heads": 2,
        "num_layers": 2,
        "context": 50,
    }
    tiny = make_tiny_pocket(tmp_path, flow_lm=language, mimi=codec)
    engine, model = attached(options(tiny)), tiny.load()
    jobs = jobs_at_different_steps(temperature=0.5)
    heard = speak(engine, jobs)
    for one in jobs.values():
        ours = heard[one.generation_id].audio
        assert difference(ours, solo(model, tiny, one)) < 1e-5


# The library may change.


def replace_part(part: Any, path: str, value: Any) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        part = part[int(parent)] if parent.isdigit() else getattr(part, parent)
    if name.isdigit():
        part[int(name)] = value
    else:
        part._parameters.pop(name, None)
        setattr(part, name, value)


def test_voices_are_made_as_before(engine: PocketEngine, model: TTSModel) -> None:
    """The library's own calls go their own way, with rows or without."""
    prompt = np.random.default_rng(5).normal(0, 0.1, 24000).astype(np.float32)
    expected = model.get_state_for_audio_prompt(torch.from_numpy(prompt)[None])
    made = engine._format.read(engine.make_state(prompt).data)
    for name, tensors in expected.items():
        assert torch.equal(made[name]["cache"], tensors["cache"])


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("flow_lm.bos_emb", None, "model.flow_lm.bos_emb is of type NoneType"),
        ("mimi.upsample", None, "model.mimi.upsample is of type NoneType"),
        ("flow_lm.flow_type", "other", "the flow type 'other' is unknown"),
        ("flow_lm.transformer.layers.0.self_attn", torch.nn.Identity(), "another attention"),
    ],
)
def test_a_library_with_other_parts_is_refused(
    tiny_pocket: TinyPocket, path: str, value: Any, said: str
) -> None:
    model = tiny_pocket.load()
    replace_part(model, path, value)
    with pytest.raises(EngineError, match=said):
        pocket_private.check(model)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("decoder.model.0.pad_mode", "replicate", "an unknown layer: StreamingConv1d"),
        ("decoder.model.1.alpha", 0.5, "an unknown layer: ELU"),
        ("decoder.model.2.convtr.stride", (5,), "an unknown layer: StreamingConvTranspose1d"),
        ("decoder.model.3.block.1.conv.groups", 2, "an unknown layer: StreamingConv1d"),
        ("decoder.model.4", torch.nn.Tanh(), "an unknown layer: Tanh"),
        ("upsample.convtr.convtr.stride", (8,), "begins with an unknown layer"),
    ],
)
def test_a_decoder_with_other_layers_is_refused(
    tiny_pocket: TinyPocket, path: str, value: Any, said: str
) -> None:
    model = tiny_pocket.load()
    replace_part(model.mimi, path, value)
    with pytest.raises(EngineError, match=said):
        DecoderRows(DecoderParts(model), 1)


def test_a_library_with_other_parameters_is_refused(
    tiny_pocket: TinyPocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def backbone(self: FlowLMModel, input_: torch.Tensor) -> None: ...

    assert text_chunking.prepare_text_prompt in pocket_private._CALLS
    calls = {**pocket_private._CALLS, backbone: pocket_private._CALLS[FlowLMModel.backbone]}
    monkeypatch.setattr(pocket_private, "_CALLS", calls)
    with pytest.raises(EngineError, match=r"backbone has the parameters self, input_"):
        pocket_private.check(tiny_pocket.load())
