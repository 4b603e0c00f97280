"""`python -m tests.support.warm.server_part FILE FOLDER BOOTSTRAP`: a server; FILE has its address.

It is `headgate.server` in this process, on the data folder FOLDER, which must be empty.
"""

import os
import runpy
import sys
from pathlib import Path

from headgate.embedded.run_file import write_json
from tests.support.services import Services


def main(file: Path, folder: Path, bootstrap: str) -> None:
    services = Services(folder, bootstrap)
    services.close()
    os.environ |= services.environment
    health = f"{services.runtime.console}healthz"
    write_json(file, {"health": health, "folder": str(folder), "bootstrap": bootstrap})
    sys.argv = ["headgate.server", "--data", str(folder)]
    runpy.run_module("headgate.server", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
