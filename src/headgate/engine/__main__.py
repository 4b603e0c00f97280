"""`python -m headgate.engine`: the Spark driver that writes the tables."""

import sys

from headgate.embedded.start import run_main

if __name__ == "__main__":
    sys.exit(run_main("headgate.engine.main"))
