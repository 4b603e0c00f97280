"""`python -m tests.support.warm start|stop FOLDER`: what `make services` and `make services-stop` run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from headgate.embedded.child import tail
from tests.support.services import INTERPRETER, JVM_OPTIONS
from tests.support.warm.keeper import version
from tests.support.warm.lease import read_services

START_SECONDS = 180.0
STOP_SECONDS = 60.0


def start(folder: Path) -> int:
    services = read_services(folder)
    if services is not None and services.version == version():
        print("The services are up already.")
        return 0
    if services is not None:
        stop(folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = folder / "keeper.log"
    with log.open("wb") as out:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm.keeper", str(folder)],
            env={
                **os.environ,
                "JDK_JAVA_OPTIONS": os.environ.get("JDK_JAVA_OPTIONS", f"{JVM_OPTIONS} {INTERPRETER}"),
            },
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while (services := read_services(folder)) is None or services.keeper.pid != keeper.pid:
        if keeper.poll() is not None or time.monotonic() > deadline:
            keeper.terminate()
            keeper.wait(STOP_SECONDS)
            print(f"The services did not start; the end of {log}:\n{tail(log)}", file=sys.stderr)
            return 1
        time.sleep(0.1)
    print("A broker, a server, the catalog's JVM and Spark's are up: `make one T=…` runs tests on them.")
    return 0


def stop(folder: Path) -> int:
    services = read_services(folder)
    if services is None:
        print("No services are up.")
        return 0
    os.kill(services.keeper.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while services.keeper.alive:
        if time.monotonic() > deadline:
            print(f"The keeper, pid {services.keeper.pid}, does not end.", file=sys.stderr)
            return 1
        time.sleep(0.05)
    return 0


if __name__ == "__main__":
    sys.exit({"start": start, "stop": stop}[sys.argv[1]](Path(sys.argv[2]).absolute()))
