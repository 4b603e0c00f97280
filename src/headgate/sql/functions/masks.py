"""Masking functions for personal data. Keys are named, never written: `Options.secret` knows them.

A key is a column of its own, put beside the rows just before it is used: so no text of a plan has it, and no
error that quotes a piece of SQL.
"""

import hashlib

from headgate.errors import InvalidRequest
from headgate.sql.functions.table import Function, Session, check, literal_int, literal_text
from headgate.sql.typed import Typed, call
from headgate.sql.types import DATE, STRING, quote

# HMAC (RFC 2104) of SHA-256: blocks of 64 bytes, and the two constants of the pads.
BLOCK = 64
INNER, OUTER = 0x36, 0x5C


def secret_columns(name: str) -> tuple[str, str]:
    """The columns that hold a key's two pads, 64 bytes each."""
    return f"$secret.{name}.inner", f"$secret.{name}.outer"


def pads(key: str) -> tuple[bytes, bytes]:
    """The key, made a block, under each of the constants."""
    raw = key.encode()
    block = (hashlib.sha256(raw).digest() if len(raw) > BLOCK else raw).ljust(BLOCK, b"\0")
    return bytes(b ^ INNER for b in block), bytes(b ^ OUTER for b in block)


def hmac_sql(value: str, name: str) -> str:
    """Hexadecimal digits of HMAC-SHA-256, in Spark's own functions."""
    inner, outer = (quote(column) for column in secret_columns(name))
    digest = f"unhex(sha2(concat({inner}, encode({value}, 'UTF-8')), 256))"
    return f"sha2(concat({outer}, {digest}), 256)"


def _with_key(name: str, args: list[Typed]) -> tuple[Typed, str]:
    value = args[0]
    if value.type != STRING:
        value = Typed(f"CAST({value.sql} AS STRING)", STRING, value.nullable, secrets=value.secrets)
    return value, literal_text(name, 2, args[1])


def _keyed(sql: str, value: Typed, secret: str) -> Typed:
    return Typed(sql, STRING, value.nullable, secrets=value.secrets | {secret})


def _hash(args: list[Typed], _: Session) -> Typed:
    value, secret = _with_key("MASK_HASH", args)
    return _keyed(hmac_sql(value.sql, secret), value, secret)


def _token(args: list[Typed], _: Session) -> Typed:
    value, secret = _with_key("MASK_TOKEN", args)
    length = 16
    if len(args) > 2:
        length = literal_int("MASK_TOKEN", 3, args[2])
    if not 8 <= length <= 43:
        raise InvalidRequest(
            f"MASK_TOKEN has 8 to 43 characters, not {length}.", "Shorter ones would collide."
        )
    salted = f"concat('token:', {value.sql})"
    digits = f"base64(unhex({hmac_sql(salted, secret)}))"
    # Letters, digits, - and _: a token can stand in a file name or an address.
    return _keyed(f"left(translate({digits}, '+/=', '-_'), {length})", value, secret)


def _email(args: list[Typed], _: Session) -> Typed:
    """`a*****e@example.org`: as long as it was, one character of the name at each end."""
    value = check("MASK_EMAIL", "s", args)[0]
    v = value.sql
    name = f"substring_index({v}, '@', -1)"
    local = f"left({v}, char_length({v}) - char_length({name}) - 1)"
    hidden = (
        f"CASE WHEN char_length({local}) <= 2 THEN repeat('*', char_length({local})) ELSE "
        f"concat(left({local}, 1), repeat('*', char_length({local}) - 2), right({local}, 1)) END"
    )
    # What is no address is hidden as a whole.
    sql = (
        f"CASE WHEN instr({v}, '@') > 1 THEN concat({hidden}, '@', {name}) ELSE repeat('*', "
        f"char_length({v})) END"
    )
    return call("{sql}", STRING, [value], sql=sql)


def _phone(args: list[Typed], _: Session) -> Typed:
    """Digits become `*` but for the last two; what stands between them stays."""
    value = check("MASK_PHONE", "s", args)[0]
    sql = "regexp_replace({0}, '[0-9](?=(?:[^0-9]*[0-9]){{2}})', '*')"
    return call(sql, STRING, [value])


def _partial(args: list[Typed], _: Session) -> Typed:
    value = check("MASK_PARTIAL", "s", args[:1])[0]
    front, back = literal_int("MASK_PARTIAL", 2, args[1]), literal_int("MASK_PARTIAL", 3, args[2])
    if front < 0 or back < 0:
        raise InvalidRequest("MASK_PARTIAL leaves 0 or more characters at each end.")
    v = value.sql
    middle = (
        f"regexp_replace(substring({v}, {front + 1}, char_length({v}) - {front + back}), "
        f"'[\\\\p{{L}}\\\\p{{N}}]', '*')"
    )
    end = f", right({v}, {back})" if back else ""
    shown = f"concat(left({v}, {front}), {middle}{end})" if front else f"concat({middle}{end})"
    every = f"regexp_replace({v}, '[\\\\p{{L}}\\\\p{{N}}]', '*')"
    # Too short to hide anything in the middle: all of it is.
    sql = f"CASE WHEN char_length({v}) > {front + back} THEN {shown} ELSE {every} END"
    return call("{sql}", STRING, [value], sql=sql)


def _year(args: list[Typed], _: Session) -> Typed:
    value = check("MASK_YEAR", "t", args)[0]
    return call("CAST(trunc(CAST({0} AS date), 'YEAR') AS date)", DATE, [value])


MASKS = (
    Function(
        "MASK_HASH",
        "MASK_HASH(x, 'secret')",
        "HMAC-SHA-256 under the key that the secret of this name holds, 64 hexadecimal digits: equal "
        "values stay equal, and "
        "nobody without the key can try values out.",
        _hash,
        2,
        2,
    ),
    Function(
        "MASK_TOKEN",
        "MASK_TOKEN(x, 'secret'[, length])",
        "A short token for a value, salted with the secret: 16 letters, digits, `-` and `_`, or as many "
        "as said (8 to 43).",
        _token,
        2,
        3,
    ),
    Function(
        "MASK_EMAIL",
        "MASK_EMAIL(s)",
        "`anneke@example.org` becomes `a****e@example.org`; what is no address is hidden as a whole.",
        _email,
        1,
        1,
    ),
    Function(
        "MASK_PHONE",
        "MASK_PHONE(s)",
        "`+31 6 1234 5678` becomes `+** * **** **78`: digits are hidden but for two, the rest stays.",
        _phone,
        1,
        1,
    ),
    Function(
        "MASK_PARTIAL",
        "MASK_PARTIAL(s, front, back)",
        "Letters and digits hidden but for so many characters at each end; all of them if it is too short.",
        _partial,
        3,
        3,
    ),
    Function("MASK_YEAR", "MASK_YEAR(t)", "The first day of its year, a DATE.", _year, 1, 1),
)
