"""`python -m tests.support.warm.broker_part FILE FOLDER`: a broker; FILE has its address once it answers."""

import subprocess
import sys
from pathlib import Path

from headgate.config import load_settings
from headgate.embedded.broker import Broker, wait_for_kafka
from headgate.embedded.ports import free_port
from headgate.embedded.run_file import write_json


def main(file: Path, folder: Path) -> int:
    broker = Broker(folder, free_port(), free_port(), load_settings(environment={}).jars_folder)
    process = subprocess.Popen(broker.prepare())
    wait_for_kafka(broker.bootstrap, alive=lambda: process.poll() is None)
    address = {"port": broker.port, "controller_port": broker.controller_port, "folder": str(folder)}
    write_json(file, address)
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
