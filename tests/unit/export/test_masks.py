"""Masks value by value, and columns that look personal."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from headgate.errors import InvalidRequest
from headgate.export.columns import Column, check_columns, flat_columns
from headgate.export.definition import ExportOptions
from headgate.export.masks import Masking, key_versions, mask_email, mask_partial, mask_phone
from headgate.export.personal import Suspicion, by_name, is_card, is_iban, is_mail, is_phone


def options(**said: Any) -> ExportOptions:
    return ExportOptions.model_validate({"sql": "SELECT * FROM t", "zone": "Europe/Berlin", **said})


def masked(array: pa.Array, mask: dict[str, Any], key: str = "key") -> list[Any]:
    said = options(masks={"c": mask})
    masking = Masking(said, [Column(("c",), "c", array.type)], lambda _: key)
    assert masking.columns == ["c"]
    found = masking.apply(pa.record_batch([array], names=["c"])).column(0).to_pylist()
    assert isinstance(found, list)
    return found


def test_keyed_masks_are_equal_for_equal_values_and_others_with_another_key() -> None:
    array = pa.array(["a", None, "b", "a"])
    hashed = masked(array, {"mask": "hash", "secret": "k"})
    assert hashed[0] == hashed[3] != hashed[2]
    assert (hashed[1], len(hashed[0])) == (None, 64)
    assert masked(array, {"mask": "hash", "secret": "k"}, "other") != hashed
    assert [len(t) for t in masked(array, {"mask": "token", "secret": "k", "length": 20}) if t] == [20] * 3
    assert masked(pa.array([5]), {"mask": "hash", "secret": "k"}) == masked(
        pa.array(["5"]), {"mask": "hash", "secret": "k"}
    )
    assert key_versions(["k"], lambda _: "key") != key_versions(["k"], lambda _: "other")


def test_times_become_the_first_day_of_their_month_in_the_zone() -> None:
    at = pa.array([datetime(2026, 2, 28, 23, 30, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
    assert masked(at, {"mask": "month"}) == [date(2026, 3, 1), None]
    assert masked(pa.array([date(2026, 5, 6)]), {"mask": "year"}) == [date(2026, 1, 1)]


def test_redaction_keeps_nothing_but_that_there_was_something() -> None:
    assert masked(pa.array([1, None]), {"mask": "redact"}) == ["***", None]


@pytest.mark.parametrize(
    ("value", "mail", "phone", "partial"),
    [
        ("anneke@example.org", "a****e@example.org", "anneke@example.org", "a*****@*******.*rg"),
        ("ab@x.nl", "**@x.nl", "ab@x.nl", "a*@*.nl"),
        ("@x.nl", "*****", "@x.nl", "@*.nl"),
        ("none", "****", "none", "n*ne"),
        ("+31 6 1234 5678", "*" * 15, "+** * **** **78", "+** * **** **78"),
        ("ab", "**", "ab", "**"),
    ],
)
def test_parts_of_texts_are_hidden(value: str, mail: str, phone: str, partial: str) -> None:
    assert (mask_email(value), mask_phone(value), mask_partial(value, 1, 2)) == (mail, phone, partial)


def test_a_mask_that_does_not_fit_a_column_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="Mask month hides a time or a date"):
        masked(pa.array(["x"]), {"mask": "month"})


@pytest.mark.parametrize(
    ("is_it", "right", "wrong"),
    [
        (is_mail, ["a.b+c@example.org"], ["a****b@example.org", "a@b", "a b@example.org"]),
        (is_phone, ["+31 6 12345678", "0049 (30) 1234567"], ["2026-11-19", "+1", "12345678", "+** * **78"]),
        (is_card, ["4111 1111 1111 1111", "5500005555555559"], ["4111 1111 1111 1112", "1234567812345678"]),
        (is_iban, ["NL91 ABNA 0417 1643 00", "DE89370400440532013000"], ["NL92ABNA0417164300", "AB12"]),
    ],
)
def test_what_is_personal_is_told_by_its_form_and_its_check_digits(
    is_it: Any, right: list[str], wrong: list[str]
) -> None:
    assert [text for text in right if not is_it(text)] == []
    assert [text for text in wrong if is_it(text)] == []


@pytest.mark.parametrize(
    "name", ["email", "customer_email", "e_mail", "phone_number", "last_name", "iban", "dob"]
)
def test_names_that_look_personal(name: str) -> None:
    assert by_name(name) is not None


@pytest.mark.parametrize("name", ["order_id", "emailed_at", "product_name", "panel", "company", "phonetic"])
def test_names_that_do_not(name: str) -> None:
    assert by_name(name) is None


def test_a_masked_column_is_not_looked_at() -> None:
    suspicion = Suspicion(["mail", "note"], ["mail"])
    suspicion.look(
        pa.record_batch([pa.array(["a@b.org"]), pa.array(["4111111111111111"])], names=["mail", "note"])
    )
    assert suspicion.warnings == ["column 'note' holds what looks like card numbers"]


def test_structs_are_flat_and_what_has_no_order_is_refused() -> None:
    inner = pa.struct([("b", pa.int32()), ("c", pa.struct([("d", pa.string())]))])
    found = flat_columns(pa.schema([("a", inner), ("e", pa.list_(pa.int32()))]))
    assert [(column.path, column.name) for column in found] == [
        (("a", "b"), "a_b"),
        (("a", "c", "d"), "a_c_d"),
        (("e",), "e"),
    ]
    with pytest.raises(InvalidRequest, match="more than one column 'a_b'"):
        flat_columns(pa.schema([("a", inner), ("a_b", pa.int32())]))
    with pytest.raises(InvalidRequest, match="'m' is a MAP"):
        flat_columns(pa.schema([("m", pa.map_(pa.string(), pa.int32()))]))
    with pytest.raises(InvalidRequest, match="cannot be exported"):
        flat_columns(pa.schema([("t", pa.duration("us"))]))


def test_the_only_column_of_a_csv_needs_a_word_for_null() -> None:
    column = [Column(("a",), "a", pa.string())]
    with pytest.raises(InvalidRequest, match="empty line"):
        check_columns(column, options())
    check_columns(column, options(csv={"null": "NULL"}))
