"""Columns that look personal, by their names or by what a sample of them holds. No value is ever repeated."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

SAMPLE_ROWS = 2_000
_NAMES = {
    "a mail address": re.compile(r"e?_?mail(_?addr(ess)?)?", re.IGNORECASE),
    "a phone number": re.compile(r"(tele)?phone(_?(no|nr|number))?|mobile|msisdn", re.IGNORECASE),
    "a person's name": re.compile(
        r"(first|last|full|family|given|sur|maiden)_?name|customer_?name", re.IGNORECASE
    ),
    "an address": re.compile(r"street|(home|postal|delivery)_?address|ip_?addr(ess)?", re.IGNORECASE),
    "a date of birth": re.compile(r"birth_?(day|date)|date_?of_?birth|dob", re.IGNORECASE),
    "a number of a person or an account": re.compile(
        r"iban|ssn|passport(_?(no|nr|number))?|card_?(no|nr|number)|pan|national_?id", re.IGNORECASE
    ),
}
_MAIL = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")
_PHONE = re.compile(r"(\+|00)[1-9][0-9 ()./-]{6,18}[0-9]")
_CARD = re.compile(r"[2-6][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{1,7}|3[47][0-9]{13}")
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}( ?[A-Z0-9]){11,30}")


def by_name(column: str) -> str | None:
    """What a column of this name probably holds. A part of a name counts, as in `customer_email`."""
    for what, pattern in _NAMES.items():
        if re.search(rf"(?:^|_|\b)(?:{pattern.pattern})(?:$|_|\b)", column, re.IGNORECASE):
            return what
    return None


def is_mail(text: str) -> bool:
    return _MAIL.fullmatch(text) is not None


def is_phone(text: str) -> bool:
    digits = sum(letter.isdigit() for letter in text)
    return 8 <= digits <= 15 and _PHONE.fullmatch(text) is not None


def is_card(text: str) -> bool:
    """By the check digit (Luhn)."""
    if _CARD.fullmatch(text) is None:
        return False
    digits = [int(letter) for letter in text if letter.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def is_iban(text: str) -> bool:
    """By the check digits (ISO 13616)."""
    if _IBAN.fullmatch(text) is None:
        return False
    plain = text.replace(" ", "")
    return int("".join(str(int(letter, 36)) for letter in plain[4:] + plain[:4])) % 97 == 1


_CONTENTS: Mapping[str, Callable[[str], bool]] = {
    "mail addresses": is_mail,
    "card numbers": is_card,
    "account numbers (IBAN)": is_iban,
    "phone numbers": is_phone,
}


class Suspicion:
    """Looks at the first rows of the columns that leave unmasked."""

    def __init__(self, columns: Sequence[str], masked: Iterable[str]) -> None:
        hidden = set(masked)
        self._columns = [name for name in columns if name not in hidden]
        self._left = SAMPLE_ROWS
        self._found: dict[str, str] = {
            name: f"column '{name}' looks like {what}, by its name"
            for name in self._columns
            if (what := by_name(name)) is not None
        }

    def look(self, batch: pa.RecordBatch) -> None:
        if self._left <= 0:
            return
        sample = batch.slice(0, self._left)
        self._left -= sample.num_rows
        for name in self._columns:
            array = sample.column(name)
            if name in self._found or not (pa.types.is_string(array.type) or pa.types.is_integer(array.type)):
                continue
            texts = {str(value).strip() for value in array.to_pylist() if value is not None}
            for what, matches in _CONTENTS.items():
                if any(map(matches, texts)):
                    self._found[name] = f"column '{name}' holds what looks like {what}"
                    break

    @property
    def warnings(self) -> list[str]:
        return [self._found[name] for name in self._columns if name in self._found]
