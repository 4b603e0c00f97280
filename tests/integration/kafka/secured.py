"""A real broker that wants to know who is there: SASL in all its mechanisms, TLS, and both ways TLS.

Certificates are made anew for each run: a root, an intermediate that signs the client's, and the server's for
127.0.0.1. Tokens come from a server of the tests' own, by HTTPS.
"""

import datetime
import ipaddress
import json
import ssl
import subprocess
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from headgate.config import Kafka, Security
from headgate.embedded.broker import Broker, wait_for_kafka
from headgate.embedded.ports import LOOPBACK, free_port
from headgate.kafka import KafkaAccess

USER = "headgate"
# All that a careless renderer could break: quotes, backslashes, what ends a JAAS entry, and not ASCII.
PASSWORD = "pa\"ss\\wo;rd=' $é"
KEY_PASSWORD = "key hush"
CLIENT_SECRET = 'client "hush" \\;'

WAYS = ("plain", "scram-256", "scram-512", "scram-ssl", "mtls", "mtls-encrypted-key", "mtls-old-key", "oauth")

PROPERTIES = """
listeners=PLAINTEXT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},\
SASL://127.0.0.1:{sasl},SASLSSL://127.0.0.1:{sasl_ssl},MTLS://127.0.0.1:{mtls},OAUTH://127.0.0.1:{oauth}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},\
SASL://127.0.0.1:{sasl},SASLSSL://127.0.0.1:{sasl_ssl},MTLS://127.0.0.1:{mtls},OAUTH://127.0.0.1:{oauth}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,\
SASL:SASL_PLAINTEXT,SASLSSL:SASL_SSL,MTLS:SSL,OAUTH:SASL_SSL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required {user};
listener.name.sasl.scram-sha-256.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.saslssl.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.saslssl.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.oauth.sasl.enabled.mechanisms=OAUTHBEARER
listener.name.oauth.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
listener.name.oauth.oauthbearer.sasl.server.callback.handler.class=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler
listener.name.oauth.sasl.oauthbearer.jwks.endpoint.url={jwks}
sasl.oauthbearer.jwks.endpoint.url={jwks}
sasl.oauthbearer.expected.audience=kafka
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={truststore}
listener.name.mtls.ssl.client.auth=required
"""


