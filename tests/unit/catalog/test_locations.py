"""Locations: canonical, inside the warehouse, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.catalog.errors import CatalogError
from headgate.catalog.locations import Footprint, Warehouse, canonical
from headgate.catalog.names import Identifier

WAREHOUSE = Warehouse.at("file:///data/warehouse")


@pytest.mark.parametrize("spelling", ["file:/x/y", "file:///x/y", "file:///x/y/", "/x/y", "FILE:/x/y"])
def test_one_place_has_one_spelling(spelling: str) -> None:
    assert canonical(spelling) == "file:///x/y"


def test_buckets_keep_their_name() -> None:
    assert canonical("s3://bucket/a/b/") == "s3://bucket/a/b"


@pytest.mark.parametrize(
    "location",
    [
        "file:///data/warehouse/../secrets",
        "file:///data/warehouse/a/../../b",
        "file:///data/warehouse/./a",
        "file:///data/warehouse//a",
        "file:///data/warehouse/*",
        "file:///data/warehouse/a%2F..%2Fb",
        "file:///data/warehouse/a?b",
        "file:///data/warehouse/a#b",
        "file:///data/warehouse/{a,b}",
        "file:///data/warehouse/a\x00b",
        "file://host/data/warehouse/a",
        "file:///data/warehouse",
        "file:///data/warehouse2/a",
        "file:///etc/passwd",
        "s3://bucket/data/warehouse/a",
        "hdfs:///data/warehouse/a",
        "data/warehouse/a",
        "file:data/warehouse/a",
        "",
    ],
)
def test_places_outside_the_warehouse_are_refused(location: str) -> None:
    with pytest.raises(CatalogError) as caught:
        WAREHOUSE.admit(location, "The location")
    assert caught.value.status == 400


def test_places_that_are_allowed() -> None:
    lake = Warehouse.at("file:///lake", ["file:///my%20archive/a", "s3://bucket/b/"])
    assert lake.admit("/lake/t", "The location") == "file:///lake/t"
    assert lake.admit("/my archive/a/t", "The location") == "file:///my archive/a/t"
    assert lake.admit("s3://bucket/b/t", "The location") == "s3://bucket/b/t"
    for elsewhere in ("/my archive/b/t", "/my archive/a", "/my archive/ab/t", "s3://bucket/c", "/lake/../x"):
        with pytest.raises(CatalogError):
            lake.admit(elsewhere, "The location")


def test_files_may_have_names_that_locations_may_not() -> None:
    partition = "file:/data/warehouse/t/data/name=a%2Fb*/f.parquet"
    assert WAREHOUSE.admit_file(partition, "The file") == partition.replace("file:/", "file:///")
    assert Footprint("file:///data/warehouse/t").holds(partition.replace("file:/", "file:///"))
    outside = ("/etc/passwd", "/data/warehouse/../x", "/data/warehouse/t/./f", "/data/warehouse/a\nb", "f")
    for elsewhere in outside:
        with pytest.raises(CatalogError):
            WAREHOUSE.admit_file(elsewhere, "The file")


def test_another_bucket_is_another_warehouse() -> None:
    lake = Warehouse.at("s3://lake/tables")
    assert lake.admit("s3://lake/tables/a", "The location") == "s3://lake/tables/a"
    for elsewhere in ("s3://pond/tables/a", "s3a://lake/tables/a", "s3://lake/other/a"):
        with pytest.raises(CatalogError):
            lake.admit(elsewhere, "The location")


@pytest.mark.parametrize("key", ["write.data.path", "write.metadata.path", "write.object-storage.path"])
def test_path_properties_are_checked_like_locations(key: str) -> None:
    inside = WAREHOUSE.footprint("file:/data/warehouse/a", {key: "file:/data/warehouse/b", "x": "*"})
    assert inside == Footprint("file:///data/warehouse/a", ("file:///data/warehouse/b",))
    with pytest.raises(CatalogError, match=key):
        WAREHOUSE.footprint("file:/data/warehouse/a", {key: "/tmp/elsewhere"})


def test_a_warehouse_in_a_folder_with_spaces() -> None:
    assert Warehouse.at("file:///my%20data/w").root == "file:///my data/w"


@given(st.lists(st.text(max_size=40), min_size=2, max_size=4))
def test_no_name_leads_out_of_the_warehouse(parts: list[str]) -> None:
    try:
        identifier = Identifier(tuple(parts[:-1]), parts[-1])
    except CatalogError:
        return
    location = WAREHOUSE.default_location(identifier)
    assert WAREHOUSE.admit(location, "The location") == location
    fresh = WAREHOUSE.fresh_location(identifier)
    assert WAREHOUSE.admit(fresh, "The location") == fresh
    assert all(len(segment) <= 255 for segment in fresh.split("/"))


def test_home_is_the_folder_of_the_namespace() -> None:
    lake = Warehouse.at("s3a://lake/w", ["s3://archive/a"], lambda: ("s3://vault/v",))
    assert lake.root == "s3://lake/w"
    table = Identifier(("db",), "t")
    for place in ("s3://lake/w", "s3://archive/a", "s3://vault/v"):
        assert lake.is_home(table, f"{place}/db/any")
        assert lake.admit(f"{place}/db/any", "The location") == f"{place}/db/any"
        assert not lake.is_home(table, f"{place}/db2/any")
        assert not lake.is_home(table, f"{place}/db")
    assert not lake.is_home(Identifier(("db", "x"), "t"), "s3://lake/w/db/x/t")
