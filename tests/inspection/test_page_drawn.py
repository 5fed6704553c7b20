"""What the page draws, at three widths and in both themes: its own script, run by node in a document of a few lines."""

import itertools
import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from skfairdp.inspection import ParetoFrontierDisplay, epsilon_meaning
from skfairdp.privacy import NeighboringRelation
from tests._tools.inside import frontier_page, parts_of
from tests._tools.searches import make_frame

NODE = shutil.which("node")
PAGE = Path(__file__).parents[1] / "_tools" / "page.js"
REFERENCES = [
    {"dataset": "toy", "name": "majority class", "private": True, "accuracy": 0.76,
     "disparity": 0.0, "coverage": 1.0},
    {"dataset": "toy", "name": "without privacy", "private": False, "accuracy": 0.86, "disparity": 0.16,
     "coverage": 1.0},
]  # fmt: skip
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")


def compared_frame():
    frame = make_frame()
    frame.attrs["references"] = REFERENCES
    return frame


def drawn(tmp_path, frame, width=800, theme="light"):
    path = ParetoFrontierDisplay(frame).to_html(tmp_path / "frontier.html")
    shown = subprocess.run([NODE, PAGE, path, str(width), theme], capture_output=True, text=True, check=True)
    found = json.loads(shown.stdout)
    assert found["ready"] == "yes" and not shown.stderr
    return found["page"]


def nodes(node):
    yield node
    for child in node["children"]:
        if isinstance(child, dict):
            yield from nodes(child)


def of_class(page, name):
    return [node for node in nodes(page) if name in node.get("class", "").split()]


@pytest.mark.few(2)
@needs_node
@pytest.mark.parametrize(("gap", "step"), [(0.15, 0.025), (0.125, 0.02), (0.05, 0.01), (0.3, 0.05), (0.016, 0.0025)])
def test_a_tick_is_written_with_as_many_digits_as_its_step_has(tmp_path, gap, step):
    """0.025, 0.075 and 0.125 were written as 0.03, 0.08 and 0.13."""
    frame = make_frame()
    frame["disparity"] *= gap / 0.1
    svg = next(node for node in nodes(drawn(tmp_path, frame)) if node["tag"] == "svg")
    middle = [node for node in nodes(svg) if node["tag"] == "text" and node.get("text-anchor") == "middle"]
    values = [float(node["text"]) for node in middle]
    places = [float(node["x"]) for node in middle]
    steps = np.diff(values)
    assert len(values) >= 4 and steps == pytest.approx(steps[0], rel=1e-9)  # equal steps on paper, equal steps in text
    assert np.diff(places) == pytest.approx(np.diff(places)[0], rel=1e-6)
    assert steps[0] == pytest.approx(step)
    scale = (places[-1] - places[0]) / (values[-1] - values[0])
    assert places == pytest.approx([places[0] + scale * (value - values[0]) for value in values])


@pytest.mark.covering
@needs_node
@pytest.mark.parametrize(("width", "theme"), [*itertools.product([340, 768, 1240], ["light", "dark"])])
def test_every_mark_lies_inside_the_plot_at_every_width(tmp_path, width, theme):
    page = drawn(tmp_path, compared_frame(), width, theme)
    svg = next(node for node in nodes(page) if node["tag"] == "svg")
    _, _, wide, high = map(float, svg["viewBox"].split())
    assert wide == max(320, width)
    marks = of_class(svg, "mark")
    assert len(marks) == len(make_frame())
    for mark in marks:
        x, y = (float(mark.get(name, mark.get(other))) for name, other in (("cx", "x"), ("cy", "y")))
        assert 40 < x < wide and 0 < y < high - 40
    assert len({mark["fill"] for mark in marks}) == 3
    crosses = of_class(svg, "ref")
    assert [cross["aria-label"] for cross in crosses] == [
        "majority class: 76.0 %, fairness gap 0.000",
        "without privacy: 86.0 %, fairness gap 0.160",
    ]
    for cross in crosses:
        (line,) = (node for node in nodes(cross) if node["tag"] == "path")
        x, y = map(float, re.match(r"M([\d.]+) ([\d.]+)l", line["d"]).groups())
        assert 40 < x < wide and 0 < y < high - 40


