"""The way through a world, step by step."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.demo.figures import wait_for_figures
from headgate.demo.orders import Orders
from headgate.demo.ports import Headgate, Screen, shown_command, type_command
from headgate.errors import InvalidRequest
from headgate.worlds import WORLDS, Expected, World, world_file


@dataclass(frozen=True)
class Demo:
    """Which world, and how much of it, on which folder."""

    world: str
    data: Path
    limit: int | None = None
    seed: int | None = None
    #: Whether what one can do with the tables is shown too; it adds records.
    tour: bool = True
    #: Whether this Headgate is there still when the demo is over.
    stays: bool = True


def run_demo(demo: Demo, headgate: Headgate, screen: Screen) -> None:
    """Sets the world up, fills it, and waits until its tables hold what the seed says."""
    world = WORLDS[demo.world]
    limit, seed = demo.limit or world.limit, world.seed if demo.seed is None else demo.seed
    expected = world.expected(limit, seed)
    tour = _Tour(demo, world, expected, headgate, screen)
    tour.apply()
    tour.fill(limit, seed)
    tour.finish()
    tour.compare()
    if demo.tour and world.name == "orders":
        Orders(expected, headgate, screen, demo.data, seed).show()
    show_what_next(demo, headgate, screen)


class _Tour:
    def __init__(
        self, demo: Demo, world: World, expected: Expected, headgate: Headgate, screen: Screen
    ) -> None:
        self._demo, self._world, self._expected = demo, world, expected
        self._headgate, self._screen = headgate, screen

    def run(self, *words: str) -> None:
        type_command(words, self._headgate, self._screen)

    def apply(self) -> None:
        self._screen.step(f"The world of {self._world.name}: topics, statements and tables from one file")
        self.run("apply", str(world_file(self._world.name)))
        self._headgate.prepare_queries()

    def fill(self, limit: int, seed: int) -> None:
        """Generates the records, unless they are there already."""
        there = {topic: self._count(topic) for topic in self._expected.records}
        if there == self._expected.records:
            self._screen.say("The records of this seed are there already.")
            return
        if any(there.values()):
            raise InvalidRequest(
                f"The topics of the world '{self._world.name}' on {self._demo.data} have other records: "
                + ", ".join(f"{topic} {count:,}" for topic, count in there.items() if count)
                + ".",
                "Name another folder with --data, or the --limit and --seed that they were made with.",
            )
        self._screen.step("Records, the same for the same seed")
        cdc = ["--cdc"] if self._world.cdc else []
        self.run("datagen", self._world.name, *cdc, "--limit", str(limit), "--seed", str(seed))

    def _count(self, topic: str) -> int:
        offsets = self._headgate.get("topics", topic)["offsets"]
        return sum(int(one["end"]) - int(one["earliest"]) for one in offsets)

    def finish(self) -> None:
        """Rows that wait for event time come out: no record comes that would move it."""
        if self._world.finishes:
            self._screen.step("The story has an end: what waits for later records comes out now")
        for name in self._world.finishes:
            self.run("statement", "finish", name)

    def compare(self) -> None:
        self._screen.step("What the tables hold, and what plain Python makes of the seed")
        expected = self._expected.figures
        found = wait_for_figures(self._world, expected, self._headgate, self._screen)
        self._screen.table(
            ("TABLE", "ROWS", "SUM OF", "COMES TO", "THE SEED SAYS"),
            [
                (
                    table,
                    f"{figure.rows:,}",
                    self._world.totals[table] or "",
                    "" if figure.total is None else f"{figure.total:,}",
                    "the same" if figure == expected[table] else "ANOTHER",
                )
                for table, figure in found.items()
            ],
        )


NEXT: dict[str, Sequence[Sequence[str]]] = {
    "orders": (
        ("table", "list"),
        ("statement", "list"),
        ("topic", "consume", "completed_orders", "--limit", "3"),
        ("query", "SELECT * FROM product_sales ORDER BY sold_for DESC LIMIT 5"),
        ("output", "orders"),
    ),
    "hotels": (
        ("statement", "list"),
        (
            "query",
            "SELECT hotel_name, sum(taken) FROM hotel_weeks GROUP BY 1 ORDER BY 2 DESC LIMIT 5",
        ),
        (
            "query",
            "SELECT given_name, hotel_name, mean_price FROM high_value_visitors ORDER BY 3 DESC LIMIT 5",
        ),
        ("output", "hotels"),
    ),
    "sales": (
        ("topic", "consume", "clean_sales", "--limit", "3"),
        (
            "query",
            "SELECT country, sum(total) FROM clean_sales WHERE step = 'BOUGHT' GROUP BY 1 ORDER BY 1",
        ),
        ("output", "sales"),
    ),
}


def show_what_next(demo: Demo, headgate: Headgate, screen: Screen) -> None:
    """What one can do with the world now."""
    screen.step("Where to go on")
    if demo.stays:
        address = headgate.get("status")["addresses"]["console"]
        screen.say(f"  {address} shows how things stand")
        screen.say("  in another terminal:")
        screen.say(f"  export HEADGATE_DATA={shlex.quote(str(demo.data))}")
    else:
        screen.say("  This Headgate ends now; started on a terminal, the demo stays until Ctrl-C.")
        screen.say("  While it does, in another terminal:")
    for words in NEXT[demo.world]:
        screen.say(f"  {shown_command(words)}")
