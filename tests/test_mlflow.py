"""Beside MLflow: autolog logs no teacher, is told of around private estimators, and the recipe of the guide runs."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from skfairdp import FairDPSGDClassifier, PATEClassifier
from skfairdp.exceptions import PrivacyLeakWarning
from tests._tools.catalogue import make_rows

with pytest.MonkeyPatch.context() as patched:
    patched.setattr("warnings.warn", lambda *args, **more: None)
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: pip install mlflow-skinny")
    pytest.importorskip("mlflow.sklearn")
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*y_pred. was renamed:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
]
R = make_rows()


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """The runs so far, with autolog on."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    mlflow.sklearn.autolog(log_models=False)  # silent=True would keep our warnings as well
    yield lambda: mlflow.search_runs(output_format="list", search_all_experiments=True)
    mlflow.sklearn.autolog(disable=True, silent=True)


def private(**options):
    return FairDPSGDClassifier(lam=0.0, classes=[0, 1], random_state=0, **options)


def test_no_teacher_and_no_student_is_logged(logged):
    tree = DecisionTreeClassifier(max_depth=2)
    PATEClassifier(teacher=tree, n_teachers=5, classes=[0, 1], random_state=0).fit(R.X, R.y, X_public=R.X_public)
    assert logged() == []
    DecisionTreeClassifier().fit(R.X_public, R.y_public)  # of the user's own
    assert len(logged()) == 1


def test_a_private_estimator_alone_is_not_logged(logged, recwarn):
    private().fit(R.X, R.y)
    assert logged() == [] and not [one for one in recwarn if issubclass(one.category, PrivacyLeakWarning)]


@pytest.mark.parametrize(
    "around",
    [
        lambda: make_pipeline(FunctionTransformer(), private()),
        lambda: GridSearchCV(private(), {"lam": [0.0]}, cv=KFold(2)),
    ],
    ids=["pipeline", "search"],
)
def test_what_is_logged_around_it_is_told_of(around, logged):
    with pytest.warns(PrivacyLeakWarning, match="MLflow's autolog watches what FairDPSGDClassifier is fitted in"):
        around().fit(R.X, R.y)
    assert any("training_score" in run.data.metrics for run in logged())  # which is why


def test_the_recipe_of_the_guide_logs_public_figures_alone(logged):
    page = (Path(__file__).parents[1] / "docs" / "guide" / "pitfalls.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(import mlflow.*?)```", page, re.DOTALL)
    model = private().fit(R.X, R.y)
    exec(block, {"model": model, "X_test": R.X_test, "y_test": R.y_test})
    (run,) = logged()
    assert run.data.metrics["epsilon"] == model.privacy_.epsilon
    assert run.data.metrics["test_accuracy"] == model.score(R.X_test, R.y_test)
    assert {name for name in run.data.metrics if "train" in name} == set()
    assert {one.path for one in mlflow.artifacts.list_artifacts(run_id=run.info.run_id)} >= {"statement.json"}
    loaded = mlflow.sklearn.load_model(f"runs:/{run.info.run_id}/model")
    np.testing.assert_array_equal(loaded.predict_proba(R.X_test), model.predict_proba(R.X_test))
