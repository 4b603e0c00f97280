"""Which column a record's key is, as the record shows."""

import pytest

from headgate.statements.record_keys import matching

ROW = {"order": 17, "who": "17", "paid": True, "share": 0.5, "far": 1 << 40, "note": None, "bike": "b-1"}


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        (b"17", ["order", "who"]),
        ((17).to_bytes(4, "big"), ["order"]),
        ((17).to_bytes(8, "big"), ["order"]),
        ((1 << 40).to_bytes(8, "big"), ["far"]),
        (b"b-1", ["bike"]),
        (b"True", []),
        (b"0.5", []),
        (b"None", []),
        (b"", []),
        (None, []),
    ],
)
def test_a_key_is_a_column_as_text_or_as_the_bytes_of_a_whole_number(
    key: bytes | None, columns: list[str]
) -> None:
    assert matching(key, ROW, list(ROW)) == columns
