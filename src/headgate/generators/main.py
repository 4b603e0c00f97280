"""`python -m headgate.generators`: writes what managed generators make, until none is wanted."""

import logging
from contextlib import closing

from headgate.embedded.entry import enter, stop_on_signal
from headgate.embedded.heartbeat import Heartbeat
from headgate.embedded.runtime import Runtime
from headgate.generators.worker import Worker
from headgate.store import Generators, Store

NAME = "datagen"
log = logging.getLogger("headgate.generators")


def main() -> int:
    runtime, instance = enter("headgate.generators", __doc__)
    return run(runtime, instance)


def run(runtime: Runtime, instance: str) -> int:
    stop = stop_on_signal()
    with (
        closing(Store.open(runtime.settings.store_url)) as store,
        Heartbeat(store, NAME, instance) as heart,
    ):
        worker = Worker(Generators(store.engine), runtime.kafka_access, runtime.registry_access)
        heart.ready()
        log.info("ready")
        worker.run(stop)
    return 0
