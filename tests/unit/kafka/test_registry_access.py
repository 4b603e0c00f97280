"""How a registry's address and credentials are told apart."""

from pydantic import SecretStr

from headgate.config import Registry, RegistryAuth
from headgate.kafka.registry import RegistryAccess


def test_a_password_in_a_url_is_taken_out_of_it() -> None:
    found = RegistryAccess.at("https://me:h%40sh@a.example/sr, https://me:h%40sh@b.example/sr")
    assert found.url == "https://a.example/sr,https://b.example/sr"
    assert (found.username, found.password) == ("me", "h@sh")
    assert "h@sh" not in repr(found)
    assert str(found) == found.url
    assert RegistryAccess.at(found) is found
    assert RegistryAccess.of(Registry(url="https://me:h%40sh@a.example/sr")).password == "h@sh"


def test_an_address_alone_asks_for_nothing() -> None:
    assert RegistryAccess.of(Registry(), "http://r/registry") == RegistryAccess("http://r/registry")


def test_no_secret_is_in_its_text() -> None:
    for auth in (
        RegistryAuth(username="me", password=SecretStr("hush")),
        RegistryAuth(token=SecretStr("hush")),
    ):
        found = RegistryAccess.of(Registry(url="http://r", auth=auth))
        assert "hush" not in repr(found) + str(found)
