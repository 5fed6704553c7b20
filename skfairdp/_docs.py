"""Texts that many docstrings share: written once here, put into the docstrings when a class is made.

A line that holds nothing but names in braces stands for whole entries::

    Parameters
    ----------
    {epsilon, delta}
    threshold : float, default=None
        A parameter of this class alone is described in its place.
    {noise_seed}

What differs between classes is no shared text: write it out in the class.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from textwrap import indent
from typing import Any, TypeVar

_Documented = TypeVar("_Documented", bound=Callable[..., Any])

_PLACE = re.compile(r"^(?P<indent>[ ]*)\{(?P<names>\w+(, \w+)*)\}$", re.MULTILINE)

_DEFAULT = re.compile(r"\{default ?(\w*)\}")

#: By name. ``{default}`` is the value in the signature of the class or function, ``{default x}`` that of a parameter x.
SHARED_TEXTS: dict[str, str] = {
    # ---- constructor parameters
    "epsilon": """\
epsilon : float, default={default}
    Privacy budget of this fit's own releases, greater than 0 and finite. Their certified figure never exceeds it.
    ``privacy_.epsilon`` is the total, with what was paid for before and is part of the model, such as its schema.""",
    "delta": """\
delta : float, default={default}
    Probability in (0, 1) with which the guarantee may fail. Choose it smaller than one in the number of records.""",
    "classes": """\
classes : array-like, default=None
    All class labels. None reads them from the private y, outside the guarantee, with a PrivacyLeakWarning.""",
    "public_classes": """\
classes : array-like, default=None
    All class labels. None takes those of y, which is public here.""",
    "groups": """\
groups : list, default=None
    All groups (tuples for intersections). None reads them from the private rows, outside the guarantee, with a
    PrivacyLeakWarning.""",
    "public_groups": """\
groups : list, default=None
    All groups (tuples for intersections). None takes those of the public rows.""",
    "sensitive_columns": """\
sensitive_columns : str, int or list of them, default=None
    Columns of X that hold the group. They are dropped from the features and still counted in ``n_features_in_``.""",
    "schema": """\
schema : Schema or dict, default=None
    All that is public about a raw table. With it, X is a DataFrame (pandas, polars, pyarrow) as it comes, with texts,
    dates and missing values. The label and the groups are columns of it, unless you pass ``y`` and
    ``sensitive_features``. Do not give ``classes``, ``groups`` or ``sensitive_columns`` as well. A private cell that
    the schema does not foresee counts as a bound, as missing, or as the first class or group. A public one is an
    error.""",
    "public_data": """\
public_data : PublicData, default=None
    Public rows, in place of ``X_public`` of ``fit``. Use it where you cannot pass anything to ``fit``, as in a
    StackingClassifier. ``clone`` shares it. Do not give both.""",
    "rows_asked": """\
public_data : PublicData or SyntheticRows, default=None
    The source of public rows, where ``fit`` gets no ``X_public``. :class:`PublicData` are rows of yours (``clone``
    shares them). :class:`SyntheticRows` are sampled from the private table's own noisy tables, within the same ε. None
    is ``SyntheticRows()``.""",
    "random_state": """\
random_state : int, RandomState, Generator or None, default=None
    Seeds public randomness, such as initial weights and the order of rows. It never seeds noise or secret samples.""",
    "noise_seed": """\
noise_seed : int, default=None
    For research and tests: makes noise and secret samples reproducible. ``privacy_.epsilon`` is then inf.""",
    "ledger": """\
ledger : PrivacyLedger, default=None
    Counts this fit with all others on the same data, and may refuse it. Charged before the first release. None takes
    that of the block ``with PrivacyLedger(...):`` around the fit, if there is one.""",
    "verbose": """\
verbose : int, default=0
    Above 0, show a progress bar.""",
    "n_jobs": """\
n_jobs : int, default={default}
    Number of joblib workers. Results do not depend on it.""",
    "device": """\
device : str, default="cpu"
    Where to train: a torch device, such as "cuda".""",
    # ---- fitted attributes
    "privacy_": """\
