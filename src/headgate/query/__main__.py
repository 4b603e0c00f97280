"""`python -m headgate.query`: started on demand, with a memory limit of its own."""

import sys

from headgate.embedded.start import run_main

if __name__ == "__main__":
    sys.exit(run_main("headgate.query.main"))
