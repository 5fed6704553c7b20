"""Errors whose cause lies in private rows: one constant text each, the same however many rows and whatever values."""

import ast
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import skfairdp
from skfairdp._utils import PRIVATE_ERRORS
from skfairdp.baselines import GroupRandomizer
from skfairdp.exceptions import FairnessWarning
from tests._tools.sources import recording_noise
from tests.schema.test_schema import Hostile

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = np.arange(N) % 2
G = np.arange(N) // 2 % 2
PUBLIC = skfairdp.PublicData(RNG.normal(size=(20, 2)), np.arange(20) % 2)


def pate(y, g, X=X, ledger=None, **kwargs):
    return skfairdp.PATEClassifier(classes=[0, 1], ledger=ledger, n_teachers=3), (X, y), {"X_public": PUBLIC.X}


def fair_pate(y, g, X=X, ledger=None, own_rows=False):
    model = skfairdp.FairPATEClassifier(classes=[0, 1], groups=[0, 1], ledger=ledger, n_teachers=3)
    if own_rows:
        return model, (X, y), {"sensitive_features": g}
    return model, (X, y), {"X_public": PUBLIC}


def sf_pate(y, g, X=X, ledger=None):
    return skfairdp.SFPATEClassifier(classes=[0, 1], groups=[0, 1], ledger=ledger), (X, y), {"sensitive_features": g}


def pfld(y, g, X=X, ledger=None):
    return skfairdp.PFLDClassifier(classes=[0, 1], groups=[0, 1], ledger=ledger), (X, y), {"sensitive_features": g}


def dp_sgd(y, g, X=X, ledger=None):
    model = skfairdp.FairDPSGDClassifier(classes=[0, 1], groups=[0, 1], parity="signed_loss", ledger=ledger)
    return model, (X, y), {"sensitive_features": g}


def clipping(y, g, X=X, ledger=None):
    return (
        skfairdp.FairClippingClassifier(classes=[0, 1], groups=[0, 1], ledger=ledger),
        (X, y),
        {"sensitive_features": g},
    )


def generator(y, g, X=X, ledger=None):
    model = skfairdp.PFGuardGenerator(classes=[0, 1], groups=[0, 1], bounds=(-6, 6), ledger=ledger)
    return model, (X, y), {"sensitive_features": g}


def answers(y, g, X=X, ledger=None):
    model = skfairdp.RandomizedResponseClassifier(classes=[0, 1], groups=[0, 1], ledger=ledger)
    return model, (X, y), {"sensitive_features": g}


def pareto(y, g, X=X, ledger=None):
    base = skfairdp.FairPATEClassifier(classes=[0, 1], groups=[0, 1], ledger=ledger, n_teachers=3)
    search = skfairdp.ParetoSearchCV(base, {"gamma": [0.1, None]}, cv=2)
    return search, (X, y), {"X_public": PUBLIC, "sensitive_features": g}


def private_search(y, g, X=X, ledger=None):
    base = skfairdp.PATEClassifier(classes=[0, 1], ledger=ledger, n_teachers=3)
    return skfairdp.PrivateSearchCV(base, {"n_teachers": [2, 3]}), (X, y), {"X_public": PUBLIC.X}


FITS = {
    f.__name__: f
    for f in (pate, fair_pate, sf_pate, pfld, dp_sgd, clipping, generator, answers, pareto, private_search)
}
GROUPED = ("sf_pate", "pfld", "dp_sgd", "clipping", "generator", "answers")
ABOUT_X = {name: fit for name, fit in FITS.items() if name not in ("generator", "pareto", "private_search")}


