"""From a recording to a voice state of pocket-tts."""

import threading
from typing import Any

import torch

from intone_server.audio import Samples
from intone_server.engines.pocket_state import State

# Encoding a recording takes memory that grows with the square of its length (fact 11).
MAX_PROMPT_SECONDS = 30
# Positions of the longest voice: one each 80 ms, and room for the library's own beginning and end
# (two at the time of writing).
MAX_POSITIONS = 400

TEST_TEXT = "This is how the new voice sounds."
# Ten syllables; nobody says more than about seven a second.
SHORTEST_TEST_SECONDS = 0.8
# On a busy machine the test is given up rather than the voice.
TEST_TIMEOUT_SECONDS = 10.0


def encode(model: Any, prompt: Samples) -> State:
    """The voice state of a recording: float32 mono samples of shape (n,) at the model's rate."""
    prompt = prompt[: MAX_PROMPT_SECONDS * model.sample_rate]
    state: State = model.get_state_for_audio_prompt(torch.from_numpy(prompt.copy())[None])
    return state


def try_out(model: Any, state: State) -> tuple[str, ...]:
    """Speak a sentence with a new voice; returns what is suspicious, for people.

    A bad recording shows in one of two ways: the voice says next to nothing, or never ends.
    """
    torch.manual_seed(0)
    stop = threading.Event()
    timer = threading.Timer(TEST_TIMEOUT_SECONDS, stop.set)
    timer.start()
    try:
        frames = list(model.generate_audio_stream(state, TEST_TEXT, stop=stop))
    finally:
        timer.cancel()
    if stop.is_set():
        return ()
    spoken_seconds = sum(frame.shape[-1] for frame in frames) / model.sample_rate
    tokens = model.flow_lm.conditioner.prepare(TEST_TEXT).shape[1]
    longest_seconds = model._estimate_max_gen_len(tokens) / model.config.mimi.frame_rate
    warnings = []
    if spoken_seconds >= longest_seconds:
        warnings.append(
            f"a test sentence did not end within {longest_seconds:.1f} s: the recording may be "
            "too noisy, too quiet, or no speech"
        )
    if spoken_seconds < SHORTEST_TEST_SECONDS:
        warnings.append(
            f"a test sentence took {spoken_seconds:.2f} s, too short for its words: "
            "the recording may be silent, or end in the middle of a word"
        )
    return tuple(warnings)