privacy_ : PrivacySpent
    The certified guarantee of the fit, and what it was computed from.""",
    "epsilon_spent_": """\
epsilon_spent_ : float
    Shorthand for ``privacy_.epsilon``.""",
    "classes_": """\
classes_ : ndarray of shape (n_classes,)
    Class labels, in the order of the columns of ``predict_proba``.""",
    "groups_": """\
groups_ : ndarray of shape (n_groups,), dtype object
    Groups, in the order of every array with one entry a group.""",
    "n_features_in_": """\
n_features_in_ : int
    Number of columns of X, sensitive ones included.""",
    "feature_names_in_": """\
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the columns of X. Only where all of them are strings.""",
    # ---- errors of fit
    "fit_raises": """\
Raises
------
BudgetExceededError
    From ``fit``, before the first release, when the ledger cannot afford it.
ValueError
    From ``fit``, on unusable input, before any budget is spent.""",
    # ---- parts of an ensemble and of a private training
    "n_teachers": """\
n_teachers : int or "auto", default="auto"
    Number of disjoint parts. "auto" balances the noise of the votes against what a part can learn, by the number
    of rows and ε: about ``4.5 (n_rows / μ²)^⅓``, of at least 8 rows each, where ε is Gaussian noise of μ.
    "auto" also releases noisy counts of the classes where so few rows cannot name the most frequent one, and noisy
    sums of the features of each class where there are public rows, enough private ones and the usual teachers.""",
    "teacher": """\
teacher : None, "logistic", "mlp", estimator or module, default=None
    What each part trains. None is ``LogisticTeachers(C=3.0)`` on columns in units of their spread among the public
    rows, "logistic" one with C=1 on columns as they are (all teachers in one batched Newton iteration), "mlp" a
    batched network (``MLPTeachers()``); any scikit-learn classifier is cloned per part, a torch module is batched.""",
    "max_queries": """\
max_queries : int, default=None
    The most public rows that teachers vote on. None takes all of them for soft votes, and at most 1000 otherwise.""",
    "noise_of_votes": """\
noise : {"gaussian", "discrete_gaussian"}, default="gaussian"
    The discrete Gaussian is sampled exactly, in integer arithmetic.""",
    "memory": """\
memory : str or joblib.Memory, default=None
    Cache of trained teachers, so that a sweep trains them once. **The cache holds private models, and rows where
    teachers hold them** (trees, neighbours): protect it like the data. Only its owner can enter the folder.""",
    "processes": """\
n_jobs : int, default=None
    Processes that train scikit-learn teachers (through joblib, and so dask or ray).""",
    "student_": """\
student_ : estimator
    Predicts class codes. Public: trained on released votes and public rows only.""",
    "what_was_asked": """\
n_teachers_, n_queries_, n_answered_ : int
    ``n_answered_`` counts released labels (public).
released_votes_ : ndarray
    Noisy shares (n_queries, n_classes) for "soft", class codes (−1: none) otherwise. Differentially private.
query_indices_ : ndarray of shape (n_queries,)
    Public rows asked about, in order.""",
    "no_better": """\
UtilityWarning
    By the released votes nothing was learned that is better than the most frequent class, or hardly.""",
    "X_or_source": """\
X : array-like of shape (n_rows, n_features)
    Private rows. With a ``schema`` and public rows also what does not fit into memory, with the label among the
    columns: a path of Parquet files, a ``pyarrow.dataset.Dataset``, a Polars LazyFrame, a dask or Spark
    DataFrame, a function without arguments that returns an iterable of DataFrames, or :class:`KeyedRows`.""",
    "subject": """\
subject : array-like of shape (n_rows,) or str, default=None
    One id per row, such as that of a person, or the name of the column of X that holds it, which is then no feature.
    All rows of one id are protected together, and the number of ids is public in place of that of rows. None protects
    each row by itself.""",
    "subject_of_a_group": """\
subject : array-like of shape (n_rows,) or str, default=None
    One id per row, such as that of a person, or the name of the column of X that holds it, which is then no feature.
    The group of all rows of one id is protected together: it is that of the first of them. Whose each row is counts as
    public, as features and labels do. None protects the group of each row by itself.""",
    "X_public": """\
