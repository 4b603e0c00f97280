"""Locks by name within this process: they spare useless races, correctness is the database's."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


class NamedLocks:
    """Hold several names at once, in an order that cannot deadlock. Names nobody holds take no memory."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextmanager
    def holding(self, *names: object) -> Iterator[None]:
        with ExitStack() as stack:
            for name in sorted({str(name) for name in names}):
                stack.enter_context(self._one(name))
            yield

    @contextmanager
    def _one(self, name: str) -> Iterator[None]:
        with self._guard:
            lock, users = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._locks[name]
                if users == 1:
                    del self._locks[name]
                else:
                    self._locks[name] = (lock, users - 1)
