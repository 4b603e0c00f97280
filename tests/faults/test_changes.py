"""Versions, joins that update, rows that are taken back and rolling aggregates, as statements of a real
engine that is killed at random. What they wrote is what a plain computation gives."""

import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import fastavro
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, TimestampNTZType, TimestampType

from headgate.kafka.topics import Topics
from headgate.registry.client import SchemaSource
from headgate.registry.schemas import SchemaType
from headgate.sql.tables import AFTER, CAME, OP_CODES
from tests.faults.mishaps import PATIENCE_SECONDS
from tests.faults.test_sql import Drill, kill_at_random
from tests.integration.statements.bench import framed
from tests.support.changing_cases import CASES
from tests.support.dimension_cases import Case
from tests.support.dimensions import (
    FACTS,
    Facts,
    Record,
    columns,
    generated,
    late_rows,
    nobody,
    rows_behind_the_ends,
)
from tests.support.queries import DELAY, ENDS, NOBODY, at, plain
from tests.support.services import Services, wait_for

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
# Sets of topics, and queries that read each: cases are their product.
SETS, CASES_OF_A_SET = (20, 10) if SOAK else (1, 7)
# Event time ends there, when it has passed the facts behind the ends of all others.
LAST_ENDS = (300_000, 400_000)
# Operators that keep nothing from one batch to the next: a kill has nothing of theirs to lose.
STATELESS = frozenset(
    (
        "AssignWindows",
        "CutRows",
        "FilterRows",
        "OutputRows",
        "ProjectRows",
        "ScanRows",
        "UnionRows",
        "UnnestRows",
    )
)
_TABLE = re.compile(r"\b(FROM|JOIN|TABLE) ([fchrdpm])\b(?!\.)")
_AVRO = {
    IntegerType: "int",
    LongType: "long",
    StringType: "string",
    TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
EPOCH = at(0).replace(year=1970, month=1, day=1)


@dataclass
class Told:
    """The tables of one set, and the statements that read them."""

    name: str
    facts: Facts
    late: Facts
    after: Facts
    sent: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FACTS.tables, 0))
    cases: dict[str, Case] = field(default_factory=dict)
    #: Those whose records take rows back.
    retract: set[str] = field(default_factory=set)

    def topic(self, table: str) -> str:
        return f"{self.name}.{table}"

    def sql(self, text: str) -> str:
        return _TABLE.sub(lambda found: f"{found[1]} `{self.topic(found[2])}`", text)


def covering_cases(chance: random.Random) -> list[str]:
    """Cases by chance, so many that each operator with state is in one of them."""
    names = chance.sample(sorted(CASES), len(CASES))
    operators = {name: stateful_operators(CASES[name]) for name in names}
    missing = set().union(*operators.values())
    chosen: list[str] = []
    while missing:
        chosen.append(max(names, key=lambda name: len(operators[name] & missing)))
        missing -= operators[chosen[-1]]
    return chosen


def stateful_operators(case: Case) -> set[str]:
    return {type(step).__name__ for step in case.plan(FACTS).root.walk()} - STATELESS


