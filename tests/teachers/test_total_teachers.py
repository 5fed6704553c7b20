"""Every part has its vote, and nothing else: a teacher that its rows make fail is neither seen nor heard."""

import contextlib
import io
import logging
import re
import sys
import threading
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from skfairdp import FairPATEClassifier, PATEClassifier, PrivacyLedger, PrivateSearchCV, PublicData, SFPATEClassifier
from skfairdp._utils import open_stream, silence
from skfairdp.ensemble import LogisticTeachers, MLPTeachers
from skfairdp.pate import GroupTeachers
from tests._tools.inside import dry_run_teacher, fit_fair_teachers, fit_teachers, position_partition, vote_histogram

N, K = 60, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = (X[:, 0] > 0).astype(int)
QUERIES = RNG.normal(size=(15, 2))
PART = position_partition(N, K, random_state=0)


class Odd(ClassifierMixin, BaseEstimator):
    """Predicts the first column's sign, until a row of its part is far out: then it does ``what``."""

    def __init__(self, what="raise", verbose=0):
        self.what = what
        self.verbose = verbose

    def fit(self, X, y, sensitive_features=None):
        self.far_ = bool((np.abs(np.asarray(X)) > 100).any())
        if self.far_ and self.what == "raise":
            raise ValueError(f"private rows {X}")
        if self.far_ and self.what == "exit":
            sys.exit(f"private rows {X}")
        self.classes_ = np.unique(y)
        if self.far_ and self.what == "classes":
            self.classes_ = self.classes_ + 5
        return 7 if self.what == "returns a number" else self

    def predict(self, X):
        votes = (np.asarray(X)[:, 0] > 0).astype(int)
        if not self.far_:
            return votes
        if self.what == "predict":
            raise ValueError("private rows")
        odd = {"nan": votes * np.nan, "fractions": votes + 0.5, "negative": votes - 9, "large": votes + 2**40,
               "short": votes[:-1], "table": np.c_[votes, votes], "words": np.array(["word"] * len(votes)),
               "column": votes[:, None], "nothing": None, "infinite": votes + np.inf}  # fmt: skip
        return odd.get(self.what, votes)

    def predict_proba(self, X):
        proba = np.eye(2)[(np.asarray(X)[:, 0] > 0).astype(int)]
        if not self.far_:
            return proba
        if self.what == "predict":
            raise ValueError("private rows")
        odd = {"nan": proba * np.nan, "fractions": proba + 0.5, "negative": proba - 9, "large": proba + 1e308,
               "short": proba[:-1], "table": np.c_[proba, proba], "words": np.array([["a", "b"]] * len(proba)),
               "column": proba[:, 1], "nothing": None, "infinite": proba + np.inf}  # fmt: skip
        return odd.get(self.what, proba)


WHAT = ["raise", "exit", "classes", "predict", "nan", "fractions", "negative", "large", "short", "table", "words",
        "column", "nothing", "infinite", "returns a number"]  # fmt: skip
FAR = {"far": 1e39, "out of this world": 1.7e308, "denormal": 5e-324, "minus zero": -0.0, "away": 1e5}
LEARNERS = {
    "tree": DecisionTreeClassifier(max_depth=2), "calibrated": CalibratedClassifierCV(GaussianNB(), cv=2),
    "discriminant": QuadraticDiscriminantAnalysis(), "neighbours": KNeighborsClassifier(3),
    "logistic regression": LogisticRegression(C=1e4, max_iter=15), "vectors": SVC(probability=False),
    "positive": MultinomialNB(), "logistic": "logistic", "mlp": MLPTeachers(hidden=(4,), epochs=3),
}  # fmt: skip


def votes_of(teacher, X, y, **keywords):
    return fit_teachers(teacher, X, y, PART, n_teachers=K, n_classes=2, random_state=0, **keywords)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("what", WHAT)
