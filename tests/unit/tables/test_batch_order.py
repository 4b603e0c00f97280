"""The order of a batch with bad records: its dead letters are written before its own commit."""

from types import SimpleNamespace
from typing import Any, cast

from headgate.model import OnError, Position, TableSpec, Topic
from headgate.tables.lane import BadGroup, Staged
from headgate.tables.materialize import Materializer, TopicView
from headgate.tables.plan import Limits
from tests.support.plain_table import PlainSnapshot

START = Position("cluster", "T1", {0: 0})
VIEW = TopicView("cluster", Topic("orders", "T1", (0,)), {0: 0}, {0: 5})
BAD = BadGroup("Undecodable", "it is cut short", 2, 0, 3, None)


class Parts:
    """Lake, lane, source and dead letters of a batch of five records, two of them bad."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.name = "orders.dlq"
        self.ids: list[int] = []

    def view(self, _: str) -> TopicView:
        return VIEW

    def record_bytes(self, *_: Any) -> float:
        return 1.0

    def evolve(self, _: Any) -> Any:
        return SimpleNamespace(headers=False)

    def read(self, *_: Any) -> str:
        return "records"

    dead = has_headers = read

    def write(self, *_: Any) -> None:
        """None: some are bad."""

    def bad(self, *_: Any) -> list[BadGroup]:
        return [BAD]

    def write_good(self, *_: Any) -> Staged:
        self.calls.append("files")
        return Staged(())

    def add(self, *_: Any) -> int:
        self.calls.append("dead letters")
        return BAD.count

    def commit(self, *_: Any) -> PlainSnapshot:
        self.calls.append("commit")
        return PlainSnapshot(1)

    def location(self) -> str:
        return "file:///orders"


def test_dead_letters_are_written_before_the_batch_is_committed() -> None:
    """An engine that dies between the two tries the same range again; the other way round, they are lost."""
    parts = cast(Any, Parts())
    spec = TableSpec("orders", partition=(), on_error=OnError.LOG)
    materializer = Materializer(spec, "first", parts, parts, parts, parts, Limits(100, 100), parts)
    materializer._table, materializer._owner, materializer._in_play = parts, parts, parts
    materializer.position = START
    report = materializer.run(VIEW)
    assert report is not None
    assert report.bad == 2
    assert [call for call in parts.calls if call != "files"] == ["dead letters", "commit"]
