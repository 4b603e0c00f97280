"""All of Headgate with its state in Postgres and its tables in S3: the warehouse itself, and named storages
that are reached by way of a role."""

from collections.abc import Iterator
from typing import Any

import duckdb
import httpx
import pytest
from moto.sts.models import sts_backends
from pyiceberg.catalog import load_catalog

from scripts.readers import duckdb_with
from tests.e2e import sealed
from tests.e2e.commands import refused, shown
from tests.e2e.feed import Feed
from tests.e2e.sealed import Sealed
from tests.support.glue import REGION, Glue, glue_server
from tests.support.keyed import Keyed
from tests.support.ledger import canonical, rows_of
from tests.support.object_store import KEY, ROLE, SECRET, ObjectStore, object_store
from tests.support.postgres import PASSWORD, postgres
from tests.support.services import wait_for
from tests.support.stack import Stack

LAKE, VAULT = "lake", "vault"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """Opens to who has its keys."""
    with object_store(tmp_path_factory.mktemp("lake"), LAKE) as store:
        yield store


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """Takes any keys: those of a role are not known to it."""
    with object_store(tmp_path_factory.mktemp("vault"), VAULT, keys_checked=False) as store:
        yield store


@pytest.fixture(scope="module")
def aws() -> Iterator[Glue]:
    """STS and Glue at one address."""
    with glue_server() as glue:
        yield glue


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """A Postgres for control state and catalog, whose password is in the environment alone."""
    with postgres() as url, pytest.MonkeyPatch.context() as patch:
        # The tests open the control state themselves, too.
        patch.setenv("PGPASSWORD", PASSWORD)
        yield url.replace(f":{PASSWORD}", "")


@pytest.fixture(scope="module")
def stack(
    database: str, lake: ObjectStore, aws: Glue, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    data = tmp_path_factory.mktemp("storage") / "data"
    more = {
        **lake.environment,
        "HEADGATE_STORE__URL": database,
        "HEADGATE_CATALOG__DATABASE": database,
        "AWS_ENDPOINT_URL_STS": aws.url,
        "HEADGATE_CATALOG__WAREHOUSE": f"s3://{LAKE}/warehouse",
        "HEADGATE_PUBLICATION__INTERVAL": "0.5s",
    }
    with Stack(data, None, **more) as stack:
        yield stack


def connection(stack: Stack) -> duckdb.DuckDBPyConnection:
    """With keys of its own: it asks the catalog for none."""
    made = duckdb_with("avro", "httpfs", "iceberg", "delta")
    said = "AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none'"
    made.execute(f"ATTACH 'warehouse' AS lake (TYPE iceberg, ENDPOINT '{stack.runtime.iceberg}', {said})")
    return made


def own_keys(made: duckdb.DuckDBPyConnection, store: ObjectStore, key: str = KEY) -> None:
    """A user's secret for the store, for readers that are told no keys."""
    made.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{key}', SECRET '{SECRET}', REGION 'us-east-1', URL_STYLE 'path', "
        f"ENDPOINT '{store.endpoint.removeprefix('http://')}', USE_SSL false)"
    )


def check(rows: Any, topic: Keyed) -> None:
    """Row by row, value by value; older rows have nothing in newer columns."""
    found = list(rows)
    later = {"v2": None} if found and "v2" in found[0] else {}
    expected = sorted(canonical({**later, **row}) for row in topic.state())
    assert sorted(canonical(plain(row)) for row in found) == expected


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "_kafka_timestamp"}


def check_both(made: duckdb.DuckDBPyConnection, stack: Stack, topic: Keyed) -> None:
    """In both formats, by DuckDB."""
    location = shown(stack, topic.topic)["detail"]["location"]
    named = f'SELECT * FROM lake.local."{topic.topic}"'
    check(rows_of(made.execute(named).to_arrow_table()), topic)
    check(rows_of(made.execute("SELECT * FROM delta_scan(?)", [location]).to_arrow_table()), topic)


def check_query(stack: Stack, topic: Keyed) -> None:
    found = stack.json_output("query", f"SELECT count(*) AS n FROM `{topic.topic}`")
    assert found["rows"] == [{"n": len(topic.state())}]


