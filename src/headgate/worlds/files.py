"""The worlds' YAML files: in the package of an installed wheel, else in the checkout's `examples`."""

from pathlib import Path

from headgate.errors import NotFound

_PACKAGE = Path(__file__).parents[1]
# The build puts `examples` of the checkout into the package.
FOLDERS = (_PACKAGE / "examples", _PACKAGE.parents[1] / "examples")


def world_file(name: str) -> Path:
    """The YAML file of a world; the schemas it names are beside it."""
    for folder in FOLDERS:
        if (file := folder / f"{name}.yaml").is_file():
            return file
    raise NotFound(f"There is no file of the world '{name}'.", "Is the package whole? Install it again.")
