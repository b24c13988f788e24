"""The archive of a dialogue: all of its files in one."""

import secrets
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path

from intone_client._audio import check_target

_COMMENT = b"intone dialogue"
_TIME = (1980, 1, 1, 0, 0, 0)  # the same files give the same archive
_COPIED_BYTES = 2**20  # at a time


def check_archive(path: Path) -> None:
    """Raises OSError if no archive can be put there, as it would replace somebody else's."""
    if not check_target(path).exists():
        return
    try:
        with zipfile.ZipFile(path) as archive:
            is_ours = archive.comment == _COMMENT
    except zipfile.BadZipFile:
        is_ours = False
    if not is_ours:
        raise FileExistsError(f"{path} exists, and is no archive of a dialogue")


def write_archive(path: Path, files: Iterable[Path]) -> Path:
    """Put the files into an archive, which is there whole or not at all; its path, without links.

    Raises OSError.
    """
    path = path.resolve()  # a link stays a link
    # A name that is nobody's: other files may lie there too.
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file, zipfile.ZipFile(file, "w") as archive:
            archive.comment = _COMMENT
            for each in files:
                _add(archive, each)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _add(archive: zipfile.ZipFile, path: Path) -> None:
    entry = zipfile.ZipInfo(path.name, _TIME)
    # Speech shrinks to two thirds, at 25 MB a second; the rest is text.
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, so that the next line is heeded
    entry.external_attr = 0o644 << 16
    entry.file_size = path.stat().st_size
    with path.open("rb") as source, archive.open(entry, "w") as target:
        shutil.copyfileobj(source, target, _COPIED_BYTES)
