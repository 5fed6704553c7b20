"""One small fit of each kind on whatever versions are installed; warnings that the package causes are errors.

python .ci/smoke.py
"""

import tempfile
import warnings
from importlib.metadata import requires, version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skfairdp
from skfairdp import (
    FairDPSGDClassifier,
    FairPATEClassifier,
    ParetoSearchCV,
    PFGuardGenerator,
    PFLDClassifier,
    PrivacyLedger,
    RandomizedResponseClassifier,
    Schema,
    SFPATEClassifier,
    SyntheticDataClassifier,
)
from skfairdp.__main__ import main as command
from skfairdp.datasets import make_biased_classification, train_private_public_test_split
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning, UtilityWarning
from skfairdp.metrics import demographic_disparity
from skfairdp.schema import Category, Number

ROWS = make_biased_classification(6000, disparity=0.3, random_state=0)
SPLIT = train_private_public_test_split(*ROWS, random_state=0)
DOMAINS = {"classes": [0, 1], "groups": [0, 1]}


def main() -> None:
    warnings.simplefilter("error")
    for category in (FairnessWarning, PrivacyLeakWarning, UtilityWarning):
        warnings.simplefilter("ignore", category)  # small tables; their texts are tested elsewhere
    for check in CHECKS:
        check()
        print(f"{check.__name__}: fine")
    names = sorted(
        {word.split(">")[0].split(";")[0].strip() for word in requires("skfairdp") or [] if "extra" not in word}
    )
    print(", ".join(f"{name} {version(name)}" for name in names if name != "typing-extensions"))
    print(f"skfairdp {skfairdp.__version__} works with these")


def useful(model: object) -> None:
    """It predicts better than the most frequent class, and costs what it said."""
    truth = np.asarray(SPLIT.y_test)
    accuracy = float(np.mean(model.predict(SPLIT.X_test) == truth))
    assert accuracy > max(truth.mean(), 1 - truth.mean()) + 0.1, accuracy
    assert 0 < model.privacy_.epsilon <= 2


def fair_pate() -> None:
    model = FairPATEClassifier(epsilon=2, gamma=0.2, random_state=0, classes=[0, 1])
    useful(model.fit(SPLIT.X, SPLIT.y, X_public=SPLIT.public))
    assert model.refit(gamma=0.05).privacy_ is model.privacy_
    alone = FairPATEClassifier(epsilon=2, gamma=0.2, random_state=0, **DOMAINS)
    useful(alone.fit(SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features))


def dp_sgd() -> None:
    model = FairDPSGDClassifier(epsilon=2, parity="signed_loss", lam=5.0, random_state=0, **DOMAINS)
    useful(model.fit(SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features))
    gap = demographic_disparity(None, model.predict(SPLIT.X_test), sensitive_features=SPLIT.sensitive_features_test)
    assert gap < 0.2, gap


def opacus_layer() -> None:
    """A layer without a rule of ours takes its gradients from Opacus; the net is skorch's."""
    import torch
    from skorch import NeuralNetClassifier

    layers = torch.nn.Sequential(torch.nn.Linear(SPLIT.X.shape[1], 8), torch.nn.GroupNorm(2, 8), torch.nn.ReLU())
    net = NeuralNetClassifier(torch.nn.Sequential(layers, torch.nn.Linear(8, 2)), max_epochs=5, lr=0.5)
    useful(FairDPSGDClassifier(epsilon=2, lam=0.0, net=net, random_state=0, classes=[0, 1]).fit(SPLIT.X, SPLIT.y))


def generator() -> None:
    made = PFGuardGenerator(epsilon=2, bounds=(-6.0, 6.0), random_state=0, **DOMAINS)
    made.fit(SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features)
    X, y, groups = made.sample_labels(500, return_sensitive=True, random_state=0)
    assert X.shape == (500, SPLIT.X.shape[1]) and set(y) == set(groups) == {0, 1}
    useful(SyntheticDataClassifier(LogisticRegression(), epsilon=2, bounds=(-6.0, 6.0), random_state=0, **DOMAINS).fit(
        SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features))  # fmt: skip


def private_group() -> None:
    for model in (
        PFLDClassifier(epsilon=2, random_state=0, **DOMAINS),
        SFPATEClassifier(epsilon=2, random_state=0, **DOMAINS),
    ):
        useful(model.fit(SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features))


def fair_learner() -> None:
    from fairlearn.metrics import demographic_parity_difference
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    learner = ExponentiatedGradient(LogisticRegression(), DemographicParity(), max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fairlearn's own, about pandas
        model = RandomizedResponseClassifier(fair_estimator=learner, epsilon=2, random_state=0, **DOMAINS)
        model.fit(SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features)
    answers = model.predict(SPLIT.X_test)
    found = demographic_parity_difference(SPLIT.y_test, answers, sensitive_features=SPLIT.sensitive_features_test)
    assert 0 <= found <= 1


def raw_table() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 80, 6000), "job": rng.choice(["a", "b", None], 6000)})
    table["sex"] = rng.choice(["f", "m"], 6000)
    table["rich"] = np.where(table["age"] + rng.normal(0, 9, 6000) > 50, "yes", "no")
    released = Schema.release(
        table, label="rich", groups="sex", epsilon=1, delta=1e-6, known={"job": Category(["a", "b"], missing=True)}
    )
    columns = {"age": Number(18, 79, step=1), "job": Category(["a", "b"], missing=True)}
    columns |= {"sex": Category(["f", "m"]), "rich": Category(["no", "yes"])}
    for schema in (released, Schema(columns, label="rich", groups="sex")):
        model = FairDPSGDClassifier(epsilon=1, parity="signed_loss", schema=schema, random_state=0).fit(table)
        assert model.score(table) > 0.7


def searches() -> None:
    model = FairPATEClassifier(classes=[0, 1], random_state=0, ledger=PrivacyLedger())
    grid = GridSearchCV(make_pipeline(FunctionTransformer(np.asarray), LogisticRegression()), {}, cv=KFold(2))
    grid.fit(SPLIT.X_public, SPLIT.y_public)
    search = ParetoSearchCV(model, {"gamma": [0.05, None]}, cv=2)
    search.fit(SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features, X_public=SPLIT.public)
    assert len(search.pareto_table_) >= 1


def ledger_file() -> None:
    folder = Path(tempfile.mkdtemp())
    ledger = PrivacyLedger(epsilon=3, delta=1e-5, path=folder / "rows.ledger")
    model = PFLDClassifier(epsilon=1, random_state=0, ledger=ledger, **DOMAINS)
    model.fit(SPLIT.X, SPLIT.y, sensitive_features=SPLIT.sensitive_features)
    assert len(PrivacyLedger(epsilon=3, delta=1e-5, path=folder / "rows.ledger").entries) == 1
    (folder / "statement.json").write_text(model.privacy_statement().to_json(), encoding="utf-8")
    assert command(["verify", str(folder / "statement.json")]) == 0


CHECKS = (
    fair_pate, dp_sgd, opacus_layer, generator, private_group, fair_learner, raw_table, searches, ledger_file
)  # fmt: skip

if __name__ == "__main__":
    main()
