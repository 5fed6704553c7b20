"""What a fit of the generator returns, raises and warns of follows from declarations and from releases alone.

A tape records every release of a fit on one table and hands the same ones out to a fit on another. Everything that can
be seen must then be the same to the byte: also where the two tables differ in every row, for a fit knows of its rows
only what it released.
"""

import io
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skfairdp import PFGuardGenerator, PrivacyLedger
from skfairdp.generative import TableCodec
from skfairdp.papers import DataLensBackend, GPATEBackend, GSWGANBackend, PATEGANBackend
from skfairdp.privacy import NoiseSource
from tests._tools.inside import density_ratios
from tests._tools.sources import installed

# So few rows that a group of them is hardly more than the noise; what is said about it is tested on its own.
pytestmark = pytest.mark.filterwarnings("ignore:.*have a released count below")

N = 120
SECRET = "hiv-positive-zone-77"
EXTREMES = [1e308, -1e308, 1e39, 5e-324, -0.0, np.inf, -np.inf]
STRANGE = [
    3.5,
    10**400,
    np.nan,
    None,
    pd.NA,
    pd.NaT,
    SECRET,
    "7",
    True,
    [1],
    ("t", 1),
    {"k": 1},
    1j,
    np.array([1.0, 2.0]),
    pd.Timestamp("2020-01-01"),
    np.timedelta64(3, "D"),
    b"bytes",
]
ENTRIES = [*EXTREMES, *STRANGE]
#: Of the pairs of a container and a column each takes every other entry, so that each entry meets each container and
#: each column; all of them meet in ``make test-all``.
every = pytest.mark.parametrize("step", [2, pytest.param(1, marks=pytest.mark.slow)])
COLUMNS = ["count", "size", "kind", "flag"]


def entries_of(container, column, step):
    return ENTRIES[(list(CONTAINERS).index(container) + COLUMNS.index(column)) % step :: step]


SMALL = {"n_teachers": 4, "n_steps": 2, "batch_size": 4, "hidden": (4,), "latent": 2}
NETWORKS = {
    "pate_gan": PATEGANBackend(student_steps=1, generator_steps=1, **SMALL),
    "gs_wgan": GSWGANBackend(**SMALL),
    "gs_wgan, one": GSWGANBackend(discriminators="one", **SMALL),
    "gs_wgan, dpsgd_f": GSWGANBackend(clipping="dpsgd_f", **SMALL),
    "gs_wgan, global_adapt": GSWGANBackend(clipping="global_adapt", **SMALL),
    "datalens": DataLensBackend(k=3, **SMALL),
    "g_pate": GPATEBackend(n_coordinates=2, **SMALL),
}


class Tape(NoiseSource):
    """Records releases; with those of another tape, hands these out instead."""

    def __init__(self, played=None):
        super().__init__(0)
        self.log, self._played = [], None if played is None else list(played.log)

    def release(self, mechanism, *private, **public):
        self._announce(mechanism, *private)
        shape = tuple(np.shape(value) for value in private)
        if self._played is None:
            self.log.append((mechanism, shape, mechanism.noisy(self, *private, **public)))
        else:
            self.log.append(self._played[len(self.log)])
            assert self.log[-1][:2] == (mechanism, shape), "what is released depends on the rows"
        return self.log[-1][2]


