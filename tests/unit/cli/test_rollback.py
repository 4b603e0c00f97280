"""`headgate table rollback` says first what it means, and does nothing that was not said and confirmed."""

from typing import Any

import pytest
from typer.testing import CliRunner, Result

from headgate.cli import rollback as module
from headgate.cli.main import app
from headgate.errors import InvalidRequest

PLAN: dict[str, Any] = {
    "from": "5",
    "to": "2",
    "committed_at": 1_767_225_600_000,
    "rows": 27,
    "rows_after": 15,
    "undone": {"batch": 2, "compact": 1},
    "offsets": 14,
    "ranges": [{"partition": 0, "start": 10, "end": 20}, {"partition": 1, "start": 5, "end": 9}],
    "dead_letters": 2,
    "refused": {"again": "Kafka no longer has the records of topic 'orders': keep them out."},
}
DONE = {"from": "5", "to": "2", "records": "keep-out", "rows": 15, "offsets": 14}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was asked of the engine."""
    bodies: list[dict[str, Any]] = []

    def ask(_: str, body: dict[str, Any], __: Any) -> dict[str, Any]:
        bodies.append(body)
        return PLAN if body.get("dry_run") else DONE

    monkeypatch.setattr(module, "_ask", ask)
    return bodies


def rollback(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["table", "rollback", "orders", "--to", "good", *arguments])


def test_it_says_what_it_means_in_rows_snapshots_and_offsets(asked: list[dict[str, Any]]) -> None:
    said = rollback("--dry-run").stdout
    assert "from snapshot 5 back to 2 of 2026-01-01 00:00:00" in said
    assert "rows: 27 now, 15 then (-12)" in said
    assert "2 × batch, 1 × compact" in said
    assert "14 offsets (partition 0: 10 to 19, partition 1: 5 to 8), 2 of their records dead letters" in said
    assert "--records again: not possible. Kafka no longer has" in said
    assert "--records keep-out: the position stays, the records of 14 offsets stay out" in said
    assert asked == [{"to": "good", "dry_run": True}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "It is not said what becomes of the records"),
        (("--records", "perhaps"), "cannot become of records"),
        (("--records", "again", "--yes"), "Kafka no longer has the records"),
        (("--records", "keep-out"), "is to be put back to snapshot 2"),
    ],
)
def test_without_a_word_that_is_possible_nothing_is_done(
    asked: list[dict[str, Any]], arguments: tuple[str, ...], said: str
) -> None:
    done = rollback(*arguments)
    assert isinstance(done.exception, InvalidRequest)
    assert said in str(done.exception)
    assert all(body.get("dry_run") for body in asked)


def test_what_was_planned_is_what_is_done(asked: list[dict[str, Any]]) -> None:
    """By the snapshot's id, whatever the tag or the time means by then."""
    done = rollback("--records", "keep-out", "--yes")
    assert done.exit_code == 0, done.output
    assert asked[1:] == [{"to": "2", "records": "keep-out"}]
    assert (
        "orders is put back to snapshot 2: 15 rows; the records of 14 offsets stay out of it" in done.stdout
    )


@pytest.mark.parametrize("options", [("--snapshot", "1"), ("--keep", "1d"), ("--remove",)])
def test_a_tag_without_a_name_is_refused(options: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["table", "tag", "orders", *options])
    assert isinstance(done.exception, InvalidRequest)
    assert "has no name" in str(done.exception)
