"""What a search scores on private rows: each prediction follows from its own row, and the rows are the test part."""

import copy
import random
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import NMF, MiniBatchNMF
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators
from skorch import NeuralNetClassifier
from torch import nn

from skfairdp import (
    IDP3,
    FairDPSGDClassifier,
    FairnessCalibrator,
    ParetoSearchCV,
    PATEClassifier,
    PFLDClassifier,
    PrivacyLedger,
    PrivateSearchCV,
    SFPATEClassifier,
)
from skfairdp.gradient import mlp
from skfairdp.postprocessing import PrivateThresholds
from tests._tools.inside import BLOCK, NO_CLASS, ScoreTable, known_row_wise, row_wise_predictions
from tests._tools.searches import Toy, ToyOfGuests, make_rows
from tests._tools.sources import recording_noise

X, Y, Z = make_rows(240)


class Unknown(Toy):
    """Predicts row by row and does not say so."""

    predicts_rows_alone = None


class Standardises(Unknown):
    """Scales by the rows of the call."""

    def predict(self, X):
        first = np.asarray(X)[:, 0]
        return self.classes_[(first > first.mean()).astype(int)]


class Counts(Unknown):
    """Answers differently after every row above zero that it has seen."""

    seen_ = 0

    def predict(self, X):
        out = []
        for value in np.asarray(X)[:, 0]:
            self.seen_ += int(value > 0)
            out.append(self.classes_[self.seen_ % 2])
        return np.array(out)


class DrawsGlobally(Unknown):
    """Takes as many draws from the global generators as there are rows above zero."""

    def predict(self, X):
        rows = np.asarray(X)[:, 0]
        drawn = [np.random.random() + random.random() if value > 0 else 0.3 for value in rows]  # noqa: NPY002
        drawn[-1] = np.random.random()  # noqa: NPY002
        return self.classes_[(np.array(drawn) > 0.5).astype(int)]


class Raises(Unknown):
    def predict(self, X):
        if (np.asarray(X)[:, 0] > 3.0).any():
            raise ValueError("a private value: 42")
        return super().predict(X)


class Exits(Unknown):
    def predict(self, X):
        return [[1]] if (np.asarray(X)[:, 0] > 3.0).any() else super().predict(X)


class OutsideItsClasses(Unknown):
    def predict(self, X):
        return np.where(np.asarray(X)[:, 0] > 3.0, 7, super().predict(X))


class AnswersNaN(Unknown):
    def predict(self, X):
        return np.where(np.asarray(X)[:, 0] > 3.0, np.nan, super().predict(X))


class WrongLength(Unknown):
    def predict(self, X):
        answers = super().predict(X)
        return answers[:-1] if (np.asarray(X)[:, 0] > 3.0).any() else answers


class Unhashable(Unknown):
    def predict(self, X):
        out = np.empty(len(X), dtype=object)
        out[:] = [[] if value > 3.0 else 1 for value in np.asarray(X)[:, 0]]
        return out


class HidesIDP3(Unknown):
    """A wrapper whose parameters do not show that a gate stands between the model and its answers."""

    def predict(self, X, sensitive_features=None):
        predicted = super().predict(X)
        gate = IDP3(None, gamma=0.01, min_count=1, groups=list(self.groups))
        gate.fit(None, np.r_[self.classes_, predicted], sensitive_features=np.r_[0, 1, sensitive_features])
        return gate.transform(predicted, sensitive_features=sensitive_features)


STRANGE = [Toy, Unknown, Standardises, Counts, DrawsGlobally, Raises, Exits, OutsideItsClasses, AnswersNaN, WrongLength,
           Unhashable, HidesIDP3]  # fmt: skip


def neighbours():
    """One record replaced: far out, other side, another group, another label; first, inner and last rows."""
    changes = []
    for row in (0, 7, 119, 120, 239):
        for value, label, group in ((9.0, 1 - Y[row], Z[row]), (-9.0, Y[row], 1 - Z[row]), (1e39, 0, 1)):
            other = X.copy(), Y.copy(), Z.copy()
            other[0][row, 0], other[1][row], other[2][row] = value, label, group
            changes.append(other)
    return changes


