"""What people put around estimators: pages of notebooks, frames from transformers, fairlearn's plots and thresholds."""

import html
import importlib
import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, plot_model_comparison, plot_roc_curve_by_group, selection_rate
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import NMF
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, scale

import skfairdp
from skfairdp import FairDPSGDClassifier, FairDPSGDRegressor, PublicPreprocessor
from skfairdp.gradient import mlp
from skfairdp.metrics import demographic_disparity
from skfairdp.schema import Category, Number, Schema, SchemaEncoder
from tests._tools.catalogue import OF_EACH_KIND, make_rows, what_spent

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]
R = make_rows(n=2000, n_test=400)
PAGES = hasattr(BaseEstimator, "_get_fitted_attr_html")
NO_ESTIMATOR = ("Schema", "GroupRandomizer")


@pytest.mark.skipif(not PAGES, reason="scikit-learn has pages with fitted attributes from 1.9 on")
@pytest.mark.parametrize(
    "entry", [one for one in OF_EACH_KIND if not one.name.startswith(NO_ESTIMATOR)], ids=lambda entry: entry.name
)
def test_the_page_of_every_kind_states_epsilon_and_unit_and_warns_of_scores(entry):
    model, rows = entry.make(), entry.rows()
    spent = what_spent(model, entry.fit(model, rows))
    page = spent._repr_html_()
    assert html.escape(str(spent.privacy_)) in page
    assert f"protecting one {spent.privacy_.protects}" in page
    assert "A score on the private rows is not covered" in page
    for fact in spent.privacy_.public:
        assert "(released" not in fact or html.escape(fact) in page


def public_transformers():
    rooms = [importlib.import_module(f"skfairdp.{room}") for room in skfairdp._ROOMS]
    kinds = {getattr(room, name) for room in rooms for name in room.__all__}
    return {kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, TransformerMixin)}


def besides():
    cv, inner = KFold(2), FairDPSGDClassifier(classes=[0, 1], lam=0.0, net=mlp((2,), max_epochs=1))
    amounts = FairDPSGDRegressor(bounds=(-4, 4), net=mlp((2,), max_epochs=1))
    pipeline = make_pipeline(FunctionTransformer(np.abs), inner)
    return [
        (TransformedTargetRegressor(amounts, transformer=StandardScaler()), "its transformer"),
        (TransformedTargetRegressor(amounts, func=np.negative, inverse_func=np.negative), None),
        (CalibratedClassifierCV(inner, cv=cv), "its calibration"),
        (TunedThresholdClassifierCV(inner, cv=cv), "its threshold"),
        (StackingClassifier([("ours", inner)], inner, cv=cv), "its final estimator"),
        (VotingClassifier([("ours", inner), ("theirs", LogisticRegression())]), "'theirs'"),
        (VotingClassifier([("ours", inner), ("more", pipeline), ("none", "drop")]), None),
    ]


@pytest.mark.parametrize(("around", "named"), besides())
def test_what_learns_from_private_labels_around_an_estimator_is_named(around, named):
    X, y = (rng := np.random.default_rng(0)).normal(size=(80, 2)), rng.integers(0, 2, 80)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        around.fit(X, y)
    said = {str(one.message) for one in caught if "private rows as well" in str(one.message)}
    assert len(said) == (named is not None)
    assert named is None or f"fits {named} to private rows as well" in said.pop()


