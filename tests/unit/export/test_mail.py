"""Mails as a real server gets them: over TLS, after a login, with what it refuses."""

from pathlib import Path

import pytest

from headgate.config import Smtp, load_settings
from headgate.errors import ConfigError, OutsideRefused, OutsideUnavailable
from headgate.export.mail import Letter, Mailer, PutOff
from tests.support.mails import PASSWORD, SENDER, MailServer

TO = ["a@example.org", "b@example.org"]
LETTER = Letter(
    "<headgate-export-1@headgate.example>",
    "Export sales: ünïcode",
    "A file is there & <safe>.",
    [("rows", "12")],
    ["column 'x' looks like a mail address, by its name"],
    [("a.csv", "https://example.org/exports/files/x?a=1&b=2")],
)


def smtp_of(server: MailServer) -> Smtp:
    return load_settings(environment=server.environment).export.smtp


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_mail_arrives_encrypted_and_after_a_login(tmp_path: Path, security: str) -> None:
    name, content = "sales_2026.csv.gz", b"\x1f\x8b packed"
    with MailServer(tmp_path, security) as server:
        letter = Letter(**{**vars(LETTER), "attachments": [(name, content)]})
        assert Mailer(smtp_of(server), lambda _: PASSWORD).send(letter, TO) == {}
        ((recipients, _),) = server.taken
        (mail,) = server.mails
    assert recipients == TO
    assert (mail["Message-ID"], mail["From"], mail["To"]) == (LETTER.message_id, SENDER, ", ".join(TO))
    assert mail["Subject"] == LETTER.subject
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    assert "rows  12" in text.get_content()
    assert "Note: column 'x'" in text.get_content()
    assert "&amp; &lt;safe&gt;" in html.get_content()
    assert "x?a=1&amp;b=2" in html.get_content()
    (attachment,) = mail.iter_attachments()
    assert (attachment.get_filename(), attachment.get_content_type()) == (name, "application/gzip")
    assert attachment.get_content() == content


def test_a_wrong_password_is_an_error_that_does_not_repeat_it(tmp_path: Path) -> None:
    with MailServer(tmp_path) as server:
        with pytest.raises(OutsideUnavailable, match="does not know 'headgate'") as raised:
            Mailer(smtp_of(server), lambda _: "wrong-password").send(LETTER, TO)
        assert server.taken == []
    assert "wrong-password" not in str(raised.value)


def test_a_server_that_nobody_has_vouched_for_gets_no_password(tmp_path: Path) -> None:
    with MailServer(tmp_path / "real") as server, MailServer(tmp_path / "other") as other:
        settings = smtp_of(server).model_copy(update={"port": other.port})
        with pytest.raises(OutsideUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            Mailer(settings, lambda _: PASSWORD).send(LETTER, TO)
        assert other.taken == []


def test_who_is_refused_for_good_is_named_and_the_others_get_it(tmp_path: Path) -> None:
    with MailServer(tmp_path) as server:
        server.refusals = {TO[0]: "550 nobody here"}
        refused = Mailer(smtp_of(server), lambda _: PASSWORD).send(LETTER, TO)
        assert refused == {TO[0]: "550 nobody here"}
        assert [recipients for recipients, _ in server.taken] == [[TO[1]]]
        # Put off for one: the other has it, and no word of it is lost.
        server.refusals = {TO[0]: "450 greylisted"}
        with pytest.raises(PutOff, match=f"for {TO[0]} now") as raised:
            Mailer(smtp_of(server), lambda _: PASSWORD).send(LETTER, TO)
        assert (raised.value.open_to, raised.value.refused) == ({TO[0]: 450}, {})
        assert [recipients for recipients, _ in server.taken] == [[TO[1]], [TO[1]]]
        server.refusals = dict.fromkeys(TO, "450 later")
        with pytest.raises(OutsideUnavailable, match="now"):
            Mailer(smtp_of(server), lambda _: PASSWORD).send(LETTER, TO)


def test_a_mail_that_is_put_off_is_an_error(tmp_path: Path) -> None:
    with MailServer(tmp_path) as server:
        server.busy = 1
        mailer = Mailer(smtp_of(server), lambda _: PASSWORD)
        with pytest.raises(OutsideUnavailable, match="451"):
            mailer.send(LETTER, TO)
        assert mailer.send(LETTER, TO) == {}
        assert len(server.taken) == 1


def test_a_mail_that_is_refused_itself_is_told_from_one_that_is_put_off(tmp_path: Path) -> None:
    with MailServer(tmp_path) as server:
        server.most_bytes = 100
        with pytest.raises(OutsideRefused, match="552"):
            Mailer(smtp_of(server), lambda _: PASSWORD).send(LETTER, TO)


def test_a_server_that_hangs_up_at_one_recipient_has_taken_the_mail_for_none(tmp_path: Path) -> None:
    with MailServer(tmp_path) as server:
        server.refusals = {TO[0]: "421 too many mails"}
        with pytest.raises(PutOff) as raised:
            Mailer(smtp_of(server), lambda _: PASSWORD).send(LETTER, TO)
        assert (set(raised.value.open_to), raised.value.refused, server.taken) == (set(TO), {}, [])


def test_without_a_server_the_setting_is_named() -> None:
    with pytest.raises(ConfigError, match="no mail server"):
        Mailer(Smtp(), lambda _: "").send(LETTER, TO)
