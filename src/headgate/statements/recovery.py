"""Whether a statement may go on: what its checkpoint knows against what the markers of its output say.

A checkpoint may be lost, or a copy of an older one may be in its place. By the numbers of batches alone its
next batches would pass for those that are written, and their rows would be left out.
"""

from collections.abc import Mapping, Sequence
from uuid import uuid4

from headgate.errors import StatementFailed
from headgate.kafka.access import KafkaAccess
from headgate.kafka.markers import Marker
from headgate.kafka.transactional import TransactionalWriter
from headgate.statements.checkpoint import Checkpoint, without_conf

# What a task's marker says before a first batch.
NO_BATCH = -1


def unlogged_batch(
    checkpoint: Checkpoint,
    markers: Sequence[Marker | None],
    name: str,
    to_come: tuple[int, str] | None = None,
) -> Marker | None:
    """The one batch that was written and that the checkpoint does not know; None if it knows all.

    `to_come`: number and entry of a batch that is known to be written, and follows when state is rebuilt.
    Refuses what cannot be gone on with. Tasks without rows record nothing: the greatest marker of all counts.
    """
    known = [marker for marker in markers if marker is not None]
    planned, own = checkpoint.planned(), checkpoint.id()
    if not known:
        if planned is not None and not checkpoint.is_done(planned):
            raise refused(
                name, f"the markers of its output are gone: whether batch {planned} is written is not known."
            )
        return None
    last = max(known, key=lambda marker: marker.batch)
    written = "" if last.batch == NO_BATCH else f" as of batch {last.batch}"
    if planned is None and own is None:
        raise refused(name, f"its checkpoint '{checkpoint.uri}' is lost, and its output is there{written}.")
    if any(marker.checkpoint not in (None, own) for marker in known):
        raise refused(
            name,
            f"checkpoint '{checkpoint.uri}' is another one ({own}) than that of its output "
            f"({', '.join(sorted({str(marker.checkpoint) for marker in known} - {own}))}){written}.",
        )
    reached = NO_BATCH if planned is None else planned
    if last.batch <= reached:
        entry = checkpoint.entry(last.batch)
        if last.checkpoint is not None and entry not in (None, last.entry or None):
            raise refused(
                name,
                f"batch {last.batch} has read other offsets by its checkpoint '{checkpoint.uri}' than by its "
                "output.",
            )
        return None
    if (last.batch, last.entry) == to_come:
        return last
    before = checkpoint.entry(reached)
    if last.batch == reached + 1 and before is not None and without_conf(before) == last.before:
        return last
    raise refused(
        name,
        f"its checkpoint '{checkpoint.uri}' {'is empty' if planned is None else f'ends at batch {planned}'}, "
        f"and its output at batch {last.batch}: it is an older copy.",
    )


def refused(name: str, why: str) -> StatementFailed:
    return StatementFailed(
        f"Statement '{name}' cannot go on without rows that are written twice or not at all: {why}",
        f"Say where it is to begin: {reset_command(name, '…')}.",
    )


def reset_command(name: str, place: str = "earliest") -> str:
    return f"`headgate statement reset {name} --from {place}`"


def check_topic_ids(name: str, known: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuses to read on in a topic that was created again. Whatever `now` lacks Kafka itself will miss."""
    for topic, topic_id in known.items():
        if topic in now and now[topic] != topic_id:
            raise StatementFailed(
                f"Topic '{topic}' was deleted and created again: the offsets of statement '{name}' mean "
                "nothing in it.",
                f"Have it begin in the new one: {reset_command(name)}.",
            )


def begin(
    checkpoint: Checkpoint, markers: Sequence[Marker | None], access: KafkaAccess, writer: str, topic: str
) -> None:
    """An empty checkpoint for a first batch, and in the topic of markers that there is one: whether rows came
    of it or not, it is missed when it is lost.

    What is left of a first batch that was cut off before it was planned goes: Spark takes it for another
    query's.
    """
    own = checkpoint.id() or str(uuid4())
    checkpoint.begin(own)
    if not any(markers):
        with TransactionalWriter(access, writer, 0, topic) as task:
            task.replace_marker(Marker(NO_BATCH, own))