def searches(estimator, rows, monkeypatch):
    """The values to which noise is added, of both searches."""
    tables = []

    def watched(self, label_codes, group_codes, y_pred):
        # The first cell of the table's work is done by hand: a count per (group, label, prediction).
        position = {label: code for code, label in enumerate(self.classes.tolist())}
        cells = {}
        for z, y, k in zip(group_codes.tolist(), label_codes.tolist(), list(y_pred), strict=True):
            key = (z, y, "none" if not isinstance(k, int | np.integer) else position.get(k, "none"))
            cells[key] = cells.get(key, 0) + 1
        tables.append(cells)
        return real(self, label_codes, group_codes, y_pred)

    real = ScoreTable.counts
    monkeypatch.setattr(ScoreTable, "counts", watched)
    options = {"random_state": 0}
    ParetoSearchCV(estimator, {"cut": [0.0]}, cv=2, refit=False, **options).fit(
        rows[0], rows[1], sensitive_features=rows[2])  # fmt: skip
    PrivateSearchCV(estimator, {"cut": [0.0]}, scoring="disparity", **options).fit(
        rows[0], rows[1], sensitive_features=rows[2])  # fmt: skip
    monkeypatch.setattr(ScoreTable, "counts", real)
    return tables


@pytest.mark.few(8)
@pytest.mark.parametrize("kind", STRANGE)
def test_one_record_moves_a_score_table_by_root_two_whatever_the_predictor_does(kind, monkeypatch):
    """One of the fifteen changes, which most mistakes show in: another group in the first row."""
    no_table_moves_further_than_one_record(kind, monkeypatch, neighbours()[1:2])


@pytest.mark.slow
@pytest.mark.parametrize("kind", STRANGE)
def test_no_change_of_a_record_moves_a_score_table_by_more_than_root_two(kind, monkeypatch):
    no_table_moves_further_than_one_record(kind, monkeypatch, neighbours())


def no_table_moves_further_than_one_record(kind, monkeypatch, changes):
    """Zero-noise differential of both searches: counts of cells, for neighbours that replace one record."""
    here = searches(kind(), (X, Y, Z), monkeypatch)
    assert len(here) == 3 and sum(here[0].values()) == 120
    for rows in changes:
        there = searches(kind(), rows, monkeypatch)
        for a, b in zip(here, there, strict=True):
            moved = sum((a.get(key, 0) - b.get(key, 0)) ** 2 for key in a.keys() | b.keys())
            assert moved <= 2, f"{kind.__name__} moved a table by {moved**0.5:.1f}"


@pytest.mark.few(8)
@pytest.mark.parametrize("kind", STRANGE)
def test_every_row_has_its_cell_and_the_released_counts_say_so(kind, monkeypatch):
    from skfairdp.privacy import GaussianMechanism

    released = []
    monkeypatch.setattr(GaussianMechanism, "release", lambda self, v, s: (released.append(np.array(v)), v)[1])
    other = X.copy()
    other[::5, 0] = 9.0
    ParetoSearchCV(kind(), {"cut": [0.0]}, cv=2, refit=False).fit(other, Y, sensitive_features=Z)
    assert [table.sum() for table in released] == [120, 120]


def test_idp3_is_refused_on_private_rows_before_anything_is_spent():
    ledger = PrivacyLedger()
    inner = PATEClassifier(classes=[0, 1], n_teachers=4, ledger=ledger)
    gate = IDP3(inner, groups=[0, 1])

    class Wrapper(ClassifierMixin, BaseEstimator):
        def __init__(self, estimator=None):
            self.estimator = estimator

        def fit(self, X, y, sensitive_features=None):
            self.estimator_ = clone(self.estimator).fit(X, y, sensitive_features=sensitive_features)
            return self

        def predict(self, X, sensitive_features=None):
            return self.estimator_.predict(X, sensitive_features=sensitive_features)

    for model in (gate, make_pipeline(gate), Wrapper(gate)):
        prefix = next(n for n in model.get_params() if n.split("__")[-1] == "epsilon")
        for search in (ParetoSearchCV(model, {prefix: [1.0]}, cv=2), PrivateSearchCV(model, {prefix: [1.0]})):
            with pytest.raises(ValueError, match=r"cannot score IDP3 on private rows|Wrapper around it may make"):
                search.fit(X, Y, sensitive_features=Z)
    assert ledger.entries == ()
    # None lets everything through, so that each answer is its own
    ParetoSearchCV(IDP3(inner, groups=[0, 1]), {"gamma": [None]}, cv=2).fit(X, Y, sensitive_features=Z)
    with pytest.raises(ValueError, match="cannot score IDP3"):  # one of the grid is enough
        ParetoSearchCV(gate, {"gamma": [None, 0.1]}, cv=2).fit(X, Y, sensitive_features=Z)


