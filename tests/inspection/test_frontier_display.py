"""ParetoFrontierDisplay: what is drawn, and what is never drawn together."""

import builtins
import json
import re

import numpy as np
import pandas as pd
import pytest

from skfairdp.inspection import ParetoFrontierDisplay
from tests._tools.inside import epsilon_text
from tests._tools.searches import make_frame, two_guarantees

pytest.importorskip("matplotlib").use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def _offsets(ax):
    return np.concatenate([np.asarray(c.get_offsets()).reshape(-1, 2) for c in ax.collections])


def test_every_model_is_drawn_once_and_the_legend_says_what_epsilon_protects():
    frame = make_frame()
    display = ParetoFrontierDisplay.from_frame(frame)
    drawn = {tuple(np.round(point, 9)) for point in _offsets(display.ax_) if np.isfinite(point).all()}
    assert drawn == {tuple(np.round(point, 9)) for point in frame[["disparity", "accuracy"]].to_numpy()}
    legend = display.ax_.get_legend()
    assert "ε protects one record" in legend.get_title().get_text()
    assert "replace one record, δ = 1e-5" in legend.get_title().get_text()
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts[:3] == ["ε = 0.5", "ε = 1", "ε = 5"] and "IDP3 on top of a fair student" in texts
    assert any("ε = 5.3 at δ = 1e-5" in text.get_text() for text in display.ax_.texts)
    assert display.figure_ is display.ax_.figure


def test_dominated_points_are_faded_and_colours_differ_by_epsilon():
    frame = make_frame()
    frame.loc[0, "non_dominated"] = False
    ax = ParetoFrontierDisplay.from_frame(frame).ax_
    alphas, colors = {}, {}
    for collection in ax.collections:
        for point in np.asarray(collection.get_offsets()).reshape(-1, 2):
            if np.isfinite(point).all():
                alphas[tuple(np.round(point, 9))] = collection.get_alpha()
                inside = collection.get_facecolor()  # hollow for those who refuse
                colors[tuple(np.round(point, 9))] = tuple([*inside, *collection.get_edgecolor()][0][:3])
    keys = [tuple(np.round(point, 9)) for point in frame[["disparity", "accuracy"]].to_numpy()]
    assert alphas[keys[0]] < 0.5 < alphas[keys[-1]]
    by_epsilon = {
        epsilon: {colors[k] for k, e in zip(keys, frame["epsilon"], strict=True) if e == epsilon}
        for epsilon in (0.5, 1.0, 5.0)
    }
    assert all(len(group) == 1 for group in by_epsilon.values()) and len(set.union(*by_epsilon.values())) == 3


def test_unlike_guarantees_get_axes_of_their_own():
    display = ParetoFrontierDisplay.from_frame(two_guarantees())
    assert len(display.ax_) == 2
    titles = [ax.get_legend().get_title().get_text() for ax in display.ax_]
    assert "one record" in titles[0] and "one sensitive attribute" in titles[1]
    from matplotlib import pyplot

    with pytest.raises(ValueError, match="needs 2 axes, one for each kind of guarantee"):
        ParetoFrontierDisplay.from_frame(two_guarantees(), ax=pyplot.subplots()[1])


def test_different_data_sets_get_axes_of_their_own():
    both = pd.concat([make_frame(), make_frame(dataset="other")], ignore_index=True)
    assert len(ParetoFrontierDisplay.from_frame(both).ax_) == 2


def test_given_axes_and_columns_are_used():
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    display = ParetoFrontierDisplay(make_frame(), x="epsilon", y="coverage").plot(ax=ax)
    assert display.ax_ is ax and display.figure_ is figure
    assert ax.get_xlabel() == "Privacy cost ε" and ax.get_ylabel().startswith("Coverage")


@pytest.mark.parametrize("x", ["gamma", None, "params"])
def test_unknown_column_is_an_error_that_lists_the_allowed_ones(x):
    with pytest.raises(ValueError, match=r"'x' parameter of ParetoFrontierDisplay must be one of .*accuracy"):
        ParetoFrontierDisplay(make_frame(), x=x)


