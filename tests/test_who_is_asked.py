"""Every place where a model is asked: why no private row is counted there but by ``row_wise_predictions``.

A place that is new is a question: may its rows be private, and is what is said of them counted? Then it belongs behind
:mod:`skfairdp._row_wise`, or behind ``private_outputs`` where a network is asked.
"""

import re
from pathlib import Path

import skfairdp

PACKAGE = Path(skfairdp.__file__).parent
ASKS = re.compile(
    r"\.(?:predict|predict_proba|predict_log_proba|decision_function|_pmf_predict|score_samples|answers_at_levels)\("
    r"|\bpredict_logits\(|\bprobabilities\(\w|\bnetwork_view\(|\.forward\("
)

TO_COME = "rows to come: its own predict or score, after the fit"
PUBLIC = "public rows, or rows that were released"
TEACHERS = "teachers, each with its own part, on public rows: one record has one vote"
ATTRIBUTE = "features and labels, which are public where the group alone is protected"
MEASURED = "a model that is out, on rows that its user measures in the open"
OWN = "rows of one's own part, by what has seen this part alone"

WHY = {
    "_estimator.py": TO_COME,
    "_network_classifier.py": TO_COME,
    "_row_wise.py": "private rows: here each is asked alone",
    "_networks/_adversarial.py": OWN + "; shapes follow public numbers",
    "_networks/_mlp.py": OWN + "; shapes follow public numbers",
    "_teachers/_classifiers.py": TEACHERS,
    "_teachers/_teachers.py": TEACHERS,
    "baselines/_parity_logistic.py": TO_COME,
    "baselines/_randomized_response.py": ATTRIBUTE,
    "papers/_adversarial.py": OWN,
    "export/_onnx.py": "a row of zeros, of what answers every row alike",
    "generative/_synthetic_data_classifier.py": TO_COME,
    "generative/_synthetic_data_regressor.py": TO_COME,
    "gradient/_fair_dpsgd.py": PUBLIC,
    "gradient/_fair_dpsgd_regressor.py": TO_COME,
    "inspection/_audit_worlds.py": MEASURED,
    "inspection/_audit_estimator.py": MEASURED,
    "inspection/_html.py": "a line of code for the reader",
    "papers/_pate_analysis.py": TEACHERS,
    "lagrangian/_numpy_mlp.py": ATTRIBUTE,
    "lagrangian/_fld.py": ATTRIBUTE,
    "lagrangian/_pfld.py": ATTRIBUTE,
    "lagrangian/_stack.py": OWN + "; shapes follow public numbers",
    "metrics/_synthetic.py": MEASURED,
    "model_selection/_own_figures.py": PUBLIC + ": a row of first values",
    "model_selection/_search.py": TO_COME,
    "model_selection/_transfer.py": MEASURED,
    "pate/_query_plan.py": TEACHERS + "; class sums: " + PUBLIC,
    "pate/_constrained_student.py": PUBLIC,
    "pate/_fair_pate.py": PUBLIC,
    "pate/_fair_votes.py": TEACHERS,
    "pate/_student_training.py": PUBLIC,
    "pate/_parity_penalty_student.py": PUBLIC,
    "pate/_sfpate_student.py": ATTRIBUTE,
    "pate/_usefulness.py": PUBLIC,
    "postprocessing/_calibrator.py": TO_COME,
    "postprocessing/_constrained.py": PUBLIC,
    "postprocessing/_inputs.py": PUBLIC,
    "postprocessing/_idp3.py": TO_COME,
    "postprocessing/_private_barycenter.py": "behind row_wise_predictions; rows to come",
    "postprocessing/_group_guess.py": "behind row_wise_predictions, a network of its own; rows to come",
    "postprocessing/_private_thresholds.py": "behind row_wise_predictions, as what a row is answered; rows to come",
    "postprocessing/_thresholding.py": PUBLIC,
}


def test_there_is_a_reason_for_every_place_where_a_model_is_asked():
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        lines = [line for line in path.read_text().splitlines() if not line.strip().startswith((">>>", "...", "def "))]
        if ASKS.search("\n".join(lines)):
            found.add(path.relative_to(PACKAGE).as_posix())
    assert found == WHY.keys()


def test_what_counts_answers_of_private_rows_asks_by_the_one_function():
    for place in ("model_selection/_scores.py", "generative/_synthetic_data_classifier.py",
                  "model_selection/_own_figures.py", "postprocessing/_private_thresholds.py",
                  "postprocessing/_group_guess.py"):  # fmt: skip
        assert "row_wise_predictions(" in (PACKAGE / place).read_text(), place
    for place in ("gradient/_amounts.py", "gradient/_dpsgd.py", "gradient/_parity.py"):
        assert "in private_answers(" in (PACKAGE / place).read_text(), place
    assert "private_logits(" in (PACKAGE / "gradient/_parity.py").read_text()
    assert "private_outputs(" in (PACKAGE / "gradient/_signed_loss.py").read_text()
