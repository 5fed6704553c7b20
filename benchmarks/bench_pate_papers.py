"""What the FairPATE paper and the fairness analysis of PATE report beside Table 1, on tables, at a certified ε.

    python benchmarks/bench_pate_papers.py

*Baselines*: FairPATE, PATE-S_pre (labels withdrawn before the student) and PATE-S_in (parity in the student's loss),
at ε = 1. *Answers* (Figures 12 to 15): the share of public rows that the confident vote answers, over threshold, γ
and ε. *Shift* (Figure 9): the same students on test rows in which half of one group's positive rows are missing.
*Plain* students: one logistic regression on what FairPATE and PATE-S_pre release, held to nothing.
*Analysis* (Tran et al., Figures 7, 15, 16): hard beside soft labels over ε, which bring the noise of 600 declared
queries; *networks* is the same with the paper's teachers and students of two hidden layers. 70 / 5 / 25 %
private, public and test rows, δ = 1e-5, one record replaced; the analysis reads raw votes.
"""

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import _common as common
import numpy as np

SETS = ("adult", "adult-race", "bank", "credit")
GAMMAS = (0.02, 0.05, 0.1)
PENALTIES = (1.0, 10.0)
THRESHOLDS = (0.55, 0.65, 0.75)
EPSILONS = (0.5, 1.0, 3.0)
DELTA = 1e-5
FIGURES = ("accuracy", "disparity", "answered", "released_gap", "shifted_accuracy", "shifted_disparity")
ANALYSIS = ("risk_gap", "risk_gap_soft", "accuracy", "accuracy_soft")
KEYS = ("part", "data", "method", "epsilon", "gamma", "threshold")


def baselines(seed: int) -> Iterator[tuple[str, float, Any]]:
    """Yield name, γ (or λ), and an estimator whose release is that of FairPATE."""
    from skfairdp import FairPATEClassifier
    from skfairdp.pate import ParityPenaltyStudent

    given = {"epsilon": 1.0, "delta": DELTA, "classes": [0, 1], "random_state": seed}
    for gamma in GAMMAS:
        yield "FairPATE", gamma, FairPATEClassifier(gamma=gamma, **given)
        yield "PATE-S_pre", gamma, FairPATEClassifier(gamma=gamma, gate="labels", **given)
    for weight in PENALTIES:
        student = ParityPenaltyStudent(penalty_weight=weight)
        yield "PATE-S_in", weight, FairPATEClassifier(gate=None, student=student, **given)


def shifted(split: Any) -> np.ndarray:
    """Test rows after a shift of labels: every second positive row of the group with most of them is left out."""
    truth, groups = np.asarray(split.y_test), np.asarray(split.sensitive_features_test)
    rates = {group: truth[groups == group].mean() for group in sorted(set(groups))}
    left_out = np.flatnonzero((truth == 1) & (groups == max(rates, key=rates.get)))[::2]
    return np.setdiff1d(np.arange(len(truth)), left_out)


def plain_student(model: Any, split: Any) -> Any:
    """Logistic regression on the labels that were released and not withdrawn."""
    from sklearn.linear_model import LogisticRegression

    kept = model.answered_mask_
    labels = model.released_labels_[kept].astype(int)
    student = LogisticRegression(max_iter=500).fit(np.asarray(split.X_public)[model.query_indices_[kept]], labels)
    student.n_answered_, student.released_gap_ = model.n_answered_, model.released_gap_
    return student


def figures(model: Any, split: Any) -> dict[str, float]:
    """Accuracy and gap on test rows, also after the shift; what was answered, and the gap of that."""
    from skfairdp import metrics

    predicted, rows = model.predict(np.asarray(split.X_test)), shifted(split)
    truth, groups = np.asarray(split.y_test), np.asarray(split.sensitive_features_test)

    def both(at: Any) -> tuple[float, float]:
        gap = metrics.demographic_disparity(None, predicted[at], classes=[0, 1], sensitive_features=groups[at])
        return float(np.mean(predicted[at] == truth[at])), gap

    (accuracy, gap), (moved, moved_gap) = both(slice(None)), both(rows)
    answered = model.n_answered_ / len(split.X_public)
    released = getattr(model, "released_gap_", None)
    return dict(
        zip(FIGURES, (accuracy, gap, answered, np.nan if released is None else released, moved, moved_gap), strict=True)
    )


