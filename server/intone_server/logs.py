"""Structured logs on standard error: JSON when it is not a terminal, key=value lines when it is."""

import atexit
import contextlib
import logging
import logging.handlers
import queue
import sys
import threading
import time

import structlog

# Lines that may wait for a standard error that is slow to read; more are dropped.
MAX_WAITING_LINES = 10_000
FLUSH_SECONDS = 1.0


def configure_logging(log_format: str, *, in_background: bool = False) -> None:
    """Send our own and every library's log records to standard error in one format.

    `log_format` is "json", "text" or "auto" (text on a terminal). `in_background` writes them in a
    thread, so that a standard error which nobody reads does not hold up the caller. Safe to call
    again.
    """
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    as_text = log_format == "text" or (log_format == "auto" and on_terminal)
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: list[structlog.typing.Processor] = (
        # The plain formatter: the default one would print local variables, user text among them.
        [
            structlog.dev.ConsoleRenderer(
                colors=on_terminal, exception_formatter=structlog.dev.plain_traceback
            )
        ]
        if as_text
        else [
            structlog.processors.format_exc_info,
            _what_first,
            structlog.processors.JSONRenderer(),
        ]
    )
    handler = _in_background() if in_background else logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)  # libraries
    logging.getLogger("intone").setLevel(logging.INFO)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _what_first(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """When, how bad and what, before the details: lines are read by people too."""
    first = {key: event.pop(key) for key in ("timestamp", "level", "logger", "event")}
    return first | dict(event)


class _DroppingHandler(logging.handlers.QueueHandler):
    """Hands on formatted lines, and drops them while too many wait."""

    def enqueue(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(queue.Full):
            self.queue.put_nowait(record)


def _in_background() -> logging.Handler:
    """A handler whose lines are written by a thread that may wait as long as it likes."""
    lines: queue.Queue[logging.LogRecord] = queue.Queue(MAX_WAITING_LINES)
    writer = logging.StreamHandler(sys.stderr)

    def write() -> None:
        while True:
            writer.handle(lines.get())
            lines.task_done()

    def flush() -> None:
        deadline = time.monotonic() + FLUSH_SECONDS
        while lines.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.01)

    threading.Thread(target=write, name="log-writer", daemon=True).start()
    atexit.register(flush)
    return _DroppingHandler(lines)
