"""What happens to topics and checkpoints of statements that were killed, and how they go on after it."""

import os
import random
import shutil
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.statements.resetting import plan_of_record
from headgate.store import StatementRecord, Statements
from tests.support.services import wait_for

if TYPE_CHECKING:
    from tests.faults.test_sql import Drill

# Twenty statements on two cores take their time.
PATIENCE_SECONDS = 1200.0 if os.environ.get("HEADGATE_SOAK") == "1" else 400.0


class Mishaps:
    """Checkpoints that are put back or lost, and topics that are created again, while no engine runs."""

    def __init__(self, drill: "Drill", chance: random.Random) -> None:
        self._drill = drill
        self._chance = chance
        self._data = drill.services.data
        self._statements: Statements = drill.statements
        #: Statements whose checkpoints were put back or removed, and those that read a topic which was
        #: created again.
        self._put_back: set[str] = set()
        self._bereft: set[str] = set()
        self._began = 0.0

    @property
    def _checkpoints(self) -> Path:
        return self._data / "statements"

    @property
    def _copies(self) -> Path:
        return self._data / "copies-of-checkpoints"

    def copy_checkpoints(self) -> None:
        """As they are: nobody may write into them meanwhile."""
        shutil.rmtree(self._copies, ignore_errors=True)
        if self._checkpoints.exists():
            shutil.copytree(self._checkpoints, self._copies)

    def befall(self) -> None:
        """The topics that were chosen are created again, some of the other statements lose batches."""
        for topic in sorted(self._drill.doomed):
            self._drill.recreate(topic)
        records = [one for one in self._statements.all() if one.name in self._drill.leaves_out]
        for record in records:
            if self._drill.doomed & (record.settled.get("topics") or {}).keys():
                self._bereft.add(record.name)
            elif self._chance.random() < 0.5 and self._lose_batches(record):
                self._put_back.add(record.name)
        shutil.rmtree(self._copies, ignore_errors=True)

    def _lose_batches(self, record: StatementRecord) -> bool:
        """Its checkpoints are those of the copy; without one, or by chance in several steps, one is lost."""
        own = sorted(path for path in self._checkpoints.glob(f"{record.id}*") if path.is_dir())
        if not own:
            return False
        copies = [self._copies / path.name for path in own]
        if not all(copy.exists() for copy in copies) or (len(own) > 1 and self._chance.random() < 0.5):
            shutil.rmtree(own[0])
            return True
        for path, copy in zip(own, copies, strict=True):
            shutil.rmtree(path)
            shutil.copytree(copy, path)
        return True

    def begins(self) -> None:
        """An engine is about to start."""
        self._began = time.time()

    def go_on(self) -> None:
        """What fits goes on by itself; the rest is refused, says why, and is reset."""
        names = sorted(self._put_back | self._bereft)
        for name in names:
            wait_for(f"{name} to start", partial(self._has_decided, name), PATIENCE_SECONDS)
        records = [self._statements.get(name) for name in names]
        refused = [record for record in records if record.state.value == "Failed"]
        places = {record.name: self._reset(record) for record in refused}
        for name, place in places.items():
            wait_for(f"the reset of {name}", partial(self._is_reset, name), PATIENCE_SECONDS)
            if place == "earliest":
                self._start_over(name)
            self._statements.want(name, "running")
        went_on = {record.name for record in records} - places.keys()
        assert not went_on & self._bereft, went_on
        print(
            f"of {len(self._put_back)} checkpoints that were put back {len(went_on)} fitted; "
            f"{len(self._bereft)} statements read {len(self._drill.doomed)} topics that were created again",
            flush=True,
        )
        self._put_back.clear()
        self._bereft.clear()

    def _reset(self, record: StatementRecord) -> str:
        if record.name in self._bereft:
            assert "was deleted and created again" in record.reason, (record.name, record.reason)
        else:
            reasons = ("older copy", "is lost", "is empty", "under way between")
            assert any(reason in record.reason for reason in reasons), (record.name, record.reason)
        goes_on = record.name not in self._bereft and not record.settled.get("steps")
        # Its markers tell where to go on; one that has written nothing has none.
        goes_on = goes_on and any(self._drill.messages(record.name))
        place = "last" if goes_on else "earliest"
        kafka = self._drill.services.runtime.kafka_access
        plan = plan_of_record(record, place, kafka, Topics(kafka), Offsets(kafka))
        # In a topic that was created again nothing was read yet.
        assert not {span.topic for span in plan.repeats} & self._drill.doomed
        assert not plan.skips, plan.skips
        self._statements.reset(record.name, {"from": plan.places, "starts": plan.starts})
        return place

    def _start_over(self, name: str) -> None:
        """What it has written is right, if nothing replaces it; from here on it writes all again."""
        drill = self._drill
        if drill.appends(name):
            _, wanted, written = next(one for one in drill.expected() if one[0] == name)
            extra = Counter(written()) - Counter(wanted)
            assert not extra, (name, "before it was reset", extra)
        kafka = drill.services.runtime.kafka_access
        drill.since[name] = Offsets(kafka).stable_ends([Topics(kafka).describe(name)])[name]

    def _has_decided(self, name: str) -> bool:
        record = self._statements.get(name)
        # What is there of before its engine was killed says nothing.
        return record.updated_at > self._began and record.state.value in ("Running", "Failed")

    def _is_reset(self, name: str) -> bool:
        record = self._statements.get(name)
        assert record.state.value != "Failed", (name, record.reason)
        return record.desired == "stopped"
