"""Download a pocket-tts model and the voices that come with it into HF_HOME.

Runs in the server's image: `python fill_cache.py english`. Files that are there already are not
downloaded again. Fails if one cannot be had; only the weights that can clone voices may be missing
(the library then takes those that cannot).
"""

import sys

from pocket_tts import TTSModel
from pocket_tts.utils.utils import (
    _ORIGINS_OF_PREDEFINED_VOICES,
    download_if_necessary,
    get_predefined_voice,
)


def fill(language: str) -> None:
    """Fetch what `intone-server --engine pocket --model LANGUAGE` may ask for."""
    # Loading is what the server does too, so nothing that it needs can be forgotten.
    TTSModel.load_model(language=language)
    for name in sorted(_ORIGINS_OF_PREDEFINED_VOICES):
        download_if_necessary(get_predefined_voice(language, name))


if __name__ == "__main__":
    fill(sys.argv[1])
