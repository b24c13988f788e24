"""Structured logs on standard error: JSON when it is not a terminal, key=value lines when it is."""

import logging
import sys

import structlog


def configure_logging(log_format: str) -> None:
    """Send our own and every library's log records to standard error in one format.

    `log_format` is "json", "text" or "auto" (text on a terminal). Safe to call again.
    """
    as_text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: list[structlog.typing.Processor] = (
        # The plain formatter: the default one would print local variables, user text among them.
        [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
        if as_text
        else [
            structlog.processors.format_exc_info,
            _what_first,
            structlog.processors.JSONRenderer(),
        ]
    )
    handler = logging.StreamHandler(sys.stderr)
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