def enable(stack: Stack, topic: Keyed, *more: str) -> None:
    columns = "partition,offset"
    formats = ("--formats", "iceberg,delta", "--mode", "upsert", "--metadata", columns)
    stack.run("table", "enable", topic.topic, *formats, *more)


def sync(stack: Stack, topic: Keyed) -> None:
    stack.run("table", "sync", topic.topic, "--timeout", "180s")


def test_the_warehouse_is_in_s3(stack: Stack, lake: ObjectStore) -> None:
    topic = Keyed(stack.runtime, "s3.warehouse")
    enable(stack, topic)
    topic.random(300, keys=60, seed=1)
    sync(stack, topic)
    topic.random(200, keys=60, seed=2)
    sync(stack, topic)
    location = shown(stack, topic.topic)["detail"]["location"]
    assert location.startswith(f"s3://{LAKE}/warehouse/local/")
    with connection(stack) as made:
        own_keys(made, lake)
        check_both(made, stack, topic)
        topic.evolve()
        topic.put((7, "eu"), {"id": 7, "name": "later", "amount": 1, "v2": 2})
        topic.flush()
        sync(stack, topic)
        stack.run("table", "compact", topic.topic, "--all")
        stack.run("table", "expire", topic.topic, "--older-than", "0s", "--keep-last", "1")
        stack.run("table", "clean", topic.topic, "--older-than", "0s", "--force")
        topic.put((8, "eu"), {"id": 8, "name": "last", "amount": None, "v2": None})
        topic.flush()
        sync(stack, topic)
    with connection(stack) as made:
        own_keys(made, lake)
        check_both(made, stack, topic)
    own = {"s3.access-key-id": KEY, "s3.secret-access-key": SECRET}
    catalog = load_catalog("lake", type="rest", uri=stack.runtime.iceberg, **own)
    check(rows_of(catalog.load_table(("local", topic.topic)).scan().to_arrow()), topic)
    check_query(stack, topic)
    stack.run("table", "disable", topic.topic, "--purge", "--yes")
    assert lake.keys(LAKE, location.partition(f"{LAKE}/")[2]) == []


def check_published_as_the_role(stack: Stack, aws: Glue, topic: str, location: str) -> None:
    """To Glue, with keys of the storage's role and no others."""
    aws.callers.clear()
    there = ("--endpoint", aws.url, "--region", REGION)
    stack.run("catalog", "add", "glue", "vaulted", "--storage", "vault", *there)
    wait_for(
        "the table to be in Glue",
        lambda: [one["state"] for one in shown(stack, topic)["catalogs"]] == ["Synced"],
    )
    callers = set(aws.callers)
    assert aws.table("local", "s3_vault")["StorageDescriptor"]["Location"] == location
    given = sts_backends["123456789012"]["aws"].assumed_roles
    as_the_role = {
        (one.access_key_id, one.session_token)
        for one in given
        if (one.role_arn, one.external_id, one.session_name) == (ROLE, "x-1", "headgate-publication")
    }
    assert callers
    assert callers <= as_the_role
    assert "vaulted" in refused(stack, "storage", "remove", "vault")
    stack.run("catalog", "remove", "vaulted")
    assert aws.names("local") == []


