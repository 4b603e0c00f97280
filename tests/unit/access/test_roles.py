import pytest

from headgate.access.roles import ENGINE, LOCAL, Grant, Principal, Role
from headgate.errors import InvalidRequest


def principal(*grants: str) -> Principal:
    return Principal("somebody", tuple(Grant.parse(text) for text in grants))


@pytest.mark.parametrize(
    ("text", "grant"),
    [
        ("reader", Grant(Role.READER, "*", "*")),
        ("Writer:sandbox", Grant(Role.WRITER, "sandbox", "*")),
        ("admin:local:orders.*", Grant(Role.ADMIN, "local", "orders.*")),
        ("reader::a:b", Grant(Role.READER, "*", "a:b")),
    ],
)
def test_grants_are_written_as_they_are_read(text: str, grant: Grant) -> None:
    assert Grant.parse(text) == grant
    assert Grant.parse(str(grant)) == grant


@pytest.mark.parametrize("text", ["", "owner", "owner:local:*", ":local", "3"])
def test_a_role_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="Roles are reader, writer, admin, engine"):
        Grant.parse(text)


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("*", "anything.at-all", True),
        ("orders", "orders", True),
        ("orders", "orders2", False),
        ("orders", "Orders", False),
        ("orders.*", "orders.eu", True),
        ("orders.*", "orders", False),
        ("order?", "orders", True),
        ("[a]", "a", False),
        ("[a]", "[a]", True),
        ("a+", "aa", False),
    ],
)
def test_only_stars_and_question_marks_are_special(pattern: str, name: str, matches: bool) -> None:
    found = principal(f"reader:local:{pattern}").on_table(("local",), name)
    assert (found is Role.READER) is matches


def test_the_highest_role_counts() -> None:
    someone = principal("reader", "writer:sandbox", "admin:sandbox:mine.*")
    assert someone.on_table(("local",), "orders") is Role.READER
    assert someone.on_table(("sandbox",), "orders") is Role.WRITER
    assert someone.on_table(("sandbox",), "mine.orders") is Role.ADMIN
    assert someone.everywhere is Role.READER
    assert not someone.is_admin


def test_a_namespace_is_changed_by_who_has_all_of_it() -> None:
    assert principal("writer:sandbox").on_namespace(("sandbox",)) is Role.WRITER
    assert principal("writer:sandbox:mine*").on_namespace(("sandbox",)) is Role.READER
    assert principal("writer:sandbox").on_namespace(("sandbox", "below")) is None
    assert principal("writer:sandbox.*").on_namespace(("sandbox", "below")) is Role.WRITER


def test_the_way_to_a_namespace_is_seen() -> None:
    someone = principal("reader:team.lake")
    assert someone.sees_namespace(("team", "lake"))
    assert someone.sees_namespace(("team",))
    assert not someone.sees_namespace(("tea",))
    assert not someone.sees_namespace(("team", "pond"))
    assert someone.on_table(("team",), "secrets") is None


def test_nobody_sees_nothing() -> None:
    nobody = principal()
    assert nobody.everywhere is None
    assert nobody.on_table(("local",), "orders") is None
    assert not nobody.sees_namespace(("local",))


def test_headgates_own() -> None:
    assert ENGINE.is_admin
    assert ENGINE.on_table(("local",), "orders") is Role.ENGINE
    assert LOCAL.is_admin
    assert LOCAL.on_table(("local",), "orders") is Role.ADMIN
    assert not principal("admin:local").is_admin
