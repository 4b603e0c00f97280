"""What is shown of a table can be read back."""

import pytest

from headgate.sql.insert import plan_create
from headgate.sql.render import create_table_text, create_view_text
from headgate.sql.script import parse_statement
from headgate.sql.statements import CreateTable, CreateView, Distribution
from headgate.sql.tables import Catalog, TableInfo
from tests.unit.sql.tables import BARE, BIKES, CLOCKED, RIDERS, RIDES


@pytest.mark.parametrize("table", [RIDES, BARE, BIKES, CLOCKED, RIDERS], ids=lambda table: table.name)
def test_tables(table: TableInfo) -> None:
    text = create_table_text(table, {"kafka.cleanup-policy": "it's"}, Distribution(table.primary_key, 3))
    statement = parse_statement(text)
    assert isinstance(statement, CreateTable)
    assert statement.options["kafka.cleanup-policy"] == "it's"
    assert statement.distribution == Distribution(table.primary_key, 3)
    made, _ = plan_create(statement, Catalog())
    assert made == table


def test_views() -> None:
    view = parse_statement("CREATE VIEW `a.b` (x) AS SELECT ride FROM rides")
    assert isinstance(view, CreateView)
    shown = parse_statement(create_view_text(view))
    assert isinstance(shown, CreateView)
    assert (shown.name, shown.columns, shown.query.text) == (view.name, view.columns, view.query.text)
