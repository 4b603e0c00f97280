"""The judgement of commits to managed tables, on plain data."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.catalog.errors import CatalogError
from headgate.catalog.fencing import Proposal, Snapshot, TableState, judge, position_at, proposed_batches
from headgate.model import BATCH_KEY, FROM_KEY, OPERATION_KEY, POSITION_KEY, ROLLBACK, Batch, Position


def at(offset: int) -> Position:
    return Position("cluster", "topic", {0: offset})


def batch_snapshot(
    number: int, start: int, end: int, parent: int | None = None, batch: str | None = None
) -> Snapshot:
    made = Batch(at(start), at(end), batch or f"batch-{number}")
    return Snapshot(number, parent, number, "append", made.summary())


def plain_snapshot(
    number: int, parent: int | None, summary: Mapping[str, str] | None = None, operation: str = "append"
) -> Snapshot:
    return Snapshot(number, parent, number, operation, summary or {})


def managed(*snapshots: Snapshot, tagged: int | None = None) -> TableState:
    """`main` is at the last of them."""
    main = snapshots[-1].id if snapshots else None
    return TableState(True, {s.id: s for s in snapshots}, main, tagged)


def append_to(head: int | None, *added: Snapshot) -> Proposal:
    return Proposal(True, head, added, (added[-1].id,))


def refusal(
    table: TableState, proposal: Proposal, committed: frozenset[str] = frozenset()
) -> tuple[int, str, str]:
    with pytest.raises(CatalogError) as caught:
        judge(table, proposal, committed)
    return caught.value.status, caught.value.kind, caught.value.message


ONE = batch_snapshot(1, 0, 10)
TWO = batch_snapshot(2, 10, 20, parent=1)


def test_the_first_batch_may_start_anywhere() -> None:
    assert judge(managed(), append_to(None, batch_snapshot(1, 700, 710)), frozenset()) == ("batch-1",)


def test_a_batch_that_starts_where_the_table_stands_is_taken() -> None:
    assert judge(managed(ONE), append_to(1, TWO), frozenset()) == ("batch-2",)


def test_a_stale_batch_is_a_conflict_that_names_both_positions() -> None:
    stale = batch_snapshot(3, 10, 30, parent=2)
    status, kind, message = refusal(managed(ONE, TWO), append_to(2, stale))
    assert (status, kind) == (409, "CommitFailedException")
    assert at(10).to_json() in message
    assert at(20).to_json() in message


def test_positions_are_compared_as_values_and_not_as_text() -> None:
    spaced = '{"offsets": {"1": 5, "0": 10}, "topic": "topic", "cluster": "cluster"}'
    head = plain_snapshot(1, None, {POSITION_KEY: spaced, OPERATION_KEY: "batch"})
    start = Position("cluster", "topic", {0: 10, 1: 5})
    following = Snapshot(2, 1, 2, "append", Batch(start, start.advanced_to({0: 11}), "b").summary())
    assert judge(managed(head), append_to(1, following), frozenset()) == ("b",)


@pytest.mark.parametrize(
    "other",
    [Position("other", "topic", {0: 10}), Position("cluster", "other", {0: 10}), at(9), at(11)],
    ids=["cluster", "topic", "behind", "ahead"],
)
def test_every_part_of_a_position_counts(other: Position) -> None:
    added = Snapshot(2, 1, 2, "append", Batch(other, at(99), "b").summary())
    assert refusal(managed(ONE), append_to(1, added))[0] == 409


def test_a_batch_of_before_is_unknown_whatever_else_is_wrong_with_it() -> None:
    again = batch_snapshot(3, 0, 10, parent=2, batch="batch-1")
    stale_and_unasserted = Proposal(False, None, (again,), (3,))
    status, kind, _ = refusal(managed(ONE, TWO), stale_and_unasserted, frozenset({"batch-1"}))
    assert (status, kind) == (500, "CommitStateUnknownException")


def test_a_batch_in_the_history_of_a_registered_table_is_unknown_too() -> None:
    again = batch_snapshot(3, 0, 10, parent=2, batch="batch-1")
    assert refusal(managed(ONE, TWO), append_to(2, again))[0] == 500


def test_without_an_assertion_of_main_nothing_is_added() -> None:
    status, kind, message = refusal(managed(ONE), replace(append_to(1, TWO), asserts_main=False))
    assert (status, kind) == (400, "BadRequestException")
    assert "assert-ref-snapshot-id" in message


@pytest.mark.parametrize("missing", [FROM_KEY, POSITION_KEY])
def test_a_batch_must_say_where_it_starts_and_ends(missing: str) -> None:
    summary = {key: value for key, value in TWO.summary.items() if key != missing}
    status, _, message = refusal(managed(ONE), append_to(1, replace(TWO, summary=summary)))
    assert status == 400
    assert missing in message


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "null", '{"cluster": "c"}', '{"cluster":1,"topic":2,"offsets":3}']
)
@pytest.mark.parametrize("key", [FROM_KEY, POSITION_KEY])
def test_what_is_not_a_position_is_a_bad_request(key: str, text: str) -> None:
    added = replace(TWO, summary={**TWO.summary, key: text})
    assert refusal(managed(ONE), append_to(1, added))[0] == 400


def test_history_without_a_position_cannot_be_continued() -> None:
    foreign = plain_snapshot(1, None)
    status, kind, _ = refusal(managed(foreign), append_to(1, batch_snapshot(2, 0, 5, parent=1)))
    assert (status, kind) == (409, "CommitFailedException")


def test_main_asserted_absent_on_a_table_with_snapshots_is_no_fresh_start() -> None:
    assert refusal(managed(ONE), append_to(None, batch_snapshot(2, 0, 5)))[0] == 409


def test_an_asserted_snapshot_that_is_not_there_has_no_position() -> None:
    assert refusal(managed(ONE), append_to(77, batch_snapshot(2, 10, 20, parent=77)))[0] == 409


@pytest.mark.parametrize("operation", ["append", "overwrite", "delete", None])
def test_rows_from_elsewhere_are_refused(operation: str | None) -> None:
    added = Snapshot(2, 1, 2, operation)
    status, kind, message = refusal(managed(ONE), append_to(1, added))
    assert (status, kind) == (403, "ForbiddenException")
    assert "written by the engine alone" in message


def test_rewrites_and_operations_of_the_engine_are_taken() -> None:
    rewrite = plain_snapshot(2, 1, operation="replace")
    operation = plain_snapshot(3, 1, {OPERATION_KEY: "delete-key"}, operation="overwrite")
    assert judge(managed(ONE), append_to(1, rewrite), frozenset()) == ()
    assert judge(managed(ONE), append_to(1, operation), frozenset()) == ()


def test_a_rewrite_does_not_hide_the_position_below_it() -> None:
    rewrite = plain_snapshot(2, 1, operation="replace")
    following = batch_snapshot(3, 10, 20, parent=2)
    assert judge(managed(ONE, rewrite), append_to(2, following), frozenset()) == ("batch-3",)


def test_the_tag_stands_in_when_expiry_broke_the_chain() -> None:
    rewrite = plain_snapshot(9, 8, operation="replace")  # 8 is expired
    assert position_at(managed(ONE, rewrite, tagged=1), 9) == at(10)
    assert position_at(managed(ONE, rewrite), 9) is None


def test_an_ancestors_word_goes_before_the_tags() -> None:
    """After a rollback the tag is newer than the rows that are left: they must be read again."""
    assert position_at(managed(ONE, TWO, tagged=1), 2) == at(20)
    assert position_at(managed(ONE, TWO, tagged=2), 1) == at(10)


def test_main_goes_back_but_never_to_another_branch() -> None:
    side = plain_snapshot(5, 1)
    table = TableState(True, {1: ONE, 2: TWO, 5: side}, main=2)
    back = Proposal(False, None, (), (1,))
    assert judge(table, back, frozenset()) == ()
    assert refusal(table, replace(back, main_targets=(5,)))[0] == 403


def test_other_tables_and_other_branches_are_nobodys_business() -> None:
    foreign = plain_snapshot(2, 1)
    assert judge(TableState(False, {1: ONE}), append_to(1, foreign), frozenset()) == ()
    assert judge(managed(ONE), Proposal(False, None, (foreign,), ()), frozenset()) == ()
    assert judge(managed(ONE), Proposal(False, None, (), (1,)), frozenset()) == ()


def test_a_table_that_becomes_managed_in_the_same_commit_is_judged() -> None:
    added = append_to(None, plain_snapshot(1, None))
    assert refusal(TableState(False), replace(added, makes_managed=True))[0] == 403
    batch = append_to(None, batch_snapshot(1, 0, 10))
    assert judge(TableState(False), replace(batch, makes_managed=True), frozenset()) == ("batch-1",)


def test_every_snapshot_of_a_transaction_is_judged_in_turn() -> None:
    three = batch_snapshot(3, 20, 30, parent=2)
    assert judge(managed(ONE), append_to(1, TWO, three), frozenset()) == ("batch-2", "batch-3")
    gap = batch_snapshot(3, 25, 30, parent=2)
    assert refusal(managed(ONE), append_to(1, TWO, gap))[0] == 409
    hidden = plain_snapshot(2, 1)
    assert refusal(managed(ONE), append_to(1, hidden, batch_snapshot(3, 10, 20, parent=2)))[0] == 403


def test_one_batch_id_twice_in_a_commit_is_refused() -> None:
    twin = batch_snapshot(3, 20, 30, parent=2, batch="batch-2")
    assert refusal(managed(ONE), append_to(1, TWO, twin))[0] == 400


def test_a_snapshot_beside_main_does_not_count_as_joining() -> None:
    aside = batch_snapshot(5, 0, 1, parent=1, batch="aside")
    proposal = Proposal(True, 1, (aside, TWO), (2,))
    assert proposed_batches(proposal) == ("batch-2",)
    assert judge(managed(ONE), proposal, frozenset({"aside"})) == ("batch-2",)


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=12),
    rewrites=st.sets(st.integers(0, 11)),
    kept=st.integers(1, 24),
    guess=st.integers(0, 700),
)
def test_only_the_true_position_continues_a_table(
    sizes: list[int], rewrites: set[int], kept: int, guess: int
) -> None:
    """Whatever mix of batches, rewrites and expiry, with the tag kept as maintenance does."""
    history: list[Snapshot] = []
    offset, tagged = 0, 0
    for index, size in enumerate(sizes):
        parent = history[-1].id if history else None
        tagged = len(history) + 1
        history.append(batch_snapshot(tagged, offset, offset + size, parent))
        offset += size
        if index in rewrites:
            history.append(plain_snapshot(tagged + 1, tagged, operation="replace"))
    live = [s for s in history[-kept:] if s.id != tagged]
    table = managed(history[tagged - 1], *live, tagged=tagged)
    head = history[-1].id
    following = append_to(head, batch_snapshot(head + 1, guess, guess + 1, head))
    if guess == offset:
        assert judge(table, following, frozenset()) == (f"batch-{head + 1}",)
    else:
        assert refusal(table, following)[0] == 409
    assert BATCH_KEY in history[0].summary


PACKED = plain_snapshot(3, 2, operation="replace")


def expiry(*removed: int, tag: int | None = None, moves_tag: bool = False) -> Proposal:
    return Proposal(False, removed=frozenset(removed), moves_tag=moves_tag, tag_target=tag)


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        (managed(ONE, TWO), expiry(1)),
        (managed(ONE, TWO, PACKED), expiry(1)),
        (managed(ONE, TWO, PACKED, tagged=2), expiry(1)),
        (managed(ONE, TWO, PACKED), expiry(tag=2, moves_tag=True)),
        (managed(ONE, TWO, tagged=1), expiry(moves_tag=True)),
        (replace(managed(ONE, TWO, PACKED), managed=False), expiry(1, 2)),
    ],
)
def test_an_expiry_that_keeps_the_position_is_taken(table: TableState, wanted: Proposal) -> None:
    assert judge(table, wanted, frozenset()) == ()


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        (managed(ONE, TWO, PACKED), expiry(1, 2)),
        # The tag has an older position than the rows.
        (managed(ONE, TWO, PACKED, tagged=1), expiry(2)),
        (managed(TWO, replace(PACKED, parent_id=9), tagged=2), expiry(moves_tag=True)),
        (managed(TWO, replace(PACKED, parent_id=9), tagged=2), expiry(2)),
    ],
)
def test_an_expiry_that_loses_the_position_is_refused(table: TableState, wanted: Proposal) -> None:
    status, _, message = refusal(table, wanted)
    assert status == 403
    assert "headgate table expire" in message


def rollback(number: int, parent: int, start: int, end: int) -> Snapshot:
    made = Batch(at(start), at(end), f"asked-{number}")
    return Snapshot(number, parent, number, "append", {**made.summary(), OPERATION_KEY: ROLLBACK})


THREE = batch_snapshot(3, 20, 30, parent=2)


@pytest.mark.parametrize("end", [10, 30], ids=["read again", "kept out"])
def test_a_rollback_starts_where_the_table_stood_at_the_snapshot_it_goes_back_to(end: int) -> None:
    back = rollback(4, parent=1, start=10, end=end)
    proposal = Proposal(True, 3, (back,), (1, 4))
    assert judge(managed(ONE, TWO, THREE), proposal, frozenset()) == ("asked-4",)


def test_a_rollback_that_says_another_position_is_a_conflict() -> None:
    back = rollback(4, parent=1, start=20, end=20)
    assert refusal(managed(ONE, TWO, THREE), Proposal(True, 3, (back,), (1, 4)))[0] == 409


def test_a_rollback_goes_back_in_the_history_of_what_it_asserts_only() -> None:
    elsewhere = batch_snapshot(7, 10, 12, parent=1)
    table = managed(ONE, elsewhere, TWO, THREE)
    back = rollback(8, parent=7, start=12, end=12)
    status, _, message = refusal(table, Proposal(True, 3, (back,), (8,)))
    assert status == 403
    assert "Snapshot 7 is not in the history of main" in message


def test_a_batch_made_for_the_head_before_a_rollback_is_refused_after_it() -> None:
    back = rollback(4, parent=1, start=10, end=10)
    table = managed(ONE, TWO, THREE, back)
    late = batch_snapshot(5, 30, 40, parent=4)
    assert refusal(table, append_to(4, late))[0] == 409
    assert judge(table, append_to(4, batch_snapshot(6, 10, 40, parent=4)), frozenset()) == ("batch-6",)