def seen(make, given, tape):
    """All that a user can see of a fit and of what is sampled."""
    with warnings.catch_warnings(record=True) as caught, installed(tape):
        warnings.simplefilter("always")
        try:
            X, y, s, *public = given
            options = {"X_public": public[0]} if public else {}
            model, error = make().fit(X, y, sensitive_features=s, **options), None
        except Exception as problem:
            model, error = None, problem
    out = {"warnings": [(w.category, str(w.message)) for w in caught], "error": (type(error), str(error))}
    if model is None:
        assert error.__context__ is None and error.__cause__ is None
        return out
    drawn = model.sample_labels(30, return_sensitive=True, random_state=0)
    frames = [pd.DataFrame(part if getattr(part, "ndim", 1) < 3 else part.reshape(len(part), -1)) for part in drawn]
    out["containers"] = [type(part) for part in drawn]
    out["types"] = [frame.dtypes.map(repr).tolist() for frame in frames] + [getattr(p, "dtype", None) for p in drawn]
    out["values"] = [frame.to_csv() for frame in frames]
    out["report"] = (repr(model.privacy_), model.privacy_.public, model.privacy_.performed)
    if not hasattr(model.model_, "net"):  # torch stores addresses
        out["model"] = pickle.dumps(model.model_)
    else:
        out["model"] = [value.numpy().tobytes() for value in model.model_.net.state_dict().values()]
    names = sorted(name for name in vars(model) if name not in ("model_", "privacy_"))
    out["attributes"] = {name: repr(vars(model)[name]) for name in names}
    out["codec"] = pickle.dumps(model._codec)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = model.refit(balance=None if model.groups_ is None else "group")
    out["refit"] = [str(w.message) for w in caught], again.rates_.tobytes(), repr(again.sample(30, random_state=0))
    assert SECRET.encode() not in pickle.dumps(model)
    return out


def same(make, here, *others):
    """Assert that a table is told apart from others by nothing but releases."""
    tape = Tape()
    first = seen(make, here, tape)
    for there in others:
        replayed = Tape(tape)
        second = seen(make, there, replayed)
        assert len(replayed.log) == len(tape.log), "how much is released depends on the rows"
        assert first.keys() == second.keys()
        for name, value in first.items():
            assert value == second[name], name
    return first


def columns(seed=0):
    """Entries of a table by column, the labels and the groups, as lists."""
    rng = np.random.default_rng(seed)
    table = {
        "count": rng.integers(0, 9, N).tolist(),
        "size": rng.normal(size=N).round(3).tolist(),
        "kind": rng.choice(["a", "b"], N).tolist(),
        "flag": (rng.random(N) < 0.5).tolist(),
    }
    return table, rng.choice(["no", "ok"], N, p=[0.7, 0.3]).tolist(), rng.choice(["f", "m"], N).tolist()


def as_frame(table):
    return pd.DataFrame({name: pd.Series(as_entries(entries)).infer_objects() for name, entries in table.items()})


def as_entries(entries):
    out = np.empty(len(entries), dtype=object)
    for i, entry in enumerate(entries):
        out[i] = entry
    return out


def as_categories(table):
    frame = as_frame(table)
    frame["kind"] = frame["kind"].map(str).astype("category")
    return frame


def as_rows(table):
    return [list(row) for row in zip(*table.values(), strict=True)]


def as_objects(table):
    return np.column_stack([as_entries(entries) for entries in table.values()])


CONTAINERS = {"frame": as_frame, "categories": as_categories, "lists": as_rows, "objects": as_objects}


def make(frame=True, **more):
    names = ["count", "size", "kind", "flag"] if frame else [0, 1, 2, 3]
    given = {
        "bounds": {names[0]: (0, 8), names[1]: (-3.0, 3.0)},
        "categories": {names[2]: ["a", "b"], names[3]: [False, True]},
        "classes": ["no", "ok", "no-show"],
        "groups": ["f", "m", "a long name"],
        "codec": TableCodec(n_bins=4),
        "random_state": 0,
    }
    return PFGuardGenerator(**{**given, **more})


@pytest.mark.covering
@every
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("column", COLUMNS)
def test_no_entry_of_a_declared_column_shows_in_anything_but_releases(container, column, step):
    """Whatever it does to the type of its column: integers become floats, everything becomes objects, strings widen."""
    build, (table, y, s), others = CONTAINERS[container], columns(), []
    for k, entry in enumerate(entries_of(container, column, step)):
        if container == "categories" and not isinstance(entry, str):
            continue
        position = (0, N - 1, 57)[k % 3]
        changed = {**table, column: [*table[column][:position], entry, *table[column][position + 1 :]]}
        others.append((build(changed), y, s))
    result = same(lambda: make(container in ("frame", "categories")), (build(table), y, s), *others)
    assert result["error"] == (type(None), "None")