@pytest.mark.parametrize("search", [ParetoSearchCV, PrivateSearchCV])
@pytest.mark.parametrize(
    "around",
    [
        lambda toy: BaggingClassifier(toy, n_estimators=3),
        OneVsRestClassifier,
        lambda toy: CalibratedClassifierCV(toy, cv=2),
        lambda toy: make_pipeline(OneVsRestClassifier(toy)),
    ],
)
def test_what_may_fit_several_times_is_not_searched_for_the_price_of_one_fit(search, around):
    ledger = PrivacyLedger()
    model = around(Toy(ledger=ledger))
    name = next(name for name in model.get_params() if name.split("__")[-1] == "cut")
    with pytest.raises(ValueError, match=r"pays for one fit of its private estimator, and .* around it may make"):
        search(model, {name: [0.0]}).fit(X, Y, sensitive_features=Z)
    assert ledger.entries == ()


@pytest.mark.parametrize("search", [ParetoSearchCV, PrivateSearchCV])
@pytest.mark.parametrize("own", [{"noise_seed": 7}, {"ledger": PrivacyLedger(epsilon=0.5)}])
@pytest.mark.parametrize("as_step", [False, True])
def test_a_candidate_has_neither_seed_nor_ledger_of_its_own(search, own, as_step):
    ledger = PrivacyLedger()
    model, grid = Toy(ledger=ledger), {name: [value] for name, value in own.items()}
    if as_step:
        model, grid = Pipeline([("m", model)]), {"m": [Toy(**own)]}
    with pytest.raises(ValueError, match="A candidate sets"):
        search(model, grid).fit(X, Y, sensitive_features=Z)
    assert ledger.entries == ()


def test_the_winner_is_the_model_that_was_scored_and_nothing_of_the_grid_is_fitted():
    step = Toy()
    search = ParetoSearchCV(Pipeline([("m", Toy())]), {"m": [step], "m__cut": [0.0, 5.0]}, cv=2, scoring="accuracy")
    search.fit(X, Y)
    assert search.best_estimator_[-1].cut == search.best_params_["m__cut"]
    assert not hasattr(step, "classes_")


class RowsAlone(Toy):
    predicts_rows_alone = True
    calls: list = []

    def predict(self, X):
        RowsAlone.calls.append(len(X))
        return super().predict(X)


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), make_pipeline(StandardScaler(), DecisionTreeClassifier()), PATEClassifier(),
     CalibratedClassifierCV(LogisticRegression(), cv=2), KNeighborsClassifier(), make_pipeline(OneHotEncoder()),
     VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier())]), PFLDClassifier(),
     FrozenEstimator(SFPATEClassifier()), FairDPSGDClassifier(),
     FairDPSGDClassifier(net=mlp(lr=0.1)), FairnessCalibrator(PATEClassifier()),
     PATEClassifier(teacher=Unknown()), PATEClassifier(student=DecisionTreeClassifier()), RowsAlone(),
     IDP3(gamma=None)],
)  # fmt: skip
def test_what_is_known_to_be_row_wise_may_predict_in_one_call(model):
    assert known_row_wise(model)


@pytest.mark.parametrize(
    "model",
    [Unknown(), make_pipeline(StandardScaler(), Unknown()), CalibratedClassifierCV(Unknown()),
     FrozenEstimator(Unknown()), PATEClassifier(student=Unknown()),
     make_pipeline(FunctionTransformer(np.cumsum), LogisticRegression()),
     KNeighborsClassifier(weights=lambda d: d),
     FairDPSGDClassifier(net=nn.Linear(2, 2)), FairDPSGDClassifier(net=NeuralNetClassifier(nn.Linear)),
     VotingClassifier([("a", LogisticRegression()), ("b", Unknown())]), IDP3(Unknown(), gamma=None), IDP3(RowsAlone()),
     type("Subclass", (LogisticRegression,), {})(), type("Subclass", (PATEClassifier,), {})(),
     make_pipeline(NMF(3), LogisticRegression()), CalibratedClassifierCV(make_pipeline(MiniBatchNMF(3), Toy()))],
)  # fmt: skip
def test_what_is_not_known_to_be_row_wise_is_asked_row_by_row(model):
    assert not known_row_wise(model)


