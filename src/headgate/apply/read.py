"""Files and folders become what is wanted, or one error with file, line and suggestion."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from headgate.apply.documents import Located, read_documents
from headgate.apply.model import Ref, Resource, Wanted
from headgate.apply.shapes import SECTIONS, Document, Export
from headgate.errors import InvalidRequest

ENDINGS = (".yaml", ".yml")
_QUOTED = re.compile(r"'([^']*)'")
# By the problem that pydantic names.
_REMEDIES = {
    "missing": "Add it.",
    "int_type": "Write a whole number: 4.",
    "int_parsing": "Write a whole number: 4.",
    "int_from_float": "Write a whole number: 4.",
    "float_type": "Write a number: 2.5.",
    "float_parsing": "Write a number: 2.5.",
    "bool_type": "Write true or false.",
    "bool_parsing": "Write true or false.",
    "string_type": "Write one text.",
    "list_type": "Write a list: [a, b].",
    "dict_type": "Write keys with their values: {key: value}.",
    "model_type": "Write keys with their values: {key: value}.",
    "model_attributes_type": "Write keys with their values: {key: value}.",
}
# Where a section may name a file, and the field that its text is.
_TEXTS = {"topics": "sql", "schemas": "schema", "statements": "sql", "exports": "sql"}


def read_path(path: Path, variables: Mapping[str, str]) -> Wanted:
    """A file, or all YAML files of a folder."""
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in ENDINGS)
        if not files:
            raise InvalidRequest(f"There is no YAML file in {path}.", f"They end in {' or '.join(ENDINGS)}.")
    documents = [
        (document, file.parent)
        for file in files
        for document in read_documents(_text(file, str(file)), str(file), variables)
    ]
    return _merged(documents, str(path))


def read_text(text: str, variables: Mapping[str, str] | None = None) -> Wanted:
    """What a text wants that is in no file, and so names none."""
    documents = read_documents(text, "the text", variables or {})
    return _merged([(document, None) for document in documents], "the text")


def _merged(documents: Sequence[tuple[Located, Path | None]], where: str) -> Wanted:
    world: tuple[str, str] | None = None
    resources: dict[Ref, Resource] = {}
    for located, folder in documents:
        document = _validated(located)
        if document.world is not None:
            at = located.at(("world",))
            if world is not None and world[0] != document.world:
                raise InvalidRequest(
                    f"{at}: world '{document.world}' is another than '{world[0]}' of {world[1]}.",
                    "Apply one world at a time: name its files, or keep each in a folder of its own.",
                )
            world = (document.world, at)
        for resource in _resources(document, located, folder):
            if (other := resources.get(resource.ref)) is not None:
                raise InvalidRequest(
                    f"{resource.at}: {resource.ref} is there already, in {other.at}.", "Remove one of them."
                )
            resources[resource.ref] = resource
    if not documents:
        raise InvalidRequest(
            f"There is nothing in {where}.", "Write for instance `topics:` and a topic below."
        )
    return Wanted(None if world is None else world[0], tuple(resources.values()))


def _resources(document: Document, located: Located, folder: Path | None) -> Iterable[Resource]:
    for section in SECTIONS:
        for name, shape in getattr(document, section).items():
            spec = {} if shape is None else _said(shape)
            at = located.at((section, name))
            if (file := spec.pop("file", None)) is not None:
                field = _TEXTS[section]
                where = located.at((section, name, "file"))
                if field in spec:
                    raise InvalidRequest(f"{where}: '{name}' has {field} and file.", "Keep one of them.")
                spec[field] = _named_text(file, where, folder)
            yield Resource(Ref(section, name), spec, at)


def resource_of(ref: Ref, spec: Mapping[str, Any], at: str = "") -> Resource:
    """A thing that stands in no document; held to the same shapes."""
    if ref.kind not in SECTIONS:
        raise InvalidRequest(
            f"There are no things of kind '{ref.kind}'.", f"There are {', '.join(SECTIONS)}."
        )
    document = _validated(Located({ref.kind: {ref.name: dict(spec)}}, at or str(ref)))
    (found,) = _resources(document, Located({}, at or str(ref)), None)
    return Resource(ref, found.spec, at)


def _said(shape: BaseModel) -> dict[str, Any]:
    # What an export does not say has a value of its own, which would be taken for said.
    unset = isinstance(shape, Export)
    return shape.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=unset)


def _named_text(file: str, where: str, folder: Path | None) -> str:
    if folder is None:
        raise InvalidRequest(f"{where}: no file can be named here.", "Put its text here.")
    return _text(folder / file, f"{where}: {file}")


def _text(file: Path, what: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidRequest(f"{what} cannot be read: {reason}.", "Check the name.") from error


def _validated(located: Located) -> Document:
    if not isinstance(located.content, dict):
        raise InvalidRequest(
            f"{located.at(())}: a document is a mapping.",
            f"Write {', '.join(SECTIONS)} or world, and a colon.",
        )
    try:
        return Document.model_validate(located.content)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        # A name that is not known explains why another one is missing.
        problem = min(problems, key=lambda one: one["type"] != "extra_forbidden")
        path = tuple(problem["loc"])
        where = ".".join(str(part) for part in path)
        if problem["type"] == "extra_forbidden":
            known = _fields_at(path[:-1])
            close = get_close_matches(str(path[-1]), known, 1)
            remedy = f"Did you mean '{close[0]}'?" if close else f"There are {', '.join(known)}."
            raise InvalidRequest(f"{located.at(path)}: nothing is known of '{where}'.", remedy) from error
        message = problem["msg"].removeprefix("Value error, ")
        given = error.errors(include_url=False)[problems.index(problem)]["input"]
        raise InvalidRequest(
            f"{located.at(path)}: {where}: {message}.",
            _remedy(problem["type"], problem.get("ctx", {}), given),
        ) from error


def _remedy(problem: str, context: Mapping[str, Any], given: Any) -> str:
    """What to write instead of a value of the wrong type; never the value, which may be a secret."""
    if problem == "literal_error":
        close = get_close_matches(str(given), _QUOTED.findall(str(context.get("expected", ""))), 1)
        return f"Did you mean '{close[0]}'?" if close else "Write one of them."
    if problem == "string_type" and isinstance(given, int | float | date):
        return "Put it into quotes."
    return _REMEDIES.get(problem, "Write it as the reference has it.")


def _fields_at(path: tuple[str | int, ...]) -> list[str]:
    """The keys that may stand at a place of a document."""
    model: type[BaseModel] | None = Document
    for depth, part in enumerate(path):
        if model is None or depth == 1:
            continue  # the name of a thing
        model = (
            _model_in(model.model_fields[str(part)].annotation) if str(part) in model.model_fields else None
        )
    return [] if model is None else [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation is about: `dict[str, Topic | None]` is about Topic."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        if (found := _model_in(inner)) is not None:
            return found
    return None
