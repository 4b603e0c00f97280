"""The JVM under a Spark driver, started with settings that no other user of the machine can read.

PySpark would hand its settings over as arguments, which every process of the machine can see.
"""

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pyspark import SparkContext, java_gateway

ARGUMENTS = "PYSPARK_SUBMIT_ARGS"


def start_driver_jvm(settings: Mapping[str, str], folder: Path) -> None:
    """Starts the JVM that this process's Spark contexts use; one that is there already is left as it is.

    The settings pass through a file in `folder` that is gone when the JVM runs.
    """
    context = cast(Any, SparkContext)
    if context._gateway is None:
        with (
            properties_file(settings, folder) as file,
            _arguments(f'--properties-file "{file}" pyspark-shell'),
        ):
            context._ensure_initialized(gateway=cast(Any, java_gateway).launch_gateway())


@contextmanager
def properties_file(settings: Mapping[str, str], folder: Path) -> Iterator[Path]:
    """A file in Java's form that its owner alone can read, for as long as the block lasts."""
    file = folder / f".{secrets.token_hex(8)}.properties"
    lines = "".join(f"{escape_key(key)}={escape_value(value)}\n" for key, value in settings.items())
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:  # noqa: PTH123
        out.write(lines)
    try:
        yield file
    finally:
        file.unlink()


def escape_key(key: str) -> str:
    return "".join(f"\\{char}" if char in "=: #!" else char for char in escape_value(key))


def escape_value(value: str) -> str:
    """As `java.util.Properties` reads it; a blank at either end is kept."""
    escaped = value.replace("\\", "\\\\")
    for char, written in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\f", "\\f")):
        escaped = escaped.replace(char, written)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


@contextmanager
def _arguments(text: str) -> Iterator[None]:
    """PySpark reads them from its environment; they name no secret."""
    before = os.environ.get(ARGUMENTS)
    os.environ[ARGUMENTS] = text
    try:
        yield
    finally:
        if before is None:
            del os.environ[ARGUMENTS]
        else:
            os.environ[ARGUMENTS] = before
