"""UNNEST: arrays and maps as rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, DataType, MapType, StructType
from sqlglot import exp

from headgate.sql import signed
from headgate.sql.operators import UnnestRows
from headgate.sql.refusals import check_said, refuse
from headgate.sql.relation import ELEMENT, Relation
from headgate.sql.scope import Attribute, under
from headgate.sql.typed import Typed
from headgate.sql.types import INT

if TYPE_CHECKING:
    from headgate.sql.select import Selects


def unnest(selects: Selects, relation: Relation, join: exp.Join) -> Relation:
    """A row for each element of an array or a map, beside the columns of its row."""
    if relation.changes:
        # The elements of a row come and go with it; nothing tells two that are the same apart.
        relation = replace(signed.signed(selects, relation), key=())
    side, kind = join.side.upper(), join.kind.upper()
    if side not in ("", "LEFT") or kind not in ("", "CROSS", "INNER", "OUTER"):
        refuse(
            f"{side or kind} JOIN UNNEST is not supported.",
            join,
            "CROSS JOIN and LEFT JOIN … ON TRUE are.",
        )
    on = join.args.get("on")
    if on is not None and not (isinstance(on, exp.Boolean) and on.this):
        refuse("UNNEST is joined ON TRUE.", join, "Put the condition into WHERE.")
    tree = join.this
    check_said(tree, {"alias", "offset"})
    if len(tree.expressions) != 1:
        refuse("UNNEST takes one array or map.", join)
    value = selects.compiler(relation.scope).compile(tree.expressions[0])
    alias = tree.args.get("alias")
    names = [c.name for c in alias.columns] if alias is not None else []
    kinds, fields = _elements(value, join)
    if tree.args.get("offset") and not isinstance(tree.args["offset"], bool) and len(names) == len(kinds):
        names.append(tree.args["offset"].name)
    position = bool(tree.args.get("offset"))
    wanted = len(kinds) + position
    if names and len(names) != wanted:
        refuse(f"UNNEST gives {wanted} columns here, and {len(names)} are named.", join)
    names = names or [
        *(fields or [f"EXPR${i}" for i in range(len(kinds))]),
        *(["ORDINALITY"] if position else []),
    ]
    made = [Attribute(n, selects.refs.new(n), k, True) for n, k in zip(names, kinds, strict=False)]
    ordinal = Attribute(names[-1], selects.refs.new(names[-1]), INT, side == "LEFT") if position else None
    element = selects.refs.new(ELEMENT) if relation.coordinates else None
    operator = UnnestRows(
        relation.operator,
        value,
        [a.ref for a in made],
        ordinal.ref if ordinal is not None else None,
        side == "LEFT",
        fields,
        element,
    )
    new = under(alias.name if alias is not None else "", [*made, *([ordinal] if ordinal else [])])
    coordinates = (*relation.coordinates, element) if element is not None else ()
    return replace(relation, operator=operator, scope=relation.scope.joined(new), coordinates=coordinates)


def _elements(value: Typed, node: exp.Expr) -> tuple[list[DataType], list[str]]:
    kind = value.type
    if isinstance(kind, MapType):
        return [kind.keyType, kind.valueType], []
    if not isinstance(kind, ArrayType):
        refuse("UNNEST takes an array or a map.", node)
    if isinstance(kind.elementType, StructType):
        return [f.dataType for f in kind.elementType.fields], kind.elementType.names
    return [kind.elementType], []
