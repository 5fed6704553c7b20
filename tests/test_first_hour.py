"""What people met in their first hour with 0.1.0: every finding, and the tests that hold what became of it."""

import inspect
import re
import time
from pathlib import Path

import numpy as np
import pytest

import skfairdp
from skfairdp import FairPATEClassifier, PFGuardGenerator
from skfairdp.pate import VoteGate

TESTS = Path(__file__).parent
HERE = "test_first_hour.py"
PAGE, OWN, WRAPPED, RAW = (
    "inspection/test_page_drawn.py", "test_cli_own_table.py", "postprocessing/test_wrapped.py",
    "schema/test_raw_machinery.py",
)  # fmt: skip
FINDINGS = {
    "rows held out of the private ones had no protection": [(HERE, "test_no_parameter_makes_private_rows_public")],
    "models were useless without a word": [
        ("test_never_useless.py", "test_a_few_fits_on_small_tables_are_not_worse_than_the_most_frequent_class"),
        ("test_never_useless.py", "test_what_is_told_to_be_enough_is_enough"),
    ],
    "the group stayed among public features": [
        ("test_public_by_mistake.py", "test_a_private_group_among_public_features_is_refused"),
        ("test_public_by_mistake.py", "test_private_rows_are_refused_as_public_ones"),
    ],
    "sparse rows were refused": [("test_mistakes.py", "test_sparse_rows_are_written_out")],
    "what goes around a model took it fitted here and unfitted there": [
        (WRAPPED, "test_a_fitted_model_is_used_as_it_is"),
        (WRAPPED, "test_an_unfitted_model_is_fitted_on_what_it_asks_for"),
        (WRAPPED, "test_a_search_that_scores_without_groups_is_an_error_not_nan"),
    ],
    "public rows did not pass a pipeline": [(RAW, "test_a_pipeline_scales_public_rows_with_transform_input")],
    "stacks and plain fit(X, y) had no way for public rows": [
        (RAW, "test_a_stack_mixes_private_models_and_pipelines_by_the_same_schema"),
        (RAW, "test_private_models_vote_softly"),
    ],
    "ticks of the page were wrong, and nothing was drawn to compare with": [
        (PAGE, "test_figures_on_the_axis_are_the_places_of_the_ticks"),
        (PAGE, "test_the_picture_has_the_marks_to_compare_with_and_hollow_squares"),
        (PAGE, "test_the_first_thing_said_is_what_it_costs_and_what_that_means"),
    ],
    "nothing could be handed to an auditor": [
        ("privacy/test_statement.py", "test_the_curve_has_eight_deltas_and_each_epsilon_is_that_of_the_event"),
    ],
    "help filled screens": [("test_docs.py", "test_help_on_fit_fits_on_a_screen")],
    "pages came by alphabet": [("test_pages.py", "test_a_link_to_another_page_leads_to_it")],
    "the command line showed tracebacks and knew no table of one's own": [
        (OWN, "test_without_arguments_there_is_help_and_a_version_where_it_is_asked_for"),
        (OWN, "test_an_interrupt_is_one_line"),
        (OWN, "test_a_gzip_that_is_none_is_named_in_the_demo_as_well"),
        (OWN, "test_a_table_alone_gives_a_frontier_a_schema_and_a_statement_that_verifies"),
    ],
    "errors did not name what is wrong": [("test_mistakes.py", "test_a_mistake_is_named_refused_and_costs_nothing")],
    "rows of frames with other indexes were matched by position": [
        ("test_mistakes.py", "test_matching_by_position_would_have_hidden_a_gap"),
    ],
    "missing subjects joined the last one": [("test_mistakes.py", "test_subjects_that_are_missing_join_nobody")],
    "one group passed for a constraint": [
        ("test_mistakes.py", "test_one_group_is_said_where_the_constraint_then_says_nothing"),
    ],
    "threads lost counts and moved a global generator": [
        ("test_threads.py", "test_no_answer_is_lost_where_threads_commit_at_the_same_time"),
        ("test_threads.py", "test_fits_in_threads_are_those_of_one_thread_and_leave_torchs_generator_alone"),
    ],
    "time grew with the square of groups and with classes": [
        (HERE, "test_the_time_of_a_fit_grows_with_groups_and_not_with_their_square"),
        (HERE, "test_many_classes_are_voted_for_in_seconds"),
    ],
    "a pickle did not say of which version it is": [
        ("test_pickles.py", "test_a_pickle_of_another_version_says_so"),
    ],
    "a cell of a table of results could be a formula": [("utils/test_csv.py", "test_")],
}  # fmt: skip


@pytest.mark.parametrize("finding", FINDINGS)
def test_a_finding_has_tests(finding):
    for file, name in FINDINGS[finding]:
        assert re.search(rf"^def {name}", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE), (file, name)


def test_no_parameter_makes_private_rows_public():
    """Public rows are given as such, or are sampled from what was released."""
    for name in skfairdp.__all__:
        public = getattr(skfairdp, name)
        if inspect.isclass(public) and hasattr(public, "fit"):
            parameters = {*inspect.signature(public).parameters, *inspect.signature(public.fit).parameters}
            assert not parameters & {"public_size", "holdout", "public_fraction"}, name


def rows(n=240):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + rng.normal(size=n) > 0.5).astype(int)


def seconds(fit):
    """Of this process: others on the machine take none of them."""
    started = time.process_time()
    fit()
    return time.process_time() - started


@pytest.mark.filterwarnings("ignore")  # groups of one row are within noise
def test_the_time_of_a_fit_grows_with_groups_and_not_with_their_square():
    """40 groups took 16.6 s, and 240 groups never came to an end."""
    X, y = rows()

    def fit(n_groups):
        generator = PFGuardGenerator(groups=range(n_groups), classes=[0, 1], bounds=(-6.0, 6.0), random_state=0)
        return seconds(lambda: generator.fit(X, y, sensitive_features=np.arange(240) % n_groups))

    fit(40)
    few, many = (min(fit(n) for _ in range(2)) for n in (40, 240))
    assert many < 18 * few and many < 10.0  # 36 times, were it the square


@pytest.mark.filterwarnings("ignore")  # nothing is learned of rows of noise
def test_many_classes_are_voted_for_in_seconds():
    X, _ = rows()
    public, groups = np.random.default_rng(1).normal(size=(100, 4)), np.arange(100) % 2
    given = {"n_teachers": 5, "groups": [0, 1], "gate": VoteGate(min_count=20), "random_state": 0}

    def fit(n_classes):
        model = FairPATEClassifier(classes=range(n_classes), **given)
        y = np.arange(240) % n_classes
        return seconds(lambda: model.fit(X, y, X_public=public, sensitive_features_public=groups))

    fit(6)
    few, many = (min(fit(n) for _ in range(2)) for n in (6, 60))
    assert many < 60 * few and many < 15.0  # 100 times, were it the square
