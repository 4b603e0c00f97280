"""What the registry answers when it does not do what was asked: Confluent's codes, our words.

An error code is an HTTP status, with two digits more where the API tells several cases of a status apart.
"""

from collections.abc import Sequence

from headgate.errors import TerminalError

MAX_NUMBER = 2**31 - 1


class Refusal(TerminalError):
    """A request that the registry turns down; clients act on `code`."""

    def __init__(self, code: int, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.code = code

    @property
    def status(self) -> int:
        return self.code if self.code < 1000 else self.code // 100


def subject_not_found(subject: str) -> Refusal:
    return Refusal(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> Refusal:
    return Refusal(40402, f"Version {version} not found.")


def schema_not_found(what: str = "Schema") -> Refusal:
    return Refusal(40403, f"{what} not found.")


def subject_soft_deleted(subject: str) -> Refusal:
    return Refusal(
        40404, f"Subject '{subject}' was soft deleted.", "Set permanent=true to delete permanently."
    )


def subject_not_soft_deleted(subject: str) -> Refusal:
    return Refusal(
        40405,
        f"Subject '{subject}' was not deleted first before being permanently deleted.",
        "Do that first.",
    )


def version_soft_deleted(subject: str, version: int) -> Refusal:
    return Refusal(
        40406,
        f"Subject '{subject}' version {version} was soft deleted.",
        "Set permanent=true to delete permanently.",
    )


def version_not_soft_deleted(subject: str, version: int) -> Refusal:
    return Refusal(
        40407,
        f"Subject '{subject}' version {version} was not deleted first before being permanently deleted.",
        "Do that first.",
    )


def compatibility_not_configured(subject: str) -> Refusal:
    return Refusal(
        40408,
        f"Subject '{subject}' does not have subject-level compatibility configured.",
        "Set defaultToGlobal=true to see what applies to it.",
    )


def mode_not_configured(subject: str) -> Refusal:
    return Refusal(
        40409,
        f"Subject '{subject}' does not have subject-level mode configured.",
        "Set defaultToGlobal=true to see what applies to it.",
    )


def incompatible(subject: str, problems: Sequence[str]) -> Refusal:
    return Refusal(
        409,
        f"The schema is incompatible with an earlier one of subject '{subject}': "
        + "; ".join(problems)
        + ".",
    )


def invalid_schema(reason: str) -> Refusal:
    return Refusal(42201, f"Invalid schema: {reason}")


def invalid_version(version: object) -> Refusal:
    return Refusal(
        42202,
        f"'{version}' is not a valid version.",
        f"Allowed are 1 to {MAX_NUMBER} and the word 'latest' (or -1).",
    )


def invalid_level(level: object) -> Refusal:
    return Refusal(
        42203,
        f"'{level}' is not a compatibility level.",
        "Allowed are NONE, and BACKWARD, FORWARD and FULL, each also with _TRANSITIVE.",
    )


def invalid_mode(mode: object) -> Refusal:
    return Refusal(
        42204, f"'{mode}' is not a mode.", "Allowed are READWRITE, READONLY, READONLY_OVERRIDE and IMPORT."
    )


def not_permitted(message: str, remedy: str = "") -> Refusal:
    return Refusal(42205, message, remedy)


def reference_exists(subject: str, version: int, ids: Sequence[int]) -> Refusal:
    listed = ", ".join(str(i) for i in ids)
    return Refusal(
        42206,
        f"One or more references exist to subject '{subject}' version {version}: from schema ids {listed}.",
        "Delete those first.",
    )


def invalid_subject(subject: str, reason: str) -> Refusal:
    return Refusal(42208, f"'{subject}' is not a valid subject: {reason}")


def contexts_unsupported(named: str) -> Refusal:
    return Refusal(
        42208, f"'{named}' names a schema context, and contexts are not supported.", "Use a plain subject."
    )


def unprocessable(message: str) -> Refusal:
    return Refusal(422, message)
