"""When a table wants maintenance."""

import pytest

from headgate.config import Maintenance, load_settings
from headgate.errors import ConfigError, InvalidRequest
from headgate.maintain.clean import check_age
from headgate.maintain.compact import Compaction
from headgate.maintain.thresholds import (
    Added,
    deleted_ratio,
    small_files,
    wants_cleaning,
    wants_compaction,
    wants_expiry,
)

SETTINGS = Maintenance(small_files=3, deleted_ratio=0.2)
DAY = 86400.0


def added(number: int, files: int, size: int = 10, operation: str = "append") -> Added:
    return Added(number, operation, files, size * files)


def test_small_files_are_counted_back_to_the_last_rewrite() -> None:
    history = [added(4, 2), added(3, 0), added(2, 1), added(1, 5, operation="replace"), added(0, 9)]
    assert small_files(history, 1000, None) == 3


def test_files_of_a_fair_size_are_not_small() -> None:
    assert small_files([added(1, 2, 250), added(0, 1, 249)], 1000, None) == 1


def test_what_a_compaction_left_alone_does_not_count_again() -> None:
    history = [added(3, 1), added(2, 4), added(1, 4)]
    assert small_files(history, 1000, seen=2) == 1


def test_deleted_rows() -> None:
    assert deleted_ratio({"total-records": "10", "total-position-deletes": "2"}) == 0.2
    assert deleted_ratio({}) == 0.0


@pytest.mark.parametrize(
    ("small", "deleted", "wanted"), [(2, 0.0, False), (3, 0.0, True), (0, 0.19, False), (0, 0.2, True)]
)
def test_compaction(small: int, deleted: float, wanted: bool) -> None:
    assert wants_compaction(small, deleted, SETTINGS) is wanted


def test_expiry_waits_until_it_is_worth_it() -> None:
    assert not wants_expiry(1, 5.5 * DAY, SETTINGS)
    assert wants_expiry(1, 6 * DAY, SETTINGS)
    assert not wants_expiry(0, 60 * DAY, SETTINGS)


def test_cleaning_is_for_once_a_day() -> None:
    assert wants_cleaning(None, SETTINGS)
    assert not wants_cleaning(DAY - 1, SETTINGS)
    assert wants_cleaning(DAY, SETTINGS)


def test_young_files_are_cleaned_by_force_only() -> None:
    check_age(3600, force=False)
    check_age(0, force=True)
    for seconds, force in ((3599, False), (-1, True)):
        with pytest.raises(InvalidRequest, match="commit under way"):
            check_age(seconds, force)


def test_any_deleted_row_counts_unless_a_share_is_named() -> None:
    assert Compaction(1000).options()["delete-file-threshold"] == "1"
    options = Compaction(1000, deleted_ratio=0.3).options()
    assert options["delete-ratio-threshold"] == "0.3"
    assert "delete-file-threshold" not in options


def test_durations_in_the_configuration() -> None:
    found = load_settings(environment={"HEADGATE_MAINTENANCE__SNAPSHOTS_OLDER_THAN": "12h"}).maintenance
    assert found.snapshots_older_than == 12 * 3600
    for key, value in (("EVERY", "soon"), ("EVERY", "0s"), ("ORPHANS_OLDER_THAN", "5m")):
        with pytest.raises(ConfigError, match=f"maintenance.{key.lower()}"):
            load_settings(environment={f"HEADGATE_MAINTENANCE__{key}": value})