def test_frame_that_is_no_frontier_is_refused():
    with pytest.raises(ValueError, match=r"lacks the column\(s\) \['protects', 'coverage'\]"):
        ParetoFrontierDisplay(make_frame().drop(columns=["protects", "coverage"]))
    with pytest.raises(ValueError, match="has no rows"):
        ParetoFrontierDisplay(make_frame().iloc[:0])
    with pytest.raises(TypeError, match="needs the DataFrame"):
        ParetoFrontierDisplay([1, 2])


def test_page_needs_no_matplotlib_and_plot_says_how_to_get_it(monkeypatch, tmp_path):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    display = ParetoFrontierDisplay(make_frame())
    assert display.to_html(tmp_path / "page.html").stat().st_size < 120_000
    with pytest.raises(ImportError, match=r"pip install 'skfairdp\[plots\]'"):
        display.plot()


# --- the text of the page
# ------------------------------------------------------------------------------------------


def _data(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def test_page_holds_every_figure_of_the_frame(tmp_path):
    frame = make_frame()
    data = _data(ParetoFrontierDisplay(frame).to_html(tmp_path / "page.html").read_text("utf-8"))
    (panel,) = data["panels"]
    for ours, theirs in (
        ("gap", "disparity"),
        ("accuracy", "accuracy"),
        ("epsilon", "epsilon"),
        ("coverage", "coverage"),
    ):
        assert [point[ours] for point in panel["points"]] == frame[theirs].tolist()
    assert [point["gamma"] for point in panel["points"][:5]] == [0.01, 0.01, 0.05, 0.05, None]
    assert panel["total"] == 5.3 and panel["protects"] == "record" and "1,000 test rows" in panel["detail"]
    assert len(panel["colors"]["light"]) == len(panel["levels"]) == 3


def test_code_on_the_page_is_python_that_says_what_a_new_fit_costs(tmp_path):
    panel = _data(ParetoFrontierDisplay(make_frame()).to_html(tmp_path / "p.html").read_text("utf-8"))["panels"][0]
    for point in panel["points"]:
        compile(point["code"], "page", "exec")
        assert ("IDP3(" in point["code"]) == point["idp3"] and "new release" in point["code"]


def test_unlike_guarantees_are_separate_panels(tmp_path):
    panels = _data(ParetoFrontierDisplay(two_guarantees()).to_html(tmp_path / "p.html").read_text("utf-8"))["panels"]
    assert [panel["protects"] for panel in panels] == ["record", "sensitive attribute"]
    assert all(panel["heading"] for panel in panels) and sum(len(panel["points"]) for panel in panels) == 25


def test_page_refers_to_nothing_outside_itself(tmp_path):
    page = ParetoFrontierDisplay(make_frame()).to_html(tmp_path / "p.html").read_text("utf-8")
    links = re.findall(r"""(?:src|href|action)\s*=\s*["']([^"']*)""", page) + re.findall(r"url\(([^)]*)", page)
    assert set(links) <= {"data:,", "#content"}
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) <= {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "default-src 'none'" in page and "@@" not in page


def test_hostile_names_stay_text(tmp_path):
    frame = make_frame(dataset="</script><script>alert(1)</script>@@DATA@@")
    frame["params"] = "</script><img src=x onerror=alert(2)>"
    page = ParetoFrontierDisplay(frame).to_html(tmp_path / "p.html", title="<b>&</b>").read_text("utf-8")
    assert page.count("</script>") == 2 and "<img" not in page and "<title>&lt;b&gt;&amp;&lt;/b&gt;</title>" in page
    assert _data(page)["panels"][0]["subject"].startswith("</script>")


def test_figures_that_are_not_finite_become_null(tmp_path):
    frame = make_frame()
    frame.loc[0, ["accuracy", "disparity"]] = np.nan
    frame.loc[:4, "epsilon"] = np.inf
    frame.attrs["guarantees"][0]["epsilon_total"] = np.inf
    panel = _data(ParetoFrontierDisplay(frame).to_html(tmp_path / "p.html").read_text("utf-8"))["panels"][0]
    assert panel["points"][0]["accuracy"] is None and panel["points"][0]["epsilon"] is None and panel["total"] is None
    assert "not certified" in panel["sentence"]
    ParetoFrontierDisplay(frame).plot()


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.5"), (0.4981, "0.499"), (5.7001, "5.71"), (12.31, "12.4"), (1, "1"), (np.inf, "∞")]
)
def test_epsilon_is_never_shown_smaller_than_it_is(value, text):
    assert epsilon_text(value) == text
    assert float(text.replace("∞", "inf")) >= value


