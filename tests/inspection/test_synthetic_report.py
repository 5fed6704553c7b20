"""SyntheticDataReport: its figures are counts, its page loads nothing and escapes what it shows."""

import html.parser

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skfairdp import PFGuardGenerator
from skfairdp.inspection import SyntheticDataReport
from skfairdp.metrics import downstream_scores, kl_to_uniform


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    kind = rng.choice(["a & b", "<script>alert(1)</script>"], 600)
    X = pd.DataFrame({"x": rng.normal(size=600), "<b>kind</b>": kind})
    X.loc[:59, "x"] = np.nan
    y, s = (rng.random(600) < 0.4).astype(int), rng.choice(["f", "m"], 600, p=[0.2, 0.8])
    generator = PFGuardGenerator(
        epsilon=5.0,
        balance="group_and_label",
        bounds={"x": (-4, 4)},
        categories={"<b>kind</b>": sorted(set(X["<b>kind</b>"]))},
        classes=[0, 1],
        groups=["f", "m"],
    ).fit(X, y, sensitive_features=s)
    made = generator.sample_labels(400, return_sensitive=True, random_state=0)
    return X, y, s, made, generator.privacy_


@pytest.fixture(scope="module")
def report(tables):
    X, y, s, (X_new, y_new, s_new), privacy = tables
    return SyntheticDataReport.from_data(
        X,
        X_new,
        y_real=y,
        y_synthetic=y_new,
        sensitive_features_real=s,
        sensitive_features_synthetic=s_new,
        privacy=privacy,
        n_bins=5,
    )


def test_shares_are_counts_over_rows_and_add_up_to_one(tables, report):
    X, _, _, (X_new, y_new, _), _ = tables
    sums = report.marginals.groupby("column")[["real", "synthetic"]].sum()
    np.testing.assert_allclose(sums, 1.0)
    rows = report.marginals.set_index(["column", "cell"])
    assert rows.loc[("x", "missing"), "real"] == 0.1
    assert rows.loc[("x", "missing"), "synthetic"] == pytest.approx(X_new["x"].isna().mean())
    assert rows.loc[("<b>kind</b>", "a & b"), "real"] == pytest.approx((X["<b>kind</b>"] == "a & b").mean())
    assert rows.loc[("(label)", "1"), "synthetic"] == pytest.approx(np.mean(y_new == 1))
    np.testing.assert_allclose(rows.loc["x", "real"].to_numpy()[:5], 0.18, atol=0.01)  # quantiles of the real rows
    assert (report.total_variation >= 0).all() and report.total_variation["(label)"] < 0.1


def test_balance_is_that_of_the_metrics(tables, report):
    _, _, s, (_, _, s_new), _ = tables
    assert report.balance.loc["synthetic", "f"] == report.balance.loc["synthetic", "m"] == 0.5
    assert report.balance.loc["real", "kl_to_uniform"] == kl_to_uniform(s)
    assert kl_to_uniform(s_new) == 0


def test_the_downstream_table_is_trained_on_each_table_and_tested_on_the_same_rows(rows):
    report = SyntheticDataReport.from_data(
        rows.X,
        rows.X[::-1],
        y_real=rows.y,
        y_synthetic=1 - rows.y[::-1],
        estimators={"lr": LogisticRegression()},
        X_test=rows.X_public,
        y_test=rows.y_public,
        sensitive_features_test=rows.groups_public,
    )
    real, made = report.downstream.set_index("trained on").loc[["real", "synthetic"], "accuracy"]
    expected = downstream_scores(
        LogisticRegression(), rows.X, rows.y, rows.X_public, rows.y_public, sensitive_features=rows.groups_public
    )["accuracy"]
    assert real == expected and made == pytest.approx(1 - real, abs=0.01)
    with pytest.raises(ValueError, match="needs y_real, X_test"):
        SyntheticDataReport.from_data(
            rows.X,
            rows.X,
            y_synthetic=rows.y,
            estimators={"lr": LogisticRegression()},
            y_test=rows.y,
            sensitive_features_test=rows.groups,
        )
    with pytest.raises(ValueError, match="same columns"):
        SyntheticDataReport.from_data(rows.X, rows.X[:, :2])


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.attributes = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += [name for name, _ in attrs]


def test_the_page_loads_nothing_runs_nothing_and_escapes_names_and_values(report, tmp_path):
    path = report.to_html(tmp_path / "page.html", title="Rows <i>& more</i>")
    text = path.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert not {"script", "link", "img", "iframe", "b", "i"} & set(tags.seen)
    assert not {"src", "href", "onload", "onclick"} & set(tags.attributes)
    assert "default-src 'none'" in text and "http://" not in text and "https://" not in text
    assert tags.seen.count("figure") == 3 and tags.seen.count("svg") == 3
    assert "epsilon=5" in text and "not covered by any ε" in text
    assert report.private is False


def test_no_name_of_a_group_a_column_or_a_classifier_is_markup(tmp_path):
    bad = '"><img src=x onerror=alert(1)>'
    X, y, groups = pd.DataFrame({bad: np.arange(40) % 3}), np.arange(40) % 2, np.where(np.arange(40) % 3, bad, "m")
    report = SyntheticDataReport.from_data(
        X, X[::-1], y_real=y, y_synthetic=y, sensitive_features_real=groups, sensitive_features_synthetic=groups,
        estimators={bad: LogisticRegression()}, X_test=X, y_test=y, sensitive_features_test=groups, privacy=bad,
    )  # fmt: skip
    page = report.to_html(tmp_path / "page.html", title=bad).read_text(encoding="utf-8")
    assert "<img" not in page and page.count("&quot;&gt;&lt;img") >= 7
