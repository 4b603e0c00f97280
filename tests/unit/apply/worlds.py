"""Worlds by chance: documents that make sense, however they were thrown together."""

from typing import Any

import yaml
from hypothesis import strategies as st

from headgate.apply.carry_out import Ended, carry_out
from headgate.apply.model import Plan, Wanted, Wishes
from headgate.apply.plan import make_plan
from headgate.apply.ports import Installation
from headgate.apply.read import read_text

NAMES = ("a", "b", "c")
CONFIG = st.dictionaries(st.sampled_from(["retention.ms", "segment.ms"]), st.sampled_from(["1", "2"]))
WATERMARK = st.none() | st.fixed_dictionaries(
    {"column": st.sampled_from(["at", "id"]), "delay": st.sampled_from(["0 s", "5 s", "1 hour"])}
)
COLUMNS = st.sampled_from(["id BIGINT", "id BIGINT NOT NULL, name STRING", "id BIGINT, at TIMESTAMP_LTZ(3)"])
TTL = st.fixed_dictionaries({}, optional={"sql.state-ttl": st.sampled_from(["1 hour", "90 s"])})


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Topics, what is written from each into the next, and tables of some."""
    topics: dict[str, Any] = {}
    for name in NAMES:
        if draw(st.booleans()):
            topics[name] = {"sql": f"CREATE TABLE `{name}` ({draw(COLUMNS)})", "config": draw(CONFIG)}
        else:
            topics[name] = {"config": draw(CONFIG), "watermark": draw(WATERMARK)}
        topics[name] = {key: value for key, value in topics[name].items() if value is not None}
    statements: dict[str, Any] = {}
    for source, target in (("a", "b"), ("b", "c"), ("c", "d")):
        if not draw(st.booleans()):
            continue
        query = f"SELECT id FROM `{source}`" + draw(st.sampled_from(["", " WHERE id > 0"]))
        into = f"CREATE TABLE {target} AS" if target == "d" else f"INSERT INTO {target}"
        state = draw(st.sampled_from(["running", "stopped"]))
        statements[f"{source}-{target}"] = {"sql": f"{into} {query}", "settings": draw(TTL), "state": state}
    tables: dict[str, Any] = {
        name: draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "freshness": st.sampled_from(["5s", "10s"]),
                    "on_error": st.sampled_from(["skip", "log"]),
                    "state": st.just("suspended"),
                },
            )
        )
        for name in NAMES
        if draw(st.booleans())
    }
    return {"world": "shop", "topics": topics, "statements": statements, "tables": tables}


def wanted_of(document: dict[str, Any]) -> Wanted:
    return read_text(yaml.safe_dump(document))


def planned(installation: Installation, wanted: Wanted) -> Plan:
    """With all that may be lost given up."""
    return make_plan(wanted, installation.observe(wanted), Wishes(prune=True, delete_data=True))


def take(installation: Installation, wanted: Wanted, events: int | None = None) -> bool:
    """Whether all steps are done; `events`: it is killed after so many."""
    plan = planned(installation, wanted)
    told = carry_out(plan, wanted, installation, delete_data=True, sleep=lambda _: None)
    for number, event in enumerate(told):
        if isinstance(event, Ended):
            return True
        if number == events:
            told.close()
            return False
    raise AssertionError("it has stopped")
