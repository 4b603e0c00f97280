"""Locks by name."""

import threading
import time

from headgate.catalog.locks import NamedLocks


def test_names_exclude_each_other_and_are_forgotten() -> None:
    locks = NamedLocks()
    inside = 0
    most = 0

    def work(*names: str) -> None:
        nonlocal inside, most
        for _ in range(50):
            with locks.holding(*names):
                inside += 1
                time.sleep(0.0001)  # lets the others in, were there no lock
                most = max(most, inside)
                inside -= 1

    orders = [("a", "b"), ("b", "a"), ("b", "c", "a", "a")]
    threads = [threading.Thread(target=work, args=names) for names in orders * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert not any(thread.is_alive() for thread in threads)
    assert most == 1
    assert locks._locks == {}


def test_other_names_do_not_wait() -> None:
    locks = NamedLocks()
    entered = threading.Event()

    def enter() -> None:
        with locks.holding("b"):
            entered.set()

    with locks.holding("a"):
        thread = threading.Thread(target=enter)
        thread.start()
        assert entered.wait(timeout=10)
    thread.join()