X_public : array-like of shape (n_public, n_features) or PublicData, default=None
    Unlabelled public rows. Use :class:`PublicData` inside a search.""",
    "rows_read": """\
Parameters
----------
lam : float or None
    Weight of the fairness term; None is the usual one.

Returns
-------
arguments : dict
    Of ``read_training``: which rows and groups a fit reads.""",
    "parity_to_plan": """\
epsilon, delta : float
    Budget of the whole fit.
relation : NeighboringRelation
    Which data sets count as neighbours.""",
    "parity_terms": """\
Parameters
----------
plan : DPSGDPlan
    What the fit releases.
data : TrainingData
    Rows and groups, as read.
network : Network
    The network to be trained.
lam : float or None
    Weight of the fairness term; None is the usual one.
seed : int
    Public: decides which public rows a step takes.

Returns
-------
arguments : dict
    Of ``Network.trained``: what it adds to the private gradients.""",
    "looks_beside_a_fit": """\
epsilon, delta : float
    Of the fit.
relation : NeighboringRelation
share : float, default=1.0
    Of the squared cost of the fit, what is not spent on rates of groups.""",
    "judge_to_plan": """\
data : TrainingData
    With groups.
n_rows : int
    Declared, where a number is declared.
epsilon, delta : float
    Of the fit.
relation : NeighboringRelation
    Between two tables.""",
    "judged": """\
gap_ : float
    The largest difference between two groups, of the rates that are constrained, by the model's hard answers to its
    rows; of a RateBound or a ratio, by how much it is broken. NaN where noise hides all groups but one.
gap_bound_ : float
    What it is at most in the population, with a confidence of 95 %: noise and the sampling of these rows are in it.
    Rows that have taught the model make it look a little fairer than it is to others.
constraint_holds_ : {"yes", "no", "within the noise"}
    Whether all constraints hold in the population, by the same answers: surely, surely not, or neither. Like the other
    two, only where something was asked for.""",
    # ---- backends of a generator
    "layout": """\
layout : Layout
    What is public about the data.""",
    "returns_plan": """\
plan : BackendPlan
    The releases, with their event at every scale of noise.""",
    "discriminators": """\
n_teachers : int, default=100
    Discriminators on disjoint parts, dealt by position.
sampling, normalization, teacher_loss : str
    As for :class:`GSWGANBackend`.""",
    "teacher_steps": """\
teacher_steps : int, default={default}
    Steps of all discriminators before each release.""",
    "networks_of_gan": """\
hidden : tuple of int, "cnn" or ConvolutionalLayers, default=(64, 64)
    Widths of the hidden layers, of the generator and of the discriminators; or convolutions, for images.
latent : int, default={default latent}
    Random numbers that a generated row starts from.
lr, teacher_lr : float, default={default lr}, {default teacher_lr}
    Learning rates of the generator and of the discriminators.""",
    "gradients_of_discriminators": """\
