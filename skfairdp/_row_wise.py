"""Predictions on private rows, each a function of its own row and place, whatever the predictor does with others."""

import contextlib
import copy
import inspect
import pickle
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skfairdp._typing import Array, Floats, Ints, Objects
from skfairdp._utils import GENERATORS, PlainRows, as_objects, by_halves, coins_of, silence

#: Stands where a row has no prediction: an error, a wrong shape. No label of any kind is equal to it.
NO_CLASS = object()

#: Rows of every call, whatever the number of rows or the engine: public. The last bits of sums follow the shape of a
#: call and the place of a row in it.
BLOCK = 1024

_KNOWN = ("sklearn", "skfairdp")
#: What an estimator of ours makes of a shorthand: a skorch net that adds nothing to a prediction.
_UNSET_NET = ("skfairdp._networks._nets", "UnsetNet")
_KNOWN_REDUCTIONS = "fairlearn.reductions."  # what they hold is looked at
#: Of scikit-learn, by name: the rows of a call are factorised or imputed together.
_FACTORISED = ("NMF", "MiniBatchNMF")
_TOGETHER = (*_FACTORISED, "IterativeImputer", "KNNImputer")
_VALUES = ("builtins", "numpy", "pandas", "scipy", "datetime", "joblib", *_KNOWN)
_NOT_AT_PREDICTION = ("teacher", "ledger", "memory")  # parameters of ours that only fit reads


def known_row_wise(estimator: Any) -> bool:
    """Whether an estimator is known to predict each row from this row alone, so that calls may hold many rows: those of
    this package and of scikit-learn, and wrappers of them, but what factorises or imputes the rows of a call together,
    and what draws when it predicts. A class of somebody else's is not unless it says ``predicts_rows_alone = True``,
    nor is one with a function among its parameters."""
    parts = list(_parts(estimator))
    ours = [part.get_params(deep=False) for part in parts if getattr(part, "_settles_coins", False)]
    settled = {id(value) for parameters in ours for value in parameters.values()}
    return all(_is_known(part) and (id(part) in settled or not _draws(part)) for part in parts)


def mixes_rows(step: Any) -> bool:
    """Whether it may scale rows of a call by the others, wherever it was fitted: by factors, or in a function that is
    called with all of them and does not say that it treats each alone."""
    inside = [part for part in _parts(step) if hasattr(part, "fit_transform")]
    return any(type(part).__name__ in _FACTORISED or not _treats_rows_alone(part) for part in inside)


def _treats_rows_alone(part: Any) -> bool:
    """Whether a transformer is known to: a FunctionTransformer by its function, a subclass of it by itself."""
    own = isinstance(part, FunctionTransformer) and type(part) is not FunctionTransformer
    asked = part if own else getattr(part, "func", None)
    return isinstance(asked, np.ufunc | None) or asked is np.clip or getattr(asked, "predicts_rows_alone", None) is True


def check_rows_alone(models: Iterable[Any], owner: str) -> None:
    """Refuse what says of itself that its answers depend on other rows of the call, as IDP3 does."""
    for model in models:
        for part in _parts(model):
            if getattr(part, "predicts_rows_alone", None) is False:
                raise ValueError(
                    f"{owner} cannot score {type(part).__name__} on private rows: whether it answers one row depends "
                    "on the others, so that one record would move the scores of many, for which no noise is added. "
                    "Score it on public rows, fit(..., validation=PublicData(X, groups, y)), or search the estimator "
                    "inside of it."
                )


