"""What survives a restart, and what eight clients at once do not break."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema

from headgate.jvm import Jvm
from headgate.registry import schemas
from headgate.registry.compatibility import AvroCompatibility
from headgate.registry.refusals import Refusal
from headgate.registry.schemas import ResolvedSchema
from headgate.registry.service import RegistryService
from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.samples import avro, field, record_text, refused
from tests.integration.registry.test_serializers import ADDRESS, CUSTOMER, ORDER, register_order

CLIENTS = 8


def test_everything_is_there_after_a_restart(jvm: Jvm, tmp_path: Path) -> None:
    database = tmp_path / "control.db"
    json_schema = Schema('{"type": "object"}', "JSON")
    with RunningRegistry(database, jvm) as before:
        order = register_order(before.client, "r")
        order_id = before.client.register_schema("order", order)
        json_id = before.client.register_schema("json", json_schema)
        before.client.delete_subject("json")
        before.client.set_compatibility(level="FULL")
        before.client.set_compatibility("order", "NONE")
        before.client.update_mode("order", "READONLY")
        guid = str(before.new_client().get_latest_version("order").guid)
    with RunningRegistry(database, jvm) as after:
        found = after.client.get_latest_version("order")
        assert (found.schema_id, found.version) == (order_id, 1)
        assert found.schema.schema_str == ORDER
        assert found.schema.references == order.references
        assert after.client.get_schema_by_guid(guid).schema_str == ORDER
        assert after.client.get_schema(json_id) == json_schema
        assert after.client.get_subjects() == ["order", "r-address", "r-customer"]
        assert after.client.get_subjects(deleted_only=True) == ["json"]
        assert after.client.get_compatibility() == "FULL"
        assert after.client.get_compatibility("order") == "NONE"
        assert after.client.get_mode("order") == "READONLY"
        assert after.client.get_referenced_by("r-customer") == [order_id]
        assert after.client.register_schema("order", order) == order_id


def test_an_id_is_never_used_again(jvm: Jvm, tmp_path: Path) -> None:
    database = tmp_path / "control.db"

    def register_and_erase(registry: RunningRegistry, schema: Schema) -> int:
        schema_id = registry.new_client().register_schema("a", schema)
        registry.client.delete_subject("a")
        registry.client.delete_subject("a", permanent=True)
        return schema_id

    with RunningRegistry(database, jvm) as registry:
        first = register_and_erase(registry, avro(field("a")))
        second = register_and_erase(registry, avro(field("a")))
        third = register_and_erase(registry, avro(field("b")))
    with RunningRegistry(database, jvm) as registry:
        fourth = register_and_erase(registry, avro(field("c")))
        fifth = registry.new_client().register_schema("a", avro(field("a")))
        assert registry.client.get_versions("a") == [1]
        for gone in (first, second, third, fourth):
            with refused(404, 40403):
                registry.client.get_schema(gone)
    assert len({first, second, third, fourth, fifth}) == 5
    assert [first, second, third, fourth, fifth] == sorted([first, second, third, fourth, fifth])


def test_the_same_schema_from_many_clients_has_one_id(own_registry: RunningRegistry) -> None:
    def register(number: int) -> int:
        return own_registry.new_client().register_schema(f"s{number % 2}", avro(field("same")))

    with ThreadPoolExecutor(CLIENTS) as pool:
        ids = set(pool.map(register, range(CLIENTS * 4)))
    assert len(ids) == 1
    assert own_registry.client.get_versions("s0") == [1]
    assert own_registry.client.get_versions("s1") == [1]


def test_different_schemas_from_many_clients_have_ids_and_versions_of_their_own(
    own_registry: RunningRegistry,
) -> None:
    def register(number: int) -> tuple[int, int]:
        schema = avro(field("a"), field(f"f{number}", default=""))
        registered = own_registry.new_client().register_schema_full_response("one", schema)
        assert registered.schema_id is not None
        assert registered.version is not None
        return registered.schema_id, registered.version

    with ThreadPoolExecutor(CLIENTS) as pool:
        found = list(pool.map(register, range(CLIENTS * 3)))
    expected = list(range(1, CLIENTS * 3 + 1))
    assert sorted(schema_id for schema_id, _ in found) == expected
    assert sorted(version for _, version in found) == expected
    assert own_registry.client.get_versions("one") == expected
    for schema_id, version in found:
        assert own_registry.client.get_version("one", version).schema_id == schema_id


def test_two_servers_on_one_database_do_not_get_in_each_others_way(jvm: Jvm, tmp_path: Path) -> None:
    database = tmp_path / "control.db"
    with RunningRegistry(database, jvm) as one, RunningRegistry(database, jvm) as other:

        def register(number: int) -> int:
            registry = one if number % 2 else other
            schema = avro(field("a"), field(f"f{number // 2}", default=""))
            return registry.new_client().register_schema("shared", schema)

        with ThreadPoolExecutor(CLIENTS) as pool:
            ids = list(pool.map(register, range(CLIENTS * 2)))
        assert sorted(ids) == sorted(list(range(1, CLIENTS + 1)) * 2)
        assert one.client.get_versions("shared") == list(range(1, CLIENTS + 1))


class Interrupted(AvroCompatibility):
    """Avro's rules; something else happens in the registry while they are asked for the first time."""

    def __init__(self, jvm: Jvm, meanwhile: Callable[[], object]) -> None:
        super().__init__(jvm)
        self._meanwhile: list[Callable[[], object]] = [meanwhile]

    def validate(self, resolved: ResolvedSchema) -> None:
        super().validate(resolved)
        while self._meanwhile:
            self._meanwhile.pop()()


def test_a_version_that_comes_in_between_is_judged_too(own_registry: RunningRegistry, jvm: Jvm) -> None:
    client = own_registry.client
    client.register_schema("a", avro(field("x")))
    newer = avro(field("x"), field("n", "int", default=0))
    service = RegistryService(
        own_registry.engine, Interrupted(jvm, lambda: client.register_schema("a", newer))
    )
    # Fits the version that was there at first, not the one that came.
    text = record_text(field("x"), field("n", "string", default=""))
    with pytest.raises(Refusal, match="version 2") as caught:
        service.register("a", schemas.Schema(text))
    assert caught.value.code == 409
    assert client.get_versions("a") == [1, 2]


def test_a_reference_that_goes_in_between_is_missed(own_registry: RunningRegistry, jvm: Jvm) -> None:
    client = own_registry.client
    client.register_schema("address", Schema(ADDRESS, "AVRO"))

    def delete() -> None:
        client.delete_subject("address")
        client.delete_subject("address", permanent=True)

    service = RegistryService(own_registry.engine, Interrupted(jvm, delete))
    reference = schemas.Reference("geo.Address", "address", 1)
    with pytest.raises(Refusal, match="does not exist") as caught:
        service.register("customer", schemas.Schema(CUSTOMER, references=(reference,)))
    assert caught.value.code == 42201
    assert client.get_subjects(deleted=True) == []


def test_a_mode_that_changes_in_between_holds(own_registry: RunningRegistry, jvm: Jvm) -> None:
    client = own_registry.client
    service = RegistryService(
        own_registry.engine, Interrupted(jvm, lambda: client.update_global_mode("READONLY"))
    )
    with pytest.raises(Refusal) as caught:
        service.register("a", schemas.Schema(record_text(field("x"))))
    assert caught.value.code == 42205
    assert client.get_subjects() == []
