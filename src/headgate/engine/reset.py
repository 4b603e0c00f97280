"""The engine's part of `headgate statement reset`: checkpoints, markers and internal topics of all steps."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID, uuid4, uuid5

from pyspark.sql import SparkSession

from headgate.errors import InvalidRequest
from headgate.kafka.access import KafkaAccess
from headgate.kafka.topics import Topics, is_reserved
from headgate.kafka.transactional import end_open, take_over_markers
from headgate.statements.checkpoint import Checkpoint, entry_offsets
from headgate.statements.query import Running
from headgate.statements.resetting import LAST, Redo, begin_again, empty_topics, settled_at_last
from headgate.statements.runnable import Job
from headgate.statements.sink import MARKERS
from headgate.statements.staged import running_of
from headgate.statements.stages import create_topics, stage_topics
from headgate.store import StatementRecord, Statements


class Resetter:
    """Resets one statement. What is to come of it is written down before anything is deleted: after a kill
    the next one brings the same about."""

    def __init__(
        self, statements: Statements, spark: SparkSession, access: KafkaAccess, record: StatementRecord
    ) -> None:
        self._statements = statements
        self._spark = spark
        self._access = access
        self._record = record

    def run(self, job: Job, running: Running) -> None:
        record, asked = self._record, self._record.settled["reset"]
        steps = len(record.settled.get("steps") or ()) + 1
        steps_running = [running_of(running, step, steps) for step in range(1, steps + 1)]
        plan = asked.get("plan")
        if plan is None:
            plan = self._plan(job, asked, running)
            self._statements.settle(record.id, {**record.settled, "reset": {**asked, "plan": plan}})
        redo = None if plan["redo"] is None else Redo(**plan["redo"])
        # Nobody writes into the topics between steps from here on: they can be emptied.
        for own in steps_running:
            end_open(self._access, own.writer, own.tasks)
        stages = list(stage_topics(record.id, job.runnable.stages).values())
        create_topics(self._access, stages, running.tasks)
        empty_topics(self._access, [stage.topic for stage in stages])
        for step, own in enumerate(steps_running):
            checkpoint_id = str(uuid5(UUID(plan["id"]), str(step)))
            checkpoint = Checkpoint(self._spark, own.checkpoint)
            begin_again(checkpoint, self._access, own.writer, own.tasks, checkpoint_id, redo)
        topics = self._topic_ids(list(plan["settled"]["topics"]))
        self._statements.was_reset(
            record.id, {**plan["settled"], "topics": topics}, f"reset, to begin from {_text(asked['from'])}"
        )

    def _plan(self, job: Job, asked: dict[str, Any], running: Running) -> dict[str, Any]:
        record = self._record
        settled = {key: value for key, value in record.settled.items() if key not in ("reset", "rebuild")}
        redo = None
        if asked["from"] == LAST:
            self._check_topics(settled["topics"])
            markers = take_over_markers(self._access, running.writer, running.tasks, MARKERS)
            more, redo = settled_at_last(record.name, record.settled, markers, job.runnable.stateful)
            self._check_partitions(redo)
        else:
            more = {"starts": dict(asked["starts"])}
        found = None if redo is None else asdict(redo)
        return {"id": str(uuid4()), "settled": {**settled, **more}, "redo": found}

    def _check_topics(self, known: dict[str, str]) -> None:
        now = self._topic_ids(list(known))
        other = sorted(topic for topic, known_id in known.items() if now.get(topic) != known_id)
        if other and not is_reserved(other[0]):
            raise InvalidRequest(
                f"Topic '{other[0]}' is gone or was created again: where the output of statement "
                f"'{self._record.name}' stands means nothing in it.",
                f"Reset it from the topic's beginning: `headgate statement reset {self._record.name} "
                "--from earliest`.",
            )

    def _check_partitions(self, redo: Redo) -> None:
        """Those that the batch to be done again did not know Spark would take for gone."""
        known = entry_offsets(redo.entry)
        for name, topic in Topics(self._access).describe_many(list(known)).items():
            if set(topic.partitions) != set(known[name]):
                raise InvalidRequest(
                    f"Topic '{name}' has other partitions now than those that statement "
                    f"'{self._record.name}' has read last.",
                    "Name another place: earliest, latest, a time, or offsets by partition as 0:12,1:40.",
                )

    def _topic_ids(self, names: Sequence[str]) -> dict[str, str]:
        return {name: topic.id for name, topic in Topics(self._access).describe_many(names).items()}


def _text(places: Any) -> str:
    if isinstance(places, str):
        return places
    return ", ".join(f"{topic}={place}" for topic, place in sorted(places.items()))
