"""Deletion vectors in files of Delta's kind. Their bytes are those that Iceberg has, in another wrapping."""

import base64
import binascii
import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# The first byte of a file of vectors.
_VERSION = b"\x01"
_MAGIC = struct.pack("<I", 1681511377)
_LENGTH = struct.Struct(">I")
_UUID_LETTERS = 20
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


@dataclass(frozen=True)
class Blob:
    """Length, magic, bitmap, checksum; and how many positions are in it."""

    data: bytes
    cardinality: int


def checked(data: bytes, cardinality: int) -> Blob:
    """A blob as it is in one of Iceberg's files."""
    length = _LENGTH.unpack_from(data)[0] if len(data) > 8 else -1
    body = data[4:-4]
    if length != len(body) or body[:4] != _MAGIC or _LENGTH.pack(binascii.crc32(body)) != data[-4:]:
        raise ValueError("these bytes are no deletion vector")
    return Blob(data, cardinality)


def pack(blobs: Mapping[str, Blob], name: uuid.UUID, folder: str) -> tuple[bytes, dict[str, dict[str, Any]]]:
    """One file for all, and where in it each data file's vector is, as the log says it."""
    data = bytearray(_VERSION)
    found: dict[str, dict[str, Any]] = {}
    for path, blob in sorted(blobs.items()):
        (size,) = _LENGTH.unpack_from(blob.data)
        found[path] = {
            "storageType": "u",
            "pathOrInlineDv": folder + encoded(name),
            "offset": len(data),
            "sizeInBytes": size,
            "cardinality": blob.cardinality,
        }
        data += blob.data
    return bytes(data), found


def file_name(name: uuid.UUID) -> str:
    return f"deletion_vector_{name}.bin"


def encoded(name: uuid.UUID) -> str:
    """A UUID in the base 85 of ZeroMQ, as Delta writes it."""
    return base64.b85encode(name.bytes).decode("ascii").translate(_TO_ZEROMQ)


def uuid_of(path: str) -> uuid.UUID:
    """What follows the folder in a vector's path."""
    return uuid.UUID(bytes=base64.b85decode(path[-_UUID_LETTERS:].translate(_FROM_ZEROMQ)))


# Python's letters stand for the same numbers, in another order.
_PYTHON = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_ZEROMQ = str.maketrans(_PYTHON, _ALPHABET)
_FROM_ZEROMQ = str.maketrans(_ALPHABET, _PYTHON)
