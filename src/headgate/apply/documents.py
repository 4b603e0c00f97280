"""YAML with the place of each value: documents as plain data, and in which line each of it stands."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from headgate.apply.shapes import SECRET_FIELDS
from headgate.errors import InvalidRequest

Path = tuple[str | int, ...]
# ${NAME}, ${NAME:-what stands for it}; $${ is ${ itself.
_VARIABLE = re.compile(r"\$\$\{|\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Located:
    """A document's content, and the lines of its values by their paths."""

    content: Any
    file: str
    lines: Mapping[Path, int] = field(default_factory=dict)

    def at(self, path: Path) -> str:
        """`orders.yaml:12`: of a value, or of the nearest thing around it."""
        if not self.lines:
            return self.file
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.file}:{self.lines.get(path, 1)}"


def read_documents(text: str, file: str, variables: Mapping[str, str]) -> list[Located]:
    """The documents of one text. `variables` stand for `${NAME}`, in values and in names."""
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise InvalidRequest(
            f"{file}:{line}: this is no YAML: {error.problem or error.context}.",
            "Check indentation, colons and quotes there.",
        ) from error
    except yaml.YAMLError as error:
        raise InvalidRequest(f"{file}: this is no YAML: {error}.") from error
    return [_Reading(file, variables).document(node) for node in nodes if node is not None]


class _Reading:
    """One document, as it is read."""

    def __init__(self, file: str, variables: Mapping[str, str]) -> None:
        self._file = file
        self._variables = variables
        self._lines: dict[Path, int] = {}
        self._scalar = yaml.SafeLoader("")

    def document(self, node: yaml.Node) -> Located:
        return Located(self._value(node, (), ()), self._file, self._lines)

    def _value(self, node: yaml.Node, path: Path, above: tuple[int, ...]) -> Any:
        self._lines.setdefault(path, node.start_mark.line + 1)
        if id(node) in above:
            raise self._wrong(node, "a value holds itself", "Write it out.")
        above = (*above, id(node))
        match node:
            case yaml.MappingNode():
                return self._mapping(node, path, above)
            case yaml.SequenceNode():
                return [self._value(item, (*path, number), above) for number, item in enumerate(node.value)]
            case yaml.ScalarNode():
                return self._plain(node, path)
        raise self._wrong(
            node, f"'{node.tag}' is not known here", "Write mappings, lists, texts and numbers."
        )

    def _mapping(self, node: yaml.MappingNode, path: Path, above: tuple[int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag.endswith(":merge"):
                raise self._wrong(key_node, "a key is a plain text", "Write it out.")
            key = self._expanded(key_node)
            if key in found:
                raise self._wrong(key_node, f"'{key}' is there twice", "Remove one of them.")
            self._lines[(*path, key)] = key_node.start_mark.line + 1
            if key in SECRET_FIELDS and _has_variable(value_node):
                raise self._wrong(
                    value_node,
                    f"'{key}' names a secret of the configuration, and takes no variable",
                    "Put the secret under `secrets` of the configuration, and write its name here.",
                )
            found[key] = self._value(value_node, (*path, key), above)
        return found

    def _plain(self, node: yaml.ScalarNode, path: Path) -> Any:
        if _VARIABLE.search(node.value):
            text = self._expanded(node)
            if node.style is not None:
                return text
            node = yaml.ScalarNode(_tag(self._scalar, text), text)
        if node.tag.endswith((":timestamp", ":binary")):
            return node.value
        try:
            return self._scalar.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise self._wrong(node, f"'{node.value}' cannot be read", "Put it into quotes.") from error

    def _expanded(self, node: yaml.ScalarNode) -> str:
        return _VARIABLE.sub(self._lookup(node), str(node.value))

    def _lookup(self, node: yaml.Node) -> Callable[[re.Match[str]], str]:
        def value_of(match: re.Match[str]) -> str:
            if match[1] is None:
                return "${"
            name, default, otherwise = match[1].partition(":-")
            if _NAME.fullmatch(name) is None:
                raise self._wrong(
                    node, f"'{match[0]}' names no variable", "Write ${NAME}, or $${ for ${ itself."
                )
            if name in self._variables:
                return self._variables[name]
            if default:
                return str(otherwise)
            raise self._wrong(
                node, f"nothing is known of ${{{name}}}", f"Say --var {name}=…, or set it in the environment."
            )

        return value_of

    def _wrong(self, node: yaml.Node, message: str, remedy: str) -> InvalidRequest:
        return InvalidRequest(f"{self._file}:{node.start_mark.line + 1}: {message}.", remedy)


def _has_variable(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and _VARIABLE.search(node.value) is not None


def _tag(loader: yaml.SafeLoader, text: str) -> str:
    """The type that a text without quotes has."""
    tag: str = loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return tag