def test_one_row_moves_the_tables_of_thresholds_behind_a_factorisation_by_root_two():
    """NMF ends its steps by all rows of a call: in one call, one row of 10⁶ moves the answers to all others."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(0.1, 3.0, (120, 6)) @ rng.uniform(0.1, 3.0, (6, 8))
    labels = (rows[:, 0] > rows[:, 1]).astype(int)
    with warnings.catch_warnings(), recording_noise(0, entropy=0) as first:
        warnings.simplefilter("ignore")
        model = make_pipeline(NMF(3, tol=0.01), LogisticRegression(C=100)).fit(rows, labels)
        PrivateThresholds(model, groups=[0, 1], random_state=0).fit(rows, labels, sensitive_features=labels)
    rows[3] = 1e6
    with warnings.catch_warnings(), recording_noise(0, entropy=0, replay=first) as second:
        warnings.simplefilter("ignore")
        PrivateThresholds(model, groups=[0, 1], random_state=0).fit(rows, labels, sensitive_features=labels)
    for one, other in zip(first.releases, second.releases, strict=True):
        assert np.linalg.norm(np.ravel(one.value) - np.ravel(other.value)) <= one.sensitivity * (1 + 1e-9)


@pytest.mark.slow
def test_what_is_known_to_be_row_wise_says_nothing_else_of_a_row_where_another_one_changes():
    """All of scikit-learn: what is said of a row follows from no other row of the call, such as one of 10⁶."""
    rng = np.random.default_rng(0)
    features, more = (rng.uniform(0.1, 3.0, (size, 6)) @ rng.uniform(0.1, 3.0, (6, 8)) for size in (60, 40))
    changed, others = more.copy(), np.arange(40) != 11
    changed[11] = 1e6
    moved = [cls.__name__ for _, cls in all_estimators() if says_otherwise(cls, features, (more, changed), others)]
    assert moved == []


def says_otherwise(cls, features, calls, others):
    """Whether anything that a fitted estimator of this class, if it is row-wise, says of these rows has changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fitted = cls(**{"n_components": 3, "tol": 0.01} if "NMF" in cls.__name__ else {})
            fitted.fit(features, np.arange(60) % 2)
        except Exception:  # needs other rows
            return False
        if not known_row_wise(fitted):
            return False
        for method in ("predict_proba", "decision_function", "predict", "transform"):
            try:
                one, other = (np.asarray(getattr(copy.deepcopy(fitted), method)(rows))[others] for rows in calls)
            except Exception:  # there is none, or it says no one thing of each row
                continue
            if not np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
                return True
    return False


def test_calls_of_one_size_where_it_is_known_and_places_are_public_else_a_call_for_each_row():
    model = RowsAlone().fit(X, Y)
    RowsAlone.calls.clear()
    in_blocks = row_wise_predictions(model, X, None, places=np.arange(240) + 900)
    assert RowsAlone.calls == [BLOCK] * 3  # a public row, and whatever falls into two blocks: rows 900 to 1,139
    one_by_one = row_wise_predictions(model, X, None, places=None)
    assert RowsAlone.calls[3:] == [1] * 240 and in_blocks.tolist() == one_by_one.tolist() == Y.tolist()


def test_where_records_come_and_go_each_row_is_asked_alone_whoever_predicts():
    """The shape of a call follows the number of rows, and the last bits of sums may follow the shape."""
    sizes = []

    class Guests(ToyOfGuests):
        def predict(self, X):
            sizes.append(len(X))
            return super().predict(X)

    ParetoSearchCV(Guests(public_n_rows=240), {"cut": [0.0]}, cv=2, refit=False).fit(X, Y, sensitive_features=Z)
    assert sizes == [1] * 240


