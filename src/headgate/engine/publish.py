"""Dead letters in their topic: the raw record again, with what was wrong with it in headers."""

from collections.abc import Iterator

from pyspark.sql import Row

from headgate.errors import AlreadyExists, NotFound
from headgate.kafka.access import KafkaAccess
from headgate.kafka.topics import Topics
from headgate.kafka.transactional import Row as Letter
from headgate.kafka.transactional import TransactionalWriter
from headgate.model import DEAD_LETTER_HEADERS

MARKERS = "__headgate_markers"
# What the headers of a dead letter say, beside those that it had.
TOLD = ("topic", "partition", "offset", "timestamp", "schema_id", "error_class", "error_message")


class KafkaPublisher:
    """Publishes to one topic, exactly once, whichever engine does it."""

    def __init__(self, access: KafkaAccess, topic: str) -> None:
        self._access = access
        self._topic = topic
        self._writer: tuple[str, TransactionalWriter] | None = None

    def published(self, table_id: str) -> int:
        return self._of(table_id).committed() or 0

    def publish(self, table_id: str, number: int, rows: Iterator[Row]) -> None:
        try:
            self._of(table_id).write(number, self._topic, map(_letter, rows))
        except BaseException:
            # Whether it is in the topic or not: a new writer will know.
            self.close()
            raise

    def close(self) -> None:
        if self._writer is not None:
            self._writer[1].close()
            self._writer = None

    def _of(self, table_id: str) -> TransactionalWriter:
        if self._writer is None or self._writer[0] != table_id:
            self._create()
            name = f"headgate-dead-letters-{table_id}"
            self._writer = table_id, TransactionalWriter(self._access, name, 0, MARKERS)
        return self._writer[1]

    def _create(self) -> None:
        topics = Topics(self._access)
        try:
            topics.describe(self._topic)
        except NotFound:
            try:
                # Kept until somebody says otherwise: these are what is left of records.
                topics.create(self._topic, 1, config={"retention.ms": "-1"})
            except AlreadyExists:
                return


def _letter(row: Row) -> Letter:
    own = [(header["key"], header["value"]) for header in row["headers"] or []]
    told = [
        (f"{DEAD_LETTER_HEADERS}{name}", str(row[name]).encode()) for name in TOLD if row[name] is not None
    ]
    return Letter(key=row["key"], value=row["value"], headers=[*own, *told])
