"""The file in which several processes keep the counts of one stream of answers."""

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from skfairdp.postprocessing._later_labels import LaterLabels

Counts = NDArray[np.int64]
_FORMAT = "skfairdp-answers-1"


class AnswerStore:
    """Counts in a file that is replaced whole, under the lock of ``<path>.lock``; only its owner can read it."""

    def __init__(self, path: str | os.PathLike[str], groups: list[Any], classes: list[Any]) -> None:
        self.path = os.path.realpath(path)
        self.about = json.loads(json.dumps({"format": _FORMAT, "groups": groups, "classes": classes}, default=str))
        self.shape = len(groups), len(classes)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all other processes out."""
        lock = FileLock(f"{self.path}.lock")
        with lock:
            yield

    def read(self, with_labels: bool) -> tuple[Counts, Counts, LaterLabels | None] | None:
        """Answers, refusals and what is remembered of labels; None where there is no file yet."""
        try:
            with open(self.path, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            return None
        except ValueError:
            found = {}
        if {name: found.get(name) for name in self.about} != self.about or with_labels != ("waiting" in found):
            raise ValueError(
                f"The file {self.path} of IDP3's 'store' holds no answers to these groups, classes and constraints. "
                "Give each stream of answers a file of its own."
            )
        counts, refused = (np.array(found[name], dtype=np.int64) for name in ("answered", "refused"))
        later = LaterLabels(*self.shape) if with_labels else None
        if later is not None:
            labelled = np.array(found["labelled"], dtype=np.int64)
            later.restore(labelled, [(_ticket(name), cell) for name, cell in found["waiting"]])
        return counts, refused, later

    def write(self, answered: Counts, refused: Counts, later: LaterLabels | None) -> None:
        """Replace the file. It is on the disk when this returns."""
        content = {**self.about, "answered": answered.tolist(), "refused": refused.tolist()}
        if later is not None:
            content |= {"labelled": later.counts[0].tolist(), "waiting": later.waiting()}
            if any(not _is_plain(name) for name, _ in content["waiting"]):
                raise ValueError(
                    "The 'tickets' of IDP3 with a 'store' must be strings, whole numbers, or tuples of these."
                )
        draft = f"{self.path}.{secrets.token_hex(8)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft)
            raise


def _is_plain(name: Any) -> bool:
    return all(map(_is_plain, name)) if isinstance(name, tuple) else type(name) in (str, int)


def _ticket(name: Any) -> Any:
    return tuple(map(_ticket, name)) if isinstance(name, list) else name
