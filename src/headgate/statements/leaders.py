"""The leaders that a query's records were read from: another one may have other records in their place.

Spark's Kafka source goes by offsets alone. After an unclean election the new leader's records have offsets
that were read already, and nobody would read them.
"""

import json
from collections.abc import Collection, Mapping
from typing import Protocol

from headgate.errors import StatementFailed
from headgate.kafka.client import Where
from headgate.kafka.offsets import Offsets
from headgate.model import Position, Topic
from headgate.statements.checkpoint import entry_readings
from headgate.statements.recovery import reset_command
from headgate.tables.plan import named, replaced_ranges


class Log(Protocol):
    """What a checkpoint keeps of the batches and their leaders."""

    def entry(self, batch: int) -> str | None: ...
    def leaders(self) -> str | None: ...
    def keep_leaders(self, text: str) -> None: ...


class Leaders:
    """By topic and partition the epoch of the leader as of the last look; for one thread."""

    def __init__(self, where: Where, name: str, log: Log) -> None:
        self._offsets = Offsets(where)
        self._name = name
        self._log = log
        known: Mapping[str, Mapping[str, int]] = json.loads(log.leaders() or "{}")
        self._known = {
            topic: {int(p): int(epoch) for p, epoch in one.items()} for topic, one in known.items()
        }

    def check(self, topics: Collection[Topic], batch: int) -> None:
        """Before a batch is read: what those before it have read must be what the topics have.

        Its end was planned before this look. So whatever stands below it was written under these leaders or
        earlier ones, until there is another one.
        """
        told = self._offsets.ends(topics)
        now = {
            name: {p: end.leader_epoch for p, end in ends.items() if end.leader_epoch is not None}
            for name, ends in told.items()
        }
        for topic in topics:
            known = self._known.get(topic.name, {})
            others = {p for p, epoch in now.get(topic.name, {}).items() if epoch > known.get(p, epoch)}
            if others:
                ends = {p: told[topic.name][p].offset for p in others}
                self._look_into(topic, ends, known, batch)
        merged = self._known | {topic: self._known.get(topic, {}) | epochs for topic, epochs in now.items()}
        if merged != self._known:
            self._log.keep_leaders(json.dumps(merged))
            self._known = merged

    def _look_into(
        self, topic: Topic, others: Mapping[int, int], known: Mapping[int, int], batch: int
    ) -> None:
        """`others`: where the partitions end now that have got another leader."""
        read: dict[int, int] = {}
        for name, reached in entry_readings(self._log.entry(batch - 1) or ""):
            if name == topic.name:
                # Of a topic that is read twice, where a reading is ahead.
                read |= {p: max(end, read.get(p, 0)) for p, end in reached.items()}
        earliest = self._offsets.earliest([topic]).get(topic.name, {})
        asked = {p: (earliest.get(p, 0), min(read[p], others[p])) for p in sorted(others) if read.get(p)}
        steps = self._offsets.leader_epochs(topic, asked)
        # What is gone and not written over yet: by then the leader would be a known one.
        gone = {p: (end, read[p]) for p, end in others.items() if end < read.get(p, 0)}
        lost = gone | replaced_ranges(Position("", topic.id, read, epochs=known), steps)
        if lost:
            raise StatementFailed(
                f"Topic '{topic.name}' has lost records that statement '{self._name}' has read "
                f"({named(lost)}), when another broker became the leader: others have their offsets now.",
                f"Say where it is to go on: {reset_command(self._name, '…')}; before these offsets it reads "
                "what is there now. Turn unclean.leader.election.enable off.",
            )
