"""Small programs that the supervisor's tests supervise, and one that supervises them.

python programs.py steady NAME FOLDER INSTANCE      has a child of its own; ends on SIGTERM
python programs.py stubborn NAME FOLDER INSTANCE    the same, but neither of the two minds SIGTERM
python programs.py mortal NAME FOLDER INSTANCE      dies at once, and says why
python programs.py silent NAME FOLDER INSTANCE      lives, and is never ready
python programs.py supervisor FOLDER                supervises `first` and `second`, as `headgate up` does
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PROGRAM = str(Path(__file__))


def steady(name: str, folder: Path, instance: str, stubborn: bool = False) -> None:
    def end(*_: object) -> None:
        with (folder / "ended").open("a") as out:
            out.write(f"{name}\n")
        sys.exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if stubborn else end)
    sleeper = subprocess.Popen(["sleep", "1000"])
    (folder / f"{name}.sleeper").write_text(str(sleeper.pid))
    (folder / f"{name}.pid").write_text(str(os.getpid()))
    (folder / f"{name}.{instance}").touch()
    while True:
        time.sleep(10)


def mortal(name: str) -> None:
    sys.stderr.write(f"{name} cannot live\n")
    sys.exit(3)


def command(kind: str, name: str, folder: Path) -> Callable[[str], list[str]]:
    return lambda instance: [sys.executable, PROGRAM, kind, name, str(folder), instance]


def ready(name: str, folder: Path) -> Callable[[str], bool]:
    return lambda instance: (folder / f"{name}.{instance}").exists()


def supervise(folder: Path) -> None:
    from headgate.config import load_settings
    from headgate.embedded.child import ChildSpec
    from headgate.embedded.folder import DataFolder
    from headgate.embedded.process import Identity
    from headgate.embedded.runtime import Runtime
    from headgate.embedded.stack import supervise
    from headgate.embedded.supervisor import Supervisor
    from headgate.store import Store

    settings = load_settings(environment={}, data=folder)
    with DataFolder.taken(folder) as taken:
        store = Store.open(settings.store_url)
        specs = [
            ChildSpec(name, command("steady", name, folder), ready(name, folder))
            for name in ("first", "second")
        ]
        supervisor = Supervisor(specs, store, taken, lambda text: print(text, flush=True))
        runtime = Runtime.of(
            settings, server_port=1, connect_port=2, broker_port=3, supervisor=Identity.own()
        )
        supervise(supervisor, runtime, lambda _: print("READY", flush=True))
        store.close()


def main(kind: str, *arguments: str) -> None:
    if kind == "supervisor":
        supervise(Path(arguments[0]))
        return
    name, folder, instance = arguments[0], Path(arguments[1]), arguments[2]
    match kind:
        case "steady" | "stubborn":
            steady(name, folder, instance, stubborn=kind == "stubborn")
        case "mortal":
            mortal(name)
        case "silent":
            time.sleep(1000)


if __name__ == "__main__":
    main(*sys.argv[1:])
