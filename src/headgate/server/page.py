"""The page at `/`: addresses and tables as they stand, made on the server, with no assets."""

from collections.abc import Iterable
from html import escape
from typing import Any

REFRESH_SECONDS = 5

STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: .35rem .8rem .35rem 0; text-align: left; }
th { font-weight: 600; } .number { text-align: right; font-variant-numeric: tabular-nums; }
code { font: .9em ui-monospace, monospace; } .muted { opacity: .65; }
"""


def render(status: dict[str, Any]) -> str:
    """All of what `/api/v1/status` says that people look for first."""
    cluster = escape(status["cluster"])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="{REFRESH_SECONDS}">
<title>Headgate: {cluster}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>Headgate <span class="muted">{escape(status["version"])}, cluster {cluster}</span></h1>
<h2>Tables</h2>
{_tables(status["tables"])}
<h2>Processes</h2>
{_rows(("process", "state"), [(p["name"], p["state"]) for p in status["processes"]])}
<h2>Addresses</h2>
{_rows(("what", "where"), status["addresses"].items())}
<p class="muted"><a href="/api/v1/openapi.json">API</a> · <a href="/metrics">metrics</a></p>
</body>
</html>
"""


def _tables(tables: list[dict[str, Any]]) -> str:
    if not tables:
        return (
            "<p class='muted'>None yet: <code>headgate table enable TOPIC</code> makes a topic a table.</p>"
        )
    rows = [(t["topic"], t["state"], t["rows"], t["lag"], t["reason"]) for t in tables]
    return _rows(("topic", "state", "rows", "lag", "reason"), rows)


def _rows(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f"<td class='number'>{value:,}</td>"
    return f"<td>{escape('' if value is None else str(value))}</td>"
