"""What reaches Spark of a user's SQL: queries of the lake, and nothing else.

Spark's own parser reads the text, and the plan that it makes is checked: no spelling gets around that. What
a name stands for is known when the plan is analyzed, so that is checked too; a view of the lake may hold what
no query may.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from headgate.errors import InvalidRequest
from headgate.spark import CATALOG

# Larger queries are not looked at: each step costs some calls to the JVM.
MOST_STEPS = 20_000
_SEPARATOR = "\0"
_PLAN = "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"
# What a query is made of, as the parser says it.
_QUERIES = frozenset(
    [
        "Aggregate",
        "AsOfJoin",
        "CTERelationRef",
        "Deduplicate",
        "Distinct",
        "Except",
        "Expand",
        "Filter",
        "Generate",
        "GlobalLimit",
        "Intersect",
        "Join",
        "LateralJoin",
        "LimitAll",
        "LocalLimit",
        "LocalRelation",
        "Offset",
        "OneRowRelation",
        "PipeOperator",
        "Pivot",
        "Project",
        "Qualify",
        "RelationTimeTravel",
        "Repartition",
        "RepartitionByExpression",
        "Sample",
        "Sort",
        "SubqueryAlias",
        "Tail",
        "Union",
        "Unpivot",
        "UnresolvedHaving",
        "UnresolvedHint",
        "UnresolvedInlineTable",
        "UnresolvedRelation",
        "UnresolvedSubqueryColumnAliases",
        "UnresolvedTableValuedFunction",
        "UnresolvedTVFAliases",
        "UnresolvedWith",
        "Window",
        "WithWindowDefinition",
    ]
)
_SHOWING = frozenset(
    [
        "CurrentNamespace$",
        "DescribeColumn",
        "DescribeFunction",
        "DescribeNamespace",
        "DescribeQueryCommand",
        "DescribeRelation",
        "DescribeRelationJsonCommand",
        "ExplainCommand",
        "ShowColumns",
        "ShowCreateTable",
        "ShowCurrentNamespaceCommand",
        "ShowNamespacesCommand",
        "ShowIcebergViews",
        "ShowTableProperties",
        "ShowTables",
        "ShowViews",
        "UnresolvedFunctionName",
        "UnresolvedNamespace",
        "UnresolvedTable",
        "UnresolvedTableOrView",
        "UnresolvedView",
    ]
)
# Steps with a name of several parts, whose first may be a catalog's.
_NAMED = frozenset(
    {
        "UnresolvedRelation",
        "UnresolvedTable",
        "UnresolvedTableOrView",
        "UnresolvedView",
        "UnresolvedNamespace",
    }
)
# Steps that hold another outside of their children.
_HELD = {"ExplainCommand": "logicalPlan", "DescribeQueryCommand": "plan", "RelationTimeTravel": "relation"}
# What an analyzed plan may begin with, besides tables of the lake.
_LEAVES = frozenset(["CTERelationRef", "LocalRelation", "OneRowRelation", "Range", "UnionLoopRef"])
_TABLES = frozenset({"DataSourceV2Relation", "DataSourceV2ScanRelation"})
_WHAT_IS_ASKED = "Ask SELECT, WITH, VALUES, SHOW, DESCRIBE or EXPLAIN."


@dataclass
class Checker:
    """Of one session; `closed` are the names of catalogs that no query may reach, in lower case."""

    spark: SparkSession
    closed: frozenset[str]

    def frame(self, text: str) -> DataFrame:
        """The rows of a query, or an InvalidRequest that names what may not be asked."""
        session: Any = self.spark._jsparkSession
        jvm: Any = self.spark.sparkContext._jvm
        parsed = session.sessionState().sqlParser().parsePlan(text)
        shows = self._check_parsed(parsed)
        # The plan that was looked at is the one that runs.
        rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, parsed)
        if not shows:
            self._check_analyzed(rows.queryExecution().analyzed())
        return ClassicDataFrame(rows, self.spark)

    def _check_parsed(self, plan: Any) -> bool:
        """Whether it is a SHOW, a DESCRIBE or an EXPLAIN, which reads no rows."""
        shows = False
        for step, name in self._steps(plan):
            shows = shows or name in _SHOWING
            if name not in _QUERIES and name not in _SHOWING:
                raise InvalidRequest(f"{_statement(name)} is not a query of the lake.", _WHAT_IS_ASKED)
            if name in _NAMED:
                parts = str(step.multipartIdentifier().mkString(_SEPARATOR)).split(_SEPARATOR)
                if parts[0].casefold() in self.closed:
                    raise InvalidRequest(
                        f"There is no '{'.'.join(parts)}' here: queries read the catalog '{CATALOG}' alone.",
                        f"A table is {CATALOG}.<cluster>.<topic>, or its topic alone.",
                    )
        return shows

    def _check_analyzed(self, plan: Any) -> None:
        """That all it reads is of the lake, what is under views too."""
        for step, name in self._steps(plan):
            if name == "ScriptTransformation":
                raise InvalidRequest("TRANSFORM runs programs: no query may.", _WHAT_IS_ASKED)
            if name in _TABLES:
                _check_table(step if name == "DataSourceV2Relation" else step.relation())
            elif name not in _LEAVES and step.children().isEmpty():
                raise InvalidRequest(
                    f"The query reads a {name}, which is no table of the lake.", _WHAT_IS_ASKED
                )

    def _steps(self, plan: Any) -> Iterator[tuple[Any, str]]:
        """Every step of a plan with the name of its class, those of its subqueries and WITHs too."""
        waiting, count = [plan], 0
        while waiting:
            step = waiting.pop()
            count += 1
            if count > MOST_STEPS:
                raise InvalidRequest("The query is too large.", f"It has more than {MOST_STEPS} steps.")
            name = str(step.getClass().getName()).rpartition(".")[2]
            yield step, name
            waiting.extend(_each(step.children()))
            waiting.extend(_each(step.subqueries()))
            waiting.extend(inner for inner in _each(step.innerChildren()) if self._is_plan(inner))
            if name in _HELD:
                waiting.append(getattr(step, _HELD[name])())

    def _is_plan(self, part: Any) -> bool:
        return bool(is_instance_of(self.spark.sparkContext._gateway, part, _PLAN))


def _check_table(relation: Any) -> None:
    catalog = relation.catalog()
    if not catalog.isDefined() or catalog.get().name() != CATALOG:
        raise InvalidRequest("The query reads what is no table of the lake.", _WHAT_IS_ASKED)


def _each(items: Any) -> Iterator[Any]:
    for number in range(items.size()):
        yield items.apply(number)


@cache
def _statement(short: str) -> str:
    """A class of plans in words: `InsertIntoStatement` is INSERT INTO."""
    words = "".join(
        f" {letter}" if letter.isupper() else letter for letter in short.removesuffix("$")
    ).split()
    dropped = {"Unresolved", "Command", "Statement"}
    return " ".join(word.upper() for word in words if word not in dropped) or short
