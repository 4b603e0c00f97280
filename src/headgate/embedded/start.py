"""How the interpreter of a process begins: it loads two thousand modules."""

import gc
from importlib import import_module


def run_main(module: str) -> int:
    """The exit code of the `main` of this module.

    Nobody looks for garbage while it is imported: what is loaded stays, and to look through it over and over
    is a quarter of the import. Nor is it looked at later.
    """
    gc.disable()
    main = import_module(module).main
    gc.freeze()
    gc.enable()
    return int(main())
