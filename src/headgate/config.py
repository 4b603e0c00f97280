"""headgate.yaml and the environment become one frozen Settings, once. Unknown keys are refused.

`HEADGATE_PORTS__SERVER=0` in the environment is `ports: {server: 0}` in the file, and wins over it.
"""

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headgate.errors import ConfigError

PREFIX = "HEADGATE_"
# Read by clients and scripts, not part of the settings.
CLIENT_VARIABLES = {
    "HEADGATE_URL",
    "HEADGATE_CLIENT_ID",
    "HEADGATE_CLIENT_SECRET",
    "HEADGATE_SOAK",
    "HEADGATE_DEBUG",
}


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Cluster(Section):
    name: str = Field("local", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")


class Ports(Section):
    """0 lets the system choose."""

    server: int = Field(8080, ge=0, le=65535)
    broker: int = Field(9092, ge=0, le=65535)
    connect: int = Field(15002, ge=0, le=65535)


class Kafka(Section):
    bootstrap: str | None = Field(None, description="Your own Kafka; none starts the embedded broker.")


class Registry(Section):
    url: str | None = Field(None, description="Your own schema registry; none serves the embedded one.")


class Catalog(Section):
    uri: str | None = Field(None, description="Your own Iceberg REST catalog; none serves the embedded one.")
    warehouse: str | None = Field(
        None, description="Where tables are stored (embedded catalog), or the warehouse's name (your own)."
    )
    properties: dict[str, str] = Field(default_factory=dict, description="Further properties for your own.")


class Spark(Section):
    master: str = "local[*]"
    memory: str = Field("3g", description="Heap of the engine's driver.")
    properties: dict[str, str] = Field(default_factory=dict)


class Query(Section):
    memory: str = Field("2g", description="Heap of the query driver.")


class Engine(Section):
    tick_seconds: float = Field(1.0, gt=0)
    workers: int = Field(4, ge=1, description="Tables that are written at the same time.")
    max_batch_rows: int = Field(4_000_000, ge=1)
    max_batch_bytes: int = Field(2 * 1024**3, ge=1)


class Store(Section):
    url: str | None = Field(None, description="SQLAlchemy URL of the control state; none is SQLite.")


class Settings(Section):
    """All of it, frozen: what passes between the parts."""

    data: Path = Path(".headgate")
    jars: Path | None = Field(None, description="Where `make setup` put the jars.")
    cluster: Cluster = Cluster()
    ports: Ports = Ports()
    kafka: Kafka = Kafka()
    registry: Registry = Registry()
    catalog: Catalog = Catalog()
    spark: Spark = Spark()
    query: Query = Query()
    engine: Engine = Engine()
    store: Store = Store()

    @property
    def store_url(self) -> str:
        return self.store.url or f"sqlite:///{self.data / 'control.db'}"

    @property
    def catalog_db(self) -> Path:
        return self.data / "catalog.db"

    @property
    def warehouse(self) -> str:
        """The embedded catalog's root."""
        return self.catalog.warehouse or (self.data / "warehouse").as_uri()

    @property
    def jars_folder(self) -> Path:
        return self.jars or Path(__file__).resolve().parents[2] / ".jars"

    @property
    def namespace(self) -> str:
        return self.cluster.name


def load_settings(
    file: Path | None = None, environment: Mapping[str, str] | None = None, data: Path | None = None
) -> Settings:
    """File, then environment, then the command line's `--data`, each over the one before."""
    raw = _read_file(file)
    _overlay(raw, _from_environment(os.environ if environment is None else environment))
    if data is not None:
        raw["data"] = str(data)
    try:
        settings = Settings.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(_explain(error, file)) from error
    return settings.model_copy(update={"data": settings.data.expanduser().absolute()})


def _read_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        raw = yaml.safe_load(file.read_text())
    except OSError as error:
        raise ConfigError(f"Cannot read the configuration file {file}: {error.strerror}.") from error
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"{file} is not valid YAML: {said}.") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{file} must hold keys and values, for instance `ports: {{server: 8080}}`.")
    return raw


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in environment.items():
        if not name.startswith(PREFIX) or name in CLIENT_VARIABLES:
            continue
        *parents, leaf = name.removeprefix(PREFIX).lower().split("__")
        section = found
        for parent in parents:
            section = section.setdefault(parent, {})
        section[leaf] = value
    return found


def _overlay(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            _overlay(below[key], value)
        else:
            below[key] = value


def _explain(error: ValidationError, file: Path | None) -> str:
    where = str(file) if file else "the environment"
    lines = []
    for problem in error.errors():
        path = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = _keys_at(problem["loc"][:-1])
            near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known here: {', '.join(known)}."
            lines.append(f"unknown key '{path}'. {hint}")
        else:
            lines.append(f"'{path}': {problem['msg']}")
    return f"Configuration ({where}): " + "; ".join(lines)


def _keys_at(path: tuple[int | str, ...]) -> list[str]:
    section: Any = Settings
    for part in path:
        annotation = section.model_fields[str(part)].annotation
        section = next((a for a in (annotation, *get_args(annotation)) if isinstance(a, type)), None)
        if not (isinstance(section, type) and issubclass(section, BaseModel)):
            return []
    return sorted(section.model_fields)


_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*$")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}


def parse_duration(text: str) -> float:
    """`10s`, `5m`, `2h` in seconds."""
    match = _DURATION.match(text)
    if not match:
        raise ConfigError(f"'{text}' is not a duration.", "Write for instance 10s, 5m or 2h.")
    return float(match[1]) * _UNITS[match[2]]
