"""Command line: flags and INTONE_* variables -> Settings -> serve.

Every worker process imports this module again, so nothing heavy is imported here.
"""

import os
import sys
from collections.abc import Mapping, Sequence

ENGINES = {
    "pocket": "intone_server.engines.pocket:PocketEngine",
    "builtin": "intone_server.engines.builtin:BuiltinEngine",
}


def main(arguments: Sequence[str] | None = None, engines: Mapping[str, str] = ENGINES) -> int:
    """Run the server; returns its exit code."""
    from intone_server.flags import parse_settings, unknown_variables
    from intone_server.settings import SettingsError

    try:
        settings = parse_settings(
            sys.argv[1:] if arguments is None else arguments, os.environ, sorted(engines)
        )
    except SettingsError as error:
        for fault in error.faults:
            print(f"intone-server: {fault}", file=sys.stderr)
        return 1

    import asyncio
    import signal

    import structlog

    from intone_server.app import serve
    from intone_server.logs import configure_logging

    if not settings.debug_signal:
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # or it would end the server
    configure_logging(settings.log_format, in_background=True)
    for name in unknown_variables(os.environ):
        structlog.stdlib.get_logger("intone.app").warning("not a setting", variable=name)
    return asyncio.run(serve(settings, engines))


if __name__ == "__main__":
    sys.exit(main())
