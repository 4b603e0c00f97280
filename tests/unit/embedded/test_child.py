"""Back-off and logs of supervised children."""

from pathlib import Path

import pytest

from headgate.embedded import child
from headgate.embedded.child import Child, ChildSpec, Phase, delay_after, rotate, tail


def test_each_wait_is_twice_the_one_before_up_to_half_a_minute() -> None:
    assert [delay_after(n) for n in range(1, 10)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize(("healthy", "deaths"), [(59.0, 4), (61.0, 1)])
def test_a_healthy_stretch_starts_the_count_anew(healthy: float, deaths: int, tmp_path: Path) -> None:
    spec = ChildSpec("engine", lambda _: ["true"], lambda _: True)
    made = Child(spec, tmp_path / "engine.log", deaths=3)
    made.became_ready()
    made.changed_at -= healthy

    made.died()

    assert made.deaths == deaths
    assert made.phase is Phase.WAITING


def test_only_deaths_before_it_was_ever_ready_count_against_the_start(tmp_path: Path) -> None:
    made = Child(ChildSpec("engine", lambda _: ["true"], lambda _: True), tmp_path / "engine.log")
    made.died()
    made.died()
    assert made.early_deaths == 2

    made.became_ready()
    made.died()
    assert made.early_deaths == 0


def test_a_log_that_has_grown_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MAX_LOG_BYTES", 10)
    log = tmp_path / "logs" / "engine.log"
    rotate(log)
    log.write_text("short")
    rotate(log)
    assert log.read_text() == "short"

    for text in ("older, and too long", "newer, and too long"):
        log.write_text(text)
        rotate(log)
        assert not log.exists()

    assert log.with_name("engine.log.1").read_text() == "newer, and too long"


def test_the_tail_is_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    assert tail(log) == ""
    log.write_text("".join(f"line {n}\n" for n in range(10_000)))

    assert tail(log, lines=2) == "line 9998\nline 9999"


def test_a_child_that_died_often_is_started_again() -> None:
    assert delay_after(2_000) == delay_after(20)