@pytest.mark.parametrize(
    ("function", "told"), [(scale, True), (lambda X: X - X.mean(axis=0), True), (np.abs, False), (None, False)]
)
def test_a_function_that_may_read_all_rows_together_is_told_of(function, told):
    X, y = (rng := np.random.default_rng(0)).normal(size=(200, 2)), rng.integers(0, 2, 200)
    model = make_pipeline(FunctionTransformer(function), FairDPSGDClassifier(epsilon=1.0, lam=0.0, classes=[0, 1]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert any("fits 'functiontransformer' on private rows" in str(one.message) for one in caught) is told


class Centred(FunctionTransformer):
    def transform(self, X):
        return X - X.mean(axis=0)


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        (FunctionTransformer(scale), True),
        (make_pipeline(StandardScaler(), FunctionTransformer(scale)), True),
        (Centred(), True),
        (NMF(2), True),
        (make_pipeline(StandardScaler(), FunctionTransformer(np.clip, kw_args={"a_min": 0, "a_max": 9})), False),
    ],
)
@pytest.mark.parametrize(
    "around", [lambda step, X: PublicPreprocessor(step, X), lambda step, X: FrozenEstimator(step.fit(X))]
)
def test_public_rows_to_fit_on_do_not_hide_that_a_step_mixes_the_rows_of_a_call(around, inside, told):
    """Found: the warning went away where its advice was followed for a function that still scaled private rows."""
    X, y = (rng := np.random.default_rng(0)).uniform(size=(200, 2)), rng.integers(0, 2, 200)
    model = FairDPSGDClassifier(epsilon=1.0, lam=0.0, classes=[0, 1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_pipeline(around(inside, X[:50]), model).fit(X, y)
    assert any("or lets it mix them" in str(one.message) for one in caught) is told


def test_a_function_may_say_that_it_treats_rows_alone():
    def shifted(X):
        return X + 1

    shifted.predicts_rows_alone = True
    model = make_pipeline(FunctionTransformer(shifted), FairDPSGDClassifier(epsilon=1.0, lam=0.0, classes=[0, 1]))
    X, y = (rng := np.random.default_rng(0)).normal(size=(200, 2)), rng.integers(0, 2, 200)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert not any("on private rows as well" in str(one.message) for one in caught)


SCHEMA = Schema({"age": Number(0, 10), "town": Category(["x", "y"])})
TABLE = pd.DataFrame({"age": [1.0, 2.0], "town": ["x", "y"]}, index=[7, 8])
TRANSFORMERS = {
    SchemaEncoder: (SchemaEncoder(SCHEMA), TABLE, ["age", "town_x", "town_y"]),
    PublicPreprocessor: (PublicPreprocessor(StandardScaler(), TABLE[["age"]]), TABLE[["age"]] + 1, ["age"]),
}


@pytest.mark.parametrize("container", ["pandas", "polars", "default"])
def test_set_output_of_each_transformer_gives_named_frames(container):
    assert public_transformers() == set(TRANSFORMERS)
    if container == "polars":
        pytest.importorskip("polars", reason="polars is not installed: pip install skfairdp[tables]")
    for transformer, table, names in TRANSFORMERS.values():
        numbers = np.asarray(transformer.fit(table).transform(table))
        given = transformer.set_output(transform=container).fit(table).transform(table)
        np.testing.assert_array_equal(np.asarray(given), numbers)
        if container == "default":
            assert isinstance(given, np.ndarray)
        else:
            assert list(given.columns) == names
        if container == "pandas":
            assert given.index.equals(table.index)


@pytest.fixture(scope="module")
def model():
    return FairDPSGDClassifier(lam=0.0, epsilon=8.0, classes=[0, 1], random_state=0).fit(R.X, R.y)


def test_fairlearns_frames_and_plots_take_our_predictions(model):
    pytest.importorskip("matplotlib").use("Agg")
    plt = importlib.import_module("matplotlib.pyplot")
    predicted, groups = model.predict(R.X_test), {"sensitive_features": R.groups_test}
    metrics = {"accuracy": accuracy_score, "rate": selection_rate}
    frame = MetricFrame(metrics=metrics, y_true=R.y_test, y_pred=predicted, **groups)
    assert frame.overall["accuracy"] == model.score(R.X_test, R.y_test)
    bars = frame.by_group.plot.bar(subplots=True)
    assert [len(axes.patches) for axes in np.ravel(bars)] == [2, 2]
    axes = {"x_axis_metric": accuracy_score, "y_axis_metric": demographic_disparity}
    compared = plot_model_comparison(y_preds={"ours": predicted}, y_true=R.y_test, **groups, **axes)
    expected = frame.overall["accuracy"], demographic_disparity(R.y_test, predicted, **groups)
    np.testing.assert_allclose(compared.collections[0].get_offsets()[0], expected)
    plot_roc_curve_by_group(y_true=R.y_test, y_score=model.predict_proba(R.X_test)[:, 1], **groups)
    plt.close("all")


def test_fairlearns_thresholds_move_a_fitted_model_of_ours(model):
    public = {"sensitive_features": R.groups_public}
    moved = ThresholdOptimizer(
        estimator=model, constraints="demographic_parity", prefit=True, predict_method="predict_proba"
    ).fit(R.X_public, R.y_public, **public)
    answers = moved.predict(R.X_public, **public, random_state=0)
    before = demographic_disparity(R.y_public, model.predict(R.X_public), **public)
    assert demographic_disparity(R.y_public, answers, **public) < before
    assert moved.estimator_ is model
