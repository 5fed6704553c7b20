"""Our estimators in the arena: default parameters, swept over the one knob of fairness that each has."""

from collections.abc import Iterator
from typing import Any

from _arena_task import DELTA, Answer, Task, Unit, answer

#: Weights of a penalty on public rows, beside its default of 1.
LAMS = (0.25, 0.5, 2.0)
#: Of what is left for private thresholds, beside a DP-SGD of .8 ε: the largest one that fits is taken.
SHARES = (0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.2)


def given(task: Task, share: float = 1.0) -> dict[str, Any]:
    """What every estimator of ours is told."""
    return {"epsilon": share * task.epsilon, "delta": DELTA, "schema": task.schema, "random_state": task.seed}


def fair_pate(task: Task, rows: str) -> Iterator[Answer]:
    """One release, and a student for each γ, or for each bound on another constraint."""
    from skfairdp import FairPATEClassifier, PublicData
    from skfairdp.pate import ConstrainedStudent

    public = {} if rows == "none" else {"X_public": PublicData(task.unlabelled)}
    if task.constraint != "demographic_parity":
        student = ConstrainedStudent(task.parity(task.gaps[0]))
        first = FairPATEClassifier(student=student, **given(task)).fit(task.split.X, **public)
        for gap in task.gaps:
            model = first if gap == task.gaps[0] else first.refit(student__constraints=task.parity(gap))
            yield fitted(task, "FairPATE", gap, model)
        return
    first = FairPATEClassifier(gamma=task.gaps[0], **given(task)).fit(task.split.X, **public)
    for gamma in (*task.gaps, None):
        model = first if gamma == task.gaps[0] else first.refit(gamma=gamma)
        yield fitted(task, "FairPATE", gamma, model)


def fair_dpsgd(task: Task, rows: str) -> Iterator[Answer]:
    """One training for each bound on the gap, or for each weight of a penalty where the default takes that."""
    from skfairdp import FairDPSGDClassifier, PublicData
    from skfairdp.gradient import SignedLoss

    if rows == "public" and task.constraint != "demographic_parity":
        return  # the penalty on public rows knows demographic parity alone
    public = {} if rows == "none" else {"X_public": PublicData(task.unlabelled)}
    if not task.quick:
        yield fitted(task, "FairDP-SGD", None, FairDPSGDClassifier(lam=0.0, **given(task)).fit(task.split.X))
    if public:
        usual = FairDPSGDClassifier(**given(task)).fit(task.split.X, **public)
        if usual.parity_taken_ == "public_penalty":
            yield fitted(task, "FairDP-SGD", 1.0, usual)
            for lam in () if task.quick else LAMS:
                model = FairDPSGDClassifier(lam=lam, **given(task)).fit(task.split.X, **public)
                yield fitted(task, "FairDP-SGD", lam, model)
            return
        yield fitted(task, "FairDP-SGD", task.gaps[0], usual)  # its bound is .01
    for gap in task.gaps[:1] if task.quick else task.gaps[bool(public) :]:
        parity = SignedLoss(constraints=task.parity(gap))
        model = FairDPSGDClassifier(parity=parity, **given(task)).fit(task.split.X)
        yield fitted(task, "FairDP-SGD", gap, model)


def private_thresholds(task: Task, _: str) -> Iterator[Answer]:
    """DP-SGD, then thresholds by noisy tables of the same private rows; both are paid for."""
    from skfairdp import FairDPSGDClassifier
    from skfairdp.postprocessing import PrivateThresholds
    from skfairdp.privacy import compose, epsilon_of

    model = FairDPSGDClassifier(lam=0.0, **given(task, 0.8)).fit(task.split.X)
    for aware in (False, True):
        for gap in task.gaps:
            for share in SHARES:
                made = PrivateThresholds(
                    model, constraints=task.parity(gap), group_at_prediction=aware, **given(task, share)
                )
                event = compose(model.privacy_.event, made._plan(made._read(task.split.X)).event)
                if epsilon_of(event, DELTA) <= task.epsilon:
                    break
            made.fit(task.split.X)
            yield fitted(task, "DP-SGD + PrivateThresholds", gap, made, aware=aware)


def calibrated(task: Task, _: str) -> Iterator[Answer]:
    """DP-SGD, then thresholds by unlabelled public rows, at no cost."""
    from skfairdp import FairDPSGDClassifier, FairnessCalibrator
    from skfairdp.postprocessing import Thresholds

    if task.constraint != "demographic_parity":
        return
    model = FairDPSGDClassifier(lam=0.0, **given(task)).fit(task.split.X)
    yield fitted(task, "DP-SGD + FairnessCalibrator", None, model)
    for aware in (False, True):
        for gap in task.gaps:
            method = Thresholds(group_at_prediction=aware)
            made = FairnessCalibrator(model, method=method, gamma=gap, schema=task.schema).fit(task.unlabelled)
            yield fitted(task, "DP-SGD + FairnessCalibrator", gap, made, aware=aware)


def fitted(task: Task, method: str, knob: float | None, model: Any, *, aware: bool = False) -> Answer:
    """Measure a model of ours, and keep what it says of itself."""
    from skfairdp._judge import UNSEEN

    rows = task.split.X_test
    reads = {"sensitive_features": task.groups_of_test} if aware else {}
    predicted = task.coded(model.predict(rows, **reads))
    scores = None
    if not aware and knob in (None, 0.0) and hasattr(model, "predict_proba"):
        scores = model.predict_proba(rows)[:, 1]
    sees = "aware" if aware else "blind"
    measured = answer(task, method, knob, model.privacy_.epsilon, predicted, scores=scores, sees=sees)
    if knob not in task.gaps:
        return measured
    said = {"gap_said": model.gap_, "gap_bound_said": model.gap_bound_, "holds_said": model.constraint_holds_}
    unchecked = model.constraint_holds_ == "within the noise" and model.gap_bound_ > knob + UNSEEN  # a warning says so
    told = unchecked or model.constraint_holds_ == "no"
    return {**measured, "bound_broken": task.breaks(predicted, knob), "told": told, **said}


UNITS = (
    Unit("FairPATE", "ours", "none", lambda task: fair_pate(task, "none")),
    Unit("FairPATE, public rows", "ours", "public", lambda task: fair_pate(task, "public")),
    Unit("FairDP-SGD", "ours", "none", lambda task: fair_dpsgd(task, "none")),
    Unit("FairDP-SGD, public rows", "ours", "public", lambda task: fair_dpsgd(task, "public")),
    Unit("DP-SGD + PrivateThresholds", "ours", "none", lambda task: private_thresholds(task, "none")),
    Unit("DP-SGD + FairnessCalibrator", "ours", "public", lambda task: calibrated(task, "public")),
)