def test_whatever_a_part_does_to_its_teacher_it_keeps_its_one_vote(what, n_jobs):
    far = X.copy()
    far[3] = 1e4
    with joblib.parallel_config(backend="threading"), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            here, there = (votes_of(Odd(what), rows, Y, n_jobs=n_jobs) for rows in (X, far))
            before, after = here.predict(QUERIES), there.predict(QUERIES)
            sums = [teachers.summed_probabilities(QUERIES, 2) for teachers in (here, there)]
        except (Exception, SystemExit):
            pytest.fail("a part has made its teacher fail, and everybody hears of it")
    assert set(np.unique(after)) <= {0, 1}
    others = np.arange(K) != PART[3]
    np.testing.assert_array_equal(before[others], after[others])
    assert (vote_histogram(after, 2).sum(axis=1) == K).all()
    for table in sums:
        np.testing.assert_allclose(table.sum(axis=1), K, rtol=1e-12)
    assert np.linalg.norm(sums[1] - sums[0], axis=1).max() <= np.sqrt(2) + 1e-9


@pytest.mark.parametrize("name", LEARNERS)
def test_one_extreme_row_moves_the_votes_of_its_part_only_whoever_learns(name):
    """Zero-noise differential over learners that overflow, refuse, want two rows of a class, or do not converge."""
    teacher = LEARNERS[name]
    rows = np.abs(X) if name == "positive" else X
    before = votes_of(teacher, rows, Y).predict(np.abs(QUERIES))
    for row, value in enumerate(FAR.values()):
        other, labels = rows.copy(), Y.copy()
        other[row, 0], labels[row] = value, 1 - labels[row]
        after = votes_of(teacher, other, labels)
        others = np.arange(K) != PART[row]
        np.testing.assert_array_equal(before[others], after.predict(np.abs(QUERIES))[others])
        moved = after.summed_probabilities(np.abs(QUERIES), 2) - votes_of(teacher, rows, Y).summed_probabilities(
            np.abs(QUERIES), 2)  # fmt: skip
        assert np.linalg.norm(moved, axis=1).max() <= np.sqrt(2) + 1e-9


@pytest.mark.parametrize("what", ["raise", "exit", "predict", "nan", "short"])
def test_fair_teachers_are_total_too(what, capfd):
    groups = np.arange(N) // 2 % 2
    far = X.copy()
    far[3] = 1e4
    settings = {"n_teachers": K, "n_classes": 2, "n_groups": 2, "random_state": 0, "verbose": 0}
    here, there = (fit_fair_teachers(Odd(what), rows, Y, groups, PART, **settings) for rows in (X, far))
    before, after = here.predict(QUERIES), there.predict(QUERIES)
    others = np.arange(K) != PART[3]
    np.testing.assert_array_equal(before[others], after[others])
    assert set(np.unique(after)) <= {0, 1} and capfd.readouterr() == ("", "")


# ---- parameters are public, and their mistakes are told ------------------------------------------------------
@pytest.mark.parametrize(
    ("teacher", "message"),
    [(LogisticRegression(C=-1.0), "'C' parameter"), (CalibratedClassifierCV(GaussianNB(), cv=40), "40"),
     (KNeighborsClassifier(400), "n_neighbors"), (DecisionTreeClassifier(criterion="guess"), "criterion"),
     (LogisticTeachers(C=-1.0), "'C' parameter"), (MLPTeachers(epochs=0), "'epochs' parameter")],
)  # fmt: skip
def test_a_teacher_with_a_wrong_parameter_is_an_error_before_anything_is_spent(teacher, message):
    ledger = PrivacyLedger()
    pate = PATEClassifier(classes=[0, 1], n_teachers=K, teacher=teacher, ledger=ledger)
    with pytest.raises(ValueError, match=message):
        pate.fit(X, Y, X_public=QUERIES)
    fair = FairPATEClassifier(classes=[0, 1], n_teachers=K, teacher=teacher, ledger=ledger, gamma=None)
    with pytest.raises(ValueError, match=message):
        fair.fit(X, Y, X_public=QUERIES, sensitive_features_public=np.arange(15) % 2)
    attribute = SFPATEClassifier(groups=[0, 1], n_teachers=K, ledger=ledger)
    with pytest.raises(ValueError, match=message):
        attribute.set_params(variant=GroupTeachers(teacher=teacher)).fit(X, Y, sensitive_features=np.arange(N) % 2)
    search = PrivateSearchCV(pate, {"teacher": [LogisticTeachers(), teacher]})
    with pytest.raises(ValueError, match=message):
        search.fit(X, Y, X_public=QUERIES, validation=PublicData(QUERIES, y=np.arange(15) % 2))
    assert ledger.entries == ()


