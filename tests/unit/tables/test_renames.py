"""Fields that have another name now keep their column."""

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import Column
from pyspark.sql import types as t

from headgate.decode.reader import Reader
from headgate.tables.renames import Former, Rename, former_names, names_as, names_for, renames_of


class Fixed(Reader):
    """Of which only the fields matter."""

    def __init__(
        self,
        ddl: str,
        former: Mapping[str, tuple[str, ...]] | None = None,
        numbers: Mapping[str, int] | None = None,
    ) -> None:
        self.type = struct(ddl)
        self.former_names = MappingProxyType(dict(former or {}))
        self.field_numbers = MappingProxyType(dict(numbers or {}))

    def raw(self, body: Column) -> Column:
        raise NotImplementedError

    def is_exact(self, raw: Column, body: Column) -> Column:
        raise NotImplementedError

    def value(self, raw: Column) -> Column:
        raise NotImplementedError


def struct(text: str) -> t.StructType:
    """`a b.c d[].e`: fields of a struct, of structs in it, and of structs in arrays."""
    found: dict[str, t.DataType] = {}
    for path in text.split():
        head, dot, rest = path.partition(".")
        name = head.removesuffix("[]")
        inner: t.DataType = struct(rest) if dot else t.StringType()
        found[name] = t.ArrayType(inner) if head.endswith("[]") else inner
    return t.StructType([t.StructField(name, kind) for name, kind in found.items()])


def test_an_alias_renames_for_older_schemas_only() -> None:
    (rename,) = renames_of(Fixed("b c", {"b": ("a",)}), 5, {})
    assert rename == Rename("a", "b", 5)
    assert rename.new_path == "b"
    assert names_for(Fixed("a c"), 4, [rename]) == {"a": "b"}
    # A later schema's `a` is another field.
    assert names_for(Fixed("a c"), 6, [rename]) == {}
    # One that has both means both.
    assert names_for(Fixed("a b"), 4, [rename]) == {}


def test_a_schema_with_both_names_renames_nothing() -> None:
    assert renames_of(Fixed("a b", {"b": ("a",)}), 5, {}) == []


def test_renames_follow_one_another() -> None:
    renames = [Rename("a", "b", 5), Rename("b", "c", 9)]
    assert names_for(Fixed("a"), 3, renames) == {"a": "c"}
    assert names_for(Fixed("b"), 7, renames) == {"b": "c"}
    assert names_for(Fixed("b"), 9, renames) == {}


def test_renames_at_depth() -> None:
    (rename,) = renames_of(Fixed("x.b", {"x.b": ("a",)}), 2, {})
    assert names_for(Fixed("x.a"), 1, [rename]) == {"x.a": "b"}
    assert names_for(Fixed("a"), 1, [rename]) == {}
    (listed,) = renames_of(Fixed("x[].b", {"x.element.b": ("a",)}), 2, {})
    assert names_for(Fixed("x[].a"), 1, [listed]) == {"x[].a": "b"}


def test_a_renamed_struct_and_a_renamed_field_in_it() -> None:
    renames = [Rename("old", "new", 5), Rename("new.a", "b", 5)]
    assert names_for(Fixed("old.a"), 1, renames) == {"old": "new", "old.a": "b"}


def test_protobuf_fields_keep_their_numbers() -> None:
    before = {"a": 1, "c": 2, "m.x": 1}
    assert renames_of(Fixed("b c", numbers={"b": 1, "c": 2}), 7, before) == [Rename("a", "b", 7)]
    # The old name is still there with another number: two fields.
    assert renames_of(Fixed("a b", numbers={"a": 5, "b": 1}), 7, before) == []
    assert renames_of(Fixed("m.y", numbers={"m.y": 1}), 7, {"m.x": 1, "m": 4}) == [Rename("m.x", "y", 7)]


def test_an_instruction_holds_for_all_schemas() -> None:
    rename = Rename("a", "b")
    assert names_for(Fixed("a"), 100, [rename]) == {"a": "b"}
    assert names_for(Fixed("a b"), 100, [rename]) == {}
    assert names_for(Fixed("a"), None, [rename]) == {"a": "b"}


def former(*readers: Fixed) -> Former:
    found = former_names(readers)
    return Former(found, found)


def test_columns_that_keep_their_names_are_read_by_aliases() -> None:
    old, new, newest = Fixed("a c"), Fixed("b c", {"b": ("a",)}), Fixed("z c", {"z": ("b",)})
    known = former(old, new, newest)
    assert names_as(new.type, old.type, known) == {"b": "a"}
    assert names_as(newest.type, old.type, known) == {"z": "a"}, "by way of the schema between"
    assert names_as(old.type, newest.type, known) == {"a": "z"}, "records that are older than the columns"
    assert names_as(new.type, new.type, known) == {}
    assert names_as(struct("x c"), old.type, known) == {}, "nothing says that it is the same"


def test_a_field_with_the_name_of_a_column_is_that_column() -> None:
    both = Fixed("a b", {"b": ("a",)})
    known = former(Fixed("a"), Fixed("b", {"b": ("a",)}), both)
    assert names_as(both.type, struct("a"), known) == {}
    assert names_as(struct("b"), both.type, known) == {}


def test_columns_that_keep_their_names_at_depth() -> None:
    listed = Fixed("x[].b", {"x.element.b": ("a",)})
    assert names_as(listed.type, struct("x[].a"), former(listed)) == {"x[].b": "a"}
    both = Fixed("new.b", {"new": ("old",), "new.b": ("a",)})
    known = former(both)
    assert names_as(both.type, struct("old.a"), known) == {"new": "old", "new.b": "a"}
    assert names_as(struct("old.a"), both.type, known) == {"old": "new", "old.a": "b"}


def test_columns_that_keep_their_names_are_read_by_protobuf_numbers() -> None:
    old, new = Fixed("a c", numbers={"a": 1, "c": 2}), Fixed("b c", numbers={"b": 1, "c": 2})
    known = former(old, new)
    assert names_as(new.type, old.type, known) == {"b": "a"}
    assert names_as(old.type, new.type, known) == {"a": "b"}


def test_an_older_record_of_another_type_is_not_the_renamed_column() -> None:
    known = former(Fixed("b", {"b": ("a",)}))
    number = t.StructType([t.StructField("a", t.IntegerType())])
    assert names_as(number, struct("b"), known) == {}


def test_what_a_later_schema_says_of_a_name_is_not_true_of_an_older_field() -> None:
    new = former_names([Fixed("b", {"b": ("a",)})])
    assert names_as(struct("b"), struct("a"), Former({}, new)) == {}
    assert names_as(struct("a"), struct("b"), Former({}, new)) == {"a": "b"}
