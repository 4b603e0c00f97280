"""`python -m headgate.server`: one process, one port, a small JVM behind it."""

import sys

from headgate.embedded.start import run_main

if __name__ == "__main__":
    sys.exit(run_main("headgate.server.main"))
