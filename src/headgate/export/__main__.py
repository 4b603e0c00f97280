"""`python -m headgate.export`: started while there are exports."""

import sys

from headgate.embedded.start import run_main

if __name__ == "__main__":
    sys.exit(run_main("headgate.export.main"))
