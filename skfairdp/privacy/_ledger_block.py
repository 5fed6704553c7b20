"""The ledger of a ``with`` block: what is fitted inside counts on it, in this process and in joblib's workers."""

import contextlib
import threading
import weakref
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from joblib.parallel import BACKENDS, register_parallel_backend

from skfairdp.exceptions import LedgerError

if TYPE_CHECKING:
    from skfairdp.privacy._ledger import PrivacyLedger


class Uncharged:
    """In the place of a ledger: of a fit inside of something that has paid for it already."""

    def charge(self, event: Any, **guarantee: Any) -> None:
        """Nothing."""

    def __sklearn_clone__(self) -> "Uncharged":
        return self


UNCHARGED = Uncharged()


@dataclass(frozen=True, eq=False)
class _Block:
    ledger: "PrivacyLedger"
    thread: int


_AROUND: ContextVar[tuple[_Block, ...]] = ContextVar("blocks around, the inner one last")
_OPEN: dict[int, _Block] = {}  # in all threads
_RECORDED: "weakref.WeakValueDictionary[str, PrivacyLedger]" = weakref.WeakValueDictionary()  # by name of the release


def enter_block(ledger: "PrivacyLedger") -> None:
    """From here on it is the ledger of what gets none."""
    block = _Block(ledger, threading.get_ident())
    _OPEN[id(block)] = block
    _AROUND.set((*_AROUND.get(()), block))


def leave_block(ledger: "PrivacyLedger") -> None:
    """Back to the block around, if there is one."""
    around = _AROUND.get(())
    left = next(block for block in reversed([*_OPEN.values(), *around]) if block.ledger is ledger)
    _AROUND.set(tuple(block for block in around if block is not left))
    _OPEN.pop(id(left), None)


def ledger_in_use(given: "PrivacyLedger | Uncharged | None" = None) -> Any:
    """The ledger that counts a release: what was given, else that of the block around; None where nothing does. Threads
    do not inherit a block, so one without a block of its own counts on the one that another thread has open."""
    if given is not None:
        return None if isinstance(given, Uncharged) else given
    around = _AROUND.get(())
    if around:
        return around[-1].ledger
    here = threading.get_ident()
    elsewhere = {block.thread: block.ledger for block in list(_OPEN.values()) if block.thread != here}
    if len({id(ledger) for ledger in elsewhere.values()}) > 1:
        raise LedgerError(
            "Several threads have a block of a PrivacyLedger open, and this one has none, so it is unclear which one "
            "counts what it releases. Nothing was released. Pass ledger=, or open the block in this thread."
        )
    return next(iter(elsewhere.values()), None)


def note_release(name: str, ledger: Any) -> None:
    """Remember which ledger was charged for a release, as long as there is that ledger."""
    with contextlib.suppress(TypeError):  # of somebody else's, to which there are no weak references
        _RECORDED[name] = ledger


def ledgers_of(fitted: Any) -> list[Any]:
    """The ledgers at hand that hold charges of a fit, or of what is inside of it: its own before others. Given as
    parameters, or charged in this process. One that was put in the place of another, that is empty in a process to
    which no ledger came, or whose file is gone, holds none."""
    parameters = fitted.get_params(deep=True) if hasattr(fitted, "get_params") else {}
    given = [value for name, value in parameters.items() if name.rsplit("__", 1)[-1] == "ledger"]
    parts = [part for part in (fitted.privacy_.own, *fitted.privacy_.parts) if part.on_record]
    known = [parameters.get("ledger"), *(_RECORDED.get(part.release) for part in parts), *given]
    found = {id(ledger): ledger for ledger in known if hasattr(ledger, "continues")}
    return [ledger for ledger in found.values() if any(ledger.continues(part.on_record) for part in parts)]


# ---------------------------------------------------------------------- joblib's workers


class _Inside:
    """Tasks for a worker, run there in a block of the ledger."""

    def __init__(self, ledger: Any, tasks: Any) -> None:
        self.ledger, self.tasks = ledger, tasks

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        with self.ledger:
            return self.tasks(*arguments, **named)


def _taking_the_block_along(backend: Any) -> Any:
    """The same backend of joblib, whose workers count on the ledger of the block around the call, if there is one."""

    def start_call(self: Any) -> None:
        self._ledger = ledger_in_use()  # here, for joblib submits from other threads as well
        backend.start_call(self)

    def submit(self: Any, func: Any, *arguments: Any, **named: Any) -> Any:
        tasks = func if self._ledger is None else _Inside(self._ledger, func)
        return getattr(backend, name)(self, tasks, *arguments, **named)

    name = "submit" if hasattr(backend, "submit") else "apply_async"  # up to joblib 1.4
    return type(backend.__name__, (backend,), {"start_call": start_call, name: submit})


for _name in {"loky", "multiprocessing", "threading"} & set(BACKENDS):
    register_parallel_backend(_name, _taking_the_block_along(BACKENDS[_name]))
