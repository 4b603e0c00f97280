"""Plans in words."""

from collections.abc import Sequence

from headgate.sql.operators import Operator, ProjectRows, ScanRows


def explain(root: Operator, changelog: str, key: Sequence[str], warnings: Sequence[str]) -> str:
    """The tree of operators, each with its state and when that is freed; then what should be known of it."""
    lines = [f"Result: {changelog}" + (f", key ({', '.join(key)})" if key else ""), "", *_tree(root, 0)]
    for step in root.walk():
        if isinstance(step, ScanRows) and step.chosen is not None and not step.chosen.declared:
            lines += ["", f"Event time of {step.table.name} is {step.chosen_for}; no WATERMARK declares it."]
    for warning in warnings:
        lines += ["", f"Warning: {warning}"]
    return "\n".join(lines)


def _tree(step: Operator, depth: int) -> list[str]:
    if isinstance(step, ProjectRows) and not step.added:
        # Columns that are left out cost nothing.
        return _tree(step.child, depth)
    lines = [f"{'  ' * depth}{step.describe()}"]
    state = step.state()
    if state is not None:
        lines.append(f"{'  ' * depth}  state: {state}")
    for child in step.inputs:
        lines += _tree(child, depth + 1)
    return lines