def fitted(seed: int, data: str, share: float, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the points of baselines and answers."""
    from skfairdp import FairPATEClassifier
    from skfairdp.pate import ConfidentVoting

    split = common.load_split(data, seed, share=share)
    for name, knob, model in baselines(seed):
        model.fit(split.X, split.y, X_public=split.public)
        key = dict(zip(KEYS, ("baselines", data, name, 1.0, knob, None), strict=True))
        yield key | {"epsilon_certified": model.privacy_.epsilon} | figures(model, split)
        if name in ("FairPATE", "PATE-S_pre"):
            plain = key | {"part": "plain", "epsilon_certified": model.privacy_.epsilon}
            yield plain | figures(plain_student(model, split), split)
    if data != "adult" or quick:
        return
    for epsilon in EPSILONS:
        for threshold in THRESHOLDS:
            for gamma in GAMMAS[1:]:
                model = FairPATEClassifier(
                    epsilon=epsilon, delta=DELTA, gamma=gamma, classes=[0, 1], random_state=seed,
                    voting=ConfidentVoting(threshold=threshold),
                ).fit(split.X, split.y, X_public=split.public)  # fmt: skip
                key = dict(zip(KEYS, ("answers", data, "FairPATE, confident", epsilon, gamma, threshold), strict=True))
                yield key | {"epsilon_certified": model.privacy_.epsilon} | figures(model, split)


def analysed(seed: int, data: str, share: float) -> Iterator[dict[str, Any]]:
    """Yield hard beside soft labels over ε."""
    from skfairdp import PATEClassifier
    from skfairdp.papers import PATEFairnessAnalysis
    from skfairdp.pate import GNMaxVoting
    from skfairdp.privacy import GaussianDpEvent, calibrate_noise, repeat

    split = common.load_split(data, seed, share=share)
    groups = np.asarray(split.sensitive_features_test)[:600]
    for epsilon in EPSILONS:
        # A histogram of votes moves by √2; the noise is that of 600 answers.
        sigma = 2**0.5 * calibrate_noise(lambda s: repeat(GaussianDpEvent(s), 600), epsilon, DELTA)
        model = PATEClassifier(
            n_teachers=min(150, len(split.y) // 20), voting=GNMaxVoting(sigma=sigma), random_state=seed
        )
        analysis = PATEFairnessAnalysis(model, repeats=20, alpha=1.0, noise_seed=seed).analyse(
            split.X,
            split.y,
            np.asarray(split.X_test, dtype=float)[:600],
            groups,
            y_public=np.asarray(split.y_test)[:600],
        )
        key = dict(zip(KEYS, ("analysis", data, "hard and soft labels", epsilon, None, None), strict=True))
        values = (analysis.hard.risk_gap, analysis.soft.risk_gap, analysis.hard.accuracy, analysis.soft.accuracy)
        yield key | {"epsilon_certified": None} | dict(zip(ANALYSIS, map(float, values), strict=True))
        values = networks_of(split, analysis.n_teachers, sigma, seed)
        yield key | {"part": "networks", "epsilon_certified": None} | dict(zip(ANALYSIS, values, strict=True))


def networks_of(split: Any, k: int, sigma: float, seed: int, repeats: int = 20) -> tuple[float, float, float, float]:
    """Risk gaps and accuracies of hard and soft labels, where teachers and students have two hidden layers."""
    import torch

    rng, eye = np.random.default_rng(seed), np.eye(2)
    X, y, public = (np.asarray(part, dtype=float) for part in (split.X, split.y, np.asarray(split.X_test)[:600]))
    truth, groups = np.asarray(split.y_test)[:600], np.asarray(split.sensitive_features_test)[:600]
    parts = rng.permutation(len(y) // k * k).reshape(k, -1)
    votes = eye[trained(X[parts], eye[y[parts].astype(int)], seed)(public).argmax(axis=2)].sum(axis=0)
    noisy = votes + sigma * rng.standard_normal((repeats, *votes.shape))
    shares = np.maximum(noisy, 1e-9)  # the loss of a network has no lower end where a share is negative
    shares /= shares.sum(axis=2, keepdims=True)

    def effect(clean: np.ndarray, targets: np.ndarray) -> tuple[float, float]:
        def losses(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            scores = trained(np.broadcast_to(public, (len(labels), *public.shape)), labels, seed)(public)
            return -(clean * torch.log_softmax(torch.as_tensor(scores), dim=2).numpy()).sum(axis=2), scores

        found, scores = losses(targets)
        risk = found.mean(axis=0) - losses(clean[None])[0][0]
        by_group = [risk[groups == group].mean() for group in sorted(set(groups))]
        return float(np.ptp(by_group)), float(np.mean(scores.argmax(axis=2) == truth))

    hard, soft = effect(eye[votes.argmax(axis=1)], eye[noisy.argmax(axis=2)]), effect(votes / k, shares)
    return hard[0], soft[0], hard[1], soft[1]


def trained(X: np.ndarray, targets: np.ndarray, seed: int, width: int = 10, steps: int = 200) -> Any:
    """Networks of two hidden layers, each taught by rows (n, d) and targets (n, 2) of its own; scores of any rows."""
    import torch

    generator = torch.Generator().manual_seed(seed)  # all begin alike, so that only their labels tell them apart
    sizes = (X.shape[2], width, width, 2)
    layers = [
        (torch.randn(1, m + 1, n, generator=generator) / (m + 1) ** 0.5).repeat(len(X), 1, 1).requires_grad_()
        for m, n in itertools.pairwise(sizes)
    ]

    def scores(rows: Any) -> Any:
        for number, layer in enumerate(layers):
            rows = rows.relu() if number else rows
            rows = rows @ layer[:, :-1] + layer[:, -1:]
        return rows

    rows, wanted = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(targets, dtype=torch.float32)
    optimizer = torch.optim.Adam(layers, lr=0.01, weight_decay=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -(wanted * scores(rows).log_softmax(dim=2)).sum(dim=2).mean(dim=1).sum()
        loss.backward()
        optimizer.step()

    def predict(public: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(scores(torch.as_tensor(public, dtype=torch.float32)[None]).double())

    return predict


def main() -> None:
    parser = common.parser(__doc__, "pate_papers", seeds=3, first_seed=100)
    arguments = parser.parse_args()
    common.quiet_fairness()
    warnings.filterwarnings("ignore", category=UserWarning)
    real = common.default_data() == "adult"
    share = 0.1 if arguments.quick else 1.0
    found: list[dict[str, Any]] = []
    for data in SETS if real and not arguments.quick else ("adult" if real else "synthetic",):
        for seed in common.seeds_of(arguments):
            for point in (*fitted(seed, data, share, arguments.quick), *analysed(seed, data, share)):
                found.append(point | {"seed": seed})
            print(data, seed, flush=True)
        common.save(arguments, delta=DELTA, rows=common.averaged(found, KEYS, (*FIGURES, *ANALYSIS), by_seed=()))
    rows = common.averaged(found, KEYS, (*FIGURES, *ANALYSIS))
    shown = ("accuracy", "disparity", "answered", "risk_gap", "risk_gap_soft")
    nothing = {"mean": None, "standard_error": None}
    cells = [
        [*(row[key] for key in KEYS), *(common.plus_minus(row.get(name, nothing)) for name in shown)] for row in rows
    ]
    common.print_table([*KEYS, *shown], cells)


if __name__ == "__main__":
    main()
