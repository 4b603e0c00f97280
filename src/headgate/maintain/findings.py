"""What a verification of a table reports: its checks, and the damage that they found."""

from dataclasses import asdict, dataclass, field
from typing import Any

# Findings of one check that are kept by name; more are counted.
KEPT = 100


@dataclass(frozen=True)
class Finding:
    """A piece of damage: which check found it, where, and what is wrong."""

    check: str
    where: str
    message: str


@dataclass
class Report:
    """The outcome of each check, by name."""

    checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def passed(self, check: str, detail: str) -> None:
        """The check was carried out; it is damaged if it has findings."""
        count = sum(one.check == check for one in self.findings)
        state = "damaged" if count else "ok"
        self.checks[check] = {"state": state, "findings": count, "detail": detail}

    def skipped(self, check: str, why: str) -> None:
        self.checks[check] = {"state": "skipped", "findings": 0, "detail": why}

    def add(self, check: str, where: str, message: str) -> None:
        self.findings.append(Finding(check, where, message))

    @property
    def is_damaged(self) -> bool:
        return bool(self.findings)

    def to_dict(self) -> dict[str, Any]:
        return {
            "damaged": self.is_damaged,
            "checks": [{"name": name, **said} for name, said in self.checks.items()],
            "findings": [asdict(one) for one in self.findings[:KEPT]],
            "findings_total": len(self.findings),
        }
