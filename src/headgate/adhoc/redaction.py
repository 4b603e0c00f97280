"""SQL and errors as the query history keeps them: without secrets, and without values of rows."""

import re
from collections.abc import Iterator, Sequence

from sqlglot import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import HeadgateError

HIDDEN = "'…'"
# Functions whose arguments hold keys.
_TAKES_KEY = frozenset({"aes_encrypt", "aes_decrypt", "try_aes_decrypt"})
# Tokens and keys as they look wherever they stand: a bearer's, signed ones, AWS's, what follows `secret=`.
_SECRETS = re.compile(
    r"(?i:bearer\s+)[\w.~+/=-]+|eyJ[\w-]+\.[\w-]+\.[\w-]+|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|(?i:(?:password|passwd|secret|token|api_?key)\s*[=:]\s*)[^\s'\",;]+"
)
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")


def redact_sql(text: str) -> str:
    """The text with `…` in the place of tokens, and of strings that functions take for keys."""
    for start, end in reversed(list(_keys(text))):
        text = text[:start] + HIDDEN + text[end:]
    return _SECRETS.sub("…", text)


def _keys(text: str) -> Iterator[tuple[int, int]]:
    try:
        tokens = Dialect.get_or_raise("spark").tokenize(text)
    except TokenError:
        # A quote that is not closed: nobody can tell where a string ends.
        if any(name in text.casefold() for name in _TAKES_KEY):
            yield 0, len(text)
        return
    depth = 0
    for place, token in enumerate(tokens):
        if depth:
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
            if token.token_type in (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING):
                yield token.start, token.end + 1
        elif _calls_for_key(tokens, place):
            depth = 1


def _calls_for_key(tokens: Sequence[Token], place: int) -> bool:
    return (
        place > 0
        and tokens[place].token_type == TokenType.L_PAREN
        and tokens[place - 1].text.casefold() in _TAKES_KEY
    )


def error_text(error: Exception, shown: Exception) -> str:
    """An error without values of rows: our own words, or the name of Spark's condition.

    `shown` is what the reader was told, which may name a value that could not be cast.
    """
    if isinstance(error, HeadgateError):
        return error.message
    condition = condition_of(str(shown))
    return f"{type(shown).__name__}: {condition}" if condition else type(shown).__name__


def condition_of(text: str) -> str | None:
    """The name of the condition that Spark's words begin with."""
    found = _CONDITION.search(text)
    return None if found is None else found.group(1)
