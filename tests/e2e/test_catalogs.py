"""Tables in outside catalogs, as a user has them there."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pyiceberg.catalog.glue import GlueCatalog

from tests.e2e.commands import refused, shown
from tests.e2e.feed import Feed
from tests.support import glue as moto
from tests.support import unity as double
from tests.support.delta import read_delta_rs
from tests.support.ledger import canonical, read_pyiceberg
from tests.support.services import wait_for
from tests.support.stack import Stack

TOPIC = "E2E.outside-catalogs"
NAME = "e2e_outside_catalogs"
ONLY_ICEBERG = "e2e.outside.iceberg"


@pytest.fixture(scope="module")
def glue() -> Iterator[moto.Glue]:
    with moto.glue_server() as glue:
        yield glue


@pytest.fixture(scope="module")
def unity() -> Iterator[double.Unity]:
    with double.unity_server() as unity:
        yield unity
        assert unity.wrong == []


@pytest.fixture(scope="module")
def catalogs(stack: Stack, glue: moto.Glue, unity: double.Unity) -> Iterator[None]:
    stack.run(
        "catalog", "add", "glue", "athena", "--region", moto.REGION, "--endpoint", glue.url,
        "--access-key-id", moto.KEYS["access_key_id"], "--secret", "glue",
    )  # fmt: skip
    stack.run(
        "catalog", "add", "unity", "databricks", "--url", unity.url, "--catalog", "main", "--schema", "kafka",
        "--client-id", double.CLIENT_ID, "--secret", "unity",
    )  # fmt: skip
    yield
    for one in stack.json("catalog", "list"):
        stack.run("catalog", "remove", one["name"], "--force")


def state(stack: Stack, name: str) -> tuple[str, str]:
    found = stack.json("catalog", "show", name)
    return found["state"], found["reason"]


def stands(stack: Stack, topic: str) -> dict[str, tuple[str | None, str]]:
    return {one["catalog"]: (one["name"], one["state"]) for one in shown(stack, topic)["catalogs"]}


def rows_in_glue(glue: moto.Glue) -> Counter[str]:
    """As PyIceberg's own Glue catalog reads them."""
    keys = {"glue.access-key-id": "tests", "glue.secret-access-key": "tests"}
    catalog = GlueCatalog("moto", **{"glue.endpoint": glue.url, "glue.region": moto.REGION, **keys})
    try:
        found = catalog.load_table(("local", NAME)).scan().to_arrow().to_pylist()
    finally:
        catalog.glue.close()
    return Counter(map(canonical, found))


def rows_in_unity(unity: double.Unity) -> Counter[str]:
    location = str(unity.tables[f"main.kafka.{NAME}"]["storage_location"])
    return Counter(map(canonical, read_delta_rs("/" + location.removeprefix("file:").lstrip("/"))))


def expected(stack: Stack) -> Counter[str]:
    return Counter(map(canonical, read_pyiceberg(stack.runtime.iceberg, "local", TOPIC)))


def glue_shows(stack: Stack, glue: moto.Glue) -> bool:
    found = httpx.get(f"{stack.runtime.iceberg}/v1/namespaces/local/tables/{TOPIC}", trust_env=False).json()
    shown = glue.table("local", NAME)["Parameters"]["metadata_location"]
    return bool(shown == found["metadata-location"])


