"""Plans as data and as text. Nothing of a plan is secret: files name secrets, and never hold them."""

import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, assert_never

import yaml

from headgate.apply.model import Change, ChangeInPlace, Create, Plan, Release, Remove, Replace, Step

# Of what is created; the file has all of it.
SHOWN_LINES = 16
# Of fields that are numbers once they are read.
UNITS = {"freshness": " s"}
SIGNS = {"create": "+", "change": "~", "replace": "!", "remove": "-", "release": "-"}


def plan_dict(plan: Plan, consent: Mapping[int, str]) -> dict[str, Any]:
    """A plan as JSON. `consent`: by number of the step, what somebody must agree to."""
    steps = [step_dict(step) | {"asks": consent.get(number, "")} for number, step in enumerate(plan.steps)]
    return {"id": plan_id(plan), "world": plan.world, "steps": steps, "notes": list(plan.notes)}


def plan_id(plan: Plan) -> str:
    """The same for the same steps: what was agreed to is what is done."""
    said = json.dumps([plan.world, [step_dict(step) for step in plan.steps]], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def step_dict(step: Step) -> dict[str, Any]:
    common: dict[str, Any] = {"kind": step.ref.kind, "name": step.ref.name, "why": step.why}
    match step:
        case Create():
            return {"action": "create", **common, "spec": dict(step.spec), "keeps": step.keeps, "at": step.at}
        case ChangeInPlace():
            changes = [_change(change) for change in step.changes]
            return {"action": "change", **common, "changes": changes, "keeps": step.keeps, "at": step.at}
        case Replace():
            changes = [_change(change) for change in step.changes]
            return {"action": "replace", **common, "changes": changes, "lost": step.lost, "at": step.at}
        case Remove():
            return {"action": "remove", **common, "lost": step.lost}
        case Release():
            return {"action": "release", **common}
        case _:
            assert_never(step)


def _change(change: Change) -> dict[str, Any]:
    return {"field": change.field, "before": change.before, "after": change.after}


def plan_lines(plan: Mapping[str, Any]) -> Iterator[str]:
    """A plan, of its JSON, as people read it."""
    for step in plan["steps"]:
        noun = step["kind"] if step["kind"] == "storage" else step["kind"].removesuffix("s")
        yield f"{SIGNS[step['action']]} {step['action']} {noun} {step['name']}: {step['why']}"
        if step["action"] == "create":
            yield from _indented(yaml_text(step["spec"]))
        for change in step.get("changes", ()):
            yield from _change_lines(change)
        if step.get("lost"):
            yield f"    loses {step['lost']}"
        if step.get("keeps"):
            yield f"    {step['keeps']}"
    for text in plan["notes"]:
        yield f"  {text}"


def _indented(text: str) -> Iterator[str]:
    if text.strip() == "{}":
        return
    lines = text.splitlines()
    yield from (f"    {line}" for line in lines[:SHOWN_LINES])
    if len(lines) > SHOWN_LINES:
        yield f"    … and {len(lines) - SHOWN_LINES} lines more"


class _Dumper(yaml.SafeDumper):
    """YAML with texts of several lines as they are."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def yaml_text(content: Any) -> str:
    """As files have it."""
    return str(yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110))


def _change_lines(change: Mapping[str, Any]) -> Iterator[str]:
    unit = UNITS.get(change["field"], "")
    before, after = (_text(change[when]) + unit for when in ("before", "after"))
    if "\n" not in before + after:
        yield f"    {change['field']}: {before} → {after}"
        return
    yield f"    {change['field']}:"
    for line in difflib.ndiff(before.splitlines(), after.splitlines()):
        if not line.startswith("?"):
            yield f"      {line}".rstrip()


def _text(value: Any) -> str:
    if value is None:
        return "nothing"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def file_text(document: Mapping[str, Any]) -> str:
    """A document as the file that says it: what looks like a variable in it is none."""
    return yaml_text(_escaped(document))


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return value.replace("${", "$${")
        case Mapping():
            return {_escaped(key): _escaped(inner) for key, inner in value.items()}
        case list():
            return [_escaped(inner) for inner in value]
        case _:
            return value
