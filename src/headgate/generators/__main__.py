"""`python -m headgate.generators`: started while a generator is wanted."""

import sys

from headgate.embedded.start import run_main

if __name__ == "__main__":
    sys.exit(run_main("headgate.generators.main"))
