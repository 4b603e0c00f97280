"""Settings of access: what goes together, what is secret, and where secrets may stand."""

from pathlib import Path

import pytest

from headgate.config import PREFIX, Settings, load_settings, secret_keys
from headgate.errors import ConfigError


def variables(**given: str) -> dict[str, str]:
    """`kafka__bootstrap` becomes the variable's name."""
    return {PREFIX + name.upper(): value for name, value in given.items()}


SASL = variables(
    kafka__bootstrap="b:1",
    kafka__security__protocol="sasl_ssl",
    kafka__security__mechanism="SCRAM-SHA-512",
    kafka__security__username="me",
    kafka__security__password="hush",
)


def test_a_secret_comes_from_the_environment_and_is_not_shown() -> None:
    settings = load_settings(environment=SASL)
    found = settings.kafka.security.password
    assert found is not None
    assert found.get_secret_value() == "hush"
    for text in (repr(settings), str(settings), settings.model_dump_json(), repr(settings.model_dump())):
        assert "hush" not in text


@pytest.mark.parametrize("path", list(secret_keys()), ids=".".join)
def test_a_secret_in_the_file_is_refused_and_not_repeated(path: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "headgate.yaml"
    text = "hush-hush"
    for part in reversed(path):
        text = f"{{{part}: {text}}}"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_settings(file, {})
    name = ".".join(path)
    assert f"'{name}'" in str(caught.value)
    assert f"{PREFIX}{'__'.join(path).upper()}" in str(caught.value)
    assert f"{name}_file" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_every_secret_has_a_file_to_stand_in() -> None:
    for *parents, name in secret_keys():
        section: type = Settings
        for parent in parents:
            section = section.model_fields[parent].annotation  # type: ignore[attr-defined]
        assert f"{name}_file" in section.model_fields  # type: ignore[attr-defined]
    assert len(list(secret_keys())) == 7


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kafka__security__mechanism": "GSSAPI"}, "kafka.security.mechanism"),
        ({"kafka__security__protocol": "tls"}, "kafka.security.protocol"),
        ({"kafka__security__protocol": "ssl"}, "protocol ssl takes no login"),
        ({"kafka__security__protocol": "plaintext"}, "protocol plaintext takes no login"),
        ({"kafka__security__password_file": "/x"}, "needs a username and one of password and password_file"),
        ({"kafka__security__oauth__client_id": "x"}, "oauth is for the mechanism OAUTHBEARER"),
        ({"kafka__security__mechanism": "OAUTHBEARER"}, "OAUTHBEARER takes no username"),
        ({"kafka__security__certificate_file": "/x"}, "certificate_file and key_file belong together"),
        ({"kafka__security__key_password": "hush"}, "a key_password needs a key_file"),
        ({"kafka__security__pasword": "hush"}, "Did you mean 'password'?"),
        ({"kafka__bootstrap": None}, "name it in kafka.bootstrap"),
        ({"kafka__security__username": None}, "needs a username"),
        ({"kafka__security__mechanism": None}, "needs a mechanism"),
    ],
)
def test_what_does_not_go_together_is_refused(change: dict[str, str | None], said: str) -> None:
    given = SASL | {PREFIX + name.upper(): value for name, value in change.items()}
    environment = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(ConfigError) as caught:
        load_settings(environment=environment)
    assert said in str(caught.value)
    assert "hush" not in str(caught.value)


