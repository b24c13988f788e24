"""Which encoding goes where on the command line."""

from pathlib import Path

from ._audio import check_target
from ._config import Encoding
from ._terminal import UsageError

_BY_EXTENSION: dict[str, Encoding] = {
    ".wav": "wav",
    ".ogg": "ogg_opus",
    ".opus": "ogg_opus",
    ".flac": "flac",
    ".mp3": "mp3",
    ".pcm": "pcm_s16le",
    ".raw": "pcm_s16le",
    ".ulaw": "mulaw",
    ".alaw": "alaw",
}
EXTENSIONS = tuple(_BY_EXTENSION)
# Extensions that say no more than that there is no header.
_HEADERLESS = {".pcm", ".raw"}
_HEADERLESS_ENCODINGS = {"pcm_s16le", "pcm_f32le", "mulaw", "alaw"}


def output_encoding(output: str | None, encoding: Encoding | None, *, play: bool) -> Encoding:
    """What the stream is to be written as: `encoding` if given, else what `output` is named for.

    `output` is a file, "-" for standard output or None for playing alone. Raises UsageError if
    the two do not fit, or `output` cannot be written.
    """
    if output is None or output == "-":
        chosen = encoding or "pcm_s16le"
        if chosen == "wav":
            raise UsageError("a WAV file needs its length in its first bytes: give -o hello.wav")
    else:
        chosen = _file_encoding(Path(output), encoding)
    if play and chosen not in ("wav", "pcm_s16le"):
        raise UsageError(f"cannot play {chosen}: only pcm_s16le, alone or beside a .wav file")
    return chosen


def _file_encoding(path: Path, encoding: Encoding | None) -> Encoding:
    try:
        check_target(path)
    except OSError as error:
        raise UsageError(str(error)) from None
    extension = path.suffix.lower()
    named = _BY_EXTENSION.get(extension)
    if encoding is None:
        if named is None:
            known = ", ".join(EXTENSIONS)
            raise UsageError(f"{path}: known endings are {known}; for others give --encoding")
        return named
    if named is None or named == encoding:
        return encoding
    if extension in _HEADERLESS and encoding in _HEADERLESS_ENCODINGS:
        return encoding
    if named == "wav" and encoding == "pcm_s16le":
        return named
    raise UsageError(f"{path}: {extension} files hold {named}, not {encoding}")


def usual_rate(encoding: Encoding) -> int:
    """Hertz, 0 for the model's own: telephone audio without a header is taken to have 8000."""
    return 8000 if encoding in ("mulaw", "alaw") else 0