def test_ways_of_refusing_are_told_apart(tmp_path):
    frame = make_frame()
    frame["student_gamma"] = frame["gamma"]
    alone = frame["idp3"] & (frame["gamma"] == 0.05)
    frame.loc[alone, "student_gamma"] = np.nan
    frame.loc[alone, "params"] = "FairPATEClassifier(gamma=None)"
    texts = [text.get_text() for text in ParetoFrontierDisplay.from_frame(frame).ax_.get_legend().get_texts()]
    assert "IDP3 on top of a fair student" in texts and "IDP3 alone: refuses more" in texts
    panel = _data(ParetoFrontierDisplay(frame).to_html(tmp_path / "p.html").read_text("utf-8"))["panels"][0]
    assert [point["kind"] for point in panel["points"][:5]] == ["no", "top", "no", "alone", "no"]
    assert "IDP3(FrozenEstimator(model), gamma=0.05)" in panel["points"][3]["code"]
    assert "model = FairPATEClassifier(gamma=None)" in panel["points"][3]["code"]


# ---- searches, several frames, estimators ---------------------------------------------------------------------
class _Search:
    """What the display reads of a fitted search."""

    def __init__(self, frame, noise, protects="record", relation="replace one record", delta=1e-5):
        from skfairdp.privacy import GaussianDpEvent, PrivacySpent

        self.pareto_table_ = frame
        self.privacy_ = PrivacySpent.of(GaussianDpEvent(noise), delta, protects=protects, neighboring_relation=relation)


def test_from_search_composes_what_searches_cost_together():
    from skfairdp.privacy import gdp_epsilon

    first, second = _Search(make_frame(), 4.0), _Search(make_frame(epsilons=(2.0,)), 3.0)
    alone = ParetoFrontierDisplay.from_search(first)
    assert alone.frame is first.pareto_table_
    both = ParetoFrontierDisplay.from_search({"first": first, "second": second})
    assert set(both.frame["estimator"]) == {"first", "second"} and len(both.frame) == 20
    together = gdp_epsilon(np.hypot(1 / 4, 1 / 3), 1e-5)
    record = both.frame.attrs["guarantees"][0]
    assert record["epsilon_total"] == pytest.approx(together) and record["n_fits"] == 6
    # Judged anew, over both.
    assert both.frame["non_dominated"].tolist() != [*make_frame()["non_dominated"], *[True] * 5]
    assert first.pareto_table_["estimator"].eq("FairPATEClassifier").all()  # the search's own table is left alone


def test_searches_with_unlike_guarantees_or_deltas_are_never_added():
    record = _Search(make_frame(), 4.0)
    attribute = _Search(
        make_frame("sensitive attribute", "replace one sensitive attribute"), 4.0,
        "sensitive attribute", "replace one sensitive attribute",
    )  # fmt: skip
    display = ParetoFrontierDisplay.from_search([record, attribute])
    assert len(display.ax_) == 2 and len(display.frame.attrs["guarantees"]) == 2
    other_delta = ParetoFrontierDisplay.from_search([record, _Search(make_frame(), 4.0, delta=1e-6)])
    assert np.isnan(other_delta.frame.attrs["guarantees"][0]["epsilon_total"])
    assert "not certified" in other_delta.ax_.texts[0].get_text()


