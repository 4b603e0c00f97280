"""Desired state: plans are made here, and carried out here, for whoever sends what is wanted."""

import json
import threading
from collections.abc import Iterator
from typing import Any, assert_never

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive, Scope, Send

from headgate.access import Role
from headgate.access.credentials import Credential, Credentials
from headgate.apply.carry_out import Begun, Done, Ended, Event, Stopped, Waiting, carry_out, refuse_losses
from headgate.apply.dump import dump_document
from headgate.apply.kinds import KINDS
from headgate.apply.model import Plan, Ref, Wanted, Wishes
from headgate.apply.plan import consent_of, make_plan
from headgate.apply.ports import Installation
from headgate.apply.read import read_text, resource_of
from headgate.apply.show import plan_dict, plan_id
from headgate.errors import InvalidRequest, NotFound
from headgate.server.access import Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.desired import DumpAnswer, PlanAnswer, WorldAnswer
from headgate.server.driver import NDJSON
from headgate.server.overview import Overview
from headgate.storage import Storages
from headgate.store import Integrations


class Thing(BaseModel):
    """One thing that is wanted."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    name: str = Field(min_length=1, max_length=249)
    spec: dict[str, Any] = Field(default_factory=dict)
    at: str = Field("", description="Where a file says it, for errors: `orders.yaml:12`.")


class Desired(BaseModel):
    """What is wanted: as `yaml`, or thing by thing as `headgate apply` sends it."""

    model_config = ConfigDict(extra="forbid")

    yaml: str | None = Field(None, max_length=4_000_000, description="A document or several; names no files.")
    variables: dict[str, str] = Field(default_factory=dict, description="What ${NAME} stands for, in `yaml`.")
    world: str | None = None
    resources: list[Thing] = Field(default_factory=list)
    prune: bool = False
    delete_data: bool = False
    destroy: bool = False

    def wanted(self) -> Wanted:
        if self.yaml is not None:
            if self.resources or self.world is not None:
                raise InvalidRequest("There is yaml, and there are resources.", "Send one of them.")
            return read_text(self.yaml, self.variables)
        things = [resource_of(Ref(thing.kind, thing.name), thing.spec, thing.at) for thing in self.resources]
        return Wanted(self.world, things)

    def wishes(self) -> Wishes:
        return Wishes(self.prune, self.delete_data, self.destroy)


class Agreed(Desired):
    """What is wanted, and the plan that was agreed to."""

    plan: str = Field(description="The `id` of the plan: another one is refused.")


class Steps(StreamingResponse):
    """Events as lines. Who leaves stops what is done; applied again, it goes on."""

    def __init__(self, lines: "Lines") -> None:
        super().__init__(lines, media_type=NDJSON)
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._lines.close()


class Lines(Iterator[str]):
    """The lines of one apply; the turn is given back when they end or nobody reads them."""

    def __init__(self, events: Iterator[Event], turn: threading.Lock) -> None:
        self._events = events
        self._turn = turn
        self._ended = False

    def __next__(self) -> str:
        try:
            event = next(self._events)
        except StopIteration:
            self.close()
            raise
        return json.dumps(event_dict(event), default=str) + "\n"

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            self._turn.release()


# A file may name anything: whoever applies it may do everything.
ADMINS = needs(Role.ADMIN, "everything")


def desired_router(installation: Installation, overview: Overview) -> APIRouter:
    router = APIRouter(tags=["desired state"])
    # One apply at a time: two would wait for what the other removes.
    turn = threading.Lock()

    def planned(desired: Desired) -> tuple[Wanted, Plan]:
        wanted, wishes = desired.wanted(), desired.wishes()
        if wishes.destroy and wanted.world is None:
            raise InvalidRequest(
                "There is no world to destroy.",
                "Only what a world has made is known to be a file's: name one.",
            )
        observed = installation.observe(wanted)
        plan = make_plan(wanted, observed, wishes)
        installation.check(plan, observed)
        return wanted, plan

    @router.post("/plan", summary="Tell what apply would do", **ADMINS, **answers(PlanAnswer))
    def plan(desired: Desired) -> dict[str, Any]:
        """Nothing is changed. `asks` of a step is what somebody must agree to."""
        _, found = planned(desired)
        return plan_dict(found, consent_of(found))

    @router.post("/apply", summary="Do what a plan says", response_class=StreamingResponse, **ADMINS)
    def apply(agreed: Agreed, access: Asking) -> Steps:
        """Lines of JSON, one for each event; the last has the op `end` or `stopped`."""
        if not turn.acquire(blocking=False):
            raise InvalidRequest("Another apply is under way.", "Wait for it, and apply again.")
        try:
            wanted, found = planned(agreed)
            if plan_id(found) != agreed.plan:
                raise InvalidRequest(
                    "What is there has changed since the plan was made: it would be another one now.",
                    "Plan again, and look at it.",
                )
            refuse_losses(found, agreed.delete_data)
            for step in found.steps:
                access.note(str(step.ref))
        except BaseException:
            turn.release()
            raise
        kept = Wanted(wanted.world, () if agreed.destroy else wanted.resources)
        return Steps(Lines(carry_out(found, kept, installation, delete_data=agreed.delete_data), turn))

    @router.get("/dump", summary="What runs now, as a file would say it", **ADMINS, **answers(DumpAnswer))
    def dump(world: str | None = None) -> dict[str, Any]:
        return dump_document(installation.observe_all(), world)

    @router.get(
        "/worlds", summary="List the worlds, with what each has made", **ADMINS, **answers(list[WorldAnswer])
    )
    def worlds() -> list[dict[str, Any]]:
        return [
            output(name) for name in sorted({owner.world for owner in installation.owners.all().values()})
        ]

    @router.get("/worlds/{name}", summary="Where the things of a world are", **ADMINS, **answers(WorldAnswer))
    def output(name: str) -> dict[str, Any]:
        refs = [ref for ref, owner in installation.owners.all().items() if owner.world == name]
        if not refs:
            raise NotFound(
                f"No world '{name}' has made anything.", "`headgate output` lists those that have."
            )
        return world_output(name, refs, overview)

    return router


def world_output(name: str, refs: list[Ref], overview: Overview) -> dict[str, Any]:
    """The addresses of this Headgate and the names and places of what a world has made."""
    settings = overview.runtime.settings
    named = {kind: [ref.name for ref in refs if ref.kind == kind] for kind in KINDS}
    return {
        "world": name,
        "cluster": settings.cluster.name,
        "warehouse": overview.runtime.warehouse,
        "addresses": dict(overview.runtime.addresses),
        "topics": named["topics"],
        "statements": named["statements"],
        "tables": [
            {
                "name": f"{settings.namespace}.{record.spec.topic}",
                "state": record.status.state.value,
                "rows": record.status.detail.get("rows"),
                "formats": [table_format.value for table_format in record.spec.formats],
                "location": record.status.detail.get("location"),
            }
            for record in overview.store.tables()
            if record.spec.topic in named["tables"]
        ],
        "storage": [
            {"name": place.name, "uri": place.root}
            for place in Storages(overview.store.engine).list()
            if place.name in named["storage"]
        ],
        "catalogs": [
            {"name": one.name, "type": one.kind, "state": one.state.value}
            for one in Integrations(overview.store.engine).all()
            if one.name in named["catalogs"]
        ],
        "exports": named["exports"],
        "generators": named["generators"],
        "clients": [
            {"name": one.name, "client_id": one.client_id, "grants": [str(grant) for grant in one.grants]}
            for one in Credentials(overview.store.engine).list()
            if one.revoked_at is None and _opens(one, settings.namespace, named["topics"] + named["tables"])
        ],
    }


def _opens(credential: Credential, namespace: str, names: list[str]) -> bool:
    """Whether it sees any of these topics and tables."""
    return any(credential.principal.on_table((namespace,), name) is not None for name in names)


def event_dict(event: Event) -> dict[str, Any]:
    match event:
        case Begun():
            return {"op": "begun", "step": event.number}
        case Waiting():
            return {"op": "waiting", "step": event.number, "text": event.text}
        case Done():
            return {"op": "done", "step": event.number}
        case Stopped():
            error = event.error
            said = {"error": type(error).__name__, "message": error.message, "remedy": error.remedy}
            return {"op": "stopped", "step": event.number, **said}
        case Ended():
            return {"op": "end"}
        case _:
            assert_never(event)
