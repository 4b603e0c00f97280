"""Runs one command, and ends its whole process group when whoever started it is gone.

    python -m headgate.embedded.guard command argument…

It is started as the leader of a group of its own, with a pipe as its standard input. The other end closes
when the supervisor ends, whatever ended it: then the command gets SIGTERM, a few seconds, and SIGKILL for all
of the group. If the guard itself is killed, Linux kills the command.
"""

import ctypes
import os
import select
import signal
import sys
import time

ORPHAN_GRACE = 5.0
LIFELINE = 0
PR_SET_PDEATHSIG = 1


def main(command: list[str]) -> int:
    """The command's exit code; 128 and the signal's number if one ended it."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # What happens is read from the pipe; a handler has to be there for a signal to be written to it.
        signal.signal(number, lambda *_: None)
    child = _start(command)
    while True:
        readable, _, _ = select.select([LIFELINE, woken], [], [])
        numbers = os.read(woken, 64) if woken in readable else b""
        code = _ended(child)
        if code is not None:
            return code
        if {signal.SIGTERM, signal.SIGINT, signal.SIGHUP} & set(numbers):
            os.kill(child, signal.SIGTERM)
        if LIFELINE in readable and not os.read(LIFELINE, 64):
            _end_all(child)


def _start(command: list[str]) -> int:
    guard = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        _die_with(guard)
        # Python ignores it, and what is ignored stays so in the command.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), LIFELINE)
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())
    finally:
        # Never back into the parent's code.
        os._exit(127)


def _die_with(guard: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The guard may have gone before the line above.
        if os.getppid() != guard:
            os._exit(127)


def _ended(child: int) -> int | None:
    found, status = os.waitpid(child, os.WNOHANG)
    if not found:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _end_all(child: int) -> None:
    """SIGTERM to the command, then SIGKILL to the group, this process included."""
    os.kill(child, signal.SIGTERM)
    deadline = time.monotonic() + ORPHAN_GRACE
    while _ended(child) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
