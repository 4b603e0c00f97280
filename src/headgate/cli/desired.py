"""`headgate plan`, `apply`, `destroy`, `dump` and `output`: what is to run, from files."""

import json as jsons
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.client import Client, DataOption, JsonOption, connect, error_of_line
from headgate.cli.output import note, print_fields, print_json, print_table, progress, say
from headgate.errors import HeadgateError, InvalidRequest, ServerUnavailable

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A YAML file, or a folder of them.", show_default=False)
]
VariablesOption = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="NAME=VALUE", help="What ${NAME} stands for; may be repeated."),
]
PruneOption = Annotated[
    bool, typer.Option("--prune", help="Remove what the world has made and the file names no longer.")
]
DeleteDataOption = Annotated[
    bool, typer.Option("--delete-data", help="Records of topics, and rows of tables, may be lost with them.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def plan(
    file: FileArgument,
    variables: VariablesOption = None,
    prune: PruneOption = False,
    delete_data: DeleteDataOption = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Show what apply would do, step by step. Nothing is changed."""
    desired = read_desired(file, variables) | {"prune": prune, "delete_data": delete_data}
    with connect(data) as client:
        planned = client.post("plan", body=desired)
    if json:
        print_json(planned)
    else:
        _show(planned)


def apply(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A YAML file, or a folder of them.", show_default=False),
    ] = None,
    variables: VariablesOption = None,
    prune: PruneOption = False,
    delete_data: DeleteDataOption = False,
    yes: YesOption = False,
    schema: Annotated[
        bool, typer.Option("--json-schema", help="Print the JSON Schema of such files, and do nothing else.")
    ] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Make what runs be as the file says, and wait until it is."""
    if schema:
        from headgate.apply.shapes import json_schema

        print_json(json_schema())
        return
    if file is None:
        raise InvalidRequest("A file is wanted.", "Say headgate apply FILE.")
    desired = read_desired(file, variables) | {"prune": prune, "delete_data": delete_data}
    with connect(data) as client:
        _carry_out(client, desired, yes, json)
        if not json:
            _show_worlds([world for world in client.get("worlds") if world["world"] == desired["world"]])


def destroy(
    file: FileArgument,
    variables: VariablesOption = None,
    delete_data: DeleteDataOption = False,
    yes: YesOption = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Remove all that the file's world has made. Topics and tables keep their data without --delete-data."""
    desired = read_desired(file, variables)
    if desired["world"] is None:
        raise InvalidRequest(
            f"{file} names no world, so nothing is known to be its own.", "Remove its things one by one."
        )
    desired |= {"resources": [], "destroy": True, "delete_data": delete_data}
    with connect(data) as client:
        _carry_out(client, desired, yes, json)


def dump(
    world: Annotated[str | None, typer.Option(help="Only what this world has made.")] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Print what runs now as a file: to apply it plans nothing."""
    with connect(data) as client:
        document = client.get("dump", **({} if world is None else {"world": world}))
    if json:
        print_json(document)
        return
    from headgate.apply.show import file_text

    typer.echo(file_text(document), nl=False)


def output(
    world: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The world.")] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Where the things of a world are: addresses, topics, tables, buckets, catalogs, client ids."""
    with connect(data) as client:
        worlds = client.get("worlds") if world is None else [client.get("worlds", world)]
    if json:
        print_json(worlds if world is None else worlds[0])
        return
    if not worlds:
        say("no world has made anything yet: see `headgate apply`")
    _show_worlds(worlds)


def read_desired(file: Path, variables: list[str] | None) -> dict[str, Any]:
    """What the API takes, of a file that is read here: with this environment, and beside it its own files."""
    from headgate.apply.read import read_path

    wanted = read_path(file, {**os.environ, **dict(map(_variable, variables or []))})
    resources = [
        {"kind": one.ref.kind, "name": one.ref.name, "spec": dict(one.spec), "at": one.at}
        for one in wanted.resources
    ]
    return {"world": wanted.world, "resources": resources}


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidRequest(f"'{text}' is no variable.", "Write for instance --var PARTITIONS=4.")
    return name, value


def _show(planned: Mapping[str, Any]) -> None:
    from headgate.apply.show import plan_lines

    for line in plan_lines(planned):
        say(line)
    if not planned["steps"]:
        say("nothing to do: all is as the file says")


def _carry_out(client: Client, desired: Mapping[str, Any], yes: bool, json: bool) -> None:
    planned = client.post("plan", body=desired)
    if not json:
        _show(planned)
    asks = [step["asks"] for step in planned["steps"] if step["asks"]]
    if asks and not yes:
        _confirm(asks)
    if planned["steps"]:
        _follow(client, planned, {**desired, "plan": planned["id"]})
    if json:
        print_json(planned | {"done": len(planned["steps"])})


def _confirm(asks: list[str]) -> None:
    if not sys.stdin.isatty():
        raise InvalidRequest(f"Somebody must agree: {'; '.join(asks)}.", "Say --yes to mean it.")
    for text in asks:
        note(text)
    typer.confirm("Go on?", abort=True)


def _follow(client: Client, planned: Mapping[str, Any], agreed: Mapping[str, Any]) -> None:
    """Shows what is done until the last step, or tells which is the first that failed."""
    steps = planned["steps"]
    names = [f"{step['action']} {_noun(step['kind'])} {step['name']}" for step in steps]
    with client.lines("apply", body=agreed) as lines, progress(names[0]) as shown:
        for line in lines:
            event = jsons.loads(line)
            match event["op"]:
                case "begun":
                    shown.update(f"[{event['step'] + 1}/{len(steps)}] {names[event['step']]}")
                case "waiting":
                    waits = f"{names[event['step']]}: waiting for {event['text']}"
                    shown.update(f"[{event['step'] + 1}/{len(steps)}] {waits}")
                case "stopped":
                    raise _stopped(event, names)
                case "end":
                    return
    raise ServerUnavailable("Headgate has left before all was done.", "Apply again: it goes on from there.")


def _stopped(event: Mapping[str, Any], names: list[str]) -> HeadgateError:
    number = event["step"]
    left = ", ".join(names[number + 1 :])
    message = f"{names[number]} has failed: {event['message']} Done before it: {number} of {len(names)}"
    message += f"; not done: {left}." if left else "."
    error = error_of_line(event)
    return type(error)(message, f"{event['remedy']} Apply again to go on.".strip())


def _noun(kind: str) -> str:
    return kind if kind == "storage" else kind.removesuffix("s")


def _show_worlds(worlds: list[dict[str, Any]]) -> None:
    for world in worlds:
        _show_output(world)


def _show_output(world: Mapping[str, Any]) -> None:
    fields = [("cluster", world["cluster"]), ("warehouse", world["warehouse"])]
    fields += list(world["addresses"].items())
    fields += [
        (kind, ", ".join(world[kind]))
        for kind in ("topics", "statements", "exports", "generators")
        if world.get(kind)
    ]
    fields += [(f"storage {one['name']}", one["uri"]) for one in world["storage"]]
    fields += [(f"catalog {one['name']}", f"{one['type']}, {one['state']}") for one in world["catalogs"]]
    fields += [
        (f"client {one['name']}", f"{one['client_id']}, {', '.join(one['grants'])}")
        for one in world["clients"]
    ]
    print_fields(f"world {world['world']}", fields)
    if world["tables"]:
        rows = [
            (table["name"], table["state"], table["rows"], ",".join(table["formats"]), table["location"])
            for table in world["tables"]
        ]
        print_table("Tables", ("TABLE", "STATE", "ROWS", "FORMATS", "LOCATION"), rows)