@needs_node
def test_who_answers_everyone_is_drawn_last_so_that_nothing_hides_it(tmp_path):
    marks = of_class(drawn(tmp_path, compared_frame()), "mark")
    best = [mark["tag"] for mark in marks if "faded" not in mark["class"]]
    assert "rect" in best and best == sorted(best, key=lambda tag: tag == "circle")


def compared_methods():
    """Two estimators at two budgets; their certified ε differ in the third digit, and one gap is not known."""
    frame = make_frame().head(6).assign(
        estimator=["FairPATEClassifier", "SyntheticDataClassifier"] * 3,
        epsilon=[0.4068, 0.4075, 0.4071, 0.9, 0.895, 0.891], idp3=False, coverage=1.0,
    )  # fmt: skip
    frame["disparity"] = [0.02, 0.05, 0.1, 0.03, 0.06, math.nan]
    frame.loc[frame.index[-1], "accuracy"] = 0.3
    frame.attrs.update(scored_on="held out", notes=["<b>predicts</b> one class for every row"])
    return frame


@needs_node
def test_methods_have_shapes_budgets_have_colours_and_nobody_is_left_out_in_silence(tmp_path):
    page = drawn(tmp_path, compared_methods())
    marks = of_class(page, "mark")
    assert len(marks) == 5 and len({mark["fill"] for mark in marks}) == 2
    assert len({(mark["tag"], mark["fill"]) for mark in marks}) == 4 and {mark["tag"] for mark in marks} == {
        "circle",
        "polygon",
    }
    (legend,) = of_class(page, "legend")
    said = [child for entry in legend["children"] for child in entry["children"] if isinstance(child, str)]
    assert said[:4] == ["0.408", "0.9", "FairPATEClassifier", "SyntheticDataClassifier"]
    (apart,) = of_class(page, "apart")
    assert apart["text"].startswith("1 of 6 models is in the table only: no fairness gap is known.")
    assert "larger ε" in apart["text"]
    (svg,) = (node for node in nodes(page) if node["tag"] == "svg")
    shares = [float(node["text"][:-2]) for node in nodes(svg) if node["tag"] == "text" and node["text"].endswith(" %")]
    assert min(shares) > 35  # the model without a place does not stretch the axis
    (warned,) = (node for node in nodes(page) if node["tag"] == "details")
    assert [node["text"] for node in nodes(warned) if node["tag"] == "li"] == [
        "<b>predicts</b> one class for every row"
    ]


@needs_node
def test_what_no_model_does_is_not_asked_for(tmp_path):
    heads = [node["text"] for node in nodes(drawn(tmp_path, compared_methods())) if node["tag"] == "button"]
    assert "IDP3" not in heads and "Coverage" not in heads and "Gap" in heads
    heads = [node["text"] for node in nodes(drawn(tmp_path, make_frame())) if node["tag"] == "button"]
    assert "IDP3" in heads and "Coverage" in heads


def test_epsilons_of_one_budget_share_a_level_whose_name_bounds_them():
    (part,) = parts_of(compared_methods())
    assert part.levels == [0.4075, 0.9]
    assert part.level_of(part.rows["epsilon"]).tolist() == [0, 0, 0, 1, 1, 1]
    legend = ParetoFrontierDisplay.from_frame(compared_methods()).ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()][:2] == ["ε = 0.408", "ε = 0.9"]


@needs_node
def test_the_first_thing_said_is_what_it_costs_and_what_that_means(tmp_path):
    page = drawn(tmp_path, compared_frame())
    (said,) = of_class(page, "meaning")
    text = said["children"][0]["text"] + said["children"][1]
    assert text.startswith("What does ε = 5.3 mean? An attacker who sees all of this")
    assert "the guess is right at most 99.6 % of the time, and a random one 50 %. One record is one row" in text