@pytest.mark.covering
@every
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("container", ["frame", "objects"])
def test_no_entry_shows_where_public_rows_say_what_the_columns_are(container, column, step):
    build, (table, y, s), others = CONTAINERS[container], columns(), []
    public = build(columns(1)[0])
    for entry in entries_of(container, column, step):
        others.append((build({**table, column: [*table[column][:7], entry, *table[column][8:]]}), y, s, public))
    result = same(lambda: make(bounds=None, categories=None), (build(table), y, s, public), *others)
    assert result["error"] == (type(None), "None") and any("X_public" in fact for fact in result["report"][1])
    if container == "frame":
        assert result["types"][0] == [repr(dtype) for dtype in public.dtypes]


@pytest.mark.parametrize("container", ["frame", "lists", "objects"])
def test_groups_among_the_columns_show_in_releases_only(container):
    build, (table, y, s) = CONTAINERS[container], columns()
    frame = container == "frame"
    names = ["sex", "old"] if frame else [4, 5]
    domain = [(a, b) for a in ("f", "m", "a long name") for b in (0, 1)]

    def single():
        return make(frame, sensitive_columns=names, groups=domain)

    def given(sexes, ages):
        return build({**table, "sex": sexes, "old": ages}), y, None

    old = [k % 2 for k in range(N)]
    first = same(
        single,
        given(s, old),
        *(
            given([*s[:-1], rare], [*old[:-1], age])
            for rare, age in (("a long name", 1), ("f", 1.0), ("m", True), ("f", np.float32(0)))
        ),
    )
    assert first["error"] == (type(None), "None")
    for bad in (SECRET, None, 7, ["f"]):
        assert seen(single, given([*s[:-1], bad], old), Tape())["error"][1] == (
            "sensitive_features of PFGuardGenerator holds a value that is not in 'groups'. Add it to 'groups' "
            "(numbers are no texts), or drop those rows."
        )


@pytest.mark.parametrize("container", CONTAINERS)
def test_types_are_the_declared_ones(container):
    table, y, s = columns()
    frame = container in ("frame", "categories")
    X = CONTAINERS[container](table)
    model = make(frame).fit(X, y, sensitive_features=s)
    new, labels, groups = model.sample_labels(20, return_sensitive=True)
    assert labels.dtype == np.dtype("<U7") and groups.dtype == np.dtype("<U11")
    if not frame:
        assert new.dtype == object
        return
    assert new.dtypes.astype(str).tolist() == ["float64", "float64", str(pd.Series(["a"]).dtype), "bool"]
    kinds = pd.CategoricalDtype(["b", "a"], ordered=True)
    names = list(table)
    types = {"count": "Int16", "size": np.float32, "kind": kinds, "flag": "boolean"}
    typed = make(dtypes=types, categories=None)
    typed.fit(X, pd.Series(y, name="y"), sensitive_features=pd.DataFrame({"s": s}))
    new, labels, groups = typed.sample_labels(20, return_sensitive=True)
    assert new.dtypes.to_dict() == {name: pd.api.types.pandas_dtype(types[name]) for name in names}
    assert labels.name == "y" and list(groups.columns) == ["s"]


def test_one_label_or_group_more_changes_no_type():
    """Of a list of strings numpy's type is as wide as the longest of them."""
    table, y, s = columns()
    X = as_frame(table)
    containers = [list, np.array, as_entries, pd.Series, lambda entries: pd.Series(entries).astype("category")]
    for build in containers:
        first = same(make, (X, build(y), s), (X, build(["no-show", *y[1:]]), s))
        assert first["error"] == (type(None), "None")
        first = same(make, (X, y, build(s)), (X, y, build([*s[:-1], "a long name"])))
        assert first["error"] == (type(None), "None")


def test_intersections_of_groups_come_back_alike_from_every_container():
    table, y, s = columns()
    X, old = as_frame(table), [k % 2 for k in range(N)]
    domain = [("f", 0), ("f", 1), ("m", 0), ("m", 1), ("a long name", 2)]

    def single():
        return make(groups=domain)

    rare = (["a long name", *s[1:]], [2, *old[1:]])
    for build in (
        lambda a, b: pd.DataFrame({"s": a, "old": b}),
        lambda a, b: list(zip(a, b, strict=True)),
        lambda a, b: np.column_stack([as_entries(a), as_entries(b)]),
    ):
        first = same(single, (X, y, build(s, old)), (X, y, build(*rare)))
        assert first["error"] == (type(None), "None")


