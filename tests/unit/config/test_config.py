"""Settings: the file, the environment over it, the command line over both."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headgate.config import CLIENT_VARIABLES, Settings, load_settings, parse_duration
from headgate.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "headgate.yaml"


def test_without_anything_there_are_defaults() -> None:
    settings = load_settings(environment={})

    assert (settings.ports.server, settings.ports.broker, settings.ports.connect) == (8080, 9092, 15002)
    assert settings.cluster.name == settings.namespace == "local"
    assert settings.kafka.bootstrap is settings.registry.url is settings.catalog.uri is None
    assert settings.data == Path(".headgate").absolute()


def test_everything_lives_under_the_data_folder(tmp_path: Path) -> None:
    settings = load_settings(environment={}, data=tmp_path)

    assert settings.store_url == f"sqlite:///{tmp_path}/control.db"
    assert settings.catalog_db == tmp_path / "catalog.db"
    assert settings.warehouse == f"file://{tmp_path}/warehouse"


def test_the_environment_wins_over_the_file_and_leaves_the_rest(file: Path) -> None:
    file.write_text("ports: {server: 1111, broker: 2222}\ncluster: {name: mine}\n")

    settings = load_settings(file, {"HEADGATE_PORTS__SERVER": "3333", "HEADGATE_SPARK__MEMORY": "1g"})

    assert (settings.ports.server, settings.ports.broker) == (3333, 2222)
    assert settings.cluster.name == "mine"
    assert settings.spark.memory == "1g"


def test_the_command_line_wins_over_both(file: Path, tmp_path: Path) -> None:
    file.write_text(f"data: {tmp_path / 'file'}\n")

    assert load_settings(file, {}).data == tmp_path / "file"
    assert load_settings(file, {"HEADGATE_DATA": str(tmp_path / "env")}).data == tmp_path / "env"
    assert load_settings(file, {"HEADGATE_DATA": "env"}, tmp_path / "option").data == tmp_path / "option"


def test_what_clients_read_from_the_environment_is_no_setting() -> None:
    assert load_settings(environment=dict.fromkeys(CLIENT_VARIABLES, "x")) == load_settings(environment={})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prots: {server: 1}", "unknown key 'prots'. Did you mean 'ports'?"),
        ("ports: {sever: 1}", "unknown key 'ports.sever'. Did you mean 'server'?"),
        ("ports: {zzz: 1}", "Known here: broker, connect, server."),
    ],
)
def test_an_unknown_key_is_refused_with_a_suggestion(file: Path, text: str, said: str) -> None:
    file.write_text(text)

    with pytest.raises(ConfigError) as failure:
        load_settings(file, {})

    assert said in str(failure.value)
    assert str(file) in str(failure.value)


def test_an_unknown_variable_is_refused_too() -> None:
    with pytest.raises(ConfigError, match=r"the environment.*'ports.sever'.*Did you mean 'server'"):
        load_settings(environment={"HEADGATE_PORTS__SEVER": "1"})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("ports: {server: high}", "ports.server"),
        ("ports: {server: 70000}", "ports.server"),
        ("ports: {server: -1}", "ports.server"),
        ("cluster: {name: 'a b'}", "cluster.name"),
        ("cluster: {name: ''}", "cluster.name"),
        ("engine: {workers: 0}", "engine.workers"),
        ("engine: {tick_seconds: 0}", "engine.tick_seconds"),
        ("kafka: local", "kafka"),
        ("spark: {properties: [a]}", "spark.properties"),
    ],
)
def test_a_value_that_cannot_be_is_named_by_its_path(file: Path, text: str, path: str) -> None:
    file.write_text(text)

    with pytest.raises(ConfigError, match=f"'{path}'"):
        load_settings(file, {})


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}"])
def test_an_empty_file_says_nothing(file: Path, text: str) -> None:
    file.write_text(text)

    assert load_settings(file, {}) == load_settings(environment={})


@pytest.mark.parametrize("text", ["- a\n- b\n", "just words", "a: [1"])
def test_a_file_that_is_no_mapping_is_refused(file: Path, text: str) -> None:
    file.write_text(text)

    with pytest.raises(ConfigError, match=str(file)):
        load_settings(file, {})


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with pytest.raises(ConfigError, match=f"{file}: No such file"):
        load_settings(file, {})


def test_settings_are_frozen() -> None:
    settings = Settings()

    with pytest.raises(ValidationError, match="frozen"):
        settings.ports.server = 1  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        settings.data = Path("elsewhere")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("5m", 300), ("2h", 7200), ("1d", 86400), ("250ms", 0.25), ("7", 7), (" 1.5 s ", 1.5)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "10 parsecs", "-5s", "1e3s", "10s 5m", "∞"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a duration"):
        parse_duration(text)


@given(st.integers(0, 10**6), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_a_duration_is_its_number_times_its_unit(number: int, unit: str) -> None:
    assert parse_duration(f"{number}{unit}") == pytest.approx(number * parse_duration(f"1{unit}"))


def test_jars_are_found_where_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    settings = load_settings(environment={"HEADGATE_JARS": str(tmp_path / "link")})
    assert settings.jars_folder == (tmp_path / "real").resolve()
