"""The whole error tree. Retry is decided by type: transient errors pass by themselves, terminal ones do not.

HeadgateError
├── TransientError          wait and try again; nothing is wrong with what was asked
│   ├── KafkaUnavailable
│   ├── RegistryUnavailable
│   ├── CatalogUnavailable
│   ├── StorageUnavailable  an object store, or who gives the keys to it, does not do what it must
│   ├── IssuerUnavailable   the keys of an issuer of tokens cannot be had
│   ├── OutsideUnavailable  a catalog that tables are published to does not answer
│   ├── OutsideMoved        an entry there was changed by somebody else meanwhile: look again
│   ├── ServerUnavailable   the control API does not answer
│   ├── CommitUnknown       a commit was sent and its outcome was not learned; read the position, then go on
│   ├── CommitRefused       a catalog has answered that it does not take a commit: nothing was changed
│   ├── IndexLost           the key index of an upsert table cannot be read; it is built anew
│   ├── RowsChanged         a batch was not the same at a second look: compaction was at work in the topic
│   ├── StaleLog            another engine has committed to the Delta log: it is read again
│   ├── NotStanding         what apply waits for has not come about in all that time
│   ├── TooManyFailures     too many wrong secrets: wait
│   ├── TooManyRequests     more at a time, or in a minute, than a limit allows: wait
│   └── StaleBatch          another engine has committed past this batch: look again before writing
└── TerminalError           the same call fails again until somebody changes something
    ├── ConfigError
    ├── InvalidRequest
    ├── NotFound
    ├── AlreadyExists
    ├── NotAuthorized       no token, or one that opens nothing
    ├── NotAllowed          a known client that may not do this
    ├── LimitReached        a request or its result is larger, or takes longer, than a limit allows
    ├── OutsideRefused      a catalog that tables are published to does not let us
    ├── NotPublishable      a table cannot be published under its name, or not at all
    ├── NotRunning          no Headgate on this data folder
    ├── DataFolderInUse
    ├── PortTaken
    ├── PrerequisiteMissing
    ├── UnsupportedSchema   a schema that no table can be made from
    ├── IncompatibleSchema  the registry refuses a schema beside those that are there
    ├── StatementFailed     a statement cannot go on without its owner
    ├── MirrorStopped       the Delta log cannot follow its table: the table goes on without it
    └── TableStopped        what suspends a table
        ├── PositionMissing
        ├── TopicReplaced
        ├── OffsetsLost
        ├── BadRecords
        ├── SchemaConflict
        └── ForeignTable    a table of this name that is not Headgate's
"""

from typing import ClassVar


class HeadgateError(Exception):
    """What happened, to what; `remedy` says what to do next."""

    transient: ClassVar[bool] = False

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class TransientError(HeadgateError):
    """Passes by itself: wait and try again."""

    transient = True


class KafkaUnavailable(TransientError):
    """No broker answered, or it answered that it cannot now."""


class RegistryUnavailable(TransientError):
    """The schema registry did not answer, or answered 5xx. Never a dead letter."""


class CatalogUnavailable(TransientError):
    """The Iceberg catalog did not answer."""


class StorageUnavailable(TransientError):
    """An object store, or who gives the keys to it, does not do what it must."""


class IssuerUnavailable(TransientError):
    """The issuer of tokens that is configured did not answer."""


class OutsideUnavailable(TransientError):
    """A catalog that tables are published to did not answer, or answered that it cannot now."""


class OutsideMoved(TransientError):
    """An entry of an outside catalog is not what it was when the change was decided on; nothing was done."""


class ServerUnavailable(TransientError):
    """The control API did not answer."""


class CommitUnknown(TransientError):
    """A commit was sent and its outcome was not learned: the table itself says what became of it."""


class CommitRefused(TransientError):
    """The catalog has answered that it does not take a commit: nothing was changed."""


class StaleBatch(TransientError):
    """Another writer has committed past this batch: this engine must look again before it writes."""


class IndexLost(TransientError):
    """The key index on this machine's disk is damaged or gone: the table itself tells what was in it."""


class RowsChanged(TransientError):
    """Records of a batch were gone at a second look, or may be others: the next look sees it so."""


class StaleLog(TransientError):
    """A version of the Delta log that was to be written is there already: the log is read again."""


class NotStanding(TransientError):
    """What apply waits for has not come about in all the time that it waits."""


class TooManyFailures(TransientError):
    """Too many wrong secrets from one address: `wait` seconds must pass."""

    def __init__(self, message: str, remedy: str = "", wait: int = 60) -> None:
        super().__init__(message, remedy)
        self.wait = wait


class TooManyRequests(TransientError):
    """More at a time, or in a minute, than a limit allows: `wait` seconds must pass."""

    def __init__(self, message: str, remedy: str = "", wait: int = 1) -> None:
        super().__init__(message, remedy)
        self.wait = wait


class TerminalError(HeadgateError):
    """The same call fails again until somebody changes something."""


class ConfigError(TerminalError):
    """The configuration does not say something that can be run."""


class InvalidRequest(TerminalError):
    """What was asked makes no sense; nothing was changed."""


class NotFound(TerminalError):
    """There is no such thing."""


class AlreadyExists(TerminalError):
    """There is one already."""


class NotAuthorized(TerminalError):
    """Nobody knows who asks: there was no token or secret, or one that opens nothing (any more)."""


class NotAllowed(TerminalError):
    """It is known who asks, and they may not."""


class LimitReached(TerminalError):
    """A request, or its result, is larger or takes longer than a limit of the configuration allows."""


class OutsideRefused(TerminalError):
    """A catalog that tables are published to knows us and refuses, or does not know us."""


class NotPublishable(TerminalError):
    """One table cannot be published: its name is taken, or the catalog has no way to say what it is."""


class NotRunning(TerminalError):
    """No Headgate runs on this data folder."""


class DataFolderInUse(TerminalError):
    """Another `headgate up` has this data folder."""


class PortTaken(TerminalError):
    """Another process listens on a port that was configured."""


class PrerequisiteMissing(TerminalError):
    """A program or file that Headgate needs is not there."""


class UnsupportedSchema(TerminalError):
    """No table can be made from this schema; the message names the path of the field."""


class IncompatibleSchema(TerminalError):
    """The registry does not take this schema as the next version of its subject."""


class StatementFailed(TerminalError):
    """A statement cannot go on until its owner changes something: it is Failed with this reason."""


class MirrorStopped(TerminalError):
    """The Delta log was changed by others, is damaged or lost, or cannot say what the table says."""


class TableStopped(TerminalError):
    """A table cannot go on without a decision by its owner: it is suspended with this reason."""


class PositionMissing(TableStopped):
    """A table with history carries no position: starting afresh would double its rows."""


class TopicReplaced(TableStopped):
    """The topic was deleted and created again: the table's offsets mean nothing in it."""


class OffsetsLost(TableStopped):
    """The topic has lost records: before they were materialized, or after."""


class BadRecords(TableStopped):
    """Records that cannot be decoded, under the policy `suspend`."""


class SchemaConflict(TableStopped):
    """A schema in the topic does not fit the table."""


class ForeignTable(TableStopped):
    """A table of this name exists and is not Headgate's: it is neither written nor removed."""
