"""Which JSON Schemas may follow which: the reader accepts all that the writer accepted.

The cases and their codes are Confluent's: an object is open, closed or partially open to properties that it
does not name, and a property that becomes required needs a default. What cannot be proved is refused.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from headgate.registry.json_documents import JsonDocuments, reference_of
from headgate.registry.refusals import invalid_schema
from headgate.registry.schemas import ResolvedSchema, parsed

# Numbers are of two kinds, so that a set of kinds says what `integer` and `number` have in common.
_KINDS = {
    "null": {"null"},
    "boolean": {"boolean"},
    "object": {"object"},
    "array": {"array"},
    "string": {"string"},
    "integer": {"integer"},
    "number": {"integer", "fraction"},
}
_ALL = frozenset[str]().union(*_KINDS.values())
_NUMBERS = frozenset({"integer", "fraction"})
# Each a case of its own when alternatives are looked at one by one.
_ONLY: dict[str, dict[str, Any]] = {name: {"type": name} for name in _KINDS if name != "integer"}

_SCHEMA_MAPS = ("properties", "patternProperties", "dependentSchemas", "dependencies", "dependentRequired")
_DATA = ("const", "enum", "required", "type")
_COMBINING = {"allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef", "$recursiveRef", "dependentSchemas"}
_COMBINING |= {"dependencies", "contains"}
_CONSTRAINTS = {
    *_SCHEMA_MAPS,
    *_DATA,
    *_COMBINING,
    *("not", "then", "else", "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"),
    *("minContains", "maxContains", "minItems", "maxItems", "uniqueItems", "additionalProperties"),
    *("unevaluatedProperties", "propertyNames", "minProperties", "maxProperties", "minLength", "maxLength"),
    *("pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}

# More than schemas that people write ever need; alternatives of alternatives can be of any number.
_MOST_CASES = 1_000


class JsonCompatibility:
    """The comparison of two JSON Schemas, each with its references."""

    def validate(self, resolved: ResolvedSchema) -> None:
        """Refuses what is not JSON, and what is JSON but no schema."""
        _documents(resolved)

    def problems(self, reader: ResolvedSchema, writer: ResolvedSchema) -> list[str]:
        """Why `reader` cannot read what `writer` wrote; nothing when it can."""
        old, new = _documents(writer), _documents(reader)
        try:
            found = _Comparison(old, new).roots()
        except RecursionError as error:
            raise invalid_schema("it is nested too deeply to be compared") from error
        except _TooManyCases:
            words = f"more than {_MOST_CASES} combinations of alternatives would have to be compared"
            found = (_Problem("COMPARISON_TOO_LARGE", words),)
        return list(dict.fromkeys(str(problem) for problem in found))


def _documents(resolved: ResolvedSchema) -> JsonDocuments:
    root = parsed(resolved.schema.text)
    if not isinstance(root, dict | bool):
        raise invalid_schema("a JSON Schema is an object, or true or false")
    return JsonDocuments(root, [(name, parsed(text)) for name, text in resolved.named])


class _TooManyCases(Exception):
    pass


@dataclass(frozen=True)
class _Problem:
    """`path` is of the place in the schema, from where the comparison is."""

    code: str
    words: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.code} at #{self.path}: {self.words}"


_Problems = tuple[_Problem, ...]


def _at(path: str, problems: Iterable[_Problem]) -> Iterator[_Problem]:
    for problem in problems:
        yield replace(problem, path=f"/{path}{problem.path}")


def _named(*parts: str) -> str:
    return "/".join(part.replace("~", "~0").replace("/", "~1") for part in parts)


@dataclass(frozen=True, eq=False)
class _Old:
    """What was accepted: all of `nodes` hold at once. None at all accept anything.

    `chosen` are the lists of alternatives that one was chosen of; `one` is that a oneOf was among them.
    """

    nodes: tuple[dict[str, Any], ...]
    chosen: frozenset[int] = frozenset()
    one: bool = False
    nothing: bool = False

    @property
    def key(self) -> tuple[frozenset[int], frozenset[int], bool, bool]:
        return frozenset(id(node) for node in self.nodes), self.chosen, self.one, self.nothing


class _Comparison:
    """Of an old schema with a new one. A pair that is met again inside itself is taken to be fine there."""

    def __init__(self, old: JsonDocuments, new: JsonDocuments) -> None:
        self._old, self._new = old, new
        self._known: dict[Any, _Problems] = {}
        self._begun: dict[Any, int] = {}
        # How far out the pairs lie that were taken to be fine: an answer that rests on those is not kept.
        self._rests_on = math.inf
        self._cases = 0
        self._kinds_known: dict[int, frozenset[str]] = {}
        self._same: dict[tuple[int, int], bool] = {}
        self._made: dict[str, dict[str, Any]] = {}

    def roots(self) -> _Problems:
        return self._covers(self._all_of([self._old.root]), self._new.root)

    # What holds in the old schema.

    def _target(self, node: dict[str, Any]) -> Any:
        for documents in (self._old, self._new):
            if documents.knows(node):
                return documents.target(node)
        return None

    def _all_of(self, schemas: Iterable[Any], before: _Old | None = None) -> _Old:
        """Adds schemas that hold as well, and with them what they refer to and their allOf."""
        before = before or _Old(())
        nodes = {id(node): node for node in before.nodes}
        waiting = list(schemas)[::-1]
        while waiting:
            schema = waiting.pop()
            if schema is False:
                return replace(before, nothing=True)
            if isinstance(schema, dict) and id(schema) not in nodes and not _CONSTRAINTS.isdisjoint(schema):
                nodes[id(schema)] = schema
                waiting += [*_schemas(schema, "allOf"), self._target(schema)]
        return replace(before, nodes=tuple(nodes.values()))

    def _made_of(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The same object for the same content: objects are known by their identities."""
        return self._made.setdefault(_text(schema), schema)

    def _kinds(self, old: _Old) -> frozenset[str]:
        kinds = _ALL
        for node in old.nodes:
            kinds &= self._kinds_of(node)
        return kinds

    def _kinds_of(self, schema: Any) -> frozenset[str]:
        """The kinds of values that a schema can accept at most."""
        if not isinstance(schema, dict):
            return frozenset() if schema is False else _ALL
        if id(schema) not in self._kinds_known:
            self._kinds_known[id(schema)] = _ALL  # While it is looked at: a schema that holds itself.
            self._kinds_known[id(schema)] = self._kinds_said(schema)
        return self._kinds_known[id(schema)]

    def _kinds_said(self, schema: dict[str, Any]) -> frozenset[str]:
        kinds = _types(schema)
        values = _values(schema)
        if values is not None:
            kinds &= frozenset(_kind(value) for value in values)
        for inner in [*_schemas(schema, "allOf"), self._target(schema)]:
            kinds &= self._kinds_of(inner)
        for key in ("anyOf", "oneOf"):
            if branches := _schemas(schema, key):
                kinds &= frozenset[str]().union(*(self._kinds_of(branch) for branch in branches))
        return kinds

    def _finite(self, old: _Old) -> list[Any] | None:
        """All values that can have been accepted, when they are listed."""
        found: dict[str, Any] | None = None
        for node in old.nodes:
            values = _values(node)
            if values is not None:
                listed = {_text(value): value for value in values}
                found = listed if found is None else {k: v for k, v in found.items() if k in listed}
        kinds = self._kinds(old)
        if found is None and kinds <= {"null", "boolean"}:
            return [*([None] if "null" in kinds else []), *([False, True] if "boolean" in kinds else [])]
        return None if found is None else [v for v in found.values() if _kind(v) in kinds]

    # The comparison.

    def _covers(self, old: _Old, new: Any) -> _Problems:
        """Why `new` does not accept all that `old` did."""
        key = (old.key, id(new))
        if key in self._known:
            return self._known[key]
        if key in self._begun:
            self._rests_on = min(self._rests_on, self._begun[key])
            return ()
        depth = self._begun[key] = len(self._begun)
        outer, self._rests_on = self._rests_on, math.inf
        found = self._decide(old, new)
        del self._begun[key]
        if self._rests_on >= depth:
            self._known[key] = found
        self._rests_on = min(outer, self._rests_on)
        return found

    def _decide(self, old: _Old, new: Any) -> _Problems:
        if new is True or old.nothing or not self._kinds(old) or self._finite(old) == []:
            return ()
        if not isinstance(new, dict):
            return (_Problem("TYPE_CHANGED", "nothing is accepted any more"),)
        if any(self._alike(node, new) for node in old.nodes):
            return ()
        found = tuple(self._keywords(old, new))
        return self._by_cases(old, new, found) if found else ()

    def _by_cases(self, old: _Old, new: dict[str, Any], found: _Problems) -> _Problems:
        """Once more, alternative by alternative: each may be covered by another part of the new schema."""
        for node in old.nodes:
            for key in ("anyOf", "oneOf"):
                branches = _schemas(node, key)
                if branches and id(node[key]) not in old.chosen:
                    chosen, one = old.chosen | {id(node[key])}, old.one or key == "oneOf"
                    case = replace(old, chosen=chosen, one=one)
                    return self._sum(new, key, self._each(case, branches, new, first=bool(old.chosen)))
        if not self._chooses(new, set()):
            return found
        cases: list[dict[str, Any]] = []
        values, kinds = self._finite(old), self._kinds(old)
        if values is not None and len(values) > 1:
            cases = [self._made_of({"const": value}) for value in values]
        elif values is None:
            cases = [schema for name, schema in _ONLY.items() if _KINDS[name] & kinds]
        if len(cases) < 2 or any(self._each(old, cases, new, first=True)):
            return found
        return ()

    def _each(self, old: _Old, cases: Sequence[Any], new: Any, first: bool) -> list[_Problems]:
        """The problems of each case; no further than the `first` that has some, when one is enough."""
        found: list[_Problems] = []
        for case in cases:
            self._cases += 1
            if self._cases > _MOST_CASES:
                raise _TooManyCases
            found.append(self._covers(self._all_of([case], old), new))
            if first and found[-1]:
                break
        return found

    def _chooses(self, new: Any, met: set[int]) -> bool:
        """There are alternatives in the new schema, here or in what it takes in."""
        if not isinstance(new, dict) or id(new) in met:
            return False
        met.add(id(new))
        if "anyOf" in new or "oneOf" in new or "if" in new:
            return True
        inner = [*_schemas(new, "allOf"), self._target(new)]
        return any(self._chooses(schema, met) for schema in inner)

    def _sum(self, new: dict[str, Any], key: str, cases: Sequence[_Problems]) -> _Problems:
        """What to say of the old alternatives, each with its problems."""
        bad = [number for number, problems in enumerate(cases) if problems]
        if not bad:
            return ()
        own = [k for k in ("anyOf", "oneOf") if len(_schemas(new, k)) > 1]
        others = any(not p.path and p.code not in _OF_SUMS for n in bad for p in cases[n])
        if not own or others:
            return tuple(p for n in bad for p in _at(f"{key}/{n}", cases[n]))
        if any(p.code == "COMBINED_TYPE_CHANGED" for n in bad for p in cases[n]):
            return (_Problem("COMBINED_TYPE_CHANGED", f"{key} became {own[0]}, which may match twice"),)
        words = f"alternative {', '.join(map(str, bad))} of {key} is not covered by any of {own[0]}"
        fewer = len(_schemas(new, own[0])) < len(cases)
        return (_Problem("SUM_TYPE_NARROWED" if fewer else "COMBINED_TYPE_SUBSCHEMAS_CHANGED", words),)

    def _keywords(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        values = self._finite(old)
        kinds = self._kinds(old) if values is None else frozenset(_kind(value) for value in values)
        yield from self._reference(old, new)
        wrong = list(self._type(old, new, kinds))
        yield from wrong
        yield from self._listed(old, new)
        if not wrong:
            if kinds & _NUMBERS:
                yield from self._number(old, new, kinds)
            if "string" in kinds:
                yield from self._string(old, new)
            if "array" in kinds:
                yield from self._array(old, new)
            if "object" in kinds:
                yield from self._object(old, new)
            yield from self._combined(old, new)

    def _reference(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        reference = reference_of(new)
        if reference is None:
            return
        target = self._target(new)
        if target is None:
            yield _Problem("REFERENCE_NOT_FOUND", f"'{reference}' is neither in the schema nor a reference")
        else:
            yield from self._covers(old, target)

    def _type(self, old: _Old, new: dict[str, Any], kinds: frozenset[str]) -> Iterator[_Problem]:
        accepted = _types(new)
        if not kinds <= accepted:
            code = "TYPE_NARROWED" if kinds & accepted else "TYPE_CHANGED"
            yield _Problem(code, f"{_spelled(kinds)} became {_spelled(accepted)}")

    def _listed(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        accepted = _values(new)
        if accepted is None:
            return
        known, values = {_text(value) for value in accepted}, self._finite(old)
        key = "enum" if "enum" in new else "const"
        if values is None:
            yield _Problem("ENUM_ARRAY_ADDED", "any value was accepted and only some are", f"/{key}")
            return
        gone = [_text(value) for value in values if _text(value) not in known]
        if gone:
            code = "ENUM_ARRAY_NARROWED" if len(gone) < len(values) else "ENUM_ARRAY_CHANGED"
            if key == "enum" and any(_text(v) not in {_text(o) for o in values} for v in accepted):
                code = "ENUM_ARRAY_CHANGED"
            yield _Problem(code, f"{', '.join(gone[:5])} is not accepted any more", f"/{key}")

    def _number(self, old: _Old, new: dict[str, Any], kinds: frozenset[str]) -> Iterator[_Problem]:
        values = self._finite(old)
        numbers = None if values is None else [n for v in values if (n := _fraction(v)) is not None]
        whole = "fraction" not in kinds
        for key, sign in (("minimum", 1), ("maximum", -1)):
            wanted = _bound(new, key, sign)
            if wanted is None:
                continue
            bounds = [b for node in old.nodes if (b := _bound(node, key, sign)) is not None]
            if numbers:
                bounds.append((min(sign * number for number in numbers), False))
            if whole:
                bounds = [_whole(bound) for bound in bounds]
            if not bounds or max(bounds) < (_whole(wanted) if whole else wanted):
                change = "ADDED" if not bounds else "INCREASED" if sign > 0 else "DECREASED"
                prefix, name = ("EXCLUSIVE_", _exclusive(key)) if wanted[1] else ("", key)
                words = f"the limit is {_shown(sign * wanted[0])}"
                yield _Problem(f"{prefix}{key.upper()}_{change}", words, f"/{name}")
        yield from self._multiple(old, new, numbers, whole)

    def _multiple(
        self, old: _Old, new: dict[str, Any], numbers: Sequence[Fraction] | None, whole: bool
    ) -> Iterator[_Problem]:
        wanted = _fraction(new.get("multipleOf"))
        if not wanted:
            return
        steps = [s for node in old.nodes if (s := _fraction(node.get("multipleOf")))]
        if numbers is not None and all(number % wanted == 0 for number in numbers):
            return
        if any(s % wanted == 0 for s in [*steps, *([Fraction(1)] if whole else [])]):
            return
        change = "ADDED" if not steps else "EXPANDED" if wanted % steps[0] == 0 else "CHANGED"
        yield _Problem(f"MULTIPLE_OF_{change}", f"it must be a multiple of {_shown(wanted)}", "/multipleOf")

    def _string(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        values = self._finite(old)
        texts = None if values is None else [value for value in values if isinstance(value, str)]
        lengths = [] if texts is None else [len(text) for text in texts]
        yield from _limits(old, new, "minLength", [min(lengths)] if lengths else [])
        yield from _limits(old, new, "maxLength", [max(lengths)] if lengths else [])
        pattern = new.get("pattern")
        if not isinstance(pattern, str):
            return
        before = [node["pattern"] for node in old.nodes if isinstance(node.get("pattern"), str)]
        matched = texts is not None and all(_matches(pattern, text) for text in texts)
        if pattern not in before and not matched:
            code = "PATTERN_CHANGED" if before else "PATTERN_ADDED"
            yield _Problem(code, f"it must match '{pattern}'", "/pattern")

    # Arrays.

    def _array(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        tuples = [_items(node) for node in old.nodes]
        prefix, rest = _items(new)
        most = min((m for node in old.nodes if (m := _count(node, "maxItems")) is not None), default=math.inf)
        closed = [len(first) for first, after in tuples if after is False]
        yield from _limits(old, new, "minItems", [])
        yield from _limits(old, new, "maxItems", sorted(closed)[:1])
        unique = any(node.get("uniqueItems") is True for node in old.nodes)
        if new.get("uniqueItems") is True and most > 1 and not unique:
            yield _Problem("UNIQUE_ITEMS_ADDED", "items may not be equal any more", "/uniqueItems")
        longest = max([len(prefix), *(len(first) for first, _ in tuples)])
        for place in range(int(min(longest, most))):
            before = self._all_of(f[place] if place < len(f) else after for f, after in tuples)
            had = any(place < len(first) for first, _ in tuples)
            has = place < len(prefix)
            after = prefix[place] if has else rest
            problems = self._covers(before, after)
            if problems:
                yield from _at(f"items/{place}", _model("ITEM", had, has, before, after, problems))
        if longest < most:
            yield from self._other_items(tuples, rest, longest)
        yield from self._contains(old, new)
        yield from _unevaluated(new, "unevaluatedItems", "UNEVALUATED_ITEMS")

    def _other_items(
        self, tuples: Sequence[tuple[list[Any], Any]], rest: Any, longest: int
    ) -> Iterator[_Problem]:
        before = self._all_of(after for _, after in tuples)
        problems = self._covers(before, rest)
        if problems and not longest and rest is not False:
            yield from _at("items", problems)
        elif problems:
            yield from _at("additionalItems", _narrowed("ADDITIONAL_ITEMS", before, rest, problems))

    def _contains(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        wanted = new.get("contains")
        if not isinstance(wanted, dict | bool):
            return
        had = [node for node in old.nodes if isinstance(node.get("contains"), dict | bool)]
        least = _count(new, "minContains")
        least = 1 if least is None else least
        enough = any(
            (1 if (m := _count(node, "minContains")) is None else m) >= least
            and not self._covers(self._all_of([node["contains"]]), wanted)
            for node in had
        )
        if least and not enough:
            code = "CONTAINS_NARROWED" if had else "CONTAINS_ADDED"
            yield _Problem(code, f"{least} items must be of a kind that was not asked for", "/contains")
        most = _count(new, "maxContains")
        if most is not None and not any(
            (m := _count(node, "maxContains")) is not None
            and m <= most
            and not self._covers(self._all_of([wanted]), node["contains"])
            for node in had
        ):
            yield _Problem("MAX_CONTAINS_NARROWED", f"no more than {most} items may be", "/maxContains")

    # Objects.

    def _object(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        required = {name for node in old.nodes for name in _names(node.get("required"))}
        named = dict.fromkeys(name for node in old.nodes for name in _map(node, "properties"))
        closed = [
            len(_map(node, "properties"))
            for node in old.nodes
            if _additional(node) is False and not _map(node, "patternProperties")
        ]
        yield from self._required(old, new, required, named)
        for pattern in (p for node in [*old.nodes, new] for p in _map(node, "patternProperties")):
            if not _understood(pattern):
                words = f"which names '{pattern}' fits is not known"
                yield _Problem("PATTERN_NOT_UNDERSTOOD", words, "/patternProperties")
        for name in dict.fromkeys([*named, *_map(new, "properties")]):
            yield from self._property(old, new, name, name in named)
        yield from self._patterns(old, new)
        yield from self._others(old, new)
        yield from self._property_names(old, new, list(named), bool(closed))
        yield from _limits(old, new, "minProperties", [len(required)] if required else [])
        yield from _limits(old, new, "maxProperties", sorted(closed)[:1])
        yield from self._dependencies(old, new, required)
        yield from _unevaluated(new, "unevaluatedProperties", "UNEVALUATED_PROPERTIES")

    def _required(
        self, old: _Old, new: dict[str, Any], required: set[str], named: dict[str, None]
    ) -> Iterator[_Problem]:
        """A default stands in for what was not written; so Confluent says."""
        for name in _names(new.get("required")):
            if name in required or self._has_default(_map(new, "properties").get(name)):
                continue
            code = "REQUIRED_ATTRIBUTE_ADDED"
            if name not in named and self._of_property(old, name).nothing:
                code = "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"
            yield _Problem(code, f"'{name}' is required and has no default", f"/{_named('required', name)}")

    def _has_default(self, schema: Any) -> bool:
        met: set[int] = set()
        while isinstance(schema, dict) and id(schema) not in met:
            if "default" in schema:
                return True
            met.add(id(schema))
            schema = self._target(schema)
        return False

    def _of_property(self, old: _Old, name: str) -> _Old:
        return self._all_of(schema for node in old.nodes for schema in _of_property(node, name))

    def _property(self, old: _Old, new: dict[str, Any], name: str, had: bool) -> Iterator[_Problem]:
        before = self._of_property(old, name)
        has = name in _map(new, "properties")
        for after in _of_property(new, name):
            problems = self._covers(before, after)
            if problems:
                said = _model("PROPERTY", had, has, before, after, problems)
                yield from _at(_named("properties", name), said)

    def _unnamed(self, old: _Old, without: Iterable[str] = ()) -> list[_Old]:
        """What was accepted of a property that no schema names: of one that no pattern fits, and of one
        that a pattern fits, pattern by pattern."""
        plain = [_additional(node) for node in old.nodes if not _map(node, "patternProperties")]
        patterns = dict.fromkeys(p for node in old.nodes for p in _map(node, "patternProperties"))
        return [
            self._all_of(_additional(node) for node in old.nodes),
            *(self._fitting(old, pattern, plain) for pattern in patterns if pattern not in without),
        ]

    def _fitting(self, old: _Old, pattern: str, plain: list[Any]) -> _Old:
        fitting = [_map(node, "patternProperties").get(pattern, True) for node in old.nodes]
        return self._all_of([*fitting, *plain])

    def _patterns(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        plain = [_additional(node) for node in old.nodes if not _map(node, "patternProperties")]
        for pattern, schema in _map(new, "patternProperties").items():
            path = _named("patternProperties", pattern)
            if any(pattern in _map(node, "patternProperties") for node in old.nodes):
                yield from _at(path, self._covers(self._fitting(old, pattern, plain), schema))
            elif any(self._covers(before, schema) for before in self._unnamed(old)):
                words = "properties that fit the pattern were accepted with other values"
                yield _Problem("PATTERN_PROPERTY_ADDED", words, f"/{path}")

    def _others(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        """Of properties that the new schema does not name and no pattern of it fits."""
        schema = _additional(new)
        rest, *fitting = self._unnamed(old, _map(new, "patternProperties"))
        problems = self._covers(rest, schema)
        if problems:
            said = _narrowed("ADDITIONAL_PROPERTIES", rest, schema, problems)
            yield from _at("additionalProperties", said)
        elif any(self._covers(before, schema) for before in fitting):
            words = "properties that fit a pattern are not accepted any more"
            yield _Problem("PATTERN_PROPERTY_REMOVED", words, "/patternProperties")

    def _property_names(
        self, old: _Old, new: dict[str, Any], named: list[str], closed: bool
    ) -> Iterator[_Problem]:
        wanted = new.get("propertyNames")
        if not isinstance(wanted, dict | bool):
            return
        before = [node["propertyNames"] for node in old.nodes if "propertyNames" in node]
        names = [self._made_of({"enum": named})] if closed else []
        problems = self._covers(self._all_of([_ONLY["string"], *before, *names]), wanted)
        yield from _at("propertyNames", problems)

    def _dependencies(self, old: _Old, new: dict[str, Any], required: set[str]) -> Iterator[_Problem]:
        for key, name, wanted in _dependent(new):
            if self._of_property(old, name).nothing:
                continue
            path = f"/{_named(key, name)}"
            before = [found for node in old.nodes for _, n, found in _dependent(node) if n == name]
            if isinstance(wanted, list):
                lists = [found for found in before if isinstance(found, list)]
                known = required.union([name], *lists)
                if not known.issuperset(wanted):
                    extended = any(set(wanted) >= set(found) for found in lists)
                    change = "ADDED" if not lists else "EXTENDED" if extended else "CHANGED"
                    words = f"with '{name}' more properties are required"
                    yield _Problem(f"DEPENDENCY_ARRAY_{change}", words, path)
                continue
            schemas = [found for found in before if not isinstance(found, list)]
            problems = self._covers(self._all_of(schemas, old), wanted)
            if problems and not schemas:
                words = f"with '{name}' the object must be of another schema: {problems[0]}"
                yield _Problem("DEPENDENCY_SCHEMA_ADDED", words, path)
            else:
                yield from _at(path[1:], problems)

    # Schemas made of schemas.

    def _combined(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        yield from self._product(old, new)
        for key in ("anyOf", "oneOf"):
            if branches := _schemas(new, key):
                yield from self._alternatives(old, key, branches)
        if isinstance(new.get("not"), dict | bool):
            yield from self._negated(old, new["not"])
        if isinstance(new.get("if"), dict | bool):
            yield from self._condition(old, new)

    def _product(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        branches = _schemas(new, "allOf")
        before = max((len(_schemas(node, "allOf")) for node in old.nodes), default=0)
        for number, branch in enumerate(branches):
            problems = self._covers(old, branch)
            if problems and len(branches) > max(before, 1):
                words = f"schema {number} of allOf does not accept what was: {problems[0]}"
                yield _Problem("PRODUCT_TYPE_EXTENDED", words, "/allOf")
            else:
                yield from _at(f"allOf/{number}", problems)

    def _alternatives(self, old: _Old, key: str, branches: list[Any]) -> Iterator[_Problem]:
        if len(branches) == 1:
            yield from _at(f"{key}/0", self._covers(old, branches[0]))
            return
        covering = sum(1 for branch in branches if not self._covers(old, branch))
        if not covering:
            yield _Problem("TYPE_CHANGED", f"no schema of {key} accepts all that was accepted")
        elif key == "oneOf" and not old.one and (covering > 1 or (old.chosen and self._overlap(branches))):
            words = "several schemas of oneOf may accept what was accepted"
            yield _Problem("COMBINED_TYPE_CHANGED", words)

    def _overlap(self, branches: list[Any]) -> bool:
        kinds = [self._kinds_of(branch) for branch in branches]
        return any(a & b for number, a in enumerate(kinds) for b in kinds[:number])

    def _negated(self, old: _Old, refused: Any) -> Iterator[_Problem]:
        """What is refused must have been refused, or be of other kinds than was accepted."""
        if not self._kinds(old) & self._kinds_of(refused):
            return
        before = [node["not"] for node in old.nodes if isinstance(node.get("not"), dict | bool)]
        if not any(not self._covers(self._all_of([refused]), schema) for schema in before):
            yield _Problem("NOT_TYPE_EXTENDED", "more is refused than was", "/not")

    def _condition(self, old: _Old, new: dict[str, Any]) -> Iterator[_Problem]:
        alike = [node for node in old.nodes if "if" in node and self._alike(node["if"], new["if"])]
        for key in ("then", "else"):
            if isinstance(new.get(key), dict | bool):
                held = [node.get(key, True) for node in alike]
                held += [new["if"]] if key == "then" else []
                yield from _at(key, self._covers(self._all_of(held, old), new[key]))

    # Whether two schemas say the same, word for word, apart from what does not count.

    def _alike(self, one: Any, other: Any) -> bool:
        if not isinstance(one, dict) or not isinstance(other, dict):
            return isinstance(one, bool) and one is other
        pair = (id(one), id(other))
        if pair not in self._same:
            self._same[pair] = True  # While it is looked at: a schema that holds itself.
            self._same[pair] = self._alike_nodes(one, other)
        return self._same[pair]

    def _alike_nodes(self, one: dict[str, Any], other: dict[str, Any]) -> bool:
        keys = one.keys() & _CONSTRAINTS
        if keys != other.keys() & _CONSTRAINTS:
            return False
        targets = self._target(one), self._target(other)
        if (targets[0] is None) != (targets[1] is None):
            return False
        if targets[0] is not None:
            keys -= {"$ref", "$dynamicRef", "$recursiveRef"}
            if not self._alike(*targets):
                return False
        return all(self._alike_values(key, one[key], other[key]) for key in keys)

    def _alike_values(self, key: str, one: Any, other: Any) -> bool:
        if key in _DATA:
            return _text(one) == _text(other)
        if key in _SCHEMA_MAPS and isinstance(one, dict) and isinstance(other, dict):
            return one.keys() == other.keys() and all(self._alike_part(one[k], other[k]) for k in one)
        return self._alike_part(one, other)

    def _alike_part(self, one: Any, other: Any) -> bool:
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(self._alike_part, one, other))
        if isinstance(one, dict | bool):
            return self._alike(one, other)
        return _text(one) == _text(other)


_OF_SUMS = {"TYPE_CHANGED", "COMBINED_TYPE_CHANGED", "SUM_TYPE_NARROWED", "COMBINED_TYPE_SUBSCHEMAS_CHANGED"}


def _model(
    what: str, had: bool, has: bool, before: _Old, after: Any, problems: _Problems
) -> Iterator[_Problem]:
    """What was named on one side only is judged by how open the other side is."""
    if had and has:
        yield from problems
    elif has and not before.nodes:
        words = "it was accepted with any value, for it was not named"
        yield _Problem(f"{what}_ADDED_TO_OPEN_CONTENT_MODEL", words)
    elif has:
        words = "the values that were accepted of what was not named are not all accepted"
        yield _Problem(f"{what}_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", words)
        yield from problems
    elif after is False:
        yield _Problem(f"{what}_REMOVED_FROM_CLOSED_CONTENT_MODEL", "nothing else than what is named may be")
    else:
        words = "its values are not all accepted of what is not named"
        yield _Problem(f"{what}_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", words)
        yield from problems


def _narrowed(what: str, before: _Old, after: Any, problems: _Problems) -> Iterator[_Problem]:
    if after is False:
        yield _Problem(f"{what}_REMOVED", "what is not named is not accepted any more")
    elif not before.nodes:
        yield _Problem(f"{what}_NARROWED", f"what is not named had any value: {problems[0]}")
    else:
        yield from problems


def _unevaluated(new: dict[str, Any], key: str, what: str) -> Iterator[_Problem]:
    """Beside schemas that take part in naming, only the same again can be proved to accept the same."""
    schema = new.get(key)
    if isinstance(schema, dict | bool) and schema is not True and not _COMBINING.isdisjoint(new):
        code = f"{what}_{'REMOVED' if schema is False else 'NARROWED'}"
        yield _Problem(code, f"{key} is not the same beside other schemas", f"/{key}")


def _limits(old: _Old, new: dict[str, Any], key: str, implied: Sequence[int]) -> Iterator[_Problem]:
    """Of counts: `implied` are what other keywords come to."""
    wanted = _count(new, key)
    if wanted is None or (key.startswith("min") and wanted == 0):
        return
    known = [*(c for node in old.nodes if (c := _count(node, key)) is not None), *implied]
    if key.startswith("min"):
        fine, change = bool(known) and max(known) >= wanted, "INCREASED"
    else:
        fine, change = bool(known) and min(known) <= wanted, "DECREASED"
    if not fine:
        code = f"{key[:3].upper()}_{key[3:].upper()}_{change if known else 'ADDED'}"
        yield _Problem(code, f"the limit is {wanted}", f"/{key}")


# What a keyword says. A value of a kind that the keyword does not have says nothing.


def _schemas(node: dict[str, Any], key: str) -> list[Any]:
    value = node.get(key)
    return [v for v in value if isinstance(v, dict | bool)] if isinstance(value, list) else []


def _map(node: dict[str, Any], key: str) -> dict[str, Any]:
    value = node.get(key)
    return value if isinstance(value, dict) else {}


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _types(node: dict[str, Any]) -> frozenset[str]:
    value = node.get("type")
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        return _ALL
    return frozenset[str]().union(*(_KINDS.get(name, set()) for name in names if isinstance(name, str)))


def _values(node: dict[str, Any]) -> list[Any] | None:
    if "const" in node:
        return [node["const"]]
    return node["enum"] if isinstance(node.get("enum"), list) else None


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    for types, name in ((bool, "boolean"), (str, "string"), (dict, "object"), (list, "array")):
        if isinstance(value, types):
            return name
    return "integer" if isinstance(value, int) or value.is_integer() else "fraction"


def _text(value: Any) -> str:
    """Equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _fraction(value: Any) -> Fraction | None:
    if isinstance(value, float) and math.isfinite(value):
        return Fraction(repr(value))
    return Fraction(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _shown(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else str(float(value))


def _count(node: dict[str, Any], key: str) -> int | None:
    value = _fraction(node.get(key))
    return None if value is None else math.ceil(value)


def _exclusive(key: str) -> str:
    return f"exclusive{key.capitalize()}"


def _bound(node: dict[str, Any], key: str, sign: int) -> tuple[Fraction, bool] | None:
    """The limit, with whether it is excluded itself; turned round for maxima, so that more is narrower."""
    plain, strict = _fraction(node.get(key)), node.get(_exclusive(key))
    limit = _fraction(strict)
    bounds = [] if plain is None else [(sign * plain, strict is True)]
    bounds += [] if limit is None else [(sign * limit, True)]
    return max(bounds, default=None)


def _whole(bound: tuple[Fraction, bool]) -> tuple[Fraction, bool]:
    """The same limit for whole numbers."""
    value, strict = bound
    return Fraction(math.floor(value) + 1 if strict else math.ceil(value)), False


def _items(node: dict[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of the first items, and that of all others; in the spelling of any draft."""
    if isinstance(node.get("prefixItems"), list):
        return _schemas(node, "prefixItems"), _rest(node, "items", "unevaluatedItems")
    if isinstance(node.get("items"), list):
        return _schemas(node, "items"), _rest(node, "additionalItems", "unevaluatedItems")
    return [], _rest(node, "items", "unevaluatedItems")


def _additional(node: dict[str, Any]) -> Any:
    return _rest(node, "additionalProperties", "unevaluatedProperties")


def _rest(node: dict[str, Any], key: str, unevaluated: str) -> Any:
    """What is left over is what was not evaluated, where no other schema can have evaluated it."""
    found = node.get(key)
    if found is None and _COMBINING.isdisjoint(node):
        found = node.get(unevaluated)
    return found if isinstance(found, dict | bool) else True


def _of_property(node: dict[str, Any], name: str) -> list[Any]:
    """All schemas that a property of this name must fit."""
    patterns = _map(node, "patternProperties").items()
    found = [schema for pattern, schema in patterns if _matches(pattern, name)]
    if name in _map(node, "properties"):
        found.append(_map(node, "properties")[name])
    return found or [_additional(node)]


def _dependent(node: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for key in ("dependencies", "dependentRequired", "dependentSchemas"):
        for name, wanted in _map(node, key).items():
            yield key, name, _names(wanted) if isinstance(wanted, list) else wanted


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # A pattern of another dialect: nothing is known to fit it.
        return False


def _understood(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _spelled(kinds: frozenset[str]) -> str:
    if kinds == _ALL:
        return "any type"
    names = sorted(kinds - {"integer", "fraction"} if "fraction" in kinds else kinds)
    return " or ".join([*names, *(["number"] if "fraction" in kinds else [])]) or "nothing"
