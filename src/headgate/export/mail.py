"""Mails about runs, given to an SMTP server. A run has one Message-ID, however often its mail is sent."""

import html
import smtplib
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

from headgate.config import Smtp
from headgate.errors import ConfigError, OutsideRefused, OutsideUnavailable
from headgate.export.names import content_type

SECONDS = 30.0
PERMANENT = 500
TOO_LARGE = 552
HANGS_UP = 421


@dataclass(frozen=True)
class Letter:
    """A subject, a sentence, figures by name, and files (name, content) or links to them (name, URL)."""

    message_id: str
    subject: str
    opening: str
    figures: Sequence[tuple[str, str]] = ()
    warnings: Sequence[str] = ()
    links: Sequence[tuple[str, str]] = ()
    attachments: Sequence[tuple[str, bytes]] = ()


class PutOff(OutsideUnavailable):
    """The server has not taken the mail for `open_to`, and may later. It has refused `refused` for good;
    all others have it."""

    def __init__(self, open_to: Mapping[str, int], refused: Mapping[str, str]) -> None:
        address, code = next(iter(open_to.items()))
        super().__init__(f"The mail server does not take mail for {address} now ({code}).")
        self.open_to = open_to
        self.refused = refused


def message_id(sender: str, what: str) -> str:
    return f"<headgate-export-{what}@{sender.rpartition('@')[2]}>"


def message_of(letter: Letter, sender: str, to: Sequence[str]) -> EmailMessage:
    """As text, and as HTML."""
    message = EmailMessage()
    message["Message-ID"] = letter.message_id
    message["Date"] = format_datetime(datetime.now(UTC))
    message["From"] = sender
    message["To"] = ", ".join(to)
    message["Subject"] = letter.subject
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(_text(letter))
    message.add_alternative(_html(letter), subtype="html")
    for name, content in letter.attachments:
        main, _, sub = content_type(name).partition("/")
        message.add_attachment(content, maintype=main, subtype=sub, filename=name)
    return message


def _text(letter: Letter) -> str:
    lines = [letter.opening, ""]
    width = max((len(name) for name, _ in letter.figures), default=0)
    lines += [f"{name.ljust(width)}  {value}" for name, value in letter.figures]
    lines += ["", *(f"Note: {warning}." for warning in letter.warnings)] if letter.warnings else []
    lines += ["", *(url for _, url in letter.links)] if letter.links else []
    return "\n".join(lines) + "\n"


def _html(letter: Letter) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>"
        for name, value in letter.figures
    )
    notes = "".join(f"<p>Note: {html.escape(warning)}.</p>" for warning in letter.warnings)
    shown = "".join(
        f'<p><a href="{html.escape(url, quote=True)}">Download {html.escape(name)}</a></p>'
        for name, url in letter.links
    )
    opening = html.escape(letter.opening)
    return f"<html><body><p>{opening}</p><table>{rows}</table>{notes}{shown}</body></html>\n"


class Mailer:
    """Gives mails to the configured server. `secret` has its password."""

    def __init__(self, smtp: Smtp, secret: Callable[[str], str]) -> None:
        self._smtp = smtp
        self._secret = secret

    @property
    def sender(self) -> str:
        if self._smtp.host is None or self._smtp.sender is None:
            raise ConfigError(
                "There is no mail server.", "Name it in the configuration: `export: {smtp: {host, sender}}`."
            )
        return self._smtp.sender

    def send(self, letter: Letter, to: Sequence[str]) -> Mapping[str, str]:
        """What the server has refused for good, by recipient. All others have it, or an error is raised: then
        it may have taken the mail nevertheless, but for OutsideRefused, which is about the mail itself."""
        message = message_of(letter, self.sender, to)
        try:
            with self._connected() as server:
                refused = self._give(server, message, to)
        except smtplib.SMTPAuthenticationError as error:
            raise OutsideUnavailable(
                f"The mail server does not know '{self._smtp.username}' by its password ({error.smtp_code}).",
                f"Check the secret '{self._smtp.secret}' that export.smtp.secret names.",
            ) from error
        except smtplib.SMTPResponseException as error:
            if error.smtp_code == TOO_LARGE or (
                isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= PERMANENT
            ):
                raise OutsideRefused(
                    f"The mail server refuses the mail ({error.smtp_code}): {_words(error.smtp_error)}."
                ) from error
            raise OutsideUnavailable(
                f"The mail server answered {error.smtp_code}: {_words(error.smtp_error)}.",
                "The mail is sent again.",
            ) from error
        except (OSError, smtplib.SMTPException) as error:
            raise OutsideUnavailable(
                f"The mail server at {self._smtp.host}:{self._smtp.port} fails: {type(error).__name__}: "
                f"{str(error)[:200]}.",
                "Check export.smtp in the configuration.",
            ) from error
        return refused

    def _connected(self) -> smtplib.SMTP:
        smtp = self._smtp
        assert smtp.host is not None
        context = ssl.create_default_context(cafile=None if smtp.ca_file is None else str(smtp.ca_file))
        if smtp.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(smtp.host, smtp.port, timeout=SECONDS, context=context)
        else:
            server = smtplib.SMTP(smtp.host, smtp.port, timeout=SECONDS)
        try:
            if smtp.security == "starttls":
                server.starttls(context=context)
            if smtp.username is not None and smtp.secret is not None:
                server.login(smtp.username, self._secret(smtp.secret))
        except BaseException:
            server.close()
            raise
        return server

    def _give(self, server: smtplib.SMTP, message: EmailMessage, to: Sequence[str]) -> Mapping[str, str]:
        try:
            answers = server.send_message(message, self.sender, list(to))
        except smtplib.SMTPRecipientsRefused as error:
            # Nobody has it: a server that hangs up (421) was not asked for the recipients that follow.
            answers = dict.fromkeys(to, (HANGS_UP, b"")) | error.recipients
        later = {address: code for address, (code, _) in answers.items() if code < PERMANENT}
        refused = {
            address: f"{code} {_words(text)}"
            for address, (code, text) in answers.items()
            if address not in later
        }
        if later:
            raise PutOff(later, refused)
        return refused


def _words(text: bytes | str) -> str:
    said = text.decode(errors="replace") if isinstance(text, bytes) else text
    return " ".join(said.split())[:200]


def check_refused(refused: Mapping[str, str], to: Sequence[str]) -> None:
    """Raises where nobody has got the mail."""
    if len(refused) == len(to):
        address, said = next(iter(refused.items()))
        raise OutsideRefused(f"The mail server refuses mail for {address}: {said}.", "Check the address.")
