"""Functions of strings and bytes."""

from pyspark.sql.types import ArrayType, MapType

from headgate.sql.functions.table import Function, Session, check, named, simple
from headgate.sql.typed import Typed, call
from headgate.sql.types import BOOLEAN, BYTES, INT, STRING


def _substring(args: list[Typed], _: Session) -> Typed:
    given = check("SUBSTRING", "sii", args)
    s, start = given[0], given[1]
    length = given[2] if len(given) > 2 else None
    piece = f"substring({s.sql}, {start.sql}" + (f", {length.sql})" if length else ")")
    cases = []
    if length is not None and not (length.known and isinstance(length.literal, int) and length.literal >= 0):
        cases.append(f"WHEN {length.sql} < 0 THEN NULL")
    if not (start.known and isinstance(start.literal, int) and start.literal >= 0):
        cases.append(f"WHEN {start.sql} < 0 AND abs({start.sql}) > char_length({s.sql}) THEN ''")
    sql = f"CASE {' '.join(cases)} ELSE {piece} END" if cases else piece
    return call("{sql}", STRING, given, nullable=True if cases else None, sql=sql)


def _trim(args: list[Typed], _: Session) -> Typed:
    side, given = str(args[0].literal), check("TRIM", "ss", args[1:])
    what = {"BOTH": "btrim({1}, {0})", "LEADING": "ltrim({0}, {1})", "TRAILING": "rtrim({0}, {1})"}[side]
    return call(what, STRING, given)


def _concat(args: list[Typed], _: Session) -> Typed:
    given = check("CONCAT", "s" * len(args), args)
    return call(
        f"concat({', '.join(a.sql for a in given)})".replace("{", "{{").replace("}", "}}"), STRING, given
    )


def _concat_ws(args: list[Typed], _: Session) -> Typed:
    given = check("CONCAT_WS", "s" * len(args), args)
    inner = ", ".join(a.sql for a in given)
    return call("{inner}", STRING, given, given[0].nullable, inner=f"concat_ws({inner})")


def _regexp_extract(args: list[Typed], _: Session) -> Typed:
    given = check("REGEXP_EXTRACT", "ssi", args)
    group = given[2].sql if len(given) > 2 else "0"
    return call(
        "CASE WHEN {0} RLIKE {1} THEN regexp_extract({0}, {1}, {group}) END", STRING, given, True, group=group
    )


def _pad(name: str) -> Function:
    def rule(args: list[Typed], _: Session) -> Typed:
        given = check(name, "sis", args)
        return call(f"CASE WHEN {{1}} >= 0 THEN {name.lower()}({{0}}, {{1}}, {{2}}) END", STRING, given, True)

    side = "front" if name == "LPAD" else "end"
    return Function(
        name,
        f"{name}(s, n, pad)",
        f"`s` made `n` characters long with `pad` at its {side}, or cut; NULL if `n` is negative.",
        rule,
        3,
        3,
    )


SUBSTRING = Function(
    "SUBSTRING",
    "SUBSTRING(s, start[, length])",
    "From `start`, 1 being the first character; negative counts from the end. Also `SUBSTRING(s FROM a "
    "FOR b)`. "
    "Empty if `start` is outside, NULL if `length` is negative.",
    _substring,
    2,
    3,
)
CHAR_LENGTH = simple("CHAR_LENGTH", "CHAR_LENGTH(s)", "Characters in `s`.", "s", INT, "char_length({0})")

