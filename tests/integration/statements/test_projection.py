"""A query without state: rows in, rows out, each once, in the order of their key."""

from tests.integration.statements.bench import Bench, event
from tests.integration.statements.plans import projection


def test_rows_are_there_once_and_a_restart_goes_on(bench: Bench) -> None:
    source = bench.events()
    plan = projection(source)
    output, running = bench.output(plan, key=("who",)), bench.running()
    for partition in (0, 1):
        rows = [event(n, f"w{partition}-{n % 3}", n - 5) for n in range(50)]
        bench.send(source.name, rows, partition)
    query = bench.query(plan, output, running)
    query.start()
    bench.until_read(query, 100)
    query.stop()
    bench.send(source.name, [event(n, "new", n) for n in range(100, 110)])
    again = bench.query(plan, output, running)
    again.start()
    bench.until_read(again, 10)
    again.stop()
    found = bench.records(output.topic)
    expected = [(n, f"w{p}-{n % 3}", (n - 5) * 100) for p in (0, 1) for n in range(5, 50)]
    expected += [(n, "new", n * 100) for n in range(100, 110)]
    assert sorted((v["id"], v["who"], v["cents"]) for _, v in found) == sorted(expected)
    by_key: dict[str, list[int]] = {}
    for key, value in found:
        assert bench.decode(key) == {"who": value["who"]}
        by_key.setdefault(value["who"], []).append(value["id"])
    assert all(ids == sorted(ids) for ids in by_key.values())
    assert query.totals.rows_in == 100
    assert query.totals.rows_out == 90