def row_wise_predictions(fitted: Any, X: Any, groups: Array | None, *, places: Ints | None) -> Objects:
    """Predict private rows; every entry is a function of its own row, its place and the fitted state before the call.
    Total and silent: a row that makes the predictor fail, or that it gives no single answer for, is NO_CLASS.
    *Proof.* An estimator that is known to be row-wise gets calls of ``BLOCK`` rows, row p of all in seat p mod BLOCK:
    shape, type and order in memory are public (:class:`PlainRows`), so the arithmetic of a seat is that of its row
    alone, and a call fails if and only if one of its rows does. Other rows of the same call take the seats of those
    that fail, whichever they are. Any other estimator gets one row a call, in a copy of its state, with generators that
    start by the place."""
    coin_of = _reduction(fitted)
    if coin_of is not None and places is not None and known_row_wise(coin_of):
        chances = row_wise_predictions(coin_of, X, groups, places=places)
        given = [c if c is NO_CLASS else int(c >= coin) for c, coin in zip(chances, _coins(places), strict=True)]
        return as_objects(given)
    known = known_row_wise(fitted)
    # What reads cells by a schema, or wants the type that it was trained on, gets rows as they come.
    native = any(_is_net(part) or getattr(part, "schema", None) is not None for part in _parts(fitted))
    with silence(), parallel_config(backend="sequential"):  # sums over trees come in one order
        rows = PlainRows(X, native=native, listed=_listed(fitted) if known else None)
        if known and places is not None:
            usual = getattr(_last(fitted), "groups_", None)
            asks = _asks(lambda: fitted, rows, groups, usual=None if usual is None else usual[0])
            return _in_blocks(asks, rows.kinds, places)
        if known:
            return as_objects([_alone(_asks(lambda: fitted, rows, groups), row) for row in range(len(rows))])
        seeds = np.zeros(len(rows), np.int64) if places is None else places
        with GENERATORS[0], _global_generators() as start:
            made = _copies(fitted)
            drawn = [partial(lambda seed: _seeded(made(), start(seed)), seed) for seed in seeds.tolist()]
            return as_objects([_alone(_asks(model, rows, groups), row) for row, model in enumerate(drawn)])


def row_wise_amounts(fitted: Any, X: Any, groups: Array | None, *, places: Ints | None) -> Floats:
    """The same of a regressor: finite amounts, NaN where there is none."""
    said = row_wise_predictions(fitted, X, groups, places=places)
    amounts = np.array([_amount(one) for one in said], dtype=np.float64)
    return np.where(np.isfinite(amounts), amounts, np.nan)


def _amount(said: Any) -> float:
    try:
        return float("nan") if said is NO_CLASS else float(said)
    except (TypeError, ValueError):
        return float("nan")


def predict_with_groups(fitted: Any, X: Any, groups: Any) -> Any:
    """Predictions; the groups go to a ``predict`` that takes them and does not find them in the columns of X."""
    last = _last(fitted)
    wanted = groups is not None and "sensitive_features" in inspect.signature(last.predict).parameters
    named = set(getattr(getattr(last, "schema", None), "groups", ()))  # columns of X, where a schema names them
    has_groups = bool(named) and named <= set(map(str, getattr(X, "columns", ())))
    if not wanted or getattr(last, "sensitive_columns", None) is not None or has_groups:
        return fitted.predict(X)
    if last is not fitted:
        X = fitted[:-1].transform(X) if len(fitted) > 1 else X
    return last.predict(X, sensitive_features=groups)


def predict_codes(learner: Any, X: Floats) -> Ints:
    """Codes of classes, by a learner inside of ours: where it tosses coins, each follows from the row's features."""
    if not _draws(learner) or not hasattr(learner, "_pmf_predict"):
        return np.asarray(learner.predict(X)).astype(np.int64)
    return (learner._pmf_predict(X)[:, 1] >= coins_of(X, b"answer")).astype(np.int64)


def all_probabilities(learner: Any, X: Any, n_classes: int) -> Floats:
    """Probabilities of all class codes, by a learner inside of ours that may not have seen all of them."""
    found = np.zeros((len(X), n_classes))
    found[:, np.asarray(learner.classes_).astype(np.int64)] = learner.predict_proba(X)
    return found


def _last(fitted: Any) -> Any:
    return fitted.steps[-1][1] if isinstance(fitted, Pipeline) else fitted


# ------------------------------------------------------------------ calls of one public shape

_Ask = Callable[[Ints, int], list[Any]]


def _asks(model: Callable[[], Any], rows: PlainRows, groups: Array | None, *, usual: Any = None) -> _Ask:
    """One call for the rows at these positions, an answer for each; raises where there is no such answer. Row -1 is a
    public one of the kind of another row, and of the ``usual`` group."""

    def ask(positions: Ints, like: int) -> list[Any]:
        of_groups = None if groups is None else groups[positions]
        if of_groups is not None and (positions < 0).any():
            of_groups[positions < 0] = usual
        answers = np.asarray(predict_with_groups(model(), rows.take(positions, like), of_groups)).ravel().tolist()
        if len(answers) != len(positions):
            raise ValueError("not one answer for each row")
        return answers

    return ask


