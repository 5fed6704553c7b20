"""Which constructor parameters a fit looks at, beside the looks that everything gets."""

import sys

__all__ = ["unread_parameters"]

#: Who looks at every parameter, whatever it means.
LOOKS_AT_ALL = frozenset({"get_params", "check_numbers"})


def unread_parameters(model, *args, **kwargs):
    """Names of parameters that a fit with these arguments never looks at."""
    cls, names = type(model), frozenset(model.get_params(deep=False))
    unread = set(names)

    class Watched(cls):
        __init__ = cls.__init__  # scikit-learn reads its signature

        def __getattribute__(self, name):
            if name in names and sys._getframe(1).f_code.co_name not in LOOKS_AT_ALL:
                unread.discard(name)
            return super().__getattribute__(name)

    Watched.__name__, Watched.__module__ = cls.__name__, cls.__module__
    watched = Watched(**model.get_params(deep=False))
    unread |= names
    watched.fit(*args, **kwargs)
    return unread
