"""Topics that become tables because the configuration says so."""

from collections.abc import Iterable, Mapping, Sequence, Set
from fnmatch import fnmatchcase

from headgate.config import TablePattern
from headgate.model import DEAD_LETTERS_SUFFIX, Deletes, TableSpec
from headgate.options import SETTLED
from headgate.store import TableRecord

# Topics of Headgate's own begin so.
INTERNAL_PREFIXES = ("__", "_headgate")


def wanted_spec(topic: str, patterns: Sequence[TablePattern], before: TableSpec | None) -> TableSpec | None:
    """What the patterns want of a topic; None when they leave it alone. All that match count, later ones
    more.

    A table that is there keeps what its rows were made by.
    """
    matching = [pattern for pattern in patterns if fnmatchcase(topic, pattern.match)]
    if not matching or any(pattern.exclude for pattern in matching):
        return None
    spec = TableSpec(topic)
    for pattern in matching:
        spec = pattern.apply(spec)
    if before is None:
        return spec
    kept = {name: before.to_dict()[name] for name in (*SETTLED, "renames", "watermark")}
    # A newer format is taken up; back there is no way, nor to what only an older one has.
    kept["format_version"] = max(before.format, spec.format)
    if before.format == 3 and spec.deletes is Deletes.POSITION_DELETES:
        kept["deletes"] = before.to_dict()["deletes"]
    return TableSpec.from_dict({**spec.to_dict(), **kept})


def is_internal(topic: str, tables: Iterable[TableSpec]) -> bool:
    """Dead letters and topics of Headgate's own never become tables."""
    return (
        topic.startswith(INTERNAL_PREFIXES)
        or topic.endswith(DEAD_LETTERS_SUFFIX)
        or any(topic == table.dead_letters_name for table in tables)
    )


def changes(
    topics: Iterable[str],
    patterns: Sequence[TablePattern],
    tables: Mapping[str, TableRecord],
    declined: Set[str],
) -> tuple[list[TableSpec], list[TableSpec]]:
    """Tables to enable, and tables to alter. One that was made by hand, or disabled by hand, stays so."""
    specs = [record.spec for record in tables.values()]
    new, altered = [], []
    for topic in topics:
        record = tables.get(topic)
        if is_internal(topic, specs) or topic in declined or (record and record.origin != "pattern"):
            continue
        spec = wanted_spec(topic, patterns, record.spec if record else None)
        if spec is None:
            continue
        if record is None:
            new.append(spec)
        elif spec != record.spec:
            altered.append(spec)
    return new, altered
