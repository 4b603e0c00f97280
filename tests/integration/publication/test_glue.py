"""Entries of Glue, in moto's server."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.core.utils import utcnow
from moto.sts.models import AssumedRole, sts_backends

from headgate.embedded.ports import free_port
from headgate.errors import NotPublishable, OutsideMoved, OutsideRefused, OutsideUnavailable
from headgate.publication.catalogs import open_catalog
from headgate.publication.glue import GlueCatalog, caller_arn
from headgate.publication.options import GlueOptions
from headgate.publication.outside import show, withdraw
from headgate.publication.policy import Around, policy
from headgate.storage import Place, Storages
from headgate.store import Store
from tests.support.glue import KEYS, REGION, SECRET, Glue
from tests.support.iam import ACCOUNT, enforced
from tests.support.outside import SCHEMA, MovingTables, table


def catalog_at(url: str, database: str, **more: Any) -> GlueCatalog:
    options = GlueOptions(region=REGION, endpoint=url, **{**KEYS, **more})
    return GlueCatalog(options, database, "Local-1", SECRET if options.secret else None)


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).partition("[")[0].lower()


@pytest.fixture
def catalog(glue: Glue, database: str) -> Iterator[GlueCatalog]:
    catalog = catalog_at(glue.url, database)
    catalog.prepare()
    yield catalog
    catalog.close()


def put(catalog: GlueCatalog, tables: MovingTables, name: str = "orders") -> None:
    show(catalog, name, lambda: tables.read("orders"), (), lambda _: None)


def test_the_database_is_made_once(glue: Glue, database: str) -> None:
    catalog = catalog_at(glue.url, database)
    catalog.prepare()
    catalog.prepare()
    catalog._create_database()  # as when two engines see at once that it is missing
    assert glue.client.get_database(Name=database)["Database"]["Parameters"] == {
        "headgate.cluster": "Local-1"
    }
    catalog.close()


def test_an_entry_is_an_iceberg_table_as_others_write_it(
    glue: Glue, catalog: GlueCatalog, database: str
) -> None:
    put(catalog, MovingTables({"orders": table(number=3)}))

    found = glue.table(database, "orders")
    assert found["TableType"] == "EXTERNAL_TABLE"
    assert found["StorageDescriptor"]["Location"] == table().location
    assert [(one["Name"], one["Type"]) for one in found["StorageDescriptor"]["Columns"]] == [
        ("id", "bigint"),
        ("name", "string"),
    ]
    assert found["Parameters"] == {
        "EXTERNAL": "TRUE",
        "table_type": "ICEBERG",
        "metadata_location": table(number=3).metadata_location,
        "headgate.cluster": "Local-1",
        "headgate.topic": "orders",
        "headgate.table-uuid": table().uuid,
        "headgate.sequence-number": "3",
    }


def test_it_moves_with_the_table_and_remembers_where_it_was(
    glue: Glue, catalog: GlueCatalog, database: str
) -> None:
    tables = MovingTables({"orders": table(number=1)})
    put(catalog, tables)
    # Somebody adds something of their own.
    mine = glue.table(database, "orders")
    said = {key: mine[key] for key in ("Name", "TableType", "StorageDescriptor", "PartitionKeys")}
    glue.client.update_table(
        DatabaseName=database, TableInput={**said, "Parameters": {**mine["Parameters"], "owner": "me"}}
    )
    wider = [*SCHEMA["fields"], {"id": 3, "name": "price", "required": False, "type": "decimal(9, 2)"}]
    tables.put(replace(table(number=2), schema={**SCHEMA, "fields": wider}))

    put(catalog, tables)

    found = glue.table(database, "orders")
    assert found["Parameters"]["metadata_location"] == table(number=2).metadata_location
    assert found["Parameters"]["previous_metadata_location"] == table(number=1).metadata_location
    assert found["Parameters"]["owner"] == "me"
    assert [one["Type"] for one in found["StorageDescriptor"]["Columns"]] == [
        "bigint",
        "string",
        "decimal(9,2)",
    ]
    changes = [
        said for kind, said in glue.changes if said["DatabaseName"] == database and "VersionId" in said
    ]
    assert [(said["VersionId"], said["SkipArchive"]) for said in changes] == [("2", True)]


def test_two_publishers_at_once_and_the_slower_one_changes_nothing(
    glue: Glue, catalog: GlueCatalog, database: str
) -> None:
    put(catalog, MovingTables({"orders": table(number=1)}))
    newer, older = MovingTables({"orders": table(number=9)}), MovingTables({"orders": table(number=5)})

    # The slower one has read the entry and the table, and is stopped there; the other goes by.
    with pytest.raises(OutsideMoved, match="ConcurrentModification"):
        show(catalog, "orders", lambda: older.read("orders"), (), lambda _: put(catalog, newer))
    assert glue.table(database, "orders")["Parameters"]["headgate.sequence-number"] == "9"
    with pytest.raises(OutsideMoved, match="newer"):
        put(catalog, older)

    put(catalog, MovingTables({"orders": table(number=10)}))
    assert glue.table(database, "orders")["Parameters"]["headgate.sequence-number"] == "10"


def test_two_that_make_an_entry_at_once(glue: Glue, catalog: GlueCatalog, database: str) -> None:
    one, other = MovingTables({"orders": table(number=1)}), MovingTables({"orders": table(number=2)})
    with pytest.raises(OutsideMoved, match="just made"):
        show(catalog, "orders", lambda: one.read("orders"), (), lambda _: put(catalog, other))
    assert glue.table(database, "orders")["Parameters"]["headgate.sequence-number"] == "2"


def test_what_others_made_stays(glue: Glue, catalog: GlueCatalog, database: str) -> None:
    theirs = {"Name": "orders", "Parameters": {"table_type": "ICEBERG", "metadata_location": "s3://theirs/m"}}
    glue.client.create_table(DatabaseName=database, TableInput=theirs)

    with pytest.raises(NotPublishable, match="did not make it"):
        put(catalog, MovingTables({"orders": table()}))
    assert not withdraw(catalog, "orders", [table().uuid])
    assert glue.table(database, "orders")["Parameters"] == theirs["Parameters"]


def test_ours_is_taken_out(glue: Glue, catalog: GlueCatalog, database: str) -> None:
    put(catalog, MovingTables({"orders": table()}))
    assert withdraw(catalog, "orders", [table().uuid])
    assert glue.names(database) == []


def test_a_database_that_somebody_removed(glue: Glue, catalog: GlueCatalog, database: str) -> None:
    glue.client.delete_database(Name=database)
    with pytest.raises(OutsideMoved):
        put(catalog, MovingTables({"orders": table()}))
    catalog.prepare()
    put(catalog, MovingTables({"orders": table()}))
    assert glue.names(database) == ["orders"]


def test_nobody_is_there() -> None:
    catalog = catalog_at(f"http://127.0.0.1:{free_port()}", "x")
    with pytest.raises(OutsideUnavailable, match="does not answer"):
        catalog.prepare()
    catalog.close()


def test_without_keys_it_says_what_is_missing(glue: Glue, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    catalog = catalog_at(glue.url, "x", access_key_id=None, secret=None)
    with pytest.raises(OutsideRefused, match="Unable to locate credentials"):
        catalog.prepare()
    catalog.close()
    with pytest.raises(OutsideRefused, match="nobody"):
        catalog_at(glue.url, "x", access_key_id=None, secret=None, profile="nobody")


def test_as_a_role(glue: Glue, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys come from STS, and sign what Glue is asked."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", glue.url)
    role = "arn:aws:iam::123456789012:role/lake"
    catalog = catalog_at(glue.url, database, role_arn=role, external_id="abc-1")
    catalog.prepare()
    put(catalog, MovingTables({"orders": table()}))

    keys = catalog._glue._request_signer._credentials.get_frozen_credentials()
    sts = boto3.client(
        "sts",
        endpoint_url=glue.url,
        region_name=REGION,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        aws_session_token=keys.token,
    )
    assert sts.get_caller_identity()["Arn"].endswith("assumed-role/lake/headgate-publication")
    sts.close()
    catalog.close()


@pytest.mark.parametrize("seconds", [3600, 60], ids=["kept", "renewed"])
def test_as_the_role_of_a_named_storage(
    glue: Glue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """Every call is signed with keys that STS gave for the place's role, and with others once those end."""
    for name, value in {
        "AWS_ENDPOINT_URL_STS": glue.url,
        "AWS_ACCESS_KEY_ID": "the-engines-own",
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    made = AssumedRole.__init__

    def make(self: AssumedRole, *given: Any, **named: Any) -> None:
        made(self, *given, **named)
        self.expiration = utcnow() + timedelta(seconds=seconds)

    monkeypatch.setattr(AssumedRole, "__init__", make)
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    storages = Storages(store.engine)
    role = f"arn:aws:iam::123456789012:role/vault-{seconds}"
    storages.add(Place("vault", "vault", "t", region=REGION, role_arn=role, external_id="x-1"))
    before = len(glue.callers)

    catalog = open_catalog(
        "glue", {"storage": "vault", "endpoint": glue.url}, f"Vault-{seconds}", str, storages.get
    )
    catalog.prepare()
    show(catalog, "orders", lambda: table(), (), lambda _: None)
    assert withdraw(catalog, "orders", [table().uuid])
    catalog.close()
    store.close()

    callers = glue.callers[before:]
    given = [one for one in sts_backends["123456789012"]["aws"].assumed_roles if one.role_arn == role]
    assert len(callers) == 6  # database, entry, entry again; each looked for, and made or removed
    assert [(one.access_key_id, one.session_token) for one in given] == list(dict.fromkeys(callers))
    assert len(given) == (1 if seconds == 3600 else len(callers))
    assert {(one.external_id, one.session_name) for one in given} == {("x-1", "headgate-publication")}
    assert {one.region_name for one in given} == {REGION}


def test_who_asks_is_found_by_sts(glue: Glue, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the user whose keys these are; as the role, where they are those of its session."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", glue.url)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    keys = GlueOptions(access_key_id=KEYS["access_key_id"], secret="s", region=REGION)
    user = caller_arn(keys, SECRET)
    assert user.startswith(f"arn:aws:sts::{ACCOUNT}:user/")
    sts = boto3.client(
        "sts",
        endpoint_url=glue.url,
        region_name=REGION,
        aws_access_key_id="tests",
        aws_secret_access_key="tests",
    )
    role = f"arn:aws:iam::{ACCOUNT}:role/headgate-runs-as"
    given = sts.assume_role(RoleArn=role, RoleSessionName="somebody")["Credentials"]
    sts.close()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", given["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", given["SecretAccessKey"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", given["SessionToken"])
    assert caller_arn(GlueOptions(region=REGION), None) == role