class Changes(Drill):
    """Statements over tables that change."""

    makes_ending = False

    def __init__(self, services: Services, schemas: SchemaSource, chance: random.Random) -> None:
        super().__init__(services, schemas, chance)
        self.told: list[Told] = []
        self._parts: dict[str, tuple[int, Any]] = {}

    def make(self) -> None:
        facts = generated(self.chance, self.chance.randint(15, 40))
        late = late_rows(self.chance, self.chance.randint(1, 5))
        made = Told(f"any-{uuid4().hex[:6]}", facts, late, rows_behind_the_ends(self.chance, 6))
        for table, info in FACTS.tables.items():
            topic, keyed = made.topic(table), bool(info.primary_key)
            config = {"cleanup.policy": "compact"} if keyed else {"retention.ms": "-1"}
            # Nothing is compacted while the drill runs: every version is to be read.
            Topics(self.services.runtime.kafka).create(
                topic, 2, config={**config, "min.compaction.lag.ms": "86400000"}
            )
            fields = [
                {"name": f.name, "type": ["null", _AVRO[type(f.dataType)]], "default": None}
                for f in info.columns.fields
            ]
            self._register(f"{topic}-value", fields)
            if keyed:
                keys = [{"name": name, "type": "int"} for name in info.primary_key]
                self._register(f"{topic}-key", keys)
            if info.changelog == "retract":
                self.run(f"ALTER TABLE `{topic}` SET ('changelog.mode' = 'retract')")
            assert info.watermark is not None
            column = info.watermark.column
            self.run(
                f"ALTER TABLE `{topic}` MODIFY WATERMARK FOR {column} AS {column} - INTERVAL '{DELAY}' SECOND"
            )
        chance = self.chance
        names = chance.sample(sorted(CASES), CASES_OF_A_SET) if SOAK else covering_cases(chance)
        for name in names:
            case = CASES[name]
            retract = self.chance.random() < 0.5
            keyed = case.changes and (case.table or not (retract and self.chance.random() < 0.5))
            key = f"(PRIMARY KEY ({', '.join(case.key)}) NOT ENFORCED)" if keyed else ""
            mode = "WITH ('changelog.mode' = 'retract')" if retract else ""
            self.run(
                f"SET 'client.statement-name' = '{made.name}.{name}';"
                f"SET 'sql.tables.scan.idle-timeout' = '{self.idle_timeout()}';"
                f"CREATE TABLE `{made.name}.{name}` {key} {mode} AS {made.sql(case.sql)}"
            )
            made.cases[f"{made.name}.{name}"] = case
            self.leaves_out[f"{made.name}.{name}"] = any(
                table not in case.late for _, table in _TABLE.findall(case.sql)
            )
            if retract:
                made.retract.add(f"{made.name}.{name}")
        self.told.append(made)

    def _register(self, subject: str, fields: list[dict[str, Any]]) -> None:
        schema = {"type": "record", "name": "Row", "fields": fields}
        number = self.schemas.register(subject, SchemaType.AVRO, json.dumps(schema))
        self._parts[subject] = (number, fastavro.parse_schema(schema))

    def send_some(self) -> None:
        """And in each partition a row of nobody: none is silent that has more to come."""
        for made in self.told:
            for table in FACTS.tables:
                records = getattr(made.facts, table)
                first = made.sent[table]
                some = records[first : first + self.chance.randint(0 if first else 1, 9)]
                for place, record in enumerate(some, first):
                    self._tell(made, table, record, place)
                made.sent[table] += len(some)
                if some:
                    self._send_nobody(made, table, some[-1].t)
        assert self._producer.flush(120) == 0

    def _send_nobody(self, made: Told, table: str, t: int) -> None:
        for partition in (0, 1):
            self._produce(made, table, nobody(table, t), partition, at(t))

    def doom(self) -> None:
        chance = self.chance
        self.doomed = {made.topic(table) for made in self.told for table in chance.sample("fchrdpm", 2)}

    def send_again(self, topic: str) -> None:
        made, table = next((m, t) for m in self.told for t in FACTS.tables if m.topic(t) == topic)
        for place, record in enumerate(getattr(made.facts, table)[: made.sent[table]]):
            self._tell(made, table, record, place)
            self._send_nobody(made, table, record.t)

    def send_rest(self) -> None:
        while any(
            made.sent[table] < len(getattr(made.facts, table)) for made in self.told for table in FACTS.tables
        ):
            self.send_some()
        self._send_ends(*ENDS)

    def _send_ends(self, *times: int) -> None:
        for t in times:
            for made in self.told:
                for table in FACTS.tables:
                    self._send_nobody(made, table, t)
            assert self._producer.flush(120) == 0

    def send_after(self) -> None:
        """Facts behind the ends, once the versions that came late are read: they have those."""
        for name in self.leaves_out:
            wait_for(f"{name} to read late rows", partial(self._has_read_all, name), PATIENCE_SECONDS)
        for made in self.told:
            for place, record in enumerate(made.after.f):
                self._tell(made, "f", record, place)
        assert self._producer.flush(120) == 0
        self._send_ends(*LAST_ENDS)

    def produce_late(self) -> None:
        for made in self.told:
            for table in FACTS.tables:
                for place, record in enumerate(getattr(made.late, table)):
                    self._tell(made, table, record, place)

    def _tell(self, made: Told, table: str, record: Record, place: int) -> None:
        info = FACTS.tables[table]
        # Rows of a key are in one partition, those of others anywhere.
        names = info.primary_key or (("id",) if table in "rm" else ())
        partition = record[names[0]] % 2 if names else place % 2
        deletes = record.deletes and info.changelog == "upsert"
        self._produce(made, table, columns(table, record), partition, at(record.t), deletes, record.op)

    def _produce(
        self,
        made: Told,
        table: str,
        values: dict[str, Any],
        partition: int,
        time: Any,
        deletes: bool = False,
        op: str = CAME,
    ) -> None:
        info, topic = FACTS.tables[table], made.topic(table)
        row = {f.name: _plain(values.get(f.name)) for f in info.columns.fields}
        value = None if deletes else framed(*self._parts[f"{topic}-value"], row)
        key = None
        if info.primary_key:
            key = framed(*self._parts[f"{topic}-key"], {name: values[name] for name in info.primary_key})
        millis = int(time.timestamp() * 1000)
        headers: list[Any] = [("op", OP_CODES[op])] if info.changelog == "retract" else []
        self._producer.produce(topic, value, key, partition=partition, timestamp=millis, headers=headers)
        self._sent[topic, partition] += 1

    def expected(self) -> Iterator[tuple[str, list[str], Callable[[], list[str]]]]:
        for made in self.told:
            for name, case in made.cases.items():
                facts = made.facts.with_late(made.late, case.late, made.after)
                written = partial(self.written, name, case.changes, name in made.retract)
                yield name, plain(case.rows(facts)), written

    def written(self, name: str, changes: bool, retract: bool = False) -> list[str]:
        rows = self.left(name) if retract else self.rows(name, changes)
        return plain([row for row in rows if NOBODY not in row])

    def share_sent(self) -> float:
        every = sum(len(getattr(made.facts, table)) for made in self.told for table in FACTS.tables)
        return sum(sum(made.sent.values()) for made in self.told) / every

    def appends(self, name: str) -> bool:
        return any(name in made.cases and not made.cases[name].changes for made in self.told)

    def left(self, topic: str) -> list[tuple[Any, ...]]:
        """What came and was not taken back; nothing is taken back before it came, in its partition."""
        found: Counter[tuple[Any, ...]] = Counter()
        for message in self.messages(topic):
            headers: Any = message.headers()
            value: Any = message.value()
            row = (message.partition(), *self._decode(value).values())
            found[row] += 1 if dict(headers)["op"] in (OP_CODES[CAME], OP_CODES[AFTER]) else -1
            assert found[row] >= 0, (topic, row)
        return [row[1:] for row in found.elements()]

    def end(self) -> None:
        super().end()
        self.told.clear()


def _plain(value: Any) -> Any:
    """Times as Avro's writer takes them without a doubt: microseconds."""
    if not hasattr(value, "tzinfo"):
        return value
    moment = value if value.tzinfo is not None else value.replace(tzinfo=EPOCH.tzinfo)
    return round((moment - EPOCH).total_seconds() * 1_000_000)


@pytest.mark.soak
def test_whatever_changes_and_however_often_it_is_killed(services: Services) -> None:
    kill_at_random(services, Changes, SETS, 1, CASES_OF_A_SET)


def test_a_set_has_every_operator_with_state() -> None:
    chosen = covering_cases(random.Random(7))
    every = set().union(*(stateful_operators(case) for case in CASES.values()))
    assert "VersionJoin" in every
    assert set().union(*(stateful_operators(CASES[name]) for name in chosen)) == every
    assert len(chosen) == 7