def test_a_named_storage_with_a_role(stack: Stack, vault: ObjectStore, aws: Glue) -> None:
    said = (f"s3://{VAULT}/tables", "--endpoint", vault.endpoint, "--path-style", "--role", ROLE)
    made = stack.json("storage", "add", "vault", *said, "--external-id", "x-1", "--region", "us-east-1")
    assert made["uri"] == f"s3://{VAULT}/tables"
    assert vault.keys(VAULT) == [], "the probe leaves nothing behind"
    assert [one["name"] for one in stack.json("storage", "list")] == ["vault"]
    topic = Keyed(stack.runtime, "s3.vault")
    enable(stack, topic, "--storage", "vault")
    topic.random(300, keys=60, seed=3)
    sync(stack, topic)
    topic.random(100, keys=60, seed=4)
    sync(stack, topic)
    location = shown(stack, topic.topic)["detail"]["location"]
    assert location.startswith(f"s3://{VAULT}/tables/local/s3.vault-")
    reader = stack.json("credentials", "create", "s3-reader", "--role", "reader")
    login = f"CLIENT_ID '{reader['client_id']}', CLIENT_SECRET '{reader['client_secret']}'"
    secret = f"CREATE SECRET known (TYPE iceberg, {login}, ENDPOINT '{stack.runtime.iceberg}')"
    with duckdb_with("avro", "httpfs", "iceberg", "delta") as connected:
        connected.execute(secret)
        connected.execute(
            f"ATTACH 'warehouse' AS lake (TYPE iceberg, SECRET known, ENDPOINT '{stack.runtime.iceberg}')"
        )
        found = connected.execute(f'SELECT * FROM lake.local."{topic.topic}"').to_arrow_table()
        check(rows_of(found), topic)
        own_keys(connected, vault)
        delta = connected.execute("SELECT * FROM delta_scan(?)", [location]).to_arrow_table()
        check(rows_of(delta), topic)
    catalog = load_catalog(
        "lake",
        type="rest",
        uri=stack.runtime.iceberg,
        credential=f"{reader['client_id']}:{reader['client_secret']}",
        **{
            "oauth2-server-uri": f"{stack.runtime.iceberg}/v1/oauth/tokens",
            "header.X-Iceberg-Access-Delegation": "vended-credentials",
        },
    )
    check(rows_of(catalog.load_table(("local", topic.topic)).scan().to_arrow()), topic)
    stack.run("table", "compact", topic.topic, "--all")
    check_query(stack, topic)
    assert topic.topic in refused(stack, "storage", "remove", "vault")
    assert stack.json("storage", "show", "vault")["tables"] == [topic.topic]
    check_published_as_the_role(stack, aws, topic.topic, location)
    stack.run("table", "disable", topic.topic, "--purge", "--yes")
    assert vault.keys(VAULT) == []
    stack.run("storage", "remove", "vault")
    assert stack.json("storage", "list") == []


@pytest.fixture
def place(aws: Glue) -> Iterator[Sealed]:
    with sealed.sealed_place(aws) as place:
        yield place


def test_a_place_that_is_encrypted_with_the_policies_that_are_printed(
    stack: Stack, aws: Glue, place: Sealed
) -> None:
    """All that is done to a table there is allowed and encrypted, and nothing else is allowed."""
    iam = place.iam
    how = ("--encryption", "kms", "--region", "us-east-1", "--endpoint", aws.url, "--path-style")
    add = ("storage", "add", "sealed", sealed.ROOT, *sealed.WHO, *how)
    policies = sealed.printed(stack)
    assert "Cannot take on the role" in refused(stack, *add)
    iam.policies[KEY] = policies["assume"]
    assert "Cannot take on the role" in refused(stack, *add)
    iam.trusts[sealed.ROLE] = policies["trust"]
    assert "Cannot write" in refused(stack, *add)
    iam.policies[sealed.ROLE] = policies["access"]
    iam.policies[sealed.READER_KEY] = policies["reader"]
    iam.refused.clear()
    stack.run(*add)
    topic = Keyed(stack.runtime, "s3.sealed")
    enable(stack, topic, "--storage", "sealed", "--on-error", "log")
    for seed in (5, 6):
        topic.random(200, keys=60, seed=seed)
        sync(stack, topic)
    topic.evolve()
    topic.put((7, "eu"), {"id": 7, "name": "later", "amount": 1, "v2": 2})
    topic.flush()
    sync(stack, topic)
    location = shown(stack, topic.topic)["detail"]["location"]
    stack.run("table", "compact", topic.topic, "--all")
    stack.run("table", "expire", topic.topic, "--older-than", "0s", "--keep-last", "1")
    stack.run("table", "clean", topic.topic, "--older-than", "0s", "--force")
    reader = stack.json("credentials", "create", "sealed-reader", "--role", "reader")
    login = f"CLIENT_ID '{reader['client_id']}', CLIENT_SECRET '{reader['client_secret']}'"
    with duckdb_with("avro", "httpfs", "iceberg", "delta") as connected:
        endpoint = stack.runtime.iceberg
        connected.execute(f"CREATE SECRET known (TYPE iceberg, {login}, ENDPOINT '{endpoint}')")
        connected.execute(f"ATTACH 'warehouse' AS lake (TYPE iceberg, SECRET known, ENDPOINT '{endpoint}')")
        found = connected.execute(f'SELECT * FROM lake.local."{topic.topic}"').to_arrow_table()
        check(rows_of(found), topic)
        own_keys(connected, ObjectStore(aws.url), sealed.READER_KEY)
        delta = connected.execute("SELECT * FROM delta_scan(?)", [location]).to_arrow_table()
        check(rows_of(delta), topic)
    check_query(stack, topic)
    key = location.partition(f"{sealed.BUCKET}/")[2]
    sealed.check_written(place.written)
    stack.run("table", "disable", topic.topic, "--purge", "--yes")
    assert sealed.keys(aws, key) == []
    assert iam.refused == []
    used = {
        *policies["access"]["Statement"][0]["Action"],
        "s3:ListBucket",
        "kms:Decrypt",
        "kms:GenerateDataKey",
    }
    assert used - iam.done[sealed.ROLE] == {"s3:AbortMultipartUpload"}
    sealed.check_nothing_else(aws, key)
    stack.run("storage", "remove", "sealed")


