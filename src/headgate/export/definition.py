"""What can be said of an export, in YAML, on the command line and to the API."""

import codecs
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from headgate.errors import ConfigError, InvalidRequest
from headgate.export.names import check_template
from headgate.export.schedule import DEFAULT_SCHEDULES, Period, check_schedule
from headgate.export.sql import check_incremental, check_sql
from headgate.options import parse_duration

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
ADDRESS = re.compile(r"[^@\s<>,;\"]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
Format = Literal["csv", "jsonl", "parquet", "xlsx"]
MaskKind = Literal["hash", "token", "email", "phone", "partial", "redact", "year", "month"]
# None of them is in a number, a time, Base64 or a word for a truth value.
DELIMITERS = ",;|^~!#%&*$\t"
MOST_SQL = 1_000_000
_KEYED = ("hash", "token")


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Mask(_Said):
    """How a column's values are hidden."""

    mask: MaskKind
    secret: str | None = Field(None, min_length=1, description="The name of the key, of `hash` and `token`.")
    length: int = Field(16, ge=8, le=43, description="Of a token.")
    front: int = Field(0, ge=0, description="Characters that `partial` leaves at the front.")
    back: int = Field(0, ge=0, description="Characters that `partial` leaves at the back.")

    @model_validator(mode="after")
    def _has_key(self) -> Self:
        if (self.mask in _KEYED) != (self.secret is not None):
            needs = "needs the name of a `secret`" if self.mask in _KEYED else "takes no `secret`"
            raise ValueError(f"mask {self.mask} {needs}")
        return self


class Csv(_Said):
    """How rows become lines of CSV."""

    delimiter: str = Field(",", min_length=1, max_length=1)
    header: bool = True
    quote: Literal["needed", "all"] = "needed"
    null: str = Field("", max_length=20, description="What stands for NULL, never quoted.")
    encoding: Literal["utf-8", "utf-8-bom", "windows-1252", "iso-8859-1"] = "utf-8"
    line_end: Literal["crlf", "lf"] = "crlf"
    formulas: Literal["neutralize", "keep"] = Field(
        "neutralize", description="An apostrophe before texts that a spreadsheet would take for a formula."
    )

    @model_validator(mode="after")
    def _can_be_read_back(self) -> Self:
        if self.delimiter not in DELIMITERS:
            raise ValueError(f"delimiter is a tab or one of {' '.join(DELIMITERS.strip())}")
        if any(letter in self.null for letter in ('"', "\r", "\n", self.delimiter)):
            raise ValueError("null holds no quote, line end or delimiter")
        return self


class Mail(_Said):
    """Who is told, and how."""

    to: list[str] = Field(min_length=1, max_length=50)
    subject: str | None = Field(None, min_length=1, max_length=200)
    attach_up_to: int = Field(
        5_000_000, ge=0, le=50_000_000, description="Bytes of a file that is attached; else a link is sent."
    )
    failures: bool = Field(True, description="Whether they are told of runs that failed.")

    @field_validator("to")
    @classmethod
    def _are_addresses(cls, to: list[str]) -> list[str]:
        for address in to:
            if ADDRESS.fullmatch(address) is None or not address.isprintable() or not address.isascii():
                raise ValueError(f"'{address}' is no mail address")
        if len(set(to)) < len(to):
            raise ValueError("an address is there twice")
        return to

    @field_validator("subject")
    @classmethod
    def _is_one_line(cls, subject: str | None) -> str | None:
        if subject is not None and not subject.isprintable():
            raise ValueError("subject is one line of text")
        return subject


class Webhook(_Said):
    """Where a signed message is posted."""

    url: str = Field(pattern=r"^https?://[^\s@/?#]+[^\s#]*$", max_length=2000)
    secret: str = Field(min_length=1, description="The name of the key that it is signed with.")


class ExportFields(_Said):
    """When an export runs, what may leave, and where its rows go."""

    period: Period = Field("week", description="What a run is about; `schedule`: since the time before.")
    schedule: str | None = Field(None, description="A cron expression of five fields, in the zone.")
    zone: str = "UTC"
    catch_up: Literal["all", "last", "none"] = Field("all", description="Which missed runs are made.")
    incremental: str | None = Field(
        None, min_length=1, description="A table of the query: what was committed since the run before."
    )
    retries: int = Field(5, ge=0, le=100, description="How often a run that failed is tried again.")
    order_by: list[str] = Field(default_factory=list, description="Columns that rows are ordered by first.")
    explode: list[str] = Field(
        default_factory=list, max_length=5, description="Arrays of the query: a row for each element."
    )
    columns: list[str] | None = Field(None, min_length=1, description="Those that may leave, and no others.")
    masks: dict[str, Mask] = Field(default_factory=dict, description="Columns, and how they are hidden.")
    personal: list[str] = Field(default_factory=list, description="Columns that leave masked or not at all.")
    strict: bool = Field(False, description="Stop where a column looks personal and is not masked.")
    format: Format = "csv"
    csv: Csv = Csv()
    compression: Literal["none", "gzip", "zstd"] = "none"
    storage: str | None = Field(None, min_length=1, description="A named place in S3; none is a folder.")
    folder: str = Field("", max_length=500, description="Below `export.folder`, or below the storage.")
    file_name: str = Field("{export}_{from}_{to}", description="The file's name, without its ending.")
    part_bytes: int | None = Field(
        None,
        ge=1,
        description="A file ends with about so many bytes, before they are packed; another begins.",
    )
    hold: str = Field("30d", description="How long the snapshots of a run are kept.")
    keep_files: int | None = Field(None, ge=1, description="How many of its newest files are kept.")
    keep_for: str | None = Field(None, description="How long its files are kept.")
    mail: Mail | None = None
    webhook: Webhook | None = None
    apprise: list[str] = Field(
        default_factory=list, max_length=20, description="Names of secrets, each an URL of Apprise."
    )

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(
                f"there is no time zone '{self.zone}'; write for instance Europe/Oslo"
            ) from error
        check_schedule(self.cron, self.zone)
        if self.period == "schedule" and self.schedule is None:
            raise ValueError("period schedule needs a schedule")
        check_template(self.file_name)
        if "{part}" in self.file_name and self.part_bytes is None:
            raise ValueError("file_name: there are no parts: say `part_bytes`, or take {part} out")
        check_folder(self.folder)
        if self.format == "parquet" and self.compression == "gzip":
            raise ValueError("parquet is compressed inside: by zstd, or none")
        if self.format == "xlsx" and self.compression != "none":
            raise ValueError("xlsx is compressed inside, always the same way; leave compression out")
        _ = self.hold_for, self.kept_for
        codecs.lookup(self.codec)
        return self

    @property
    def cron(self) -> str:
        return self.schedule or DEFAULT_SCHEDULES[self.period]

    @property
    def codec(self) -> str:
        """Python's name of the encoding."""
        return {"utf-8-bom": "utf-8"}.get(self.csv.encoding, self.csv.encoding)

    @property
    def hold_for(self) -> timedelta:
        return _duration("hold", self.hold)

    @property
    def kept_for(self) -> timedelta | None:
        return None if self.keep_for is None else _duration("keep_for", self.keep_for)

    @property
    def secrets(self) -> frozenset[str]:
        """The names of all secrets that a run takes."""
        masks = {mask.secret for mask in self.masks.values() if mask.secret is not None}
        hooks = {self.webhook.secret} if self.webhook is not None else set()
        return frozenset(masks | hooks | set(self.apprise))


class ExportOptions(ExportFields):
    """A query over tables of the lake, when it runs, and where its rows go."""

    sql: str = Field(min_length=1, max_length=MOST_SQL, description="With `:from` and `:to` of its period.")

    @field_validator("sql")
    @classmethod
    def _can_be_run(cls, sql: str) -> str:
        check_sql(sql)
        return sql

    @model_validator(mode="after")
    def _can_be_incremental(self) -> Self:
        if self.incremental is not None:
            check_incremental(self.sql, self.incremental)
        return self

    def to_dict(self) -> dict[str, Any]:
        """In plain values, without what is a default."""
        return self.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def _duration(field: str, text: str) -> timedelta:
    try:
        return timedelta(seconds=parse_duration(text))
    except (ConfigError, OverflowError) as error:
        raise ValueError(f"{field}: {error}") from error


def check_folder(folder: str) -> None:
    parts = folder.split("/") if folder else []
    if any(part in ("", ".", "..") or not part.isprintable() or "\\" in part for part in parts):
        raise ValueError(f"'{folder}' is no folder below that of exports: write for instance partners/acme")


def check_name(name: str) -> None:
    if NAME.fullmatch(name) is None:
        raise InvalidRequest(
            f"'{name}' cannot name an export.",
            "Letters, digits, dots, dashes and underscores, up to 100 of them.",
        )


def parse_options(said: Mapping[str, Any]) -> ExportOptions:
    """The options, or an InvalidRequest that names what is wrong."""
    try:
        return ExportOptions.model_validate(dict(said))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        raise InvalidRequest(
            f"{where}: {message}." if where else f"{message}.", "See docs/reference/exports.md."
        ) from error