n_discriminators : int
batch_size : int
clip : float
    C, of each row's gradient.""",
    # ---- columns of a schema
    "source_by_schema": """\
source : RowSource
schema : Schema
owner : str
    Class name for error messages.""",
    "labels_or_own": """\
y : array-like of shape (n_rows,), default=None
    None takes the table's own.""",
    "cells_of_labels": """\
Parameters
----------
y : array-like of shape (n_rows,), default=None
    None takes the table's own.

Returns
-------
ndarray of shape (n_rows,), dtype object""",
    "table_as_read": """\
table : DataFrame
    As for :meth:`read`.""",
    "path_of_schema": """\
path : str or Path
    Ends with .json, .yaml or .yml.""",
    "public_schema": """\
Parameters
----------
schema : Schema
    Public.""",
    "roles_of_columns": """\
label : str, default=None
    The column to predict.
groups : str or sequence of str, default=()
    The columns that are the sensitive attribute.""",
    "describes_or_raises": """\
Returns
-------
Schema
    The description.

Raises
------
ValueError
    Bounds or values are missing. The message lists them.""",
    "column_values": """\
Parameters
----------
values : Series or array-like of shape (n_rows,)
    Anything at all.""",
    # ---- loaders of data
    "include_sensitive": """\
include_sensitive : bool, default=False
    Keep the original columns of the group among the features.""",
    "return_X_y": """\
return_X_y : bool, default=False
    Return ``(data, target)`` only.

Returns
-------
Bunch""",
    "fetch_raises": """\
Raises
------
FileNotFoundError
    Neither the file nor OpenML can be reached. The message says how to give the folder.
ValueError
    The file is not the published table, or ``sensitive`` is not one of the allowed names.""",
    "face_size": """\
size : int, default={default size}
    Side of the images returned: each picture is cut to the square in its middle, then shrunk. It is public: choose it
    before you look at pictures that are not.
n_samples : int, default=None
    Read so many pictures, drawn without replacement. None reads all, in their order.
random_state : int, RandomState, Generator or None, default=None
    Draws them.""",
    "face_bunch": """\
Returns
-------
Bunch
    data : ndarray of shape (n_samples, 3 * size * size), float32 in [0, 1]; the channels red, green and blue, one
    after the other;
    target : ndarray of shape (n_samples,), int64, positions in ``target_names``;
    sensitive_features : ndarray of str, the names of the groups;
    image_shape : (3, size, size);""",
    "face_raises": """\
Raises
------
FileNotFoundError
    Labels or pictures cannot be found. The message says where to put what.
ImportError
    Pillow is not installed.
ValueError
    A file is damaged or not the published one, or a parameter is out of range.""",
    # ---- networks and their teachers
    "settings_of_net": """\
**settings
    Those of ``skorch.NeuralNetClassifier``: ``lr``, ``batch_size``, ``max_epochs``, ``optimizer``, ``optimizer__*``,
    ``device``.

Returns
-------
net : skorch.NeuralNetClassifier
    Configured, and not yet built.""",
    "trained_as_stacks": """\
epochs : int, default=30
    Passes of each teacher over its own rows.
batch_size : int, default=32
    Rows of each teacher in one step.
lr : float, default=1e-3
    Step size of Adam.
weight_decay : float, default=1e-4
    That multiple of each parameter is added to its gradient.
device : str, default="cpu"
    Where to train: a torch device, such as "cuda".""",
    # ---- displays
    "of_analysis": """\
Parameters
----------
analysis : PATEAnalysis

Attributes
----------
ax_ : matplotlib Axes
figure_ : matplotlib Figure""",
    "drawn_frontier": """\
x, y : {"disparity", "accuracy", "coverage", "epsilon"}, default="disparity", "accuracy"
    What the axes show.
ax : matplotlib Axes, or sequence of them, default=None
    As for :meth:`plot`.

Returns
-------
ParetoFrontierDisplay
    Drawn.""",
    # ---- audits
    "canaries_of_one_run": """\
scores : array-like of shape (n_canaries,)
    Larger scores speak for the canary being in. Ties are decided by position.
included : array-like of bool of shape (n_canaries,)
    Which canaries were in.""",
    "notes_of_one_run": """\
Raises
------
ValueError
    Scores not a finite vector, ``included`` of another length or not of booleans, or a parameter out of range.

Notes
-----
The run that is audited is a release, and ``included`` is its secret: audit with canaries that may be shown.""",
    "two_worlds": """\
Returns
-------
AuditResult

Raises
------
ValueError
    Shapes that do not fit, values that are not finite, fewer than 2 runs a world (8 for ``"clopper_pearson"`` and
    ``"band"``), or a parameter out of range.""",
    # ---- arguments of metrics
    "raises_as_demographic_disparity": """\
Raises
------
ValueError
    As for :func:`demographic_disparity`.""",
    "true_and_predicted": """\
y_true, y_pred : array-like of shape (n_rows,)
    True and predicted labels.""",
    "as_for_demographic_disparity": """\
sensitive_features, groups, reject_label : object
    As for :func:`demographic_disparity`.""",
    # ---- arguments and results of methods
    "X_private": """\
X : array-like of shape (n_rows, n_features)
    Private rows.""",
    "X_predict": """\
X : array-like of shape (n_rows, n_features)
    Rows with the columns seen in ``fit``.""",
    "y_private": """\
y : array-like of shape (n_rows,)
    Private labels.""",
    "sensitive_features_private": """\
sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
    Private group of each row; columns of a DataFrame form intersections. Needed unless ``sensitive_columns`` names
    them.""",
    "returns_self": """\
self : object
    The fitted estimator.""",
    "released_shares": """\
X : ndarray of shape (n_queries, n_features)
    Public rows that were answered.
shares : ndarray of shape (n_queries, n_classes)
    Released vote shares, noise included; one-hot rows for released labels.
noise_std : float, default=0.0
    Standard deviation of the noise in a share (public).""",
    "rows_of_parity": """\
X_public : ndarray of shape (n_public, n_features), default=None
    Rows on which disparity is measured; default ``X``.
groups : ndarray of int of shape (n_public,), default=None
    Group codes of those rows. Required where the student is held to parity.
n_groups : int, default=None
    Number of groups; default ``max + 1``.""",
    "returns_student": """\
self : object
    The fitted student.""",
    "names_of_codes": """\
domain : sequence of length n_groups
    Names of the groups, in the order of their codes.
classes : sequence of length n_classes
    Labels, in the order of their codes.""",
    "rows_of_a_fair_learner": """\
X : array-like of shape (n_rows, n_features)
    Rows to learn from.
y : array-like of shape (n_rows,)
    Their labels.
sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
    Groups; not read where ``group_weights`` is given.
group_weights : array-like of shape (n_rows, n_groups), default=None
    Membership of each row in each group; may be fractional or negative.""",
    "returns_gated": """\
Returns
-------
labels : ndarray of shape (n_rows,)
    Predictions, or the reject label.""",
    "returns_labels": """\
y_pred : ndarray of shape (n_rows,)
    Predicted class labels.""",
    "returns_scores": """\
scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
    Log-odds of the second of two classes; of more, numbers of which the softmax is the probability.""",
    "returns_proba": """\
proba : ndarray of shape (n_rows, n_classes)
    Probability of each class, in the order of ``classes_``.""",
}

