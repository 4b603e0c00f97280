"""A real SMTP server on loopback: STARTTLS or TLS, a login, and the mails it has taken."""

import ssl
import warnings
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
USER, PASSWORD = "headgate", "a password that only the mail server knows"
SENDER = "exports@headgate.example"


class _Handler:
    """Takes mails, unless it was told what to answer."""

    def __init__(self, server: "MailServer") -> None:
        self._server = server

    async def handle_RCPT(  # noqa: N802 - aiosmtpd calls it so
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self._server.refusals:
            return self._server.refusals[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self._server.busy > 0:
            self._server.busy -= 1
            return "451 try again later"
        content = envelope.content
        assert isinstance(content, bytes)
        if self._server.most_bytes is not None and len(content) > self._server.most_bytes:
            return "552 too large"
        self._server.taken.append((list(envelope.rcpt_tos), content))
        return "250 taken"


class _Controller(Controller):
    """With a login, which is asked for once the line is encrypted."""

    def __init__(self, handler: _Handler, context: ssl.SSLContext, security: str) -> None:
        self._context = context
        self._security = security
        super().__init__(handler, hostname=HOST, port=0, ssl_context=context if security == "tls" else None)

    def factory(self) -> SMTP:
        def check(
            server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
        ) -> AuthResult:
            assert isinstance(data, LoginPassword)
            known = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
            return AuthResult(success=known, handled=False)

        is_starttls = self._security == "starttls"
        with warnings.catch_warnings():
            # aiosmtpd does not know of a line that was encrypted from its first byte.
            warnings.filterwarnings("ignore", "Requiring AUTH while not requiring TLS")
            return SMTP(
                self.handler,
                authenticator=check,
                auth_required=self._security != "none",
                auth_require_tls=is_starttls,
                require_starttls=is_starttls,
                tls_context=self._context if is_starttls else None,
            )

    def _trigger_server(self) -> None:
        """The system has chosen the port: it is known only now."""
        server: Any = self.server
        self.port = server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


class MailServer:
    """Listens as long as the block lasts."""

    def __init__(self, folder: Path, security: str = "starttls") -> None:
        self.security = security
        self.taken: list[tuple[list[str], bytes]] = []
        # What is answered to recipients that are not taken, and how many mails are put off.
        self.refusals: dict[str, str] = {}
        self.busy = 0
        self.most_bytes: int | None = None
        self.certificate, key = make_certificate(folder)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, key)
        self._controller = _Controller(_Handler(self), context, security)

    @property
    def port(self) -> int:
        return int(self._controller.port)

    @property
    def mails(self) -> list[EmailMessage]:
        parsed = [message_from_bytes(content, policy=policy.default) for _, content in self.taken]
        return [mail for mail in parsed if isinstance(mail, EmailMessage)]

    @property
    def environment(self) -> dict[str, str]:
        """The settings by which Headgate sends its mails here."""
        said = {"HOST": HOST, "PORT": str(self.port), "SECURITY": self.security, "SENDER": SENDER}
        if self.security != "none":
            said |= {"USERNAME": USER, "SECRET": "mail", "CA_FILE": str(self.certificate)}
        settings = {f"HEADGATE_EXPORT__SMTP__{name}": value for name, value in said.items()}
        return settings | {"HEADGATE_SECRETS__MAIL": PASSWORD}

    def __enter__(self) -> Self:
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for loopback that signs itself, and its key."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail of tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "mail.pem", folder / "mail.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return files
