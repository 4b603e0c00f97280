"""Schemas as the registry has them become descriptors, by the real compiler."""

import base64

import pytest

from headgate.decode import protos
from headgate.decode.protos import MalformedProto, compiled, serialized
from tests.unit.decode.protobuf_samples import base64_of

MONEY = 'syntax = "proto3"; package money; message Money { int64 units = 1; }'
ITEM = 'syntax = "proto3"; package shop; import "a/money.proto"; message Item { money.Money price = 1; }'
ORDER = 'syntax = "proto3"; package shop; import "item.proto"; message Order { repeated Item items = 1; }'


@pytest.mark.parametrize("as_descriptor", [(), ("money",), ("item",), ("order",), ("money", "item", "order")])
def test_text_and_descriptors_import_each_other(as_descriptor: tuple[str, ...]) -> None:
    money = ("a/money.proto", base64_of(MONEY) if "money" in as_descriptor else MONEY)
    item_text = base64_of(ITEM, [("a/money.proto", MONEY)]) if "item" in as_descriptor else ITEM
    item = ("item.proto", item_text)
    plain = [("a/money.proto", MONEY), ("item.proto", ITEM)]
    order = base64_of(ORDER, plain) if "order" in as_descriptor else ORDER
    found = compiled(order, [item, money])
    order_type = found.pool().FindMessageTypeByName("shop.Order")
    assert order_type.file.name == found.name
    item_type = order_type.fields_by_name["items"].message_type
    assert item_type is not None
    price = item_type.fields_by_name["price"].message_type
    assert price is not None
    assert price.full_name == "money.Money"
    assert len(found.files) == 3


def test_imports_that_nobody_registers() -> None:
    imports = " ".join(f'import "{name}";' for name in protos._KNOWN)
    fields = "google.protobuf.Timestamp t = 1; google.type.Date d = 2; confluent.type.Decimal n = 3;"
    text = f'syntax = "proto3"; {imports} message A {{ {fields} }}'
    assert len(compiled(text).files) == 1 + len(protos._KNOWN)
    # One that was registered nevertheless is not looked at: all clients have their own.
    assert compiled(text, [("google/protobuf/timestamp.proto", "nonsense;")]) == compiled(text)


def test_a_file_that_has_the_name_of_one_that_it_imports() -> None:
    text = f'syntax = "proto3"; import "{protos.TEXT_NAME}"; message A {{ money.Money m = 1; }}'
    found = compiled(text, [(protos.TEXT_NAME, MONEY)])
    assert found.name != protos.TEXT_NAME
    assert found.file().message_types_by_name["A"] is not None


def test_serialized() -> None:
    text = serialized(ITEM, [("a/money.proto", MONEY)])
    assert compiled(text, [("a/money.proto", MONEY)]).main.message_type[0].name == "Item"
    assert serialized(text) == text


@pytest.mark.parametrize(
    ("text", "references", "said"),
    [
        ("nonsense", [], "schema.proto:1:1: Expected top-level statement"),
        ("", [("x.proto", "nonsense")], "x.proto:1:1"),
        ('syntax = "proto3"; message A { int32 a = 1; int32 a = 2; }', [], '"a" is already defined in "A"'),
        ('syntax = "proto3"; message A { B b = 1; }', [], '"B" is not defined'),
        ('syntax = "proto3"; import "x.proto";', [], "x.proto: File not found"),
        ('syntax = "proto3"; import "a.proto";', [("a.proto", 'import "schema.proto";')], "recursively"),
        (
            MONEY,
            [("a.proto", MONEY), ("a.proto", ITEM)],
            "two different schemas are referred to as 'a.proto'",
        ),
        (MONEY, [("a.proto", base64_of(MONEY)), ("a.proto", MONEY)], "two different schemas"),
        (MONEY, [("../a.proto", MONEY)], "is not a path"),
        (MONEY, [("/etc/a.proto", MONEY)], "is not a path"),
        (MONEY, [("a//b.proto", MONEY)], "is not a path"),
        (MONEY, [("--plugin.proto", MONEY)], "is not a path"),
        (MONEY, [("a\n.proto", MONEY)], "is not a path"),
        (MONEY, [("x" * 300, MONEY)], "no file can have the name"),
        (base64_of(ITEM, [("a/money.proto", MONEY)]), [], "imports 'a/money.proto', which is not among"),
    ],
)
def test_what_is_malformed_is_named(text: str, references: list[tuple[str, str]], said: str) -> None:
    with pytest.raises(MalformedProto) as refused:
        compiled(text, references)
    assert said in str(refused.value)
    assert "/tmp" not in str(refused.value)


def test_a_descriptor_that_no_compiler_made() -> None:
    file = compiled(MONEY).main
    file.message_type[0].field[0].type_name = ".money.Nowhere"
    file.message_type[0].field[0].type = file.message_type[0].field[0].TYPE_MESSAGE
    with pytest.raises(MalformedProto, match="descriptor is not valid"):
        compiled(base64.b64encode(file.SerializeToString()).decode())


def test_a_compiler_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protos, "COMPILER_SECONDS", 0.01)
    with pytest.raises(MalformedProto, match="took longer"):
        compiled(f"{MONEY} // anew")
