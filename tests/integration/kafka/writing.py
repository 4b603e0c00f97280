"""`python -m tests.integration.kafka.writing`: batches by a transactional writer, until killed or done."""

import sys
from collections.abc import Iterator

from headgate.kafka.transactional import Row, TransactionalWriter

ROWS = 200


def rows(name: str, batch: int, task: int) -> Iterator[Row]:
    for number in range(ROWS):
        yield Row(f"{name}-{task}".encode(), f"{batch}:{task}:{number}".encode())


def main(bootstrap: str, name: str, topic: str, markers: str, batches: int) -> None:
    with TransactionalWriter(bootstrap, name, 0, markers) as writer:
        last = writer.committed()
        print("committed", last, flush=True)
        for batch in range(0 if last is None else last, batches):
            written = writer.write(batch, topic, rows(name, batch, 0))
            print(batch, written, flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