#: Whole sections, for methods that have no other argument and result.
_OF_PREDICTIONS = "Parameters\n----------\n{X}\n\nReturns\n-------\n{result}"
SHARED_TEXTS |= {
    f"predicts_{kind}": _OF_PREDICTIONS.format(X=SHARED_TEXTS["X_predict"], result=SHARED_TEXTS[f"returns_{kind}"])
    for kind in ("labels", "proba", "scores")
}


def shared_docs(documented: _Documented) -> _Documented:
    """Put the shared texts into the docstrings of a function, or of a class and the methods it defines."""
    documented.__doc__ = _filled(documented.__doc__, documented)
    members = vars(documented).values() if inspect.isclass(documented) else ()
    for member in members:
        for layer in _layers(member):
            layer.__doc__ = _filled(layer.__doc__, layer)
    return documented


def _layers(member: Any) -> Iterator[Callable[..., Any]]:
    """The functions that a method is made of: classmethods and scikit-learn wrap some of them."""
    layer = getattr(member, "fn", getattr(member, "__func__", member))
    while inspect.isfunction(layer):
        yield layer
        layer = getattr(layer, "__wrapped__", None)


def _filled(doc: str | None, owner: Callable[..., Any]) -> str | None:
    if doc is None or not _PLACE.search(doc):  # python -OO has no docstrings
        return doc
    parameters = inspect.signature(owner).parameters

    def text(name: str) -> str:
        if name not in SHARED_TEXTS:
            raise KeyError(f"{owner.__qualname__}: no shared text {name!r}. Write it out, or add it to SHARED_TEXTS.")
        return _DEFAULT.sub(lambda of: repr(parameters[of[1] or name].default), SHARED_TEXTS[name])

    return _PLACE.sub(lambda at: indent("\n".join(map(text, at["names"].split(", "))), at["indent"]), doc)
