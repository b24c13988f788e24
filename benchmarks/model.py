"""The released `english` architecture at full size, with random weights, made on the spot.

Its speed is that of the released model; what it says is noise. Its end-of-speech threshold is never
reached, so the length of audio depends on the text alone: (tokens / 3 + 2) seconds.

    python -m benchmarks.model DIRECTORY
"""

import pydoc_data.topics
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The vocabulary of the released tokenizer.
VOCABULARY = 4000
# About the length of the released voices' prompts.
PROMPT_SECONDS = 10
SAMPLE_RATE_HERTZ = 24_000
NEVER_ENDS = 1e9


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A config that names weights and a tokenizer, and a voice state."""

    config: Path
    voice: Path

    @classmethod
    def of(cls, directory: Path) -> "ModelFiles":
        """The files in `directory`, which may not exist yet."""
        return cls(directory / "english_random.yaml", directory / "noise.safetensors")

    def exist(self) -> bool:
        """Whether they are all there; the config is written last."""
        return self.config.is_file()


def build(directory: Path) -> ModelFiles:
    """Write the files of the model into `directory` (about 0.5 GB)."""
    import pocket_tts
    import torch
    import yaml
    from pocket_tts import TTSModel
    from pocket_tts.models.model_state import export_model_state
    from safetensors.torch import save_file

    directory.mkdir(parents=True, exist_ok=True)
    files = ModelFiles.of(directory)
    packaged = Path(pocket_tts.__file__).parent / "config" / "english.yaml"
    config: dict[str, Any] = yaml.safe_load(packaged.read_text(encoding="utf-8"))
    tokenizer, weights = directory / "tokenizer.json", directory / "random.safetensors"
    _make_tokenizer(tokenizer)
    config["flow_lm"]["lookup_table"]["tokenizer_path"] = str(tokenizer)
    config["default_eos_threshold"] = NEVER_ENDS
    config["weights_path"] = None
    del config["weights_path_without_voice_cloning"]
    draft = directory / "draft.yaml"
    draft.write_text(yaml.safe_dump(config), encoding="utf-8")

    torch.manual_seed(1)
    model = TTSModel.load_model(config=str(draft))
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, weights)
    noise = torch.randn(1, PROMPT_SECONDS * SAMPLE_RATE_HERTZ) * 0.1
    export_model_state(model.get_state_for_audio_prompt(noise), files.voice)

    config["weights_path"] = str(weights)
    draft.write_text(yaml.safe_dump(config), encoding="utf-8")
    draft.rename(files.config)
    return files


def _make_tokenizer(path: Path) -> None:
    """Train a byte-pair vocabulary of exactly VOCABULARY entries on the documentation of Python:
    the English at hand."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    corpus = [
        " ".join(re.findall(r"[A-Za-z',.;:!?]+", text))
        for text in pydoc_data.topics.topics.values()
    ]
    tokenizer = Tokenizer(models.BPE(byte_fallback=False, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<unk>"],
        initial_alphabet=[*map(chr, range(33, 127)), "…"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    missing = VOCABULARY - tokenizer.get_vocab_size()
    tokenizer.add_tokens([f"<spare{number}>" for number in range(missing)])
    tokenizer.save(str(path))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
