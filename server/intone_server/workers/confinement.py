"""What a process may do and take that decodes what callers send, which may be hostile.

Nothing is written to disk, decoders stay out of the log, and running streams come first.
"""

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from intone_server.logs import configure_logging

# Frames of running streams come first: against a thread of the model such a process gets a quarter
# of a core. With much less, a voice of 30 s would not be made in time on a busy machine.
NICENESS = 5

TOO_MUCH_MEMORY = "decoding this recording takes more memory than a recording should"


def enter(log_format: str) -> None:
    """Call first: the rest of the process's life is at low priority."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # see workers/preload.py
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    configure_logging(log_format)
    os.nice(NICENESS)
    # A decoder that crashes would leave the upload, and the model, in a file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_memory(most_bytes: int) -> None:
    """From here on no more address space than that on top of what is mapped now.

    Elsewhere than on Linux memory is not limited by address space, and files are the decoder's
    alone to bound.
    """
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + most_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def limit_cpu(seconds: int) -> None:
    """From here on no more time of a processor than that, a second more or less; then SIGXCPU ends
    the process. May be called again."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Decoders write about each fault of a file to standard error, which is the server's log."""
    log_end = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(log_end, 2)
        os.close(log_end)
        os.close(nowhere)
