"""A real pocket-tts, made on the spot: the released architecture, shrunk, with random weights."""

import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from pocket_tts import TTSModel
from pocket_tts.models.model_state import export_model_state
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

CORPUS = [
    "Hello there. How are you today? One, two, three; four: five!",
    "The quick brown fox jumps over the lazy dog, and the dog does not mind.",
    "It was a bright cold day in April, and the clocks were striking thirteen.",
]


def make_tokenizer(path: Path, size: int) -> int:
    """Write a byte-pair tokenizer.json; returns its real vocabulary size."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=False, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()]
    )
    tokenizer.decoder = decoders.Metaspace()
    alphabet = [chr(c) for c in range(33, 127)] + ["…"]
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.save(str(path))
    return int(tokenizer.get_vocab_size())


def make_config(directory: Path, **changes: Any) -> Path:
    """Write a config YAML and its tokenizer into `directory`.

    With an end-of-speech threshold that is never reached, the length of audio depends on the text
    alone: (tokens / 3 + 2) seconds, rounded up to frames.
    """
    size = make_tokenizer(directory / "tokenizer.json", 300)
    transformer = {
        "d_model": 32,
        "num_heads": 2,
        "num_layers": 1,
        "layer_scale": 0.01,
        "context": 25,
        "dim_feedforward": 64,
        "input_dimension": 32,
        "output_dimensions": [32],
    }
    config: dict[str, Any] = {
        "weights_path": None,
        "default_temperature": 0.0,
        "default_eos_threshold": 1e9,
        "flow_lm": {
            "dtype": "float32",
            "insert_bos_before_voice": True,
            "flow": {"depth": 2, "dim": 32},
            "transformer": {
                "d_model": 64,
                "hidden_scale": 2,
                "max_period": 10000,
                "num_heads": 4,
                "num_layers": 2,
            },
            "lookup_table": {
                "dim": 64,
                "n_bins": size,
                "tokenizer": "tokenizers",
                "tokenizer_path": str(directory / "tokenizer.json"),
            },
        },
        "mimi": {
            "dtype": "float32",
            "sample_rate": 24000,
            "inner_dim": 8,
            "outer_dim": 32,
            "channels": 1,
            "frame_rate": 12.5,
            "seanet": {
                "dimension": 32,
                "channels": 1,
                "n_filters": 4,
                "n_residual_layers": 1,
                "ratios": [6, 5, 4],
                "kernel_size": 7,
                "residual_kernel_size": 3,
                "last_kernel_size": 3,
                "dilation_base": 2,
                "pad_mode": "constant",
                "compress": 2,
            },
            "transformer": transformer,
            "quantizer": {"dimension": 8, "output_dimension": 32},
        },
    }
    config.update(changes)
    path = directory / "tiny.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@dataclass(frozen=True)
class TinyPocket:
    """Files of a tiny model, its voice states (anna, bert) and a recording."""

    config: Path
    voices: dict[str, Path]
    recording: Path

    def load(self) -> TTSModel:
        """The model in this process, for comparison."""
        return TTSModel.load_model(config=str(self.config))

    def flags(self) -> list[str]:
        """Of a server that serves this model."""
        flags = ["--engine", "pocket", "--model", str(self.config), "--default-voice", "anna"]
        for name, path in self.voices.items():
            flags += ["--voice", f"{name}={path}"]
        return flags


def _enliven(model: TTSModel) -> None:
    """Make audio depend on voice, text and noise. Fresh weights shrink what passes through a layer
    by the root of three, so that after all of them the same is heard whatever is said."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "layer_scale" in name:
                parameter.fill_(1.0)
            elif parameter.dim() > 1 and "embed" not in name:
                parameter *= 3**0.5
    # The library leaves it at zero, which would make all voices one.
    torch.nn.init.normal_(model.flow_lm.speaker_proj_weight)


def make_tiny_pocket(directory: Path, **changes: Any) -> TinyPocket:
    """Write weights that every process shares, voices made from noise, and a 1 s recording.

    `changes` are entries of the config.
    """
    torch.manual_seed(7)
    model = TTSModel.load_model(config=str(make_config(directory, **changes)))
    _enliven(model)
    weights = directory / "tiny.safetensors"
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, weights)
    config = make_config(directory, **{**changes, "weights_path": str(weights)})
    voices = {}
    for name in ("anna", "bert"):
        state = model.get_state_for_audio_prompt(torch.randn(1, 24000) * 0.1)
        voices[name] = directory / f"{name}.safetensors"
        export_model_state(state, voices[name])
    recording = directory / "recording.wav"
    samples = np.random.default_rng(3).normal(0, 3000, 24000).clip(-32768, 32767)
    with wave.open(str(recording), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(24000)
        file.writeframes(samples.astype("<i2").tobytes())
    return TinyPocket(config, voices, recording)