def test_a_fair_learner_with_a_wrong_parameter_is_an_error_before_anything_is_spent():
    from skfairdp.baselines import ParityLogisticRegression

    ledger = PrivacyLedger()
    model = SFPATEClassifier(variant="teacher", fair_estimator=ParityLogisticRegression(C=-1.0), groups=[0, 1],
                             n_teachers=K, ledger=ledger)  # fmt: skip
    with pytest.raises(ValueError, match="'fair_estimator' of SFPATEClassifier fails on 10 public rows"):
        model.fit(X, Y, sensitive_features=np.arange(N) // 2 % 2)
    assert ledger.entries == ()


def test_the_rehearsal_is_a_function_of_public_values():
    """It sees public features, labels of its own, and as many rows as the largest part: never a private row."""
    seen = []

    class Notes(LogisticRegression):
        def fit(self, X, y):
            seen.append((np.array(X), np.array(y)))
            return super().fit(X, y)

    dry_run_teacher(Notes(), QUERIES, n_rows=40, n_classes=3, owner="PATEClassifier")
    ((rows, labels),) = seen
    assert {tuple(row) for row in rows} == {tuple(row) for row in QUERIES} and len(rows) == 40
    assert np.bincount(labels).tolist() == [14, 13, 13]
    seen.clear()
    dry_run_teacher(Notes(), QUERIES[:0], n_rows=40, n_classes=3, owner="PATEClassifier")
    dry_run_teacher(Notes(), QUERIES, n_rows=1, n_classes=3, owner="PATEClassifier")  # all votes are constant
    assert seen == []


@pytest.mark.slow
def test_searches_choose_the_same_way_with_and_without_a_record_that_makes_teachers_fail():
    """Neighbours: on one the teacher of a part is fitted, on the other it cannot be. Both searches have a winner."""
    labels = Y.copy()
    labels[PART == 4] = 0
    labels[np.flatnonzero(PART == 4)[:2]] = 1
    other = labels.copy()
    other[np.flatnonzero(PART == 4)[0]] = 0  # one row of a class left: no two folds hold it
    far = X.copy()
    far[0] = 1e39
    validation = PublicData(QUERIES, y=(QUERIES[:, 0] > 0).astype(int))
    teachers = [CalibratedClassifierCV(GaussianNB(), cv=2), DecisionTreeClassifier(max_depth=2)]
    model = PATEClassifier(classes=[0, 1], n_teachers=K, epsilon=0.1, random_state=0)
    for rows, target in ((X, labels), (X, other), (far, Y)):
        for method in ("composition", "selection"):
            search = PrivateSearchCV(model, {"teacher": teachers, "voting__threshold": [0.55, 0.6]}, method=method)
            with contextlib.suppress(RuntimeError):
                search.fit(rows, target, X_public=QUERIES, validation=validation)
            assert hasattr(search, "best_estimator_"), "a fit has failed, and with it the search"


# ---- silence -------------------------------------------------------------------------------------------------
class Talks(Odd):
    """Says, in every way that Python has, whether its part holds a far row."""

    def fit(self, X, y, sensitive_features=None):
        super().fit(X, y)
        if self.far_ or self.verbose:
            threading.Thread(target=print, args=("private",)).start()
            print("private", X)
            print("private", X, file=sys.stderr)
            sys.stdout.buffer.write(b"private")
            warnings.warn(f"private {X}", stacklevel=2)
            logging.getLogger("talks").critical("private %s", X)
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn(f"private {X}", stacklevel=2)
            np.float64(1e308) * 10
        return self


def heard(fit):
    """Warnings, what was printed, what stands on standard error, and log records of a fit."""
    out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    records, handler = [], logging.Handler()
    handler.emit = records.append
    logging.root.addHandler(handler)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            fit()
    finally:
        logging.root.removeHandler(handler)
    printed, shown = (stream.buffer.getvalue().decode() for stream in (out, err))
    return [str(w.message) for w in caught], printed, shown.replace("\r", "\n"), records


@pytest.mark.parametrize("verbose", [0, 1, 2])
@pytest.mark.parametrize("how", ["in turn", "threads", "memory", "fair"])
def test_nothing_that_teachers_say_is_heard_and_bars_show_public_totals(how, verbose, tmp_path):
    far = X.copy()
    far[3] = 1e4
    single = Y.copy()
    single[PART == 2] = 0
    keywords = {"verbose": verbose, "n_jobs": 2 if how == "threads" else None}
    if how == "memory":
        keywords["memory"] = joblib.Memory(tmp_path, verbose=50)

    def fit(rows, y):
        if how == "fair":
            groups = np.arange(N) // 2 % 2
            teachers = fit_fair_teachers(Talks("none", verbose=3), rows, y, groups, PART, n_teachers=K, n_classes=2,
                                         n_groups=2, verbose=verbose)  # fmt: skip
        else:
            with joblib.parallel_config(backend="threading"):
                teachers = fit_teachers(Talks("none", verbose=3), rows, y, PART, n_teachers=K, n_classes=2,
                                        random_state=0, **keywords)  # fmt: skip
        teachers.predict(QUERIES)

    seen = [heard(lambda rows=rows, y=y: fit(rows, y)) for rows, y in ((X, Y), (far, Y), (X, single))]
    for warned, out, err, logged in seen:
        assert (warned, out, logged) == ([], "", [])
        assert "private" not in err and (err == "") == (verbose == 0)
        totals = {line.strip().rsplit("/")[-1] for line in err.split("\n") if "teachers" in line}
        assert totals <= {str(K)}, "the bar counts all parts, not those that are trained"


@pytest.mark.slow
def test_teachers_in_other_processes_are_silent_too(capfd):
    with joblib.parallel_config(backend="loky"):
        votes_of(Talks("none", verbose=3), X * 1e4, Y, n_jobs=2).predict(QUERIES)
    assert "private" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("engine", [LogisticTeachers(), MLPTeachers(hidden=(4,), epochs=2)])
def test_bars_of_the_batched_engines_do_not_tell_which_parts_have_one_class(engine, capfd):
    sizes = np.r_[np.zeros(30, int), np.repeat([1, 2, 3], 10)]
    shown = []
    for y in (Y, np.where(sizes == 0, 0, Y)):  # the largest part has both classes, or one
        fit_teachers(engine, X, y, sizes, n_teachers=4, n_classes=2, random_state=0, verbose=2)
        # Which steps a bar draws depends on the clock of a busy machine; its title and its length do not.
        shown.append(set(re.findall(r"(\w+): .*/(\d+)", capfd.readouterr().err.replace("\r", "\n"))))
    assert shown[0] == shown[1] == {("teachers", n) for _, n in shown[0]} != set()


def test_silence_ends_with_the_last_who_asked_for_it_and_restores_everything():
    before = sys.stdout, sys.stderr, list(warnings.filters), logging.root.manager.disable
    inside, leave = threading.Event(), threading.Event()

    def other():
        with silence():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with silence():
        thread.start()
        inside.wait(10)
    muted = sys.stdout
    assert muted is not before[0] and open_stream(muted) is before[0]
    leave.set()
    thread.join()
    assert (sys.stdout, sys.stderr, list(warnings.filters), logging.root.manager.disable) == before
    with pytest.raises(KeyboardInterrupt), silence():
        raise KeyboardInterrupt
    assert sys.stdout is before[0]


def test_an_interrupt_while_silence_begins_leaves_nothing_silent(monkeypatch):
    before, disable = (sys.stdout, sys.stderr, list(warnings.filters)), logging.disable

    def interrupted(level):
        monkeypatch.setattr(logging, "disable", disable)
        raise KeyboardInterrupt

    monkeypatch.setattr(logging, "disable", interrupted)
    with pytest.raises(KeyboardInterrupt), silence():
        pass
    assert (sys.stdout, sys.stderr, list(warnings.filters)) == before
    with silence():
        assert sys.stdout is not before[0]
    assert (sys.stdout, sys.stderr, list(warnings.filters)) == before


def test_a_stream_that_was_redirected_during_a_silence_speaks_again_afterwards():
    target, keeps = io.StringIO(), contextlib.ExitStack()
    with contextlib.redirect_stdout(target):
        with silence():
            keeps.enter_context(contextlib.redirect_stdout(io.StringIO()))
            print("into the other stream")
        keeps.close()  # puts the muted stream back, after the silence
        print("aloud", flush=True)
    assert target.getvalue() == "aloud\n"


def test_ctrl_c_during_a_private_fit_ends_the_fit():
    class Interrupted(Odd):
        def fit(self, X, y):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        votes_of(Interrupted(), X, Y)
    assert not isinstance(open_stream(sys.stdout), type(None)) and open_stream(sys.stdout) is sys.stdout
