"""Types and names as they are written, and how a parser says no."""

from typing import NoReturn

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    FloatType,
    MapType,
    ShortType,
    StructField,
    StructType,
)
from sqlglot import parser
from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import InvalidRequest
from headgate.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    SqlType,
)

_MAX_DECIMAL = 38
_SIMPLE: dict[str, DataType] = {
    "STRING": STRING,
    "BOOLEAN": BOOLEAN,
    "BYTES": BYTES,
    "TINYINT": ByteType(),
    "SMALLINT": ShortType(),
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "FLOAT": FloatType(),
    "REAL": FloatType(),
    "DOUBLE": DOUBLE,
    "DATE": DATE,
}


def refusal(message: str, at: Token | None) -> InvalidRequest:
    where = f"Line {at.line}, column {at.col}: " if at is not None and at.text else ""
    message = message[0].upper() + message[1:]
    return InvalidRequest(f"{where}{message}.")


class TypeParser(parser.Parser):
    """The part of the parser that reads types and names."""

    def refuse(self, message: str, token: Token | None = None) -> NoReturn:
        raise self.error(message, token)

    def error(self, message: str, token: Token | None = None) -> InvalidRequest:
        return refusal(message, token or self._curr or self._prev)

    def _expect(self, *words: str) -> None:
        if not self._match_text_seq(*words):
            found = self._curr.text if self._curr else "the end"
            self.refuse(f"expected {' '.join(words)}, found '{found}'")

    def sql_type(self) -> SqlType:
        """A type as it stands at this place."""
        if self._curr is None:
            self.refuse("expected a type, found the end")
        token = self._curr
        word = token.text.upper()
        self._advance()
        if word in _SIMPLE:
            if word == "DOUBLE":
                self._match_text_seq("PRECISION")
            return SqlType(_SIMPLE[word])
        match word:
            case "VARCHAR" | "CHAR" | "CHARACTER" | "VARBINARY" | "BINARY":
                length = self._sizes(1)
                kind = BYTES if "BINARY" in word else STRING
                return SqlType(kind, length=length[0] if length else None)
            case "DECIMAL" | "DEC" | "NUMERIC":
                sizes = self._sizes(2) or [10, 0]
                precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
                if not 1 <= precision <= _MAX_DECIMAL or scale > precision:
                    self.refuse(
                        f"DECIMAL({precision}, {scale}) has 1 to {_MAX_DECIMAL} digits, and no more "
                        f"behind the point",
                        token,
                    )
                return SqlType(DecimalType(precision, scale))
            case "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIMESTAMPLTZ":
                return self._timestamp(word)
            case "ARRAY":
                self._expect("<")
                element = self.sql_type().spark
                nullable = self._nullable()
                self._close()
                return SqlType(ArrayType(element, nullable))
            case "MAP":
                self._expect("<")
                key = self.sql_type().spark
                self._nullable()
                self._expect(",")
                value = self.sql_type().spark
                nullable = self._nullable()
                self._close()
                return SqlType(MapType(key, value, nullable))
            case "ROW":
                return SqlType(self._row())
        why = {
            "TIME": "a time of day has no type here; keep it as STRING or INT",
            "MULTISET": "use ARRAY",
            "TIMESTAMP_TZ": "use TIMESTAMP_LTZ: a moment, shown in the session's zone",
        }.get(word, "types are STRING, INT, BIGINT, DOUBLE, DECIMAL(p, s), TIMESTAMP(p), TIMESTAMP_LTZ(p), …")
        raise self.error(f"'{token.text}' is not a type that is known ({why})", token)

    def _timestamp(self, word: str) -> SqlType:
        sizes = self._sizes(1)
        precision = sizes[0] if sizes else 6
        if precision > 9:
            self.refuse(f"{word}({precision}): the precision is 0 to 9")
        local = word != "TIMESTAMP"
        if self._match_text_seq("WITH", "LOCAL", "TIME", "ZONE"):
            local = True
        elif self._match_text_seq("WITH", "TIME", "ZONE"):
            self.refuse("TIMESTAMP WITH TIME ZONE: use TIMESTAMP_LTZ, a moment")
        else:
            self._match_text_seq("WITHOUT", "TIME", "ZONE")
        return SqlType(TIMESTAMP_LTZ if local else TIMESTAMP, precision=precision)

    def _row(self) -> StructType:
        closing = ">" if self._match_text_seq("<") else ")"
        if closing == ")":
            self._expect("(")
        fields: list[StructField] = []
        while True:
            name = self.name_here()
            kind = self.sql_type().spark
            fields.append(StructField(name, kind, self._nullable()))
            if not self._match(TokenType.COMMA):
                break
        if closing == ">":
            self._close()
        else:
            self._match_r_paren()
        return StructType(fields)

    def _nullable(self) -> bool:
        if self._match_text_seq("NOT", "NULL"):
            return False
        self._match_text_seq("NULL")
        return True

    def _close(self) -> None:
        self._expect(">")

    def _sizes(self, most: int) -> list[int]:
        if not self._match(TokenType.L_PAREN):
            return []
        sizes = [self.number_here()]
        while len(sizes) < most and self._match(TokenType.COMMA):
            sizes.append(self.number_here())
        self._match_r_paren()
        return sizes

    def number_here(self) -> int:
        if not self._match(TokenType.NUMBER) or not self._prev.text.isdigit():
            self.refuse("expected a whole number")
        return int(self._prev.text)

    def name_here(self) -> str:
        """A name at this place: a word, or anything in backticks."""
        found = self._parse_id_var(any_token=True)
        if found is None:
            self.refuse("expected a name")
        return str(found.name)
