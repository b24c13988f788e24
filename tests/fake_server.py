"""`intone-server` with the fake engine among its engines."""

import sys

from intone_server.__main__ import ENGINES, main

if __name__ == "__main__":
    sys.exit(main(engines={**ENGINES, "fake": "fake_engine:FakeEngine"}))