class Authority:
    """Who signs certificates, for a day."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root_key, root = self._signed("root", None, None, authority=True)
        self._middle_key, middle = self._signed("middle", root, self._root_key, authority=True)
        server_key, server = self._signed("server", root, self._root_key)
        client_key, client = self._signed(USER, middle, self._middle_key)
        self.ca = self._write("ca.pem", _pem(root))
        self.keystore = self._write("server.pem", _key_pem(server_key), _pem(server))
        self.server_key = self._write("server-key.pem", _key_pem(server_key))
        self.server_certificate = self._write("server-cert.pem", _pem(server))
        # Tools write words around the blocks, and some put the key beside them; neither may matter.
        self.certificate = self._write(
            "client.pem", b"Bag Attributes\n    x: 1\n", _pem(client), _pem(middle)
        )
        self.key = self._write("client-key.pem", _key_pem(client_key))
        self.encrypted_key = self._write("client-key-encrypted.pem", _key_pem(client_key, KEY_PASSWORD))
        self.old_key = self._write(
            "client-key-pkcs1.pem",
            client_key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            ),
        )

    def _write(self, name: str, *parts: bytes) -> Path:
        file = self.folder / name
        file.write_bytes(b"".join(parts))
        return file

    @staticmethod
    def _signed(
        name: str,
        issuer: x509.Certificate | None,
        issuer_key: rsa.RSAPrivateKey | None,
        authority: bool = False,
    ) -> tuple[rsa.RSAPrivateKey, x509.Certificate]:
        key = rsa.generate_private_key(65537, 2048)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if issuer is None else issuer.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(authority, None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        if not authority:
            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOOPBACK))])
            builder = builder.add_extension(names, critical=False).add_extension(
                x509.ExtendedKeyUsage(usage), critical=False
            )
        return key, builder.sign(issuer_key or key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: rsa.RSAPrivateKey, password: str | None = None) -> bytes:
    protection = (
        serialization.NoEncryption()
        if password is None
        else serialization.BestAvailableEncryption(password.encode())
    )
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)


class TokenServer:
    """Gives tokens to who knows the secret (HTTPS), and the key that they are checked with (HTTP)."""

    def __init__(self, authority: Authority) -> None:
        self._key = rsa.generate_private_key(65537, 2048)
        self.given = 0
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(authority.server_certificate, authority.server_key)
        self._tokens = self._server(self._token)
        self._tokens.socket = tls.wrap_socket(self._tokens.socket, server_side=True)
        self._keys = self._server(lambda handler: (200, {"keys": [self._jwk()]}))
        self.token_url = f"https://{LOOPBACK}:{self._tokens.server_port}/token"
        self.jwks_url = f"http://{LOOPBACK}:{self._keys.server_port}/jwks"

    def start(self) -> None:
        for server in (self._tokens, self._keys):
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def close(self) -> None:
        for server in (self._tokens, self._keys):
            server.shutdown()
            server.server_close()

    def _server(self, answer: Callable[[Any], tuple[int, dict[str, Any]]]) -> ThreadingHTTPServer:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, found = answer(self)
                body = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                pass

        return ThreadingHTTPServer((LOOPBACK, 0), Handler)

    def _token(self, handler: Any) -> tuple[int, dict[str, Any]]:
        sent = parse_qs(handler.rfile.read(int(handler.headers["Content-Length"])).decode())
        user, _, secret = b64decode(handler.headers["Authorization"].split()[1]).decode().partition(":")
        if (user, secret) != (USER, CLIENT_SECRET) or sent["grant_type"] != ["client_credentials"]:
            return 401, {"error": "invalid_client", "error_description": "Unknown client."}
        self.given += 1
        now = int(time.time())
        claims = {"sub": USER, "aud": "kafka", "iat": now, "exp": now + 600, "scope": sent["scope"][0]}
        return 200, {"access_token": self._signed(claims), "token_type": "Bearer", "expires_in": 600}

    def _signed(self, claims: dict[str, Any]) -> str:
        header = {"alg": "RS256", "typ": "JWT", "kid": "tests"}
        body = b".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
        return (body + b"." + _encoded(self._key.sign(body, padding.PKCS1v15(), hashes.SHA256()))).decode()

    def _jwk(self) -> dict[str, str]:
        numbers = self._key.public_key().public_numbers()
        sizes = {"n": (numbers.n, 256), "e": (numbers.e, 3)}
        found = {name: _encoded(number.to_bytes(size)).decode() for name, (number, size) in sizes.items()}
        return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "tests", **found}


def _encoded(part: bytes) -> bytes:
    return urlsafe_b64encode(part).rstrip(b"=")


class Secured:
    """The broker's addresses, and an access for each way in."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self.authority = Authority(folder)
        self.tokens = TokenServer(self.authority)
        self.broker = Broker(folder / "broker", free_port(), free_port(), jars)
        self.ports = {name: free_port() for name in ("sasl", "sasl_ssl", "mtls", "oauth")}

    def command(self) -> list[str]:
        java, *arguments = self.broker.prepare()
        quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
        entry = f'user_{USER}="{quoted}"'.replace("\\", "\\\\")
        text = PROPERTIES.format(
            plain=self.broker.port,
            controller=self.broker.controller_port,
            user=entry,
            jwks=self.tokens.jwks_url,
            keystore=self.authority.keystore,
            truststore=self.authority.ca,
            **self.ports,
        )
        # Java's properties are Latin-1, or escaped; of two lines with the same key the last one counts.
        escaped = "".join(c if ord(c) < 128 else f"\\u{ord(c):04x}" for c in text)
        with (self.broker.folder / "broker.properties").open("a") as file:
            file.write(escaped)
        return [java, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.jwks_url}", *arguments]

    def add_users(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            asked: list[Any] = [UserScramCredentialUpsertion(USER, info, PASSWORD.encode())]
            for future in admin.alter_user_scram_credentials(asked).values():
                future.result()

    def security(self, way: str, password: str = PASSWORD) -> dict[str, Any]:
        """What a user would write under `kafka.security`."""
        files = self.authority
        login = {"username": USER, "password": password}
        client = {"ca_file": files.ca, "certificate_file": files.certificate}
        oauth = {
            "token_url": self.tokens.token_url,
            "client_id": USER,
            "client_secret": CLIENT_SECRET if password == PASSWORD else password,
            "scope": "read write",
            "ca_file": files.ca,
        }
        ways: dict[str, dict[str, Any]] = {
            "plain": {"protocol": "sasl_plaintext", "mechanism": "PLAIN", **login},
            "scram-256": {"protocol": "sasl_plaintext", "mechanism": "SCRAM-SHA-256", **login},
            "scram-512": {"protocol": "sasl_plaintext", "mechanism": "SCRAM-SHA-512", **login},
            "scram-ssl": {
                "protocol": "sasl_ssl",
                "mechanism": "SCRAM-SHA-512",
                "ca_file": files.ca,
                **login,
            },
            "mtls": {"protocol": "ssl", "key_file": files.key, **client},
            "mtls-encrypted-key": {
                "protocol": "ssl",
                "key_file": files.encrypted_key,
                "key_password": KEY_PASSWORD,
                **client,
            },
            "mtls-old-key": {"protocol": "ssl", "key_file": files.old_key, **client},
            "oauth": {
                "protocol": "sasl_ssl",
                "mechanism": "OAUTHBEARER",
                "ca_file": files.ca,
                "oauth": oauth,
            },
        }
        return ways[way]

    def access(
        self, way: str, password: str = PASSWORD, options: dict[str, int | str] | None = None
    ) -> KafkaAccess:
        listener = {"plain": "sasl", "oauth": "oauth", "scram-ssl": "sasl_ssl"}.get(way)
        listener = listener or ("mtls" if way.startswith("mtls") else "sasl")
        security = Security.model_validate(self.security(way, password))
        bootstrap = f"{LOOPBACK}:{self.ports[listener]}"
        return KafkaAccess.of(Kafka(bootstrap=bootstrap, security=security, options=options or {}))


@contextmanager
def secured_broker(folder: Path, jars: Path) -> Iterator[Secured]:
    secured = Secured(folder, jars)
    secured.tokens.start()
    process = None
    try:
        with (folder / "broker.log").open("wb") as out:
            process = subprocess.Popen(
                secured.command(), stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
            wait_for_kafka(secured.broker.bootstrap, alive=lambda: process.poll() is None)
            secured.add_users()
            yield secured
    finally:
        if process is not None:
            process.terminate()
            process.wait(timeout=30)
        secured.tokens.close()
