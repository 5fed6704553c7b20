"""Engines that go wrong: rows that are worked on again, handed on twice, or lost with their worker."""

from tests._tools.inside import FrameRows

__all__ = ["Doubled", "Lost", "Retried"]


class Retried(FrameRows):
    """Every task runs twice, as after a failure: only what it returns the second time counts."""

    def each(self, function):
        for chunk in self.chunks():
            function(chunk)
            yield function(chunk)


class Doubled(FrameRows):
    """An engine that hands on what a retried task returns twice."""

    def each(self, function):
        yield from super().each(function)
        yield function(next(iter(self.chunks())))


class Lost(FrameRows):
    """A worker dies while rows are read."""

    def each(self, function):
        yield function(next(iter(self.chunks())))
        raise KeyboardInterrupt