def test_a_known_predictor_that_one_row_makes_fail_answers_the_others_as_before():
    tree = DecisionTreeClassifier(max_depth=3).fit(X, Y)
    rows = X.copy()
    rows[5] = 1e39  # finite, and beyond what a tree can read
    answers = row_wise_predictions(tree, rows, None, places=np.arange(240))
    assert answers[5] is NO_CLASS
    assert np.delete(answers, 5).tolist() == np.delete(tree.predict(X), 5).tolist()


def test_the_predictor_and_the_global_generators_stay_as_they_were():
    model = Counts().fit(X, Y)
    np.random.seed(5)  # noqa: NPY002
    state = np.random.get_state()[1].tobytes(), random.getstate()  # noqa: NPY002
    row_wise_predictions(model, X, None, places=np.arange(240))
    row_wise_predictions(DrawsGlobally().fit(X, Y), X, None, places=np.arange(240))
    assert model.seen_ == 0
    assert (np.random.get_state()[1].tobytes(), random.getstate()) == state  # noqa: NPY002


def test_predictions_of_private_rows_are_made_in_silence(capfd):
    class Talks(Unknown):
        def predict(self, X):
            import logging
            import sys
            import warnings

            warnings.warn(f"private {X}", stacklevel=2)
            logging.getLogger("talks").error("private %s", X)
            print("private", X)
            print("private", X, file=sys.stderr)
            return super().predict(X)

    ParetoSearchCV(Talks(), {"cut": [0.0]}, cv=2).fit(X, Y, sensitive_features=Z)
    assert capfd.readouterr() == ("", "")


# ---- the rows that are charged are the rows that are scored --------------------------------------------------
def scored_rows(search, monkeypatch):
    """For every score table: the rows whose predictions it holds, and those that the model before it was fitted on."""

    class Marks(Unknown):
        def fit(self, X, y, *, sensitive_features=None):
            super().fit(X, y)
            if self.ledger is None:
                fits.append(np.asarray(X)[:, 1].astype(int))
            return self

        def predict(self, X):
            asked.append(int(np.asarray(X)[0, 1]))
            return super().predict(X)

    fits, asked, found = [], [], []
    real = ScoreTable.counts

    def watched(self, label_codes, *rest):
        found.append((list(asked), fits[-1].tolist(), label_codes.tolist()))
        asked.clear()
        return real(self, label_codes, *rest)

    monkeypatch.setattr(ScoreTable, "counts", watched)
    monkeypatch.setattr("skfairdp._row_wise._copies", lambda fitted: lambda: fitted)
    marked = np.column_stack([X[:, 0], np.arange(len(X))])
    search(Marks()).fit(marked, Y, sensitive_features=Z)
    return found


SEARCHES = {
    "pareto": (lambda m: ParetoSearchCV(m, {"cut": [0.0]}, cv=KFold(4), refit=False), 4),
    "private folds": (lambda m: PrivateSearchCV(m, {"cut": [0.0]}, cv=KFold(4)), 4),
    "private holdout": (lambda m: PrivateSearchCV(m, {"cut": [0.0]}, test_size=0.25), 1),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_the_released_table_is_of_the_test_part_that_is_charged(name, monkeypatch):
    """A record pays for one score of its test part: no table may hold a row that its model was fitted on."""
    search, folds = SEARCHES[name]
    found = scored_rows(search, monkeypatch)
    assert len(found) == folds
    for asked, fitted, labels in found:
        assert sorted(asked + fitted) == list(range(len(X))), "scored rows are those that were held out, each once"
        assert len(asked) == len(X) // 4 and labels == Y[asked].tolist()
    if folds > 1:
        assert sorted(row for asked, _, _ in found for row in asked) == list(range(len(X)))


class ScalesByTheBatch(TransformerMixin, BaseEstimator):
    """Somebody else's."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X - np.mean(X, axis=0)


@pytest.mark.parametrize("deep", [lambda frozen: frozen, lambda frozen: make_pipeline(StandardScaler(), frozen)])
def test_what_is_frozen_is_looked_into(deep):
    def made(first):
        return deep(FrozenEstimator(make_pipeline(first, LogisticRegression())))

    assert known_row_wise(made(StandardScaler())) and not known_row_wise(made(ScalesByTheBatch()))
