"""fit_teachers: what comes out for each kind of teacher, odd parts, caching, bad input."""

import pickle
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from skfairdp.ensemble import LogisticTeachers, MLPTeachers, ModuleTeachers
from tests._tools.inside import Teachers, fit_teachers, position_partition, vote_histogram

MODULE = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 3))
ENGINES = {
    "logistic": "logistic",
    "mlp": MLPTeachers(hidden=(16,), epochs=20, batch_size=8, lr=0.02),
    "module": ModuleTeachers(MODULE, epochs=20, batch_size=8, lr=0.02),
    "tree": DecisionTreeClassifier(),
}
engines = pytest.mark.parametrize("teacher", ENGINES.values(), ids=ENGINES.keys())


@pytest.fixture(scope="module")
def blobs():
    """Three well separated classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    return 4 * np.eye(3)[y] + 0.5 * rng.standard_normal((240, 3)), y


def fit(teacher, X, y, assignment=None, n_teachers=4, **keywords):
    assignment = position_partition(len(y), n_teachers, random_state=0) if assignment is None else assignment
    keywords.setdefault("random_state", 0)
    return fit_teachers(teacher, X, y, assignment, n_teachers=n_teachers, n_classes=3, **keywords)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "teacher",
    [*ENGINES.values(), MODULE, lambda: nn.Linear(3, 3), KNeighborsClassifier(3), make_pipeline(LogisticRegression())],
    ids=[*ENGINES, "instance", "factory", "neighbours", "pipeline"],
)
def test_every_kind_of_teacher_learns(teacher, blobs):
    X, y = blobs
    if teacher is MODULE or (callable(teacher) and not isinstance(teacher, BaseEstimator)):
        teacher = ModuleTeachers(teacher, epochs=30, batch_size=8, lr=0.05)
    teachers = fit(teacher, X, y)
    votes = teachers.predict(X)
    assert isinstance(teachers, Teachers) and teachers.n_teachers == 4
    assert votes.shape == (4, 240) and votes.dtype.kind == "i"
    assert (votes == y).mean(axis=1).min() > 0.95


@pytest.mark.slow
def test_mlp_by_name_and_bare_module_use_their_engines(blobs):
    X, y = blobs
    assert np.array_equal(fit("mlp", X, y).predict(X), fit(MLPTeachers(), X, y).predict(X))
    assert np.array_equal(fit(MODULE, X, y).predict(X), fit(ModuleTeachers(MODULE), X, y).predict(X))


@engines
def test_single_class_and_empty_parts_give_constant_votes(teacher, blobs):
    X, y = blobs
    assignment = np.where(y == 2, 1, position_partition(240, 2, random_state=0) * 2)  # 0 and 2 without class 2
    votes = fit(teacher, X, y, assignment, n_teachers=5).predict(X)
    assert (votes[1] == 2).all()  # only class 2
    assert (votes[3] == 0).all() and (votes[4] == 0).all()  # no rows
    assert (vote_histogram(votes, 3).sum(axis=1) == 5).all()


@engines
def test_parts_without_a_class_vote_with_the_right_codes_and_never_for_it(teacher, blobs):
    X, y = blobs
    keep = np.flatnonzero(y != 0)
    # Teacher 0 sees classes 1 and 2 only; teacher 1 sees 0 and 2 only.
    rows = np.concatenate([keep[:60], np.flatnonzero(y != 1)[:80]])
    assignment = np.repeat([0, 1], [60, 80])
    votes = fit(teacher, X[rows], y[rows], assignment, n_teachers=2).predict(X)
    assert set(np.unique(votes[0])) == {1, 2} and set(np.unique(votes[1])) == {0, 2}
    assert (votes[0] == y)[y != 0].mean() > 0.95 and (votes[1] == y)[y != 1].mean() > 0.95


@engines
def test_no_rows_at_all_gives_constants(teacher):
    teachers = fit(teacher, np.zeros((0, 3)), np.zeros(0, dtype=int), np.zeros(0, dtype=int), n_teachers=2)
    assert teachers.predict(np.zeros((5, 3))).tolist() == [[0] * 5] * 2


@engines
def test_no_queries_give_no_votes(teacher, blobs):
    assert fit(teacher, *blobs).predict(np.zeros((0, 3))).shape == (4, 0)


def test_a_dataframe_reaches_a_pipeline_as_it_is(blobs):
    X, y = blobs
    frame = pd.DataFrame({"word": np.array(["a", "b", "c"])[y], "noise": X[:, 0]}, index=np.arange(240) * 7 % 240)
    teacher = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["word"])), DecisionTreeClassifier()
    )
    assert (fit(teacher, frame, y).predict(frame) == y).all()


def test_sparse_rows_and_lists_reach_a_classifier(blobs):
    X, y = blobs
    dense = fit(DecisionTreeClassifier(), X, y).predict(X)
    assert np.array_equal(dense, fit(DecisionTreeClassifier(), scipy.sparse.csr_array(X), y).predict(X))
    assert np.array_equal(dense, fit(DecisionTreeClassifier(), X.tolist(), y.tolist()).predict(X.tolist()))


def test_a_dataframe_of_numbers_reaches_the_batched_engines(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=list("abc"))
    assert np.array_equal(fit("logistic", X, y).predict(X), fit("logistic", frame, y).predict(frame))


def test_clones_get_seeds_of_their_own_also_nested_ones(blobs):
    X, y = blobs
    teacher = make_pipeline(DecisionTreeClassifier(random_state=3))
    fitted = fit(teacher, X, y)._ensemble.estimators
    seeds = [estimator.get_params()["decisiontreeclassifier__random_state"] for estimator in fitted]
    assert len(set(seeds)) == 4 and 3 not in seeds
    assert teacher.get_params()["decisiontreeclassifier__random_state"] == 3
    assert not hasattr(teacher[-1], "tree_")


class CountingClassifier(ClassifierMixin, BaseEstimator):
    fits = 0

    def fit(self, X, y):
        CountingClassifier.fits += 1
        self.classes_, counts = np.unique(y, return_counts=True)
        self.most_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self.most_)


@pytest.mark.parametrize("as_memory", [str, Path, lambda p: joblib.Memory(p, verbose=0)], ids=["str", "path", "memory"])
def test_memory_trains_once(as_memory, blobs, tmp_path):
    X, y = blobs
    memory = as_memory(tmp_path)
    CountingClassifier.fits = 0
    first = fit(CountingClassifier(), X, y, memory=memory).predict(X)
    assert CountingClassifier.fits == 4
    again = fit(CountingClassifier(), X, y, memory=memory, n_jobs=1, verbose=0).predict(X)
    assert CountingClassifier.fits == 4 and np.array_equal(first, again)
    fit(CountingClassifier(), X, y, memory=memory, random_state=1)
    assert CountingClassifier.fits == 8


def test_memory_keeps_apart_other_data_and_other_settings(blobs, tmp_path):
    X, y = blobs
    other = X.copy()
    other[:, 0] += 1e3 * (y == 0)
    plain = [fit(t, rows, y).predict(X) for t in (LogisticTeachers(), LogisticTeachers(C=1e-4)) for rows in (X, other)]
    cached = [
        fit(t, rows, y, memory=tmp_path).predict(X)
        for _ in range(2)
        for t in (LogisticTeachers(), LogisticTeachers(C=1e-4))
        for rows in (X, other)
    ]
    for votes, expected in zip(cached, plain * 2, strict=True):
        assert np.array_equal(votes, expected)


def test_without_memory_nothing_is_written(blobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit("logistic", *blobs)
    assert list(tmp_path.iterdir()) == []


def test_the_cached_function_says_that_its_cache_is_private():
    class Notes:
        def cache(self, function, *, ignore):
            self.function, self.ignore = function, ignore
            return function

    notes = Notes()
    fit("logistic", np.eye(3), np.arange(3), n_teachers=1, memory=notes)
    assert "PRIVATE teachers" in notes.function.__doc__ and notes.ignore == ["n_jobs", "verbose"]
    assert "cache holds private" in fit_teachers.__doc__


@pytest.mark.parametrize("config", [LogisticTeachers(), MLPTeachers(), ModuleTeachers(MODULE)])
def test_configurations_are_cloneable_and_take_parameters(config):
    copy = clone(config)
    assert copy.get_params().keys() == config.get_params().keys()
    name = "C" if isinstance(config, LogisticTeachers) else "epochs"
    assert copy.set_params(**{name: 7}).get_params()[name] == 7
    assert config.get_params()[name] != 7


def test_configurations_can_be_searched_as_a_nested_parameter():
    class Owner(BaseEstimator):
        def __init__(self, teacher=None):
            self.teacher = teacher

    owner = clone(Owner(LogisticTeachers(C=3.0)).set_params(teacher__C=0.5))
    assert owner.teacher.C == 0.5


@engines
def test_teachers_survive_pickling(teacher, blobs):
    X, y = blobs
    teachers = fit(teacher, X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(teachers)).predict(X), teachers.predict(X))


def test_repr_shows_the_count_and_nothing_else(blobs):
    assert repr(fit("logistic", *blobs)) == "Teachers(n_teachers=4)"


@pytest.mark.parametrize("teacher", ["logistic", "mlp"])
def test_verbose_shows_a_bar_and_quiet_shows_nothing(teacher, blobs, capsys):
    fit(teacher, *blobs)
    assert capsys.readouterr() == ("", "")
    fit(teacher, *blobs, verbose=2)
    out, err = capsys.readouterr()
    assert out == "" and "teachers:" in err
    assert "it/s" not in err and "s/it" not in err  # how long a part took may depend on its rows


# --- bad input: each a clear error before any teacher is trained, without a private value in it ---


@pytest.mark.parametrize("teacher", ["tree", LogisticRegression, Ridge(), None, 3, StopIteration()])
def test_unknown_teachers_are_refused(teacher, blobs):
    with pytest.raises(ValueError, match="'teacher' parameter must be"):
        fit(teacher, *blobs)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (LogisticTeachers(C=0), "C"),
        (LogisticTeachers(C=np.nan), "C"),
        (LogisticTeachers(max_iter=0), "max_iter"),
        (LogisticTeachers(tol=-1.0), "tol"),
        (MLPTeachers(epochs=0), "epochs"),
        (MLPTeachers(batch_size=2.5), "batch_size"),
        (MLPTeachers(lr=0), "lr"),
        (MLPTeachers(weight_decay=-1), "weight_decay"),
        (MLPTeachers(hidden=(0,)), "hidden"),
        (MLPTeachers(hidden=64), "hidden"),
        (MLPTeachers(device="abacus"), "device"),
        (ModuleTeachers(MODULE, lr="fast"), "lr"),
    ],
)
def test_bad_engine_parameters_name_the_parameter_and_the_class(config, name, blobs):
    with pytest.raises(ValueError, match=f"'{name}' parameter of {type(config).__name__}"):
        fit(config, *blobs)


def test_a_memory_that_is_none_is_refused(blobs):
    with pytest.raises(ValueError, match="memory"):
        fit("logistic", *blobs, memory=3)


@pytest.mark.parametrize("teacher", ["logistic", "mlp"])
@pytest.mark.parametrize(
    ("X", "match"),
    [
        ([["SECRET7", 1.0]] * 4, "table of numbers"),
        ([[np.nan, 77.5]] * 4, "NaN or infinity"),
        ([[np.inf, 77.5]] * 4, "NaN or infinity"),
        (np.zeros(4), "table of numbers"),
        (scipy.sparse.csr_array(np.eye(4)), "table of numbers"),
    ],
    ids=["words", "nan", "inf", "flat", "sparse"],
)
def test_batched_engines_refuse_rows_that_are_no_numbers_and_quote_none(teacher, X, match):
    with pytest.raises(ValueError, match=match) as caught:
        fit(teacher, X, np.array([0, 1, 0, 1]), n_teachers=2)
    text = str(caught.value) + str(caught.value.__cause__)
    assert "SECRET7" not in text and "77.5" not in text


@pytest.mark.parametrize("teacher", ["logistic", "mlp", MODULE], ids=["logistic", "mlp", "module"])
def test_prediction_refuses_other_columns(teacher, blobs):
    teachers = fit(teacher, *blobs)
    with pytest.raises(ValueError, match="has 2 features"):
        teachers.predict(np.zeros((4, 2)))


def test_teachers_that_know_the_spread_of_columns_vote_the_same_whatever_their_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    y = (X @ [1.0, 1.0, 0.0] + rng.logistic(size=240) > 1.0).astype(int)
    units = np.array([2.0**-7, 2.0**-7, 2.0**9])
    usual = fit(LogisticTeachers(C=3.0), X, y).predict(X)
    told = fit(LogisticTeachers(C=3.0, scale=units), X * units, y).predict(X * units)
    blind = fit(LogisticTeachers(C=3.0), X * units, y).predict(X * units)
    assert np.array_equal(told, usual), "in powers of two, no digit differs"
    assert (blind == y).mean() < (usual == y).mean() - 0.03


@pytest.mark.parametrize("scale", [[1.0], [1.0, 0.0, 1.0], [1.0, np.inf, 1.0], np.ones((3, 1))])
def test_a_scale_that_is_no_scale_is_refused(scale, blobs):
    with pytest.raises(ValueError, match="'scale' parameter of LogisticTeachers"):
        fit(LogisticTeachers(scale=scale), *blobs)


def test_private_numbers_beyond_all_units_are_silent(blobs):
    X, y = blobs
    far = X.copy()
    far[0] = 1e308
    votes = fit(LogisticTeachers(scale=np.full(3, 2.0**-20)), far, y).predict(X)
    assert set(np.unique(votes)) <= {0, 1, 2}


def test_a_cache_on_the_disk_has_no_row_and_only_its_owner_enters(tmp_path):
    import stat

    X = np.random.default_rng(0).normal(size=(60, 2)) + 1234567.25
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    fit(CountingClassifier(), X, y, memory=tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".gitignore"]
    content = b"".join(path.read_bytes() for path in files)
    assert files and b"1234567" not in content and b"12345" not in content
    assert not any(row.tobytes() in content for row in X)
    modes = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in [*files, tmp_path / "joblib"]}
    assert all(mode.endswith("00") for mode in modes.values()), modes