def test_the_policies_that_are_printed(glue: Glue, database: str) -> None:
    """Are enough to publish and to take out, and to read; and for nothing in another database."""
    options = {"region": REGION, "database": database}
    publisher, reader = (
        policy("glue", options, purpose, ACCOUNT, Around("local", dict[str, Place]().__getitem__, (), str))
        for purpose in ("publisher", "reader")
    )
    with enforced() as iam:
        iam.policies[KEYS["access_key_id"]] = publisher
        iam.policies["reader"] = reader
        catalog = catalog_at(glue.url, database)
        catalog.prepare()
        put(catalog, MovingTables({"orders": table(number=1)}))
        put(catalog, MovingTables({"orders": table(number=2)}))
        readers = boto3.client(
            "glue",
            endpoint_url=glue.url,
            region_name=REGION,
            aws_access_key_id="reader",
            aws_secret_access_key="any",
        )
        assert readers.get_database(Name=database)["Database"]["Name"] == database
        assert readers.get_table(DatabaseName=database, Name="orders")["Table"]["Name"] == "orders"
        assert [one["Name"] for one in readers.get_tables(DatabaseName=database)["TableList"]] == ["orders"]
        with pytest.raises(ClientError, match="AccessDenied"):
            readers.delete_table(DatabaseName=database, Name="orders")
        assert withdraw(catalog, "orders", [table().uuid])
        catalog.close()
        assert {deed.action for deed in iam.refused} == {"glue:DeleteTable"}
        assert iam.done[KEYS["access_key_id"]] == {
            action for one in publisher["Statement"] for action in one["Action"]
        }
        assert iam.done["reader"] == {action for one in reader["Statement"] for action in one["Action"]}

        elsewhere = f"{database}_2"
        glue.client.create_database(DatabaseInput={"Name": elsewhere})
        glue.client.create_table(DatabaseName=elsewhere, TableInput={"Name": "orders"})
        other = catalog_at(glue.url, elsewhere)
        for deed in (
            other.prepare,
            lambda: other.entry("orders"),
            lambda: put(other, MovingTables({"orders": table()})),
            lambda: other._glue.delete_table(DatabaseName=elsewhere, Name="orders"),
            lambda: catalog_at(glue.url, f"{database}_3")._create_database(),
        ):
            with pytest.raises((OutsideRefused, ClientError), match="AccessDenied"):
                deed()
        with pytest.raises(ClientError, match="AccessDenied"):
            readers.get_table(DatabaseName=elsewhere, Name="orders")
        other.close()
        readers.close()
    assert glue.names(elsewhere) == ["orders"]
