"""What is put together from settings, before anything is started."""

from pathlib import Path

from headgate.config import load_settings
from headgate.embedded.runtime import Runtime
from headgate.embedded.stack import child_specs, forget_earlier_run, wanted_ports
from headgate.store import Store


def names(data: Path, store: Store, environment: dict[str, str]) -> list[str]:
    settings = load_settings(environment=environment, data=data)
    runtime = Runtime.of(settings, server_port=1, connect_port=2, broker_port=3)
    return [spec.name for spec in child_specs(runtime, store, controller_port=4)]


def test_a_kafka_of_ones_own_takes_the_place_of_the_broker(data: Path, store: Store) -> None:
    own = {"HEADGATE_KAFKA__BOOTSTRAP": "kafka.example:9092"}

    assert names(data, store, {}) == ["broker", "server", "engine", "query", "datagen", "export"]
    assert names(data, store, own) == ["server", "engine", "query", "datagen", "export"]
    assert sorted(wanted_ports(load_settings(environment={}))) == [
        "broker",
        "controller",
        "server",
    ]
    assert sorted(wanted_ports(load_settings(environment=own))) == ["server"]


def test_children_get_their_folder_configuration_and_instance(
    data: Path, store: Store, tmp_path: Path
) -> None:
    config = tmp_path / "headgate.yaml"
    settings = load_settings(environment={}, data=data)
    runtime = Runtime.of(settings, server_port=1, connect_port=2, broker_port=3, config=config)
    specs = {spec.name: spec for spec in child_specs(runtime, store, controller_port=4)}

    command = specs["engine"].command("this-start")

    assert command[1:] == [
        *("-m", "headgate.engine"),
        *("--data", str(data)),
        *("--config", str(config)),
        *("--instance", "this-start"),
    ]


def test_an_engine_is_ready_when_this_start_of_it_says_so(data: Path, store: Store) -> None:
    runtime = Runtime.of(
        load_settings(environment={}, data=data), server_port=1, connect_port=2, broker_port=3
    )
    engine = next(spec for spec in child_specs(runtime, store, controller_port=4) if spec.name == "engine")

    store.beat("engine", "earlier", 1, "ready")
    assert not engine.ready("this-start")
    store.beat("engine", "this-start", 1, "starting")
    assert not engine.ready("this-start")
    store.beat("engine", "this-start", 1, "ready")
    assert engine.ready("this-start")


def test_what_a_killed_run_said_last_is_not_believed(data: Path, store: Store) -> None:
    runtime = Runtime.of(
        load_settings(environment={}, data=data), server_port=1, connect_port=2, broker_port=3
    )
    store.want("query")
    store.beat("query", "killed", 1, "ready")

    forget_earlier_run(child_specs(runtime, store, controller_port=4), store)

    assert (store.process("query").state, store.process("query").wanted) == ("stopped", False)
