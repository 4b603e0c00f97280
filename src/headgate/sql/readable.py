"""Pieces of Spark SQL, for people: without the marks that make names unlike each other."""

import re

_NAME = re.compile(r"`((?:[^`]|``)+)`")
_MARK = re.compile(r"#\d+(\.\d+)?$")
_SECRET = re.compile(r"^\$secret\.(.+)\.(inner|outer)$")


def readable(sql: str) -> str:
    return _NAME.sub(lambda found: _word(found[1].replace("``", "`")), sql)


def _word(name: str) -> str:
    secret = _SECRET.match(name)
    if secret is not None:
        return f"<secret {secret[1]}>"
    plain = _MARK.sub("", name)
    return plain if re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", plain) else f"`{plain}`"
