"""Plans in words."""

from collections.abc import Sequence

from headgate.sql.operators import Operator, ProjectRows, ScanRows
from headgate.sql.readable import readable


def explain(root: Operator, changelog: str, key: Sequence[str], warnings: Sequence[str]) -> str:
    """The tree of operators, each with its state and when that is freed; then what should be known of it."""
    lines = [
        f"Result: {changelog}" + (f", key ({', '.join(key)})" if key else ""),
        "",
        *_tree(root, 0, _tables(root)),
    ]
    for step in root.walk():
        if isinstance(step, ScanRows) and step.chosen is not None and not step.chosen.declared:
            lines += ["", f"Event time of {step.table.name} is {step.chosen_for}; no WATERMARK declares it."]
    for warning in warnings:
        lines += ["", f"Warning: {warning}"]
    return "\n".join(lines)


def _tables(root: Operator) -> dict[int, str]:
    """Names for columns of several tables; a table that is read twice has a number too."""
    scans = [step for step in root.walk() if isinstance(step, ScanRows)]
    if len(scans) < 2:
        return {}
    names: dict[int, str] = {}
    for scan in scans:
        before = sum(other.table.name == scan.table.name for other in scans[: scans.index(scan)])
        names[scan.number] = scan.table.name + (f"_{before + 1}" if before else "")
    return names


def _tree(step: Operator, depth: int, tables: dict[int, str]) -> list[str]:
    if isinstance(step, ProjectRows) and not step.added:
        # Columns that are left out cost nothing.
        return _tree(step.child, depth, tables)
    lines = [f"{'  ' * depth}{readable(step.describe(), tables)}"]
    state = step.state()
    if state is not None:
        lines.append(f"{'  ' * depth}  state: {state}")
    for child in step.inputs:
        lines += _tree(child, depth + 1, tables)
    return lines