BAD_LABELS = [SECRET, "", None, np.nan, pd.NA, pd.NaT, 0, 1.5, ["no"], ("no",), {"no": 1}, np.array([1, 2])]


def as_series(entries):
    return pd.Series(as_entries(entries))


@pytest.mark.parametrize("build", [list, as_entries, as_series])
@pytest.mark.parametrize("what", ["classes", "groups"])
def test_all_labels_that_are_not_declared_raise_one_error_that_says_nothing(build, what):
    """Finding: "133 row(s) whose value is not among the 3 known ones", any number of times and for nothing."""
    table, y, s = columns()
    X, found = as_frame(table), set()
    for label in BAD_LABELS:
        for times in (1, 40):
            ledger = PrivacyLedger()
            bad = [label] * times
            given = (build([*bad, *y[times:]]), s) if what == "classes" else (y, build([*bad, *s[times:]]))
            with pytest.raises(ValueError) as caught:
                make(ledger=ledger).fit(X, given[0], sensitive_features=given[1])
            assert caught.value.__context__ is None and not ledger.entries
            found.add(str(caught.value))
    assert len(found) == 1 and not set(found.pop()) & set("0123456789")


def test_a_list_of_rows_of_unlike_lengths_says_so_and_no_more():
    table, y, s = columns()
    found = set()
    for bad in ([1, 2.0, "a", True, SECRET], [1], SECRET, 3, None, [], {"a": 1}):
        for position in (0, 5, N - 1):
            rows = as_rows(table)
            rows[position] = bad
            with pytest.raises(ValueError, match="one entry per row, all of the same shape") as caught:
                make(False).fit(rows, y, sensitive_features=s)
            found.add(str(caught.value))
    assert len(found) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("dtypes", [None, np.uint8])
def test_images_show_their_values_in_releases_only(dtypes):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (N, 2, 3)).astype(float)
    s = rng.choice(["f", "m"], N).tolist()

    def single():
        return PFGuardGenerator(
            backend=NETWORKS["gs_wgan"],
            bounds=(0, 255),
            dtypes=dtypes,
            groups=["f", "m"],
            classes=[0, 1],
            random_state=0,
        )

    y, others = rng.integers(0, 2, N), []
    for entry in ENTRIES:
        other = images.astype(object)
        other[3, 0, 0] = entry
        others.append((other, y, s))
    first = same(single, (images, y, s), *others)
    assert first["error"] == (type(None), "None")
    assert first["types"][-3] == np.dtype(dtypes or np.float64)