def test_tokens_need_their_server_and_their_secret() -> None:
    base = variables(
        kafka__bootstrap="b:1", kafka__security__protocol="sasl_ssl", kafka__security__mechanism="oauthbearer"
    )
    with pytest.raises(ConfigError, match=r"oauth\.token_url and oauth\.client_id"):
        load_settings(environment=base)
    base |= variables(
        kafka__security__oauth__token_url="https://t/token", kafka__security__oauth__client_id="me"
    )
    with pytest.raises(ConfigError, match=r"one of oauth\.client_secret and oauth\.client_secret_file"):
        load_settings(environment=base)
    base |= variables(kafka__security__oauth__client_secret="hush")
    assert load_settings(environment=base).kafka.security.oauth.client_id == "me"
    for url in ("ftp://t", "https://me:hush@t/token"):
        with pytest.raises(ConfigError, match=r"kafka\.security\.oauth\.token_url") as caught:
            load_settings(environment=base | variables(kafka__security__oauth__token_url=url))
        assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("sasl.jaas.config: x", "'sasl.jaas.config' cannot be set. Allowed are client.dns.lookup, client.id"),
        ("ssl.engine.factory.class: x", "cannot be set"),
        ("plugin.library.paths: /x", "cannot be set"),
        ("isolation.level: read_uncommitted", "cannot be set"),
        ("fetch.max.bytes: 10", "'fetch.max.bytes' must be a number from 1048576"),
        ("fetch.max.bytes: -1", "must be a number"),
        ("retry.backoff.ms: soon", "must be a number"),
        ("client.id: 'a b'", "'client.id' cannot have that value"),
        ("client.dns.lookup: no", "'client.dns.lookup' cannot have that value"),
    ],
)
def test_options_are_a_short_list(option: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "headgate.yaml"
    file.write_text(f"kafka: {{bootstrap: 'b:1', options: {{{option}}}}}")
    with pytest.raises(ConfigError) as caught:
        load_settings(file, {})
    assert said in str(caught.value)


def test_options_that_are_allowed(tmp_path: Path) -> None:
    file = tmp_path / "headgate.yaml"
    file.write_text("kafka: {bootstrap: 'b:1', options: {fetch.max.bytes: 2000000, client.id: mine}}")
    assert load_settings(file, {}).kafka.options == {"fetch.max.bytes": 2000000, "client.id": "mine"}
    file.write_text("kafka: {options: {client.id: mine}}")
    with pytest.raises(ConfigError, match=r"name it in kafka\.bootstrap"):
        load_settings(file, {})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"registry__auth__token": "hush"}, "name it in registry.url"),
        ({"registry__url": "http://r", "registry__auth__username": "me"}, "belong together"),
        ({"registry__url": "http://r", "registry__auth__password": "hush"}, "belong together"),
        (
            {
                "registry__url": "http://r",
                "registry__auth__token": "hush",
                "registry__auth__token_file": "/x",
            },
            "give one of",
        ),
        ({"registry__url": "http://me:hush@r", "registry__auth__token": "hush"}, "leave one out"),
        ({"registry__url": "http://r", "registry__key_file": "/x"}, "belong together"),
        ({"registry__url": "http://r", "registry__auth__logical_cluster": "x"}, "go with a token"),
    ],
)
def test_what_a_registry_needs(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(environment=variables(**given))
    assert said in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("public: {host: 0.0.0.0}", "needs certificate_file and key_file"),
        ("public: {host: lake.example, certificate_file: c.pem}", "belong together"),
        ("public: {insecure: true}", "public.host"),
        ("public: {host: 0.0.0.0, certificate_file: c, key_file: k, insecure: true}", "leave one out"),
        ("public: {host: 0.0.0.0, insecure: true, url: 'https://me@lake'}", "public.url"),
        ("public: {host: 0.0.0.0, insecure: true, port: 0}", "public.port"),
        ("auth: {token_lifetime: 1s}", "auth.token_lifetime"),
        ("auth: {oidc: {issuer: 'https://i'}}", "belong together"),
        ("auth: {oidc: {grants: {a: reader}}}", "auth.oidc.issuer"),
        ("auth: {oidc: {issuer: i, audience: a, jwks_url: 'http://i.example/keys'}}", "https://"),
    ],
)
def test_doors_that_make_no_sense(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "headgate.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as found:
        load_settings(file, {})
    assert said in str(found.value)


@pytest.mark.parametrize(
    "text",
    [
        "public: {host: 0.0.0.0, certificate_file: c.pem, key_file: k.pem}",
        "public: {host: 0.0.0.0, insecure: true, url: 'https://lake.example'}",
        "public: {host: 127.0.0.1, port: 8081}",
        "auth: {required: true, token_lifetime: 15m, key_lifetime: 7d}",
        "auth: {oidc: {issuer: i, audience: a, jwks_url: 'https://i/keys', grants: {a: 'reader:local'}}}",
        "auth: {oidc: {issuer: i, audience: a, jwks_url: 'http://127.0.0.1:9/keys'}}",
    ],
)
def test_doors_that_do(tmp_path: Path, text: str) -> None:
    file = tmp_path / "headgate.yaml"
    file.write_text(text)
    load_settings(file, {})
