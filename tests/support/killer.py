"""Kills the engine of a running Headgate with SIGKILL, at random times, from a process of its own.

Usage: python -m tests.support.killer STORE_URL COUNT SEED [engine|server]
"""

import os
import random
import signal
import sys
import time

from headgate.store import Store


def main() -> None:
    url, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    name = sys.argv[4] if len(sys.argv) > 4 else "engine"
    store = Store.open(url)
    chance = random.Random(seed)
    killed: set[int] = set()
    while len(killed) < count:
        engine = store.process(name)
        if engine.state != "ready" or engine.pid is None or engine.pid in killed:
            time.sleep(0.05)
            continue
        time.sleep(chance.uniform(0.2, 5.0))
        # Python and its JVM are one group; what leads it restarts them only when all are gone.
        group = os.getpgid(engine.pid)
        victim = chance.choice(("python", "group"))
        if victim == "python":
            os.kill(engine.pid, signal.SIGKILL)
        else:
            os.killpg(group, signal.SIGKILL)
        killed.add(engine.pid)
        print(f"killed {victim} of {engine.pid}", flush=True)
    store.close()


if __name__ == "__main__":
    main()
