"""Topics that become tables because the configuration says so."""

from headgate.config import TablePattern
from headgate.engine.patterns import changes
from headgate.model import OnError, TableSpec, TableState
from headgate.store import TableRecord, TableStatus

ALL = TablePattern(match="shop.*", freshness="5s", on_error="log")


def table(spec: TableSpec, origin: str = "pattern") -> TableRecord:
    status = TableStatus(TableState.RUNNING, "", 0.0, {}, 0.0)
    return TableRecord(spec, "enabled", None, 0.0, status, origin)


def enabled(*topics: str, patterns: list[TablePattern] | None = None) -> list[str]:
    new, _ = changes(topics, patterns or [ALL], {}, set())
    return [spec.topic for spec in new]


def test_those_that_match_become_tables() -> None:
    assert enabled("shop.orders", "shop", "shopping", "other.shop.x", "shop.") == ["shop.orders", "shop."]


def test_later_patterns_win_and_exclusion_always_does() -> None:
    patterns = [
        ALL,
        TablePattern(match="shop.orders", freshness="1m", partition=["day(at)"]),
        TablePattern(match="*.secret", exclude=True),
    ]
    new, _ = changes(["shop.orders", "shop.secret", "shop.x"], patterns, {}, set())
    assert [spec.topic for spec in new] == ["shop.orders", "shop.x"]
    assert new[0].freshness_seconds == 60.0
    assert new[0].on_error is OnError.LOG
    assert new[0].partition == ("day(at)",)
    assert new[1].freshness_seconds == 5.0


def test_dead_letters_and_internal_topics_never_match() -> None:
    everything = [TablePattern(match="*", on_error="log", dead_letters="graveyard")]
    tables = {"a": table(TableSpec("a", on_error=OnError.LOG, dead_letters="graveyard"), "request")}
    new, _ = changes(["a", "a.dlq", "graveyard", "__headgate_markers", "b"], everything, tables, set())
    assert [spec.topic for spec in new] == ["b"]


def test_what_was_done_by_hand_stays() -> None:
    tables = {"shop.a": table(TableSpec("shop.a"), "request")}
    new, altered = changes(["shop.a", "shop.b"], [ALL], tables, {"shop.b"})
    assert (new, altered) == ([], [])


def test_a_changed_pattern_alters_its_tables_but_not_what_their_rows_were_made_by() -> None:
    before = ALL.apply(TableSpec("shop.a"))
    changed = TablePattern.model_validate(
        {"match": "shop.*", "freshness": "9s", "on_error": "log", "from": "latest", "partition": ["hour(x)"]}
    )
    _, altered = changes(["shop.a"], [changed], {"shop.a": table(before)}, set())
    assert [spec.freshness_seconds for spec in altered] == [9.0]
    assert altered[0].start == before.start
    assert altered[0].partition == ("hour(x)",)
    assert changes(["shop.a"], [changed], {"shop.a": table(altered[0])}, set()) == ([], [])