def _answers(ask: _Ask, positions: Ints, like: int) -> list[Any] | None:
    try:
        return ask(positions, like)
    except Exception:
        return None


def _alone(ask: _Ask, row: int) -> Any:
    found = _answers(ask, np.array([row]), row)
    return NO_CLASS if found is None else found[0]


def _in_blocks(ask: _Ask, kinds: Ints, places: Ints) -> Objects:
    """Ask block by block; rows of another kind have calls of their own, since they would change the type of a table."""
    out = as_objects([NO_CLASS] * len(places))
    takes_public: dict[int, bool] = {}  # of each kind
    order = np.lexsort((places, kinds, places // BLOCK))
    cells = np.stack([places // BLOCK, kinds], axis=1)[order]
    for rows in np.split(order, np.flatnonzero((cells[1:] != cells[:-1]).any(axis=1)) + 1):
        if not len(rows):
            continue
        kind, like = int(kinds[rows[0]]), int(rows[0])
        if kind not in takes_public:
            takes_public[kind] = _answers(ask, np.full(BLOCK, -1), like) is not None
        if takes_public[kind]:
            out[rows] = _of_block(ask, rows, places[rows] % BLOCK)
        else:
            out[rows] = as_objects([_alone(ask, row) for row in rows.tolist()])
    return out


def _of_block(ask: _Ask, rows: Ints, seats: Ints) -> Objects:
    """Answers of the rows, each in its seat; the public row sits in those of rows that make the call fail."""

    def answers(some: Ints) -> list[Any] | None:
        call = np.full(BLOCK, -1)
        call[seats[some]] = rows[some]
        return _answers(ask, call, int(rows[0]))

    out, good = as_objects([NO_CLASS] * len(rows)), np.arange(len(rows))
    found = answers(good)
    if found is None:
        good = by_halves(lambda some: answers(some) is not None, good)
        found = answers(good)
    if found is not None:
        out[good] = as_objects(found)[seats[good]]
    return out


# ------------------------------------------------------------------ what draws when it predicts


class _Chance:
    """A reduction of fairlearn, or a pipeline that ends in one: "predicts" the chance of the second class."""

    def __init__(self, fitted: Any, reduction: Any) -> None:
        self.before = fitted[:-1] if fitted is not reduction and len(fitted) > 1 else None
        self.reduction = reduction

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What a prediction calls: the learner inside, and the steps before."""
        parts = [part for part in (self.before, self.reduction) if part is not None]
        return {name: value for part in parts for name, value in part.get_params(deep=deep).items()}

    def predict(self, X: Any) -> Any:
        return self.reduction._pmf_predict(X if self.before is None else self.before.transform(X))[:, 1]


def _reduction(fitted: Any) -> _Chance | None:
    from_fairlearn = _draws(_last(fitted)) and hasattr(_last(fitted), "_pmf_predict")
    return _Chance(fitted, _last(fitted)) if from_fairlearn else None


def _coins(places: Ints) -> Floats:
    """A number in [0, 1) for each place, that looks random: splitmix64 of the place."""
    word = (places.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return ((word ^ (word >> np.uint64(31))) >> np.uint64(11)) / 2.0**53


def _copies(fitted: Any) -> Callable[[], Any]:
    """Makes copies of a fitted estimator as it is now."""
    try:
        state = pickle.dumps(fitted)
        pickle.loads(state)
    except Exception:
        original = copy.deepcopy(fitted)
        return lambda: copy.deepcopy(original)
    return lambda: pickle.loads(state)


def _seeded(fitted: Any, seed: int) -> Any:
    """A copy, in which what draws with a seed of its own draws by this one."""
    for part in _parts(fitted):
        if _draws(part) and hasattr(part, "random_state"):
            part.random_state = seed
    return fitted


@contextlib.contextmanager
def _global_generators() -> Iterator[Callable[[int], int]]:
    """Gives what starts all global generators by a place, and leaves them as they were."""
    torch = sys.modules.get("torch")
    arrays, plain = np.random.get_state(), random.getstate()  # noqa: NPY002
    tensors = None if torch is None else torch.get_rng_state()

    def start(place: int) -> int:
        seed = int(_coins(np.array([place]))[0] * 2**32)
        np.random.set_state(np.random.RandomState(seed).get_state())  # noqa: NPY002
        random.setstate(random.Random(seed).getstate())
        if torch is not None:
            torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        return seed

    try:
        yield start
    finally:
        np.random.set_state(arrays)  # noqa: NPY002
        random.setstate(plain)
        if torch is not None:
            torch.set_rng_state(tensors)


# ------------------------------------------------------------------ what is known of an estimator


def _parts(estimator: Any) -> Iterator[Any]:
    """The estimator and everything among its parameters that a prediction may call."""
    yield estimator
    if isinstance(estimator, FrozenEstimator):  # which names no parameter of what is inside
        yield from _parts(estimator.estimator)
        return
    parameters = estimator.get_params(deep=True)
    nets = tuple(f"{name}__" for name, value in parameters.items() if _is_net(value))
    for name, value in parameters.items():
        if name.split("__")[-1] not in _NOT_AT_PREDICTION and not name.startswith(nets):
            for leaf in _leaves(value):
                if isinstance(leaf, FrozenEstimator):
                    yield from _parts(leaf)
                else:
                    yield leaf


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    else:
        yield value


def _listed(fitted: Any) -> dict[Any, Any]:
    """A value that is known of each column, by its name, or its number: the first of fitted encoders and schemas."""
    found: dict[Any, Any] = {}
    seen, waiting = set(), [fitted]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, list | tuple | dict):
            waiting += part.values() if isinstance(part, dict) else part
        elif type(part).__module__.split(".")[0] in _KNOWN and id(part) not in seen and hasattr(part, "__dict__"):
            seen.add(id(part))
            categories = getattr(part, "categories_", None) or ()
            names = getattr(part, "feature_names_in_", range(len(categories)))
            columns = getattr(getattr(part, "schema", None), "columns", {})
            found = {**public_row({**dict(zip(names, categories, strict=False)), **columns}), **found}
            waiting += vars(part).values()
    return found


def public_row(columns: Mapping[Any, Any]) -> dict[Any, Any]:
    """A row of first values: of the columns of a schema, or of lists of categories."""
    return {name: _first(values) for name, values in columns.items()}


def _first(values: Any) -> Any:
    for end in ("low", "first"):
        if hasattr(values, end):
            return getattr(values, end)
    values = getattr(values, "values", values)
    return values[0] if isinstance(values, tuple | np.ndarray) and len(values) else False


def _is_net(value: Any) -> bool:
    """Whether it is a plain skorch net: of all it is configured with, a prediction calls the module alone."""
    home, name = type(value).__module__, type(value).__name__
    return (home.split(".")[0] == "skorch" or (home, name) == _UNSET_NET) and hasattr(value, "module")


def _draws(part: Any) -> bool:
    """Whether a known estimator draws when it predicts."""
    if isinstance(part, DummyClassifier):
        return part.strategy in ("stratified", "uniform")
    return type(part).__module__.startswith(_KNOWN_REDUCTIONS) and type(part).__name__ == "ExponentiatedGradient"


def _is_known(part: Any) -> bool:
    said = getattr(part.module if _is_net(part) else part, "predicts_rows_alone", None)
    if said is not None:
        return said is True and not _is_short(part)
    if isinstance(part, type):
        return part.__module__ in ("builtins", "numpy")  # a dtype
    if type(part).__module__.startswith(_KNOWN_REDUCTIONS):
        return True
    home = type(part).__module__.split(".")[0]
    if home == "sklearn" and type(part).__name__ in _TOGETHER:
        return False
    if isinstance(part, FunctionTransformer):
        return type(part) is FunctionTransformer and part.func is None  # rows as they are
    return home in (_KNOWN if callable(part) or hasattr(part, "predict") else _VALUES)


def _is_short(part: Any) -> bool:
    """Whether a net has weights of less than single precision: its products follow other rows on some processors."""
    module: Any = getattr(part, "module_", None)
    weights = module.parameters() if hasattr(module, "parameters") else ()
    return any(weight.element_size() < 4 for weight in weights)
