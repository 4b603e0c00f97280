"""A second reading of JSON in plain Python, to compare the reader with. It knows schemas of one kind only."""

import json
import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

_UNSURE = re.compile(r"-?[0-9][0-9.]*[eE][-+]?[0-9]+|-?[0-9.]{39,}")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class Wrong(Exception):
    """The text is not what the schema says, or no column holds it."""


class Number(str):
    """A number as it is written."""


@dataclass(frozen=True)
class Document:
    """Any JSON, where the schema says nothing: the reader has it as text."""

    value: Any


def value_of(schema: dict[str, Any], body: bytes) -> Any:
    """What the columns have. Raises Wrong where the record must not be exact."""
    try:
        text = body.decode()
        found = json.loads(
            text,
            object_pairs_hook=_pairs,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError) as error:
        raise Wrong from error
    if not isinstance(found, dict):
        raise Wrong
    _check_texts(found)
    if "documents" in schema and not all(map(_kept, _UNSURE.findall(_STRING.sub('""', text)))):
        raise Wrong
    return _read(schema, found)


def _read(schema: dict[str, Any], found: Any) -> Any:
    if found is None:
        return None
    match schema.get("type"):
        case "string" if isinstance(found, str) and not isinstance(found, Number):
            return _date(found) if schema.get("format") == "date" else str(found)
        case "integer" if isinstance(found, Number) and re.fullmatch("-?[0-9]+", found):
            return _whole(int(found))
        case "number" if isinstance(found, Number) and is_double(found):
            return float(found)
        case "boolean" if isinstance(found, bool):
            return found
        case "array" if isinstance(found, list):
            return [_read(schema["items"], item) for item in found]
        case "object" if isinstance(found, dict):
            return _object(schema, found)
        case None:
            return Document(found)
    raise Wrong


def _object(schema: dict[str, Any], found: dict[str, Any]) -> Any:
    if "properties" not in schema:
        return [(key, _read(schema["additionalProperties"], value)) for key, value in found.items()]
    known = schema["properties"]
    others = [value for key, value in found.items() if key not in known and value is not None]
    if others and schema.get("additionalProperties") is False:
        raise Wrong
    return {key: _read(inner, found.get(key)) for key, inner in known.items()}


def plain(value: Any) -> Any:
    """A document with its numbers as numbers, for comparison."""
    match value:
        case Number():
            return Decimal(value)
        case list():
            return [plain(item) for item in value]
        case dict():
            return {key: plain(item) for key, item in value.items()}
    return value


def parsed(text: str) -> Any:
    return plain(json.loads(text, parse_int=Number, parse_float=Number))


def is_double(number: str) -> bool:
    """Whether the double that is nearest to a number prints as it."""
    double = float(number)
    digits = _digits(number)
    if not digits:
        return True
    if len(digits) <= 15 and 1e-280 <= abs(double) <= 1e280:
        return True
    return digits == _digits(repr(double))


def _digits(number: str) -> str:
    return re.sub("[eE].*|[-+.]", "", number).strip("0")


def _kept(number: str) -> bool:
    mantissa = number.lstrip("-")
    _, _, places = mantissa.partition(".")
    digits = mantissa.replace(".", "").lstrip("0")
    fits = "e" not in number.lower() and len(places) <= 38 and len(digits) <= 38
    return fits or is_double(number)


def _whole(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise Wrong
    return number


def _date(text: str) -> date:
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise Wrong
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise Wrong from error


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Wrong
    return found


def _refuse(name: str) -> None:
    raise Wrong


def _check_texts(found: Any) -> None:
    match found:
        case str():
            if any("\ud800" <= character <= "\udfff" for character in found):
                raise Wrong
        case list():
            for item in found:
                _check_texts(item)
        case dict():
            for key, value in found.items():
                _check_texts(key)
                _check_texts(value)