def test_without_a_guarantee_nothing_is_said_to_be_bounded():
    frame = make_frame()
    frame.attrs["guarantees"][0]["epsilon_total"] = math.inf
    page = json.loads(re.search(r'id="data">(.*?)</script>', frontier_page(frame), re.S)[1])
    assert page["panels"][0]["meaning"] == page["panels"][0]["question"] == ""
    assert epsilon_meaning(math.nan, 1e-5, "record", "replace one record") == ""


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0, 20.0, 800.0])
def test_the_share_of_right_guesses_bounds_the_best_test_of_any_mechanism(epsilon, delta):
    """The worst mechanism with (ε, δ) tells with probability δ and else answers by randomised response."""
    said = epsilon_meaning(epsilon, delta, "record", "replace one record")
    told = float(re.search(r"at most ([\d.]+) %", said)[1]) / 100
    worst = (1 + delta + (1 - delta) * math.tanh(epsilon / 2)) / 2
    assert worst - 1e-12 <= told <= worst + 0.0011


@pytest.mark.parametrize("relation", ["replace one record by a null record", "replace all rows of one subject by none"])
def test_two_values_that_are_two_steps_apart_are_not_what_is_guessed(relation):
    said = epsilon_meaning(1.0, 1e-5, NeighboringRelation(relation).protects, relation)
    assert "there or left out" in said and "which of two values" not in said


def test_both_themes_have_enough_contrast_for_text():
    style = re.search(r"<style>(.*?)</style>", frontier_page(make_frame()), re.S)[1]
    for block in re.findall(r":root[^{]*\{([^}]*)\}", style)[:2]:
        color = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
        for text, least in (("ink", 7.0), ("soft", 4.5)):
            for ground in ("card", "bg"):
                assert contrast(color[text], color[ground]) >= least, (text, ground, color)


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_the_page_says_nothing_about_rows_that_it_does_not_know():
    """The footer said "held-out test rows" of searches on private folds as well."""
    frame = make_frame()
    frame.attrs["scored_on"] = "private"
    page = frontier_page(frame)
    assert "held-out test rows" not in page and "noisy tables of held-out private rows" in page


def test_the_picture_has_the_marks_to_compare_with_and_hollow_squares():
    display = ParetoFrontierDisplay(compared_frame()).plot()
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert {"majority class", "without privacy"} <= set(labels)
    hollow = [c for c in display.ax_.collections if len(c.get_offsets()) and not len(c.get_facecolor())]
    assert hollow
    circles = [c for c in display.ax_.collections if len(c.get_facecolor()) and len(c.get_offsets()) and c.zorder == 5]
    assert circles and max(c.zorder for c in hollow if len(c.get_paths()) and c.zorder != 6) < 5
    assert ParetoFrontierDisplay(compared_frame(), x="epsilon").plot().ax_.get_legend() is not None


def test_figures_on_the_axis_are_the_places_of_the_ticks():
    ax = ParetoFrontierDisplay(compared_frame()).plot().ax_
    ax.figure.canvas.draw()
    for place, label in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True):
        assert float(label.get_text().replace("\N{MINUS SIGN}", "-")) == pytest.approx(place, abs=1e-9)


@needs_node
def test_a_whisker_leads_from_a_gap_to_its_bound_and_ends_at_the_edge(tmp_path):
    frame = make_frame()
    frame["gap_bound"] = frame["disparity"] + np.where(np.arange(len(frame)) % 2, 0.01, 0.9)
    frame.loc[0, "gap_bound"] = math.nan
    page = drawn(tmp_path, frame)
    svg = next(node for node in nodes(page) if node["tag"] == "svg")
    lines = of_class(svg, "whisker")
    wide = float(svg["viewBox"].split()[2])
    assert len(lines) == len(frame) - 1
    assert all(float(line["x1"]) < float(line["x2"]) <= wide and line["y1"] == line["y2"] for line in lines)
    assert "95 % confidence" in json.dumps(page, ensure_ascii=False)
    assert not of_class(drawn(tmp_path, make_frame()), "whisker")
