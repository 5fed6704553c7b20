"""Tests that look from another process."""

import os
import signal
import traceback

from skfairdp.privacy import NoiseSource

__all__ = ["die_at_the_first_noise", "ended", "in_child"]


def ended(function, patience=60):
    """How a forked process ends that runs a function: 1, or minus the signal that killed it."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(patience)
        try:
            function()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def in_child(function, patience=20):
    """Run a function in a forked process that is killed if it hangs; a string comes back."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(patience)
        try:
            os.write(writing, str(function()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    answer = b""
    while block := os.read(reading, 4096):
        answer += block
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    assert not os.WIFSIGNALED(status), "the child hung"
    return answer.decode()


def die_at_the_first_noise():
    """From now on this process is killed as soon as noise was drawn, which is paid for by then."""
    release = NoiseSource.release

    def dies_after(*args, **kwargs):
        release(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    NoiseSource.release = dies_after