def test_a_private_search_has_nothing_to_show():
    from skfairdp import PATEClassifier, PrivateSearchCV

    with pytest.raises(ValueError, match="only the winner may be seen"):
        ParetoFrontierDisplay.from_search(PrivateSearchCV(PATEClassifier(), {"epsilon": [1.0]}))


def test_several_frames_share_axes_where_their_guarantee_is_the_same_and_their_total_is_not_known():
    display = ParetoFrontierDisplay.from_frame([make_frame(), make_frame(epsilons=(2.0,))])
    assert len(display.frame) == 20
    assert np.isnan(display.frame.attrs["guarantees"][0]["epsilon_total"])
    assert len(ParetoFrontierDisplay.from_frame([make_frame(), make_frame("sensitive attribute", "r")]).ax_) == 2


def test_fitted_estimators_are_measured_and_composed():
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    from skfairdp import IDP3, PATEClassifier, RandomizedResponseClassifier
    from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    from skfairdp.metrics import demographic_disparity
    from skfairdp.privacy import compose, epsilon_of

    split = train_private_public_test_split(
        *make_biased_classification(3000, disparity=0.3, random_state=0), random_state=0
    )
    test = {"sensitive_features": split.sensitive_features_test, "dataset": "toy"}
    pate = PATEClassifier(epsilon=50.0, n_teachers=10, classes=[0, 1]).fit(split.X, split.y, X_public=split.public)
    refusing = IDP3(FrozenEstimator(pate), gamma=0.05, min_count=50, groups=[0, 1])
    refusing.fit(split.public.X, sensitive_features=split.public.sensitive_features)
    attribute = RandomizedResponseClassifier(groups=[0, 1]).fit(
        split.X, split.y, sensitive_features=split.sensitive_features
    )
    models = {"PATE": pate, "PATE, refusing": refusing, "RR": attribute}
    display = ParetoFrontierDisplay.from_estimators(models, split.X_test, split.y_test, **test)
    assert len(display.ax_) == 2  # records and attributes apart
    rows = display.frame.set_index("estimator")
    assert rows.loc["PATE", "accuracy"] == pytest.approx(pate.score(split.X_test, split.y_test))
    gap = demographic_disparity(
        split.y_test, pate.predict(split.X_test), sensitive_features=split.sensitive_features_test
    )
    assert rows.loc["PATE", "disparity"] == pytest.approx(gap)
    assert rows.loc["PATE, refusing", "coverage"] < 1 and rows.loc["PATE, refusing", "idp3"]
    totals = {record["protects"]: record["epsilon_total"] for record in display.frame.attrs["guarantees"]}
    assert totals["record"] == pate.privacy_.epsilon  # one release, shown twice
    plain = LogisticRegression().fit(split.X, split.y)
    with pytest.raises(ValueError, match="no privacy_"):
        ParetoFrontierDisplay.from_estimators([plain], split.X_test, split.y_test, **test)
    other = PATEClassifier(n_teachers=10, classes=[0, 1]).fit(split.X, split.y, X_public=split.public)
    listed = ParetoFrontierDisplay.from_estimators([pate, other], split.X_test, split.y_test, **test)
    assert listed.frame["estimator"].tolist() == ["PATEClassifier 1", "PATEClassifier 2"]
    both = epsilon_of(compose(pate.privacy_.event, other.privacy_.event), 1e-5)
    assert listed.frame.attrs["guarantees"][0]["epsilon_total"] == pytest.approx(both)


def test_panels_show_every_pair_and_one_legend_a_row():
    display = ParetoFrontierDisplay(two_guarantees()).plot_panels()
    assert display.ax_.shape == (2, 4)  # coverage is not 1 everywhere
    legends = [[ax.get_legend() is not None for ax in row] for row in display.ax_]
    assert legends == [[False, False, False, True]] * 2
    assert [ax.get_xlabel()[:3] for ax in display.ax_[0]] == ["Fai", "Pri", "Pri", "Cov"]
    for ax, points in zip(display.ax_[:, 0], (15, 10), strict=True):
        drawn = {tuple(np.round(point, 9)) for point in _offsets(ax) if np.isfinite(point).all()}
        assert len(drawn) == points


