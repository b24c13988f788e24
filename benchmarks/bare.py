"""The bare library in a process of its own: `generate_audio_stream` in one thread's loop.

Reads a JSON object per line from stdin, speaks its "text", and answers with a line: the time of the
call and, for each item of the generator, when it came (seconds on the monotonic clock, which all
processes share) and how many samples it has. The other fields are those of `contenders.Bare.speak`.

    python -m benchmarks.bare CONFIG VOICE [--quantize]
"""

import argparse
import json
import logging
import sys
import threading
import time
from typing import Any


def main() -> None:
    """Load, say that it is ready, and serve until the end of stdin."""
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("voice")
    parser.add_argument("--quantize", action="store_true")
    arguments = parser.parse_args()

    import torch
    from pocket_tts import TTSModel

    logging.getLogger("pocket_tts").setLevel(logging.ERROR)  # as in the server
    model = TTSModel.load_model(config=arguments.config, quantize=arguments.quantize)
    state = model.get_state_for_audio_prompt(arguments.voice)
    _tell({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        model.max_decoder_frames_per_call = request["decoder_frames"]
        # The library sets one at import. Threads that start later, as the model's do, inherit it.
        torch.set_num_threads(request["threads"])
        torch.manual_seed(0)
        stop = threading.Event()
        items = []
        started_at = time.monotonic()
        for item in model.generate_audio_stream(state, request["text"], stop=stop):
            items.append((time.monotonic(), len(item)))
            if request["first_only"]:
                stop.set()
        _tell({"started_at": started_at, "items": items, "rate": model.sample_rate})


def _tell(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
