"""Vectors in Delta's files."""

import binascii
import struct
import uuid

import pytest
from pyroaring import BitMap64

from headgate.delta.vectors import Blob, checked, encoded, file_name, pack, uuid_of


def blob(*positions: int) -> bytes:
    body = struct.pack("<I", 1681511377) + BitMap64(positions).serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", binascii.crc32(body))


def test_names_are_in_the_letters_that_delta_has() -> None:
    """The example of Delta's own protocol."""
    name = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
    assert encoded(name) == "^-aqEH.-t@S}K{vb[*k^"
    assert uuid_of("ab^-aqEH.-t@S}K{vb[*k^") == name
    assert file_name(name) == "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def test_each_is_found_where_the_log_says() -> None:
    first, second = Blob(blob(1, 5), 2), Blob(blob(*range(100)), 100)
    name = uuid.uuid4()
    data, where = pack({"z": second, "a": first}, name, "folder")
    assert data[0] == 1
    for path, one in (("a", first), ("z", second)):
        said = where[path]
        assert said["storageType"] == "u"
        assert said["pathOrInlineDv"] == f"folder{encoded(name)}"
        assert said["cardinality"] == one.cardinality
        start = said["offset"]
        assert data[start : start + said["sizeInBytes"] + 8] == one.data
        assert struct.unpack(">I", data[start : start + 4])[0] == said["sizeInBytes"]
    # In whatever order they come: the same bytes.
    assert pack({"a": first, "z": second}, name, "folder")[0] == data


def test_damage_is_noticed() -> None:
    good = blob(3)
    assert checked(good, 1).cardinality == 1
    for bad in (b"", good[:-1], good[:-1] + bytes([good[-1] ^ 1]), good[:10] + b"\x77" + good[11:]):
        with pytest.raises(ValueError, match="no deletion vector"):
            checked(bad, 1)