def test_images_in_lists_are_read_number_by_number_and_unlike_shapes_are_refused_in_one_way():
    rng = np.random.default_rng(0)
    images, y, s = rng.random((N, 2, 3)).tolist(), rng.integers(0, 2, N), ["f", "m"] * (N // 2)

    def single():
        return PFGuardGenerator(
            backend=NETWORKS["gs_wgan"], bounds=(0, 1), codec="units", classes=[0, 1], groups=["f", "m"], random_state=0
        )

    entries = [entry for entry in ENTRIES if not isinstance(entry, np.ndarray)]
    others = [([*images[:-1], [[entry, 0.5, 0.5], [0.5] * 3]], y, s) for entry in entries]
    assert same(single, (images, y, s), *others)["error"] == (type(None), "None")
    found = set()
    for bad in ([[0.5]], [], 3.0, None, SECRET, [[0.5] * 3, [0.5] * 2], np.zeros((2, 2))):
        for position in (0, N - 1):
            rows = [*images[:position], bad, *images[position + 1 :]]
            found.add(seen(single, (rows, y, s), Tape())["error"])
    assert len(found) == 1 and "must have one entry per row, all of the same shape" in found.pop()[1]


def test_an_array_of_bytes_says_that_it_is_one():
    images = np.random.default_rng(0).integers(0, 256, (N, 2, 3), dtype=np.uint8)
    model = PFGuardGenerator(backend=NETWORKS["gs_wgan"], balance=None).fit(images)
    assert model.sample(3).dtype == np.uint8
    assert "that X is an array of bytes" in {fact.name for fact in model.privacy_.public}


# ---- only what was released --------------------------------------------------------------------------------------
def unlike():
    """Two tables with no row in common; the second lacks the groups, labels and values that the first has."""
    table, y, _ = columns()
    here = (as_frame(table), y, ["f"] * (N - 2) + ["m"] * 2)
    there = as_frame(
        {"count": [8] * N, "size": np.linspace(1e3, 1e9, N).tolist(), "kind": ["b"] * N, "flag": [True] * N}
    )
    return here, (there, ["ok"] * N, ["f", "m", "a long name"] * (N // 3))


RATES = {
    "default": {},
    "fair": {"balance": "fair"},
    "groups": {"balance": "group"},
    "admissible": {"admissible": ["kind", "flag"]},
    "as it is": {"balance": None},
    "ranges paid for": {"bounds": None, "dtypes": {"count": int, "size": float}},
}


@pytest.mark.few(2)
@pytest.mark.parametrize("rates", RATES)
def test_two_tables_with_the_same_releases_give_the_same_bins_rates_pairs_and_warnings(rates):
    """Bins, rates, chosen pairs and what is said about small groups are functions of noisy counts."""
    here, there = unlike()
    for epsilon, one, two in ((50.0, here, there), (50.0, there, here), (0.5, here, there)):
        first = same(partial(make, epsilon=epsilon, **RATES[rates]), one, two)
        assert first["error"] == (type(None), "None")
        if rates == "default" and one is here:
            assert "have a released count below" in str(first["warnings"])


@pytest.mark.few(3)
@pytest.mark.parametrize("backend", NETWORKS)
def test_networks_are_the_same_for_two_tables_with_the_same_releases(backend):
    here, there = unlike()
    networks = clone(NETWORKS[backend]).set_params(n_teachers=6)
    seen_of_here = same(lambda: make(backend=networks, dtypes={"count": int}), here, there)
    assert seen_of_here["error"] == (type(None), "None")


# ---- teachers that are total -------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["pate_gan", "datalens"])
def test_which_missing_values_networks_make_follows_released_counts(backend):
    table, y, s = columns()
    half = {**table, "size": [None if j % 2 else value for j, value in enumerate(table["size"])]}
    first = same(
        lambda: make(backend=clone(NETWORKS[backend]), epsilon=1e5), (as_frame(half), y, s), (as_frame(table), y, s)
    )
    frame = pd.read_csv(io.StringIO(first["values"][0]))
    assert frame["size"].isna().any() and not frame["count"].isna().any()


@pytest.mark.covering
@pytest.mark.parametrize("backend", NETWORKS)
@pytest.mark.parametrize(
    "settings",
    [{}, {"sampling": "weights", "teacher_loss": "gold"}, {"normalization": "N2"}, {"sampling": "by_group"}],
    ids=["importance", "weights", "N2", "by_group"],
)
def test_no_part_of_the_rows_can_fail_a_fit(backend, settings, capsys):
    """Parts of a single row, of one label, of values beyond every float32: as many releases, no word more."""
    table, _, _ = columns()
    X = as_frame({**table, "size": [1e308, -1e308, np.nan, 5e-324] * (N // 4)})
    ledger = PrivacyLedger()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*have a released count below")
        teachers = clone(NETWORKS[backend]).set_params(n_teachers=N, verbose=1, **settings)
        model = make(backend=teachers, ledger=ledger)
        model.fit(X, ["no"] * N, sensitive_features=["f"] * N)
        printed = capsys.readouterr()
    assert model.sample(5).shape == (5, 4) and printed.out == ""
    assert set(printed.err) <= set("releases: /02█\r | 15%#")


@pytest.mark.parametrize("trouble", ["raises", "warns"])
def test_a_classifier_that_cannot_tell_a_part_from_public_rows_gives_even_weights(trouble):
    class Troubled(LogisticRegression):
        def fit(self, X, y):
            if trouble == "raises":
                raise ValueError(SECRET)
            warnings.warn(SECRET, UserWarning, stacklevel=2)
            return super().fit(X, y)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            ratios = density_ratios(np.zeros((4, 2)), np.ones((3, 2)), Troubled())
        except ValueError:
            pytest.fail("what goes wrong in a part ends the fit")
    assert not caught
    assert np.isfinite(ratios).all() and (trouble == "warns" or (ratios == 1).all())
