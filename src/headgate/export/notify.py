"""Those who wait for a run are told: that its file is there, or that it has failed.

A mail is sent at least once to each recipient. What a server has taken is written down at once; where that
record was lost, the same mail is sent again under the same Message-ID.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from headgate.errors import HeadgateError, OutsideRefused
from headgate.export import outlets
from headgate.export.definition import ExportOptions, Mail
from headgate.export.files import PARTS, files_of, name_in
from headgate.export.links import Links
from headgate.export.mail import Letter, Mailer, PutOff, message_id
from headgate.export.manifest import moment
from headgate.export.webhook import post
from headgate.failpoints import failpoint
from headgate.store import RunRecord

SENT = "sent"
WEBHOOK, APPRISE = "webhook", "apprise"
TOLD, TOLD_FAILURE = "told", "told_failure"
# More files than that are linked to.
MOST_ATTACHED = 20
Record = Callable[[], None]


class Notifier:
    """`secret` has the keys of webhooks, `link_lifetime` is in seconds; `content` reads a run's file."""

    def __init__(
        self,
        mailer: Mailer,
        links: Links,
        secret: Callable[[str], str],
        link_lifetime: float,
        content: Callable[[ExportOptions, str], bytes],
    ) -> None:
        self._mailer = mailer
        self._links = links
        self._secret = secret
        self._link_lifetime = link_lifetime
        self._content = content

    def tell_written(
        self, run: RunRecord, options: ExportOptions, detail: dict[str, Any], record: Record
    ) -> None:
        """`record` writes `detail` down, after each who was told."""
        told = detail.setdefault(TOLD, {})
        name = _named(detail)

        def announce() -> None:
            lines = [
                f"The export {run.export} has made {name}, {detail['rows']} rows.",
                *(f"Note: {warning}." for warning in detail["warnings"]),
                *(url for _, url in self._links_of(run, detail)),
            ]
            self._announce(options, f"Export {run.export}: {name}", lines, told, record)

        _each(
            lambda: self._mail_written(run, options, detail, told, record),
            lambda: self._post(run, options, "written", detail, told, record),
            announce,
        )

    def tell_failed(
        self, run: RunRecord, options: ExportOptions, reason: str, detail: dict[str, Any], record: Record
    ) -> None:
        told = detail.setdefault(TOLD_FAILURE, {})
        title = f"Export {run.export} has failed"
        about = [*_about(run, options), ("reason", reason)]

        def mail() -> None:
            if open_to := open_failure_mails(options, detail):
                letter = Letter(
                    message_id(self._mailer.sender, f"{run.id}.failed"),
                    title,
                    f"A run of the export {run.export} has failed, and is not tried again.",
                    about,
                )
                self._mail(letter, open_to, told, record)

        lines = [f"{name}: {value}" for name, value in about]
        _each(
            mail,
            lambda: self._post(run, options, "failed", {**detail, "reason": reason}, told, record),
            lambda: self._announce(options, title, lines, told, record),
        )

    def test(self, name: str, to: Sequence[str], token: str) -> Mapping[str, str]:
        """A mail that says that mails arrive; what was refused, by recipient."""
        letter = Letter(
            message_id(self._mailer.sender, f"test.{token}"),
            f"Test of the export {name}",
            f"This is a test of the export {name}: mails of Headgate arrive here. No file belongs to it.",
        )
        return self._mailer.send(letter, to)

    def _mail_written(
        self,
        run: RunRecord,
        options: ExportOptions,
        detail: dict[str, Any],
        told: dict[str, str],
        record: Record,
    ) -> None:
        mail, open_to = options.mail, open_mails(options, detail)
        if mail is None or not open_to:
            return
        letter = self._written_letter(run, options, mail, detail)
        detail["message_id"] = letter.message_id
        try:
            self._mail(letter, open_to, told, record)
        except OutsideRefused:
            # A mail that is too large, or whose file the server does not like, has a link instead.
            linked = self._written_letter(run, options, mail, detail, may_attach=False)
            self._mail(linked, open_to, told, record)

    def _mail(self, letter: Letter, to: Sequence[str], told: dict[str, str], record: Record) -> None:
        put_off: PutOff | None = None
        try:
            refused = self._mailer.send(letter, to)
        except PutOff as error:
            put_off, refused = error, error.refused
        except OutsideRefused as error:
            if letter.attachments:
                raise
            # The mail itself, whenever it is sent.
            refused = dict.fromkeys(to, error.message)
        failpoint("export-mailed")
        answered = [address for address in to if put_off is None or address not in put_off.open_to]
        told |= {
            address: f"refused: {refused[address]}" if address in refused else SENT for address in answered
        }
        if answered:
            record()
        failpoint("export-told")
        if put_off is not None:
            raise put_off

    def _post(
        self,
        run: RunRecord,
        options: ExportOptions,
        event: str,
        detail: Mapping[str, Any],
        told: dict[str, str],
        record: Record,
    ) -> None:
        hook = options.webhook
        if hook is None or WEBHOOK in told:
            return
        zone = ZoneInfo(options.zone)
        figures = ("rows", "bytes", "sha256", "warnings", "reason")
        content = {
            "event": event,
            "export": run.export,
            "run": run.id,
            "from": moment(run.period_start, zone),
            "to": moment(run.period_end, zone),
            **{name: detail[name] for name in figures if name in detail},
        }
        if event == "written":
            links = self._links_of(run, detail)
            content["file"], content["link"] = links[0]
            if PARTS in detail:
                content[PARTS] = [
                    {"file": name, "link": url, **{key: part[key] for key in ("rows", "bytes", "sha256")}}
                    for (name, url), part in zip(links, files_of(detail), strict=True)
                ]
        post(hook.url, self._secret(hook.secret), f"{run.id}.{event}", content)
        told[WEBHOOK] = SENT
        record()

    def _announce(
        self, options: ExportOptions, title: str, lines: Sequence[str], told: dict[str, str], record: Record
    ) -> None:
        for name in open_outlets(options, told):
            outlets.send(name, self._secret(name), title, "\n".join(lines))
            told[f"{APPRISE} {name}"] = SENT
            record()

    def _written_letter(
        self,
        run: RunRecord,
        options: ExportOptions,
        mail: Mail,
        detail: Mapping[str, Any],
        may_attach: bool = True,
    ) -> Letter:
        name, files = _named(detail), files_of(detail)
        is_attached = may_attach and detail["bytes"] <= mail.attach_up_to and len(files) <= MOST_ATTACHED
        figures = [
            *_about(run, options),
            ("file", name),
            ("rows", f"{detail['rows']}"),
            ("bytes", f"{detail['bytes']}"),
            *((("SHA-256", str(files[0]["sha256"])),) if len(files) == 1 else ()),
        ]
        if options.masks:
            figures.append(("masked", ", ".join(sorted(options.masks))))
        what = "A file" if len(files) == 1 else f"{len(files)} files"
        return Letter(
            message_id(self._mailer.sender, run.id),
            mail.subject or f"Export {run.export}: {name}",
            f"{what} of the export {run.export} {'is' if len(files) == 1 else 'are'} there"
            f"{', and attached' if is_attached else ''}.",
            figures,
            detail["warnings"],
            () if is_attached else self._links_of(run, detail),
            [(name_in(file), self._content(options, str(file["file"]))) for file in files]
            if is_attached
            else (),
        )

    def _links_of(self, run: RunRecord, detail: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The name of each file, and a link to it."""
        return [
            (name_in(file), self._links.make(run.id, self._link_lifetime, part))
            for part, file in enumerate(files_of(detail), 1)
        ]


def _named(detail: Mapping[str, Any]) -> str:
    """The file by its name, or how many there are, with the first."""
    files = files_of(detail)
    first = name_in(files[0])
    return first if len(files) == 1 else f"{len(files)} files, from {first}"


def open_mails(options: ExportOptions, detail: Mapping[str, Any]) -> list[str]:
    """The recipients that have not heard of a file yet."""
    to = options.mail.to if options.mail is not None else []
    return [address for address in to if address not in detail.get(TOLD, {})]


def open_failure_mails(options: ExportOptions, detail: Mapping[str, Any]) -> list[str]:
    """The recipients that have not heard of a failure yet."""
    to = options.mail.to if options.mail is not None and options.mail.failures else []
    return [address for address in to if address not in detail.get(TOLD_FAILURE, {})]


def _each(*steps: Callable[[], None]) -> None:
    """All of them, whichever fail; then the first failure."""
    errors: list[HeadgateError] = []
    for step in steps:
        try:
            step()
        except HeadgateError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def open_outlets(options: ExportOptions, told: Mapping[str, str]) -> list[str]:
    """The services that do not know yet."""
    return [name for name in options.apprise if f"{APPRISE} {name}" not in told]


def _about(run: RunRecord, options: ExportOptions) -> list[tuple[str, str]]:
    zone = ZoneInfo(options.zone)
    start, end = moment(run.period_start, zone), moment(run.period_end, zone)
    return [("export", run.export), ("run", run.id), ("from", start), ("to", f"{end} (not in it)")]