def test_what_is_told_to_whom(stack: Stack, vault: ObjectStore) -> None:
    """Keys only to who asks for them, and none to who reads the warehouse, which has no role."""
    url = f"{stack.runtime.iceberg}/v1/namespaces/mine"
    with httpx.Client(trust_env=False, headers={"X-Iceberg-Access-Delegation": "vended-credentials"}) as http:
        made = http.post(f"{stack.runtime.iceberg}/v1/namespaces", json={"namespace": ["mine"]})
        assert made.is_success, made.text
        schema = {"type": "struct", "fields": [{"id": 1, "name": "n", "type": "int", "required": False}]}
        created = http.post(f"{url}/tables", json={"name": "t", "schema": schema})
        assert created.is_success, created.text
        config = created.json()["config"]
        assert "s3.endpoint" in config
        assert "s3.access-key-id" not in config
        assert http.get(f"{url}/tables/t/credentials").json() == {"storage-credentials": []}
        outside = {"name": "u", "schema": schema, "location": "s3://elsewhere/tables/u"}
        assert http.post(f"{url}/tables", json=outside).status_code == 400


def test_a_place_that_cannot_be_used_is_not_kept(stack: Stack, lake: ObjectStore, vault: ObjectStore) -> None:
    before = stack.json("storage", "list")
    missing = ("--endpoint", lake.endpoint, "--path-style")
    assert "write" in refused(stack, "storage", "add", "none", "s3://no-such-bucket", *missing)
    assert "overlaps" in refused(stack, "storage", "add", "twice", f"s3://{LAKE}/warehouse/local", *missing)
    assert "no name of a bucket" in refused(stack, "storage", "add", "bad", "s3://Not_A_Bucket")
    assert "not in S3" in refused(stack, "storage", "add", "disk", "file:///tmp")
    assert stack.json("storage", "list") == before
    Keyed(stack.runtime, "s3.nowhere", partitions=1)
    assert "no storage 'gone'" in refused(stack, "table", "enable", "s3.nowhere", "--storage", "gone")


def test_statements_in_postgres(stack: Stack) -> None:
    feed = Feed(stack.runtime, "pg.readings", partitions=2)
    feed.send(20)
    stack.run(
        "sql",
        "-e",
        "SET 'client.statement-name' = 'counting';"
        "CREATE TABLE readings_counted WITH ('changelog.mode' = 'retract') AS "
        f"SELECT COUNT(*) AS readings FROM `{feed.topic}`",
    )
    assert [one["name"] for one in stack.json("statement", "list")] == ["counting"]
    # Which topics take rows back is a question to the database.
    assert "'retract'" in refused(stack, "table", "enable", "readings_counted")
    stack.run("statement", "delete", "counting")


def test_secrets_are_in_no_file(stack: Stack) -> None:
    files = [file for file in stack.data.parent.rglob("*") if file.is_file()]
    assert files
    assert not [
        file
        for file in files
        if any(secret in file.read_bytes() for secret in (SECRET.encode(), PASSWORD.encode()))
    ]
    assert not [file for file in files if file.suffix == ".db"], "state is in Postgres"
