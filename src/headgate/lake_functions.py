"""The functions that SQL on tables of the lake may call: `lake_functions.toml` has them, and why others are
removed."""

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_FILE = Path(__file__).with_name("lake_functions.toml")


@cache
def allowed_functions() -> frozenset[str]:
    groups: dict[str, list[str]] = _classified()["allowed"]
    return frozenset(name for names in groups.values() for name in names)


@cache
def removed_functions() -> dict[str, str]:
    """By name, why."""
    groups: dict[str, Any] = _classified()["removed"]
    return {name: str(group["reason"]) for group in groups.values() for name in group["names"]}


@cache
def _classified() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def known_functions(spark: SparkSession) -> set[str]:
    """All that this Spark has, operators included, whatever was removed."""
    analysis = _analysis(spark)
    scalar, table = analysis.FunctionRegistry, analysis.TableFunctionRegistry
    sources = (scalar.expressions(), scalar.builtinOperators(), table.logicalPlans())
    names = set()
    for source in sources:
        each = source.keysIterator()
        while each.hasNext():
            names.add(str(each.next()))
    return names


class Removal:
    """The functions that are not allowed, taken out of the registries of single sessions.

    A query names a function as it likes, it is not there. Sessions that read topics keep theirs: what decodes
    records is among those that no query may call.
    """

    def __init__(self, spark: SparkSession) -> None:
        analysis = _analysis(spark)
        self._removed = {
            name: [entry for entry in _entries(registry) if str(entry.funcName()) not in allowed_functions()]
            for name, registry in (
                ("functionRegistry", analysis.FunctionRegistry.builtin()),
                ("tableFunctionRegistry", analysis.TableFunctionRegistry.builtin()),
            )
        }

    def from_session(self, session: SparkSession) -> None:
        """`session`: a new one, of which no query was asked yet."""
        java: Any = session._jsparkSession
        for name, entries in self._removed.items():
            registry = getattr(java.sessionState(), name)()
            for entry in entries:
                registry.dropFunction(entry)


def _analysis(spark: SparkSession) -> Any:
    jvm: Any = spark.sparkContext._jvm
    return jvm.org.apache.spark.sql.catalyst.analysis


def _entries(registry: Any) -> Iterator[Any]:
    names = registry.listFunction().iterator()
    while names.hasNext():
        yield names.next()