STRINGS = (
    simple("UPPER", "UPPER(s)", "Capitals.", "s", STRING, "upper({0})"),
    simple("LOWER", "LOWER(s)", "Small letters.", "s", STRING, "lower({0})"),
    CHAR_LENGTH,
    named(CHAR_LENGTH, "CHARACTER_LENGTH"),
    SUBSTRING,
    named(SUBSTRING, "SUBSTR"),
    simple(
        "LEFT",
        "LEFT(s, n)",
        "The first `n` characters; empty if `n` is negative.",
        "si",
        STRING,
        "left({0}, {1})",
    ),
    simple("RIGHT", "RIGHT(s, n)", "The last `n` characters.", "si", STRING, "right({0}, {1})"),
    Function(
        "TRIM",
        "TRIM([BOTH | LEADING | TRAILING] [what FROM] s)",
        "Without the blanks, or the characters of `what`, at its ends.",
        _trim,
        3,
        3,
    ),
    simple(
        "LTRIM",
        "LTRIM(s[, what])",
        "Without blanks at its front.",
        "ss",
        STRING,
        "ltrim({0}) | ltrim({1}, {0})",
        1,
    ),
    simple(
        "RTRIM",
        "RTRIM(s[, what])",
        "Without blanks at its end.",
        "ss",
        STRING,
        "rtrim({0}) | rtrim({1}, {0})",
        1,
    ),
    simple(
        "BTRIM",
        "BTRIM(s[, what])",
        "Without blanks at both ends.",
        "ss",
        STRING,
        "btrim({0}) | btrim({0}, {1})",
        1,
    ),
    Function(
        "CONCAT", "CONCAT(s, …)", "One after the other; NULL if one is. The same as `||`.", _concat, 1, None
    ),
    Function(
        "CONCAT_WS",
        "CONCAT_WS(separator, s, …)",
        "With the separator between; NULLs are left out.",
        _concat_ws,
        2,
        None,
    ),
    simple(
        "REPLACE", "REPLACE(s, old, new)", "Every `old` a `new`.", "sss", STRING, "replace({0}, {1}, {2})"
    ),
    simple(
        "REGEXP_REPLACE",
        "REGEXP_REPLACE(s, pattern, new)",
        "Every match of a Java pattern replaced.",
        "sss",
        STRING,
        "regexp_replace({0}, {1}, {2})",
    ),
    Function(
        "REGEXP_EXTRACT",
        "REGEXP_EXTRACT(s, pattern[, group])",
        "The first match, or a group of it; 0, the default, is the whole. NULL without a match.",
        _regexp_extract,
        2,
        3,
    ),
    simple(
        "REGEXP",
        "REGEXP(s, pattern)",
        "Whether a Java pattern is found in `s`.",
        "ss",
        BOOLEAN,
        "({0} RLIKE {1})",
    ),
    simple(
        "POSITION",
        "POSITION(a IN s)",
        "Where `a` begins in `s`; 0 if nowhere.",
        "ss",
        INT,
        "locate({0}, {1})",
    ),
    simple(
        "LOCATE",
        "LOCATE(a, s[, start])",
        "Where `a` begins in `s`, looked for from `start`; 0 if nowhere.",
        "ssi",
        INT,
        "locate({0}, {1}) | locate({0}, {1}, {2})",
        1,
    ),
    simple("INSTR", "INSTR(s, a)", "Where `a` begins in `s`; 0 if nowhere.", "ss", INT, "instr({0}, {1})"),
    _pad("LPAD"),
    _pad("RPAD"),
    simple("REPEAT", "REPEAT(s, n)", "`s` so many times.", "si", STRING, "repeat({0}, {1})"),
    simple("REVERSE", "REVERSE(s)", "From the end to the front.", "s", STRING, "reverse({0})"),
    simple(
        "SPLIT_INDEX",
        "SPLIT_INDEX(s, separator, n)",
        "The part number `n` of `s`, 0 being the first; NULL if there is none.",
        "ssi",
        STRING,
        "CASE WHEN {2} >= 0 THEN get(split({0}, concat('\\\\Q', {1}, '\\\\E')), {2}) END",
        nullable=True,
    ),
    simple(
        "SPLIT",
        "SPLIT(s, separator)",
        "The parts of `s` as an array.",
        "ss",
        ArrayType(STRING),
        "split({0}, concat('\\\\Q', {1}, '\\\\E'))",
    ),
    simple(
        "STR_TO_MAP",
        "STR_TO_MAP(s[, between pairs, in pairs])",
        "Pairs as a map; by default `a=1,b=2`.",
        "sss",
        MapType(STRING, STRING),
        "str_to_map({0}, ',', '=') | str_to_map({0}, {1}, '=') | str_to_map({0}, {1}, {2})",
        2,
    ),
    simple(
        "STARTSWITH",
        "STARTSWITH(s, a)",
        "Whether `s` begins with `a`.",
        "ss",
        BOOLEAN,
        "startswith({0}, {1})",
    ),
    simple("ENDSWITH", "ENDSWITH(s, a)", "Whether `s` ends with `a`.", "ss", BOOLEAN, "endswith({0}, {1})"),
    simple(
        "TRANSLATE",
        "TRANSLATE(s, from, to)",
        "Characters replaced one by one.",
        "sss",
        STRING,
        "translate({0}, {1}, {2})",
    ),
    simple(
        "ASCII",
        "ASCII(s)",
        "The number of the first character; 0 of an empty string.",
        "s",
        INT,
        "ascii({0})",
    ),
    simple("CHR", "CHR(n)", "The character of this number.", "i", STRING, "chr({0})"),
    simple(
        "MD5",
        "MD5(s)",
        "Hash, 32 hexadecimal digits. It hides nothing: see `MASK_HASH`.",
        "s",
        STRING,
        "md5({0})",
    ),
    simple("SHA1", "SHA1(s)", "Hash, 40 hexadecimal digits.", "s", STRING, "sha1({0})"),
    simple("SHA256", "SHA256(s)", "Hash, 64 hexadecimal digits.", "s", STRING, "sha2({0}, 256)"),
    simple("SHA512", "SHA512(s)", "Hash, 128 hexadecimal digits.", "s", STRING, "sha2({0}, 512)"),
    simple(
        "TO_BASE64",
        "TO_BASE64(s)",
        "Its UTF-8 bytes in base 64.",
        "s",
        STRING,
        "base64(encode({0}, 'UTF-8'))",
    ),
    simple(
        "FROM_BASE64",
        "FROM_BASE64(s)",
        "The text whose bytes in base 64 these are.",
        "s",
        STRING,
        "decode(unbase64({0}), 'UTF-8')",
    ),
    simple("ENCODE", "ENCODE(s, charset)", "The bytes of `s`.", "ss", BYTES, "encode({0}, {1})"),
    simple("DECODE", "DECODE(b, charset)", "The text of bytes.", "ys", STRING, "decode({0}, {1})"),
)