def test_surface_is_the_best_accuracy_within_both_bounds():
    from tests._tools.inside import staircase_surface

    rng = np.random.default_rng(0)
    epsilon, gap, accuracy = rng.integers(1, 4, 30).astype(float), rng.random(30).round(1), rng.random(30)
    bounds_e, bounds_g, best = staircase_surface(epsilon, gap, accuracy)
    for i, e in enumerate(bounds_e):
        for j, g in enumerate(bounds_g):
            met = [a for x, y, a in zip(epsilon, gap, accuracy, strict=True) if x <= e and y <= g]
            assert best[i, j] == max(met) if met else np.isnan(best[i, j])


def test_surfaces_of_unlike_guarantees_have_axes_of_their_own_and_fade_what_is_beaten():
    frame = two_guarantees()
    frame.loc[0, "non_dominated"] = False
    display = ParetoFrontierDisplay(frame).plot_surface()
    assert len(display.ax_) == 2
    assert "one record" in display.ax_[0].get_xlabel() and "one sensitive attribute" in display.ax_[1].get_xlabel()
    alphas = {c.get_alpha() for c in display.ax_[0].collections if type(c).__name__ == "Path3DCollection"}
    assert alphas == {0.2, 1.0}
    seeded = make_frame().assign(epsilon=np.inf)
    assert "No model has a finite" in ParetoFrontierDisplay(seeded).plot_surface().ax_[0].texts[0].get_text()


def test_code_of_the_page_fits_what_the_estimator_takes():
    from skfairdp.inspection._html import _code

    row = {"epsilon": 1.0}
    pfld = _code("PFLDClassifier(epsilon=1.0)", None, False, row)
    assert "model.fit(X, y, sensitive_features=groups)" in pfld and "PublicData" not in pfld
    pate = _code("FairPATEClassifier(epsilon=1.0, gamma=0.05)", 0.05, True, row)
    assert "X_public=PublicData(X_public, groups_public)" in pate and "IDP3(FrozenEstimator(model), gamma=0.05)" in pate
    inside = _code("IDP3(estimator=PATEClassifier(epsilon=1.0), gamma=0.1)", 0.1, True, row)
    assert "from skfairdp import IDP3, PATEClassifier" in inside and "FrozenEstimator" not in inside
    for code in (pfld, pate, inside):
        compile(code, "page", "exec")


def test_page_says_where_figures_of_a_search_come_from():
    from tests._tools.inside import frontier_page

    frame = make_frame()
    frame.attrs = {"guarantees": frame.attrs["guarantees"], "scored_on": "private"}
    assert "noisy tables of held-out private rows, covered by this ε" in frontier_page(frame)
    frame.attrs["scored_on"] = "public"
    page = frontier_page(frame)
    assert "public rows with labels, not covered by ε" in page and "share one" in page
    assert "test rows" in frontier_page(make_frame())


def test_a_whisker_leads_from_each_gap_to_its_bound_and_stretches_no_axis():
    from matplotlib.collections import LineCollection

    frame = make_frame()
    bounded = frame.assign(gap_bound=frame["disparity"] + 0.5)
    plain, ax = (ParetoFrontierDisplay.from_frame(one).ax_ for one in (frame, bounded))
    lines = [path.vertices for c in ax.collections if isinstance(c, LineCollection) for path in c.get_paths()]
    assert len(lines) == len(frame)
    np.testing.assert_allclose(sorted(line[1, 0] - line[0, 0] for line in lines), 0.5)
    assert "gap at most, 95 % confidence" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert ax.get_xlim() == plain.get_xlim() and not any(isinstance(c, LineCollection) for c in plain.collections)
    other = ParetoFrontierDisplay.from_frame(bounded, x="epsilon", y="accuracy").ax_
    assert not any(isinstance(c, LineCollection) for c in other.collections)