def test_tables_come_evolve_and_go(
    stack: Stack, glue: moto.Glue, unity: double.Unity, catalogs: None
) -> None:
    wait_for("Glue to be probed, without a table", lambda: state(stack, "athena") == ("Connected", ""))
    feed = Feed(stack.runtime, TOPIC, partitions=2)
    Feed(stack.runtime, ONLY_ICEBERG, partitions=1).send(2)
    stack.run("table", "enable", ONLY_ICEBERG)
    stack.run("table", "sync", ONLY_ICEBERG, "--timeout", "120s")
    assert state(stack, "databricks") == ("Pending", "waiting for the first table with format delta")
    wait_for(
        "both to have been looked at",
        lambda: (
            stands(stack, ONLY_ICEBERG)
            == {"athena": ("e2e_outside_iceberg", "Synced"), "databricks": (None, "Not applicable")}
        ),
    )

    stack.run("table", "enable", TOPIC, "--formats", "iceberg,delta")
    feed.send(4)
    stack.run("table", "sync", TOPIC, "--timeout", "120s")
    both = {"athena": (NAME, "Synced"), "databricks": (NAME, "Synced")}
    wait_for("the table to be in both", lambda: stands(stack, TOPIC) == both)
    wait_for("Glue to show the table as it is", lambda: glue_shows(stack, glue))
    assert state(stack, "databricks") == ("Connected", "")
    assert rows_in_glue(glue) == rows_in_unity(unity) == expected(stack)
    assert expected(stack).total() == 4
    assert f"in athena {NAME}, Synced" in " ".join(stack.run("table", "show", TOPIC).stdout.split())

    # A new column, and more rows.
    stack.run("table", "alter", TOPIC, "--metadata", "timestamp,offset")
    feed.send(4)
    stack.run("table", "sync", TOPIC, "--timeout", "120s")
    wait_for("Glue to follow", lambda: glue_shows(stack, glue))

    def has_offset(columns: list[Any], key: str) -> bool:
        return "_kafka_offset" in [one[key] for one in columns]

    wait_for(
        "Unity to follow",
        lambda: has_offset(unity.tables.get(f"main.kafka.{NAME}", {}).get("columns", []), "name"),
    )
    assert has_offset(glue.table("local", NAME)["StorageDescriptor"]["Columns"], "Name")
    assert glue.table("local", NAME)["Parameters"]["previous_metadata_location"]
    assert rows_in_glue(glue) == rows_in_unity(unity) == expected(stack)
    assert expected(stack).total() == 8

    # A table that is disabled is taken out everywhere; its rows stay.
    stack.run("table", "disable", TOPIC)
    wait_for("Glue to be without it", lambda: glue.names("local") == ["e2e_outside_iceberg"])
    wait_for("Unity to be without it", lambda: unity.tables == {})
    assert expected(stack).total() == 8


def test_a_catalog_that_is_down_holds_nothing_up_and_is_caught_up_with(
    stack: Stack, unity: double.Unity, catalogs: None
) -> None:
    topic = "e2e.outside.down"
    feed = Feed(stack.runtime, topic, partitions=1)
    unity.trouble = 503
    try:
        stack.run("table", "enable", topic, "--formats", "iceberg,delta")
        feed.send(3)
        stack.run("table", "sync", topic, "--timeout", "120s")
        assert feed.check() == 3
        wait_for("Unity to be called failed", lambda: state(stack, "databricks")[0] == "Failed")
        assert "503" in state(stack, "databricks")[1]
        wait_for("Glue to have it", lambda: stands(stack, topic)["athena"] == ("e2e_outside_down", "Synced"))
        assert stands(stack, topic)["databricks"][1] == "Pending"
    finally:
        unity.trouble = None
    stack.run("catalog", "retry", "databricks")
    wait_for(
        "Unity to catch up", lambda: stands(stack, topic)["databricks"] == ("e2e_outside_down", "Synced")
    )
    assert state(stack, "databricks") == ("Connected", "")


def test_what_is_removed_is_taken_out(stack: Stack, glue: moto.Glue, catalogs: None) -> None:
    stack.run("catalog", "remove", "athena")
    assert glue.names("local") == []
    assert [one["name"] for one in stack.json("catalog", "list")] == ["databricks"]
    assert refused(stack, "catalog", "show", "athena").startswith("There is no catalog 'athena'.")


def test_what_cannot_be_added(stack: Stack, catalogs: None) -> None:
    message = refused(
        stack, "catalog", "add", "rest", "x", "--uri", "https://x", "--client-id", "c", "--secret", "no"
    )
    assert message.startswith("There is no secret 'no'. Put it into the variable HEADGATE_SECRETS__NO")
    message = refused(stack, "catalog", "add", "glue", "x", "--url", "https://x")
    assert "url: Extra inputs are not permitted" in message
    message = refused(stack, "catalog", "add", "rest", "databricks", "--uri", "https://x")
    assert message.startswith("There is a catalog 'databricks' already.")
    assert [one["name"] for one in stack.json("catalog", "list")] == ["databricks"]


def test_secrets_are_nowhere(stack: Stack, catalogs: None) -> None:
    said = stack.run("catalog", "show", "databricks", "--json").stdout
    assert '"secret": "unity"' in said  # its name
    for secret in (moto.SECRET, double.SECRET):
        assert secret not in said
        for file in stack.data.rglob("*"):
            if file.is_file() and file.suffix in (".log", ".db", ".json", ".db-wal"):
                assert secret.encode() not in file.read_bytes(), file