def said(call):
    """Type and text of the error and of all behind it, and of the warnings on the way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            seen = [str(warning.message) for warning in caught]
            while error is not None:
                seen.append(f"{type(error).__name__}: {error} {getattr(error, '__notes__', '')}")
                error = error.__cause__ or error.__context__
            return seen
    return pytest.fail("no error")


def templates(kind):
    return re.compile(re.sub(r"\\\{\w+\\\}", r"[\\w ]+", re.escape(PRIVATE_ERRORS[kind].text)))


def outcome(fit, y, g, X=X, method="fit"):
    ledger = skfairdp.PrivacyLedger()
    model, rows, more = fit(y, g, X=X, ledger=ledger)
    error = said(lambda: getattr(model, method)(*rows, **more))
    assert len(ledger.entries) == 0, "an error of validation came after the charge"
    return error


def replaced(values, *entries):
    out = np.array(values, dtype=object)
    for row, entry in zip((5, 17, 40, 41, 42, 43), entries, strict=False):
        out[row] = entry
    return out


LABELS = {
    "one": [7],
    "many": [7, 8, 9, 7, 7, 7],
    "string": ["Ms Smith"],
    "huge": [10**400],
    "negative": [-(2**70)],
    "fraction": [0.5],
    "array": [np.array([1, 2])],
    "list": [[1]],
    "dict": [{"a": 1}],
    "object": [object()],
    "bytes": [b"a"],
    "tuple": [(0, 1)],
    "hostile": [Hostile()],
}


@pytest.mark.covering
@pytest.mark.parametrize("method", ["fit", "planned_privacy"])
@pytest.mark.parametrize("name", FITS)
def test_a_label_outside_the_classes_has_one_text_however_many_rows_and_whatever_type(name, method):
    if method == "planned_privacy" and name in ("pareto", "private_search"):
        pytest.skip("searches plan in their fit")
    outcomes = {kind: outcome(FITS[name], replaced(Y, *entries), G, method=method) for kind, entries in LABELS.items()}
    assert len({repr(error) for error in outcomes.values()}) == 1, outcomes
    only = outcomes["one"]
    assert len(only) == 1 and templates("unknown value").fullmatch(only[0].split(": ", 1)[1].strip()), only


@pytest.mark.covering
@pytest.mark.parametrize("method", ["fit", "planned_privacy"])
@pytest.mark.parametrize("name", GROUPED)
def test_a_group_outside_the_groups_has_one_text(name, method):
    hashable = {kind: LABELS[kind] for kind in ("one", "many", "string", "huge", "fraction", "bytes", "object")}
    outcomes = {kind: outcome(FITS[name], Y, replaced(G, *some), method=method) for kind, some in hashable.items()}
    assert len({repr(error) for error in outcomes.values()}) == 1, outcomes
    assert templates("unknown value").fullmatch(outcomes["one"][0].split(": ", 1)[1].strip()), outcomes


@pytest.mark.parametrize("name", GROUPED)
def test_a_group_that_is_no_label_has_one_text(name):
    outcomes = {kind: outcome(FITS[name], Y, replaced(G, *LABELS[kind])) for kind in ("array", "list", "dict")}
    assert len({repr(error) for error in outcomes.values()}) == 1, outcomes


@pytest.mark.covering
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, float("inf")], ids=str)
@pytest.mark.parametrize("name", FITS)
def test_missing_labels_have_one_text(name, missing):
    error = outcome(FITS[name], replaced(Y, missing, missing), G)
    kinds = ("missing value", "unknown value")  # infinity in a column of objects is a value like another
    assert any(templates(kind).fullmatch(error[0].split(": ", 1)[1].strip()) for kind in kinds), error
    assert error == outcome(FITS[name], replaced(Y, *[missing] * 5), G)


@pytest.mark.parametrize("name", ABOUT_X)
def test_a_cell_that_is_no_number_has_one_text(name):
    def with_cell(cell, rows=1):
        table = X.astype(object)
        table[3 : 3 + rows, 1] = cell
        return table

    cells = ["Ms Smith", b"\xff", {"a": 1}, [1], (1, 2), object(), 1j, pd.Timestamp("2020-01-01"), int]
    outcomes = {}
    for cell in cells:
        table = X.astype(object)
        table[3, 1] = cell
        outcomes[repr(cell)[:20]] = outcome(FITS[name], Y, G, X=table)
    assert len({repr(error) for error in outcomes.values()}) == 1, outcomes
    endless = [outcome(FITS[name], Y, G, X=with_cell(cell)) for cell in (np.nan, np.inf, 10**400, None)]
    assert len({repr(error) for error in endless}) == 1, endless


def test_the_randomizer_counts_nothing_aloud():
    ledger = skfairdp.PrivacyLedger()
    few, many = (replaced(G, *entries) for entries in ([7], [7, 7, 8]))
    randomizer = GroupRandomizer(groups=[0, 1], ledger=ledger)
    assert said(lambda: randomizer.release(few)) == said(lambda: randomizer.release(many))
    assert not ledger.entries


def test_texts_of_private_errors_have_places_for_names_only():
    for kind, error in PRIVATE_ERRORS.items():
        assert set(re.findall(r"\{(\w*)\}", error.text)) <= {"owner", "name", "parameter"}, kind
        assert error.why.endswith("."), kind


PACKAGE = Path(skfairdp.__file__).parent
#: Modules that read private rows, and what their other errors may quote: constructor parameters, and the shape that is
#: public under the relation of the estimator.
READING = {
    "_inputs/_training.py": (
        r"owner|name|type\(given\)\.__name__|way\.replace\('X', name\)"
        "|"
        r"owner|empty|len\(domain\)"  # an argument, and what kind of object it is
    ),
    "_inputs/_table.py": (
        r"owner|name|what|bound|whose|bounds|LARGEST_PUBLIC|n_columns|shape\[1\]|_few\((given|list\(names\))\)|"
        r"(un)?named|schema\.label|type\(schema\.columns\[str\(schema\.label\)\]\)\.__name__"  # columns are public
    ),
    "schema/_raw_table.py": (  # of the schema, of the class of a table, and of public rows
        r"owner|shown|unread|self\.owner|self\.schema\.label|name|type\(((self\.)?schema|table)\)\.__(name|module|qualname)__|"
        r"', '\.join\(map\(repr, twice\)\)|len\(wrong\)|way\.replace\('X', name\)|"
        r"wrong\[:5\]|label|_MISSING_ROLE( if set\(wrong\) & set\(also\) else '')?|"
        r"classes\.tolist\(\)|list\((columns|wanted)\)|len\((columns|wanted)\)"
    ),
    "_utils/_messages.py": r"owner|name",
    "_utils/_containers.py": r"owner|names?|', '\.join\(map\(repr, twice\[:5\]\)\)|len\(X\)|together|"
    r"LARGEST_DENSE / 2 \*\* 30",  # len(X): tables in a tuple
    "_utils/_labels.py": (
        r"owner|otherwise|n_rows|parameter|name|columns?|columns?!r|column|where|X\.ndim|X\.shape\[1\]|what"
    ),  # what: a label or a number, as a word
    "_teachers/_partition.py": (
        r"owner|name|value|type\(owner\)\.__name__|'an integer' if .*|f'.*|X\.shape\[1\]|n_features|above|least|lowest|"
        r"n_teachers|n_rows|n_classes|votes\.(shape|dtype)"
    ),
}


@pytest.mark.parametrize("module", READING)
def test_errors_on_private_rows_come_from_the_one_list(module):
    """What a module that reads private rows formats into a text of its own is named above, with the reason."""
    allowed = re.compile(READING[module])
    for node in ast.walk(ast.parse((PACKAGE / module).read_text())):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and "warn" in ast.unparse(node.func)):
            for place in (part for part in ast.walk(node) if isinstance(part, ast.FormattedValue)):
                shown = ast.unparse(place.value)
                assert allowed.fullmatch(shown), f"{module}:{node.lineno} shows {shown}"


@pytest.mark.parametrize("released", [2.0, 500.0])
def test_the_warning_of_small_groups_follows_released_counts_alone(released):
    """Two tables, one with a group of one row and one without, and the same noisy counts: both are told the same."""
    said_of = []
    for group in (np.arange(N) % 2, (np.arange(N) == 0).astype(int)):
        model = skfairdp.PFGuardGenerator(groups=[0, 1], bounds=(-6, 6), random_state=0, epsilon=5.0)
        counts = recording_noise(answer=lambda release: np.full_like(release.output, released))
        with warnings.catch_warnings(record=True) as caught, counts:
            warnings.simplefilter("always")
            model.fit(X, sensitive_features=group)
        said_of.append([str(w.message) for w in caught if issubclass(w.category, FairnessWarning)])
    assert said_of[0] == said_of[1]
    assert bool(said_of[0]) == (released < 10), "the noisy counts decide whether there is a warning"


def test_no_warning_tells_that_every_other_label_is_another_one():
    """scikit-learn 1.6 and 1.7 warn of it as soon as one label more is: newer ones do where targets are checked."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        skfairdp.PATEClassifier(classes=range(N), n_teachers=3).fit(X, np.arange(N) % (N - 9), X_public=PUBLIC.X)
    assert not any("unique classes" in str(one.message) for one in caught)
