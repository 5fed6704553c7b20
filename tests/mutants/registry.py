"""Which tests of the suite have to fail on which planted mistake: the one place where mutants and tests meet.

``"file.name"`` is the mutant ``name`` of ``tests/mutants/file.py``. ``trap(number, ...)`` says which trap it is (see
traps.py), ``also(...)`` that it is none of them. Behind it come the tests that must fail, by name, with their
parameters. Nothing is imported before it runs, so a test that moves to another file is one line here.
"""

import math

import numpy as np
from sklearn.linear_model import LogisticRegression

from skfairdp import PFLDClassifier
from skfairdp.papers import PATEGANBackend
from tests.mutants.harness import Killer, Named, Noticed, tests_in

__all__ = ["NOTICED"]


def trap(number: int, *killers: Killer) -> Noticed:
    """A mutant of a numbered trap, and the tests that notice it."""
    return Noticed(number, killers)


def also(*killers: Killer) -> Noticed:
    """A mutant of a mistake that is not among the traps, and the tests that notice it."""
    return Noticed(None, killers)


FAIR_CLIPPING = tests_in("baselines.test_fair_clipping")
RANDOMIZED_RESPONSE = tests_in("baselines.test_randomized_response")
FAIR_BATCHES = tests_in("generative.test_fair_batches")
ADMISSIBLE = tests_in("generative.test_admissible")
REACHED = tests_in("fairness.test_reached")
GROUP_RATES = tests_in("generative.test_group_rates")
GENERATOR_BOUNDARY = tests_in("generative.test_generator_boundary")
RELEASES = tests_in("generative.test_releases")
SILENCE = tests_in("test_silence")
SYNTHETIC_USE = tests_in("generative.test_usefulness")
SYNTHETIC_AMOUNTS = tests_in("generative.test_synthetic_data_regressor")
COLUMN_TABLES = tests_in("gradient.test_column_tables")
FAIR_DPSGD = tests_in("gradient.test_fair_dpsgd")
JUDGE = tests_in("test_judge")
OPTIMISM = tests_in("test_optimism")
USELESS = tests_in("test_usefulness")
JUDGED = tests_in("gradient.test_judged")
JUDGED_FITS = tests_in("test_judged_fits")
RAW_NUMBERS = tests_in("gradient.test_raw_numbers")
SECOND_LOOK = tests_in("gradient.test_second_look")
SIGNED_LOSS = tests_in("gradient.test_signed_loss")
CALIBRATOR = tests_in("postprocessing.test_fairness_calibrator")
CALIBRATOR_OWN_ROWS = tests_in("postprocessing.test_calibrator_own_rows")
IDP3_TESTS = tests_in("postprocessing.test_idp3")
IDP3_REQUESTS = tests_in("postprocessing.test_idp3_requests")
IDP3_LABELS = tests_in("postprocessing.test_idp3_labels")
RATE_GATE = tests_in("fairness.test_rate_gate")
CALIBRATOR_CONSTRAINTS = tests_in("postprocessing.test_calibrator_constraints")
TEMPERATURE = tests_in("gradient.test_temperature")
USUAL_NET = tests_in("gradient.test_usual_net")
PRIVATE_THRESHOLDS = tests_in("postprocessing.test_private_thresholds")
GUESSED_GROUPS = tests_in("postprocessing.test_guessed_groups")
PRIVATE_BARYCENTER = tests_in("postprocessing.test_private_barycenter")
GUESSED_BARYCENTER = tests_in("postprocessing.test_guessed_barycenter")
AMOUNTS = tests_in("gradient.test_fair_dpsgd_regressor")
PATE_BOUNDS = tests_in("inspection.test_pate_bounds")
ACCURACY_PARITY = tests_in("lagrangian.test_accuracy_parity")
CONSTRAINT_GRADIENT = tests_in("lagrangian.test_constraint_gradient")
PFLD_CONSTRAINT = tests_in("lagrangian.test_pfld_constraint")
PFLD_GUARANTEE = tests_in("lagrangian.test_pfld_guarantee")
PFLD_PLAN = tests_in("lagrangian.test_plan")
GAP_BOUNDS = tests_in("metrics.test_bounds")
METRICS_SYNTHETIC = tests_in("metrics.test_metrics_synthetic")
FRONTIER = tests_in("model_selection.test_frontier")
OWN_TABLE = tests_in("model_selection.test_own_table")
OWN_ROWS = tests_in("statistical.test_own_rows")
OWN_TABLE = tests_in("model_selection.test_own_table")
AMOUNT_SEARCHES = tests_in("model_selection.test_amount_searches")
PARETO_SEARCH = tests_in("model_selection.test_pareto_search")
TOTAL_EPSILON = tests_in("model_selection.test_total_epsilon")
LEDGER_BLOCK = tests_in("privacy.test_ledger_block")
PRIVATE_SEARCH = tests_in("model_selection.test_private_search")
ROWS_IN_SEATS = tests_in("model_selection.test_rows_in_seats")
SEARCH_ROWS = tests_in("model_selection.test_search_rows")
TRANSFER_FRONTIER = tests_in("model_selection.test_transfer_frontier")
MUTANTS_REPLAY = tests_in("mutants.replay")
PRECISION = tests_in("networks.test_precision")
WIDE_SUMS = tests_in("networks.test_wide_sums")
CLASS_SUMS = tests_in("pate.test_class_sums")
SYNTHETIC_SUMS = tests_in("generative.test_sums")
CONSTRAINED_STUDENT = tests_in("pate.test_constrained_student")
SUBJECTS = tests_in("pate.test_subjects")
STREAMED_SUBJECTS = tests_in("rows.test_streamed_subjects")
SUBJECT_TABLES = tests_in("rows.test_streamed_subject_tables")
SUBJECT_SCORES = tests_in("rows.test_streamed_subject_scores")
SUBJECT_GRADIENTS = tests_in("rows.test_streamed_subject_gradients")
SUBJECT_GROUPS_IN_CHUNKS = tests_in("rows.test_streamed_subject_groups")
SUBJECT_SEARCHES = tests_in("model_selection.test_subjects")
DPSGD_SUBJECTS = tests_in("gradient.test_subjects")
SUBJECTS_REPLAYED = tests_in("replay.test_subjects")
SUBJECT_UNIT = tests_in("privacy.test_subject_unit")
USEFULNESS = tests_in("pate.test_usefulness")
SF_PATE = tests_in("pate.test_sf_pate")
PAID_ROWS = tests_in("privacy.test_paid_rows")
PRIVACY_OF = tests_in("privacy.test_privacy_of")
ACCOUNT = tests_in("privacy.test_account")
ACCOUNTING = tests_in("privacy.test_accounting")
EVENT_VALIDITY = tests_in("privacy.test_event_validity")
ATTRIBUTE_COST = tests_in("privacy.test_attribute_cost")
LEDGER = tests_in("privacy.test_ledger")
GROUP_PRIVACY = tests_in("privacy.test_group_privacy")
RELATIONS = tests_in("privacy.test_relations")
INTERRUPTED = tests_in("test_interrupted_fits")
LEDGER_FAILURES = tests_in("privacy.test_ledger_failures")
LAPLACE_COUNTS = tests_in("privacy.test_laplace_counts")
PUBLIC_FACTS = tests_in("privacy.test_public_facts")
RELEASE_ROUNDING = tests_in("privacy.test_release_rounding")
ROUNDING = tests_in("privacy.test_rounding")
SPENDING = tests_in("privacy.test_spending")
STATEMENT = tests_in("privacy.test_statement")
VERIFY = tests_in("privacy.test_verify")
RARE_DISCLOSURE = tests_in("privacy.test_rare_disclosure")
RAW_FITS = tests_in("schema.test_raw_fits")
RAW_REPLAY = tests_in("schema.test_raw_replay")
RAW_SEARCHES = tests_in("schema.test_raw_searches")
SCHEMA_RELEASE = tests_in("schema.test_release")
SCHEMAS = tests_in("schema.test_schema")
PLACES = tests_in("rows.test_places")
DASK = tests_in("rows.test_dask")
STREAMED_DPSGD = tests_in("rows.test_streamed_dpsgd")
STREAMED_FOLDS = tests_in("rows.test_streamed_folds")
STREAMED_GENERATOR = tests_in("rows.test_streamed_generator")
STREAMED_GROUPS = tests_in("rows.test_streamed_groups")
STREAMED_PFLD = tests_in("rows.test_streamed_pfld")
STREAMED_SFPATE = tests_in("rows.test_streamed_sfpate")
STREAMED_TEACHERS = tests_in("rows.test_streamed_teachers")
GENERATOR_DIFFERENTIAL = tests_in("statistical.test_generator_differential")
GENERATOR_ENSEMBLES = tests_in("statistical.test_generator_ensembles")
NOISE_SCALE = tests_in("statistical.test_noise_scale")
POST_PROCESSING = tests_in("statistical.test_post_processing")
RELEASE_ACCOUNTING = tests_in("statistical.test_release_accounting")
ZERO_NOISE_DIFFERENTIAL = tests_in("statistical.test_zero_noise_differential")
LOGISTIC = tests_in("teachers.test_logistic")
TOTAL_TEACHERS = tests_in("teachers.test_total_teachers")
PRIVATE_ERRORS = tests_in("utils.test_private_errors")

REPLACED = Named("skfairdp.privacy.NeighboringRelation", "REPLACE_ONE")


def replayed_with_other_rows(way: str) -> Killer:
    """The replay of a way by its name in ``tests/replay/test_subjects.py``, where all rows of a subject are others."""
    return SUBJECTS_REPLAYED(
        "test_a_subject_with_other_rows_looks_the_same", entry=Named("tests.replay.test_subjects.WAYS", way)
    )


PARITY_BOUND = Named("tests.postprocessing.test_idp3.PARITIES", "bound")
GATED_OPPORTUNITY = Named("tests.fairness.test_rate_gate.ASKED", "equal opportunity")
JUDGED_PARITY = Named("tests.test_judged_fits.PARITY")
JUDGED_FIT = {
    name: Named("tests.test_judged_fits.FITS", name) for name in ("PF-LD", "FairDP-SGD", "SF-PATE", "synthetic rows")
}
JUDGED_CONSTANT = {name: Named("tests.test_judged_fits.GIVE_WAY", name) for name in ("PF-LD", "SF-PATE")}
SAID_OF = {name: Named("tests.fairness.test_reached.PRIVATE", name) for name in ("PF-LD", "signed loss")}
BOUGHT = {"n_rows": 12_000, "settings": Named("tests.lagrangian.test_accuracy_parity.SFPATE", "student", 1)}
NOTHING_GIVEN = Named("tests.lagrangian.test_accuracy_parity.PARTS", "all rows")
GATED_ODDS = Named("tests.fairness.test_rate_gate.ASKED", "equalized odds")
AWARE = Named("tests.postprocessing.test_calibrator_constraints.AWARE")
CONSTRAINED = {
    name: Named("tests.postprocessing.test_calibrator_constraints.CONSTRAINTS", name) for name in ("odds", "several")
}


#: Releases whose event for another attribute is needed in full.
CONVERTED = ("gaussian", "laplace", "discrete", "sampled", "always sampled", "sampled by distance", "answers")
NULL = Named("skfairdp.privacy.NeighboringRelation", "ZERO_OUT")

NOTICED: dict[str, Noticed] = {
    # ---- accounting.py ------------------------------------------------------------------------------------------
    "accounting.group_delta_to_the_nearest_float": also(
        GROUP_PRIVACY("test_no_figure_is_below_the_truth_in_very_many_settings")
    ),
    "accounting.composition_left_out": trap(
        5,
        RELEASE_ACCOUNTING(
            "test_every_release_is_covered_by_the_certified_event", name="FairPATE-soft-2classes", threshold=0.51
        ),
        RELEASE_ACCOUNTING(
            "test_every_release_is_covered_by_the_certified_event", name="FairPATE-gnmax-2classes", threshold=0.51
        ),
        RELEASE_ACCOUNTING(
            "test_certified_epsilon_is_the_closed_form_for_the_noise_used_at_the_delta_asked_for",
            name="FairPATE-soft-3classes",
            delta=1e-05,
        ),
    ),
    "accounting.counts_of_classes_for_nothing": trap(
        5, USEFULNESS("test_counts_and_votes_together_cost_at_most_epsilon", n_classes=2, voting="soft")
    ),
    "boundary.the_most_frequent_class_of_private_rows": trap(
        45, USEFULNESS("test_the_warning_follows_from_what_was_released")
    ),
    "accounting.failed_thresholds_are_free": trap(
        14,
        RELEASE_ACCOUNTING(
            "test_every_release_is_covered_by_the_certified_event",
            name="FairPATE-confident-2classes-gdp",
            threshold=1.0,
        ),
        RELEASE_ACCOUNTING("test_no_query_starts_that_the_budget_cannot_finish", accounting="gdp", passes="never"),
        RELEASE_ACCOUNTING(
            "test_no_query_starts_that_the_budget_cannot_finish", accounting="gdp", passes="alternately"
        ),
    ),
    "accounting.only_answered_queries_are_declared": trap(
        14,
        RELEASE_ACCOUNTING(
            "test_every_release_is_covered_by_the_certified_event",
            name="FairPATE-confident-2classes-binary",
            threshold=1.0,
        ),
    ),
    "accounting.delta_is_ignored": trap(
        15,
        RELEASE_ACCOUNTING(
            "test_certified_epsilon_is_the_closed_form_for_the_noise_used_at_the_delta_asked_for",
            name="FairPATE-soft-2classes",
            delta=1e-09,
        ),
        RELEASE_ACCOUNTING(
            "test_certified_epsilon_is_the_closed_form_for_the_noise_used_at_the_delta_asked_for",
            name="FairPATE-gnmax-3classes",
            delta=1e-09,
        ),
    ),
    "accounting.bracket_slip_in_the_data_dependent_bound": trap(
        12,
        PATE_BOUNDS(
            "test_reference_vectors_of_gnmax", case=Named("tests.inspection.test_pate_bounds.VECTORS", "gnmax", 0)
        ),
    ),
    "accounting.missing_logarithm_in_the_data_dependent_bound": trap(
        13,
        PATE_BOUNDS(
            "test_reference_vectors_of_gnmax", case=Named("tests.inspection.test_pate_bounds.VECTORS", "gnmax", 0)
        ),
    ),
    "accounting.preconditions_of_the_data_dependent_bound": trap(
        17,
        PATE_BOUNDS("test_a_likely_other_answer_falls_back", sigma=1.0, log_q_=-0.69),
        PATE_BOUNDS("test_orders_above_mu1_fall_back_although_the_formula_would_be_smaller"),
    ),
    "accounting.a_schema_of_another_account_is_free": also(
        OWN_TABLE("test_what_is_announced_is_what_is_spent_and_is_on_the_ledger_before_any_noise")
    ),
    "accounting.models_of_a_frontier_are_charged_after_their_noise": also(
        OWN_TABLE("test_what_is_announced_is_what_is_spent_and_is_on_the_ledger_before_any_noise")
    ),
    "accounting.budget_checked_after_spending": trap(
        18,
        ACCOUNTING("test_filter_never_passes_its_cap_by_any_amount"),
        RELEASE_ACCOUNTING(
            "test_every_release_is_covered_by_the_certified_event",
            name="FairPATE-confident-3classes-gdp",
            threshold=0.51,
        ),
        RELEASE_ACCOUNTING("test_no_query_starts_that_the_budget_cannot_finish", accounting="gdp", passes="always"),
    ),
    "accounting.data_dependent_stopping": trap(
        19, RELEASE_ACCOUNTING("test_when_the_queries_stop_depends_on_outputs_only", accounting="gdp", n_classes=2)
    ),
    "accounting.a_worst_case_without_what_every_record_pays": also(
        RARE_DISCLOSURE("test_a_worst_case_is_the_worst_of_its_branches_each_with_its_own_disclosure")
    ),
    "accounting.expected_cost_instead_of_worst_case": trap(
        34,
        RELEASE_ACCOUNTING(
            "test_every_release_is_covered_by_the_certified_event",
            name="FairPATE-confident-2classes-gdp",
            threshold=0.51,
        ),
        RELEASE_ACCOUNTING("test_no_query_starts_that_the_budget_cannot_finish", accounting="gdp", passes="always"),
    ),
    "accounting.expected_number_of_maxima_declared": trap(
        34,
        RELEASE_ACCOUNTING(
            "test_every_release_is_covered_by_the_certified_event",
            name="FairPATE-confident-2classes-binary",
            threshold=0.51,
        ),
    ),
    "accounting.calibration_rounds_the_wrong_way": trap(
        32, RELEASE_ACCOUNTING("test_calibrated_noise_costs_at_most_the_target", n=300, epsilon=1.0)
    ),
    "accounting.realised_spend_is_certified": also(
        RELEASE_ACCOUNTING(
            "test_certified_guarantee_is_the_same_for_every_data_set_and_transcript",
            name="FairPATE-confident-2classes-gdp",
        ),
        RELEASE_ACCOUNTING(
            "test_certified_guarantee_is_the_same_for_every_data_set_and_transcript",
            name="FairPATE-confident-3classes-gdp",
        ),
    ),
    "accounting.gate_peeks_at_the_true_plurality": also(
        ZERO_NOISE_DIFFERENTIAL(
            "test_confident_votes_keep_their_sensitivity_along_noisy_transcripts",
            name="FairPATE-confident-2classes-binary",
        )
    ),
    "accounting.discrete_noise_in_the_gaussian_filter": also(
        RELEASE_ACCOUNTING("test_the_filter_is_refused_for_noise_that_is_not_gaussian")
    ),
    "accounting.ledger_lost_on_clone": also(
        RELEASE_ACCOUNTING("test_seven_fits_of_a_search_are_seven_entries_and_their_composition")
    ),
    "accounting.ledger_written_after_the_release": also(
        RELEASE_ACCOUNTING("test_the_ledger_is_written_before_the_first_draw", name="FairPATE-soft-2classes"),
        RELEASE_ACCOUNTING(
            "test_the_ledger_is_written_before_the_first_draw", name="FairPATE-confident-2classes-binary"
        ),
    ),
    # ---- boundary.py --------------------------------------------------------------------------------------------
    "boundary.rows_outside_the_domain_are_counted_aloud": trap(
        41,
        PRIVATE_ERRORS(
            "test_a_label_outside_the_classes_has_one_text_however_many_rows_and_whatever_type",
            name="pate",
            method="fit",
        ),
        PRIVATE_ERRORS(
            "test_a_label_outside_the_classes_has_one_text_however_many_rows_and_whatever_type",
            name="dp_sgd",
            method="planned_privacy",
        ),
        PRIVATE_ERRORS("test_a_group_outside_the_groups_has_one_text", name="sf_pate", method="fit"),
    ),
    "boundary.small_groups_are_told_by_their_true_sizes": trap(
        45,
        PRIVATE_ERRORS("test_the_warning_of_small_groups_follows_released_counts_alone", released=2.0),
        PRIVATE_ERRORS("test_the_warning_of_small_groups_follows_released_counts_alone", released=500.0),
    ),
    "boundary.the_number_of_rows_is_used_and_not_listed": also(
        PUBLIC_FACTS("test_two_fits_with_one_list_of_facts_release_under_one_event", name="dp_sgd"),
        PUBLIC_FACTS("test_two_fits_with_one_list_of_facts_release_under_one_event", name="pate"),
    ),
    # ---- generators.py ------------------------------------------------------------------------------------------
    "generators.one_part_for_all_discriminators": trap(
        1,
        GENERATOR_ENSEMBLES(
            "test_each_row_is_seen_by_one_teacher_in_the_whole_fit_and_every_teacher_sees_its_own", backend="pate_gan"
        ),
        GENERATOR_ENSEMBLES("test_a_discriminator_without_the_replaced_record_answers_the_same", variant=""),
    ),
    "generators.exclusive_or_in_the_noise_of_the_tables": trap(
        2, GENERATOR_DIFFERENTIAL("test_the_event_of_the_generator_is_that_of_the_noise_it_adds", name="tree")
    ),
    "generators.noise_on_labels_in_place_of_votes": trap(
        4, RELEASES("test_noise_of_signs_bits_and_bins_has_the_declared_scale")
    ),
    "generators.bits_charged_once_a_round": trap(
        5, GENERATOR_ENSEMBLES("test_the_number_of_releases_is_the_declared_one", backend="pate_gan")
    ),
    "generators.chunks_that_count_twice_unnoticed": also(
        STREAMED_GENERATOR("test_rows_that_are_counted_twice_are_noticed")
    ),
    "generators.bounds_of_columns_read_from_private_rows": trap(
        6, GENERATOR_DIFFERENTIAL("test_one_outlying_row_moves_no_bound_of_the_output", bounds=None)
    ),
    "generators.categories_read_from_private_rows": trap(
        7,
        GENERATOR_DIFFERENTIAL(
            "test_no_release_of_the_generator_moves_further_than_its_declared_sensitivity", name="tree"
        ),
    ),
    "generators.every_discriminator_on_the_last_part": trap(
        9,
        GENERATOR_ENSEMBLES(
            "test_each_row_is_seen_by_one_teacher_in_the_whole_fit_and_every_teacher_sees_its_own", backend="datalens"
        ),
    ),
    "generators.inverse_noise_scale_of_a_gradient": trap(
        10, RELEASES("test_noise_of_the_sanitised_gradient_is_that_of_the_whole_batch")
    ),
    "generators.half_the_distance_of_a_mean_gradient": trap(
        10, RELEASES("test_opposite_answers_move_the_mean_as_far_as_declared")
    ),
    "generators.one_record_counted_once_among_the_gradients_of_gs_wgan": also(
        RELEASES(
            "test_counts_of_long_gradients_move_as_far_as_declared_when_all_rows_of_a_discriminator_change_sides",
            two_sided=True,
            sensitivity=17.08800749063506,
        )
    ),
    "generators.rows_dealt_anew_every_round": trap(
        11,
        GENERATOR_ENSEMBLES(
            "test_each_row_is_seen_by_one_teacher_in_the_whole_fit_and_every_teacher_sees_its_own", backend="g_pate"
        ),
    ),
    "generators.delta_overwritten": trap(
        15, GENERATOR_DIFFERENTIAL("test_the_event_of_the_generator_is_that_of_the_noise_it_adds", name="star")
    ),
    "generators.student_discriminator_trained_on_real_rows": trap(
        16, GENERATOR_ENSEMBLES("test_the_generator_is_a_function_of_what_was_let_out", backend="pate_gan")
    ),
    "generators.real_labels_with_synthetic_rows": trap(
        20, GENERATOR_DIFFERENTIAL("test_replaying_the_releases_gives_the_model_without_the_rows")
    ),
    "generators.weights_from_the_groups_of_the_whole_table": trap(
        21, GENERATOR_ENSEMBLES("test_a_discriminator_without_the_replaced_record_answers_the_same", variant="")
    ),
    "generators.one_noise_for_all_counts_of_a_table": trap(
        22, GENERATOR_DIFFERENTIAL("test_the_noise_of_the_generator_has_the_scale_that_is_accounted")
    ),
    "generators.rows_of_a_batch_accounted_as_independent_draws": trap(
        23,
        RELEASES("test_gs_wgan_is_accounted_as_the_joint_event_whatever_the_batch", batch_size=8),
        RELEASES("test_gs_wgan_is_accounted_as_the_joint_event_whatever_the_batch", batch_size=32),
    ),
    "generators.rare_rows_dealt_again": trap(
        24,
        GENERATOR_ENSEMBLES(
            "test_each_row_is_seen_by_one_teacher_in_the_whole_fit_and_every_teacher_sees_its_own", backend="gs_wgan"
        ),
    ),
    "generators.parts_stratified_by_group": trap(
        25, FAIR_BATCHES("test_the_sizes_of_parts_and_draws_are_the_same_whatever_the_cells")
    ),
    "generators.only_the_drawn_discriminator_trains": also(
        GENERATOR_ENSEMBLES("test_what_a_discriminator_would_answer_does_not_depend_on_who_was_drawn_before")
    ),
    "generators.labels_typed_as_the_private_ones": trap(
        37, GENERATOR_BOUNDARY("test_one_label_or_group_more_changes_no_type")
    ),
    "generators.numbers_typed_as_the_private_ones": trap(
        37,
        GENERATOR_BOUNDARY(
            "test_no_entry_of_a_declared_column_shows_in_anything_but_releases",
            container="frame",
            column="count",
            step=2,
        ),
    ),
    "generators.categories_kept_with_the_column": trap(
        37,
        GENERATOR_BOUNDARY(
            "test_no_entry_of_a_declared_column_shows_in_anything_but_releases",
            container="categories",
            column="kind",
            step=2,
        ),
    ),
    "generators.rows_converted_as_a_whole": trap(
        37,
        GENERATOR_BOUNDARY(
            "test_no_entry_of_a_declared_column_shows_in_anything_but_releases",
            container="lists",
            column="size",
            step=2,
        ),
        GENERATOR_BOUNDARY(
            "test_no_entry_of_a_declared_column_shows_in_anything_but_releases",
            container="objects",
            column="count",
            step=2,
        ),
    ),
    "generators.rows_counted_in_an_error": trap(
        41,
        GENERATOR_BOUNDARY(
            "test_all_labels_that_are_not_declared_raise_one_error_that_says_nothing", build=list, what="groups"
        ),
    ),
    "generators.trouble_of_a_part_let_through": trap(
        41,
        GENERATOR_BOUNDARY(
            "test_a_classifier_that_cannot_tell_a_part_from_public_rows_gives_even_weights", trouble="warns"
        ),
        GENERATOR_BOUNDARY(
            "test_a_classifier_that_cannot_tell_a_part_from_public_rows_gives_even_weights", trouble="raises"
        ),
    ),
    "generators.bins_where_no_number_shows": also(
        SILENCE("test_bins_without_bounds_reach_as_far_as_rows_show_and_no_further", shape="normal", rows_per_noise=5)
    ),
    "generators.missing_values_by_exact_counts": also(
        GENERATOR_BOUNDARY("test_which_missing_values_networks_make_follows_released_counts", backend="pate_gan")
    ),
    "generators.missing_values_not_charged": also(
        SILENCE("test_networks_make_missing_values_only_where_some_are", backend=PATEGANBackend)
    ),
    "generators.bins_from_exact_histograms": trap(
        45,
        GENERATOR_BOUNDARY(
            "test_two_tables_with_the_same_releases_give_the_same_bins_rates_pairs_and_warnings",
            rates="ranges paid for",
        ),
    ),
    "generators.rates_from_exact_counts": trap(
        45,
        GENERATOR_BOUNDARY(
            "test_two_tables_with_the_same_releases_give_the_same_bins_rates_pairs_and_warnings", rates="default"
        ),
        GENERATOR_BOUNDARY(
            "test_two_tables_with_the_same_releases_give_the_same_bins_rates_pairs_and_warnings", rates="as it is"
        ),
    ),
    "generators.exact_counts_kept_for_a_refit": trap(
        45,
        GENERATOR_BOUNDARY(
            "test_two_tables_with_the_same_releases_give_the_same_bins_rates_pairs_and_warnings", rates="default"
        ),
    ),
    "generators.a_refit_that_fits_again": also(
        GROUP_RATES("test_a_refit_draws_no_noise_charges_nothing_and_leaves_the_first_as_it_is")
    ),
    "generators.admissible_labels_by_exact_counts": trap(
        45,
        GENERATOR_BOUNDARY(
            "test_two_tables_with_the_same_releases_give_the_same_bins_rates_pairs_and_warnings", rates="admissible"
        ),
    ),
    "generators.admissible_labels_of_the_own_group": also(
        ADMISSIBLE("test_the_label_is_independent_of_the_group_given_the_admissible_columns")
    ),
    "generators.small_groups_told_by_exact_counts": trap(
        45,
        GENERATOR_BOUNDARY(
            "test_two_tables_with_the_same_releases_give_the_same_bins_rates_pairs_and_warnings", rates="default"
        ),
    ),
    "generators.pairs_chosen_by_exact_scores": trap(
        45,
        GENERATOR_BOUNDARY(
            "test_two_tables_with_the_same_releases_give_the_same_bins_rates_pairs_and_warnings", rates="groups"
        ),
    ),
    "generators.interactions_chosen_for_nothing": also(
        GENERATOR_DIFFERENTIAL("test_the_event_of_the_generator_is_that_of_the_noise_it_adds", name="interactions")
    ),
    "generators.interactions_scored_by_all_of_the_distance": also(
        GENERATOR_DIFFERENTIAL(
            "test_no_release_of_the_generator_moves_further_than_its_declared_sensitivity", name="interactions"
        )
    ),
    "generators.rows_counted_more_often_than_charged": also(
        GENERATOR_DIFFERENTIAL(
            "test_no_release_of_the_generator_moves_further_than_its_declared_sensitivity", name="tree"
        )
    ),
    "generators.gap_downstream_against_all_other_groups": also(
        METRICS_SYNTHETIC("test_gaps_downstream_are_those_between_the_two_groups_furthest_apart_of_three")
    ),
    "generators.gaps_downstream_of_two_groups_alone": also(
        METRICS_SYNTHETIC("test_gaps_downstream_are_those_between_the_two_groups_furthest_apart_of_three")
    ),
    "generators.the_gain_of_the_learner_is_not_charged": also(
        SYNTHETIC_USE("test_tables_counts_and_the_look_together_cost_at_most_epsilon", n=400, epsilon=1.0)
    ),
    "generators.the_gain_of_the_learner_moves_by_one": also(
        SYNTHETIC_USE("test_one_replaced_record_moves_the_gain_by_at_most_two")
    ),
    "generators.the_learner_gives_way_by_its_exact_gain": also(
        SYNTHETIC_USE("test_given_the_releases_what_is_predicted_does_not_hang_on_the_rows")
    ),
    "generators.amounts_cut_at_their_own_quantiles": also(
        SYNTHETIC_AMOUNTS("test_given_the_releases_no_amount_hangs_on_the_rows", epsilon=3.0)
    ),
    "generators.where_amounts_lie_is_not_on_the_event": also(
        SYNTHETIC_AMOUNTS("test_everything_that_is_released_is_on_the_event", n=6000, epsilon=3.0)
    ),
    "generators.a_replaced_amount_moves_one_cell": also(
        SYNTHETIC_AMOUNTS("test_no_row_moves_a_release_by_more_than_its_sensitivity", last=(0.0, -6.0))
    ),
    "generators.the_mean_of_amounts_counts_a_replaced_row_once": also(
        SYNTHETIC_AMOUNTS("test_the_released_mean_moves_by_what_a_row_says_and_lies_where_it_is")
    ),
    "generators.the_look_at_amounts_counts_a_replaced_row_once": also(
        AMOUNTS("test_the_look_counts_no_row_for_more_than_one", power=2)
    ),
    # ---- gradient.py --------------------------------------------------------------------------------------------
    "gradient.rows_tried_in_batches_of_one": also(
        WIDE_SUMS("test_rows_are_tried_in_batches_of_the_same_shape", fused=None),
        WIDE_SUMS("test_rows_are_tried_in_batches_of_the_same_shape", fused=False),
    ),
    "gradient.public_batch_through_the_per_sample_path": trap(
        26,
        FAIR_DPSGD("test_no_step_moves_further_than_the_clipping_bound_when_any_record_is_removed", name="aggregate"),
        FAIR_DPSGD("test_the_fairness_gradient_is_added_whole_beside_the_private_one"),
    ),
    "gradient.division_by_the_realised_batch_size": trap(
        27,
        FAIR_DPSGD("test_no_step_moves_further_than_the_clipping_bound_when_any_record_is_removed", name="aggregate"),
        FAIR_DPSGD("test_no_step_moves_further_than_the_clipping_bound_when_any_record_is_removed", name="per sample"),
        FAIR_DPSGD("test_the_sum_is_divided_by_the_expected_batch_size", n_rows=None),
        FAIR_DPSGD("test_the_sum_is_divided_by_the_expected_batch_size", n_rows=32),
    ),
    "gradient.add_or_remove_while_the_number_of_rows_comes_from_the_data": trap(
        43,
        FAIR_DPSGD("test_the_report_follows_from_the_declared_steps"),
        FAIR_CLIPPING("test_steps_and_counts_together_cost_at_most_epsilon", method="dpsgd_f"),
    ),
    "gradient.rows_that_move_up_when_one_before_them_goes": trap(
        43, FAIR_DPSGD("test_one_row_more_leaves_all_but_its_own_contribution_bit_for_bit_as_it_is")
    ),
    "gradient.multipliers_follow_the_exact_rates": trap(
        29, SIGNED_LOSS("test_the_noise_of_the_rates_has_the_accounted_scale")
    ),
    "gradient.a_row_counted_for_two_constraints": also(
        SIGNED_LOSS(
            "test_removing_any_record_moves_the_rates_by_at_most_the_sensitivity_of_one", notion="equalized_odds"
        )
    ),
    "gradient.rates_of_the_groups_are_free": trap(5, SIGNED_LOSS("test_steps_and_rates_together_cost_at_most_epsilon")),
    "gradient.a_second_look_for_nothing": trap(
        5, SECOND_LOOK("test_gradients_rates_and_second_look_together_cost_at_most_epsilon", options={}, epsilon=0.5)
    ),
    "gradient.a_second_look_at_a_fair_clipping_for_nothing": trap(
        5, SECOND_LOOK("test_fair_clippings_are_looked_at_within_their_epsilon", method="reweight")
    ),
    "gradient.the_most_frequent_class_from_exact_counts": trap(
        45, SECOND_LOOK("test_given_the_releases_the_network_does_not_hang_on_the_rows")
    ),
    "gradient.a_warning_by_the_exact_number_of_rows": trap(
        45, SECOND_LOOK("test_given_the_releases_the_network_does_not_hang_on_the_rows")
    ),
    "gradient.chunks_of_a_private_number_of_rows": also(
        STREAMED_DPSGD("test_a_private_number_of_rows_is_not_read_off_files")
    ),
    "gradient.rows_of_chunks_sorted_by_their_cells": also(
        STREAMED_DPSGD("test_the_network_is_that_of_a_fit_in_memory_bit_for_bit", way="plain"),
        STREAMED_DPSGD("test_any_row_comes_back_from_memory_and_from_the_disk", held=1),
    ),
    "gradient.a_table_of_answers_for_nothing": trap(
        5, TEMPERATURE("test_the_table_and_all_else_together_cost_at_most_epsilon", epsilon=1.0)
    ),
    "gradient.a_look_at_amounts_for_nothing": trap(
        5,
        AMOUNTS(
            "test_everything_that_is_released_is_on_the_event", options={"gamma": 0.5, "groups": [0, 1]}, n_rows=3000
        ),
    ),
    "gradient.amounts_that_move_for_nothing": also(
        AMOUNTS(
            "test_everything_that_is_released_is_on_the_event",
            options={"constraints": "demographic_parity", "groups": [0, 1]},
            n_rows=3000,
        )
    ),
    "gradient.sums_of_amounts_that_no_one_cuts": also(
        AMOUNTS("test_sums_of_groups_move_by_the_declared_sensitivity_at_most")
    ),
    "gradient.a_judge_for_nothing": trap(5, JUDGED("test_the_look_is_the_last_release_and_within_epsilon")),
    "gradient.a_judge_with_the_exact_table": also(
        REACHED("test_what_is_said_follows_from_releases_alone", made=SAID_OF["signed loss"]),
        REACHED("test_what_is_said_follows_from_releases_alone", made=SAID_OF["PF-LD"]),
        JUDGE("test_the_noise_of_a_table_has_the_accounted_scale"),
    ),
    "gradient.a_record_in_another_s_place_moves_one_cell": also(
        JUDGE(
            "test_one_record_moves_a_table_by_its_sensitivity_at_most_and_by_that_where_it_can",
            rate="selection_rate",
            relation=REPLACED,
            most=math.sqrt(2.0),
        )
    ),
    "gradient.a_judge_by_the_share_itself": also(JUDGE("test_a_table_costs_its_share_and_many_rows_cost_less")),
    "gradient.a_judge_of_soft_answers": also(
        JUDGED_FITS(
            "test_what_is_told_is_of_the_hard_answers_of_what_is_returned",
            made=JUDGED_FIT["FairDP-SGD"],
            asked=JUDGED_PARITY,
        )
    ),
    "gradient.a_row_counted_as_sure_in_two_lines": also(
        TEMPERATURE(
            "test_removing_any_record_moves_the_table_by_exactly_the_sensitivity_of_one",
            scale=8.0,
            relation=Named("skfairdp.privacy.NeighboringRelation", "ZERO_OUT"),
        )
    ),
    "gradient.the_factor_of_the_exact_table": also(
        TEMPERATURE("test_given_its_release_the_network_does_not_hang_on_the_labels")
    ),
    "gradient.scales_of_a_fair_clipping_for_nothing": trap(
        5,
        RAW_NUMBERS(
            "test_tables_and_all_else_together_cost_at_most_epsilon",
            make=Named("skfairdp.papers.FairClippingClassifier"),
            n_rows=900,
            rounds=2,
        ),
    ),
    "gradient.tables_of_numbers_for_nothing": trap(
        5, COLUMN_TABLES("test_the_tables_and_all_else_together_cost_at_most_epsilon", epsilon=2.0)
    ),
    "gradient.tables_of_numbers_charged_once": trap(
        5, COLUMN_TABLES("test_the_tables_and_all_else_together_cost_at_most_epsilon", epsilon=2.0)
    ),
    "gradient.a_record_in_the_table_of_one_column": also(
        COLUMN_TABLES(
            "test_removing_any_record_moves_a_table_by_at_most_the_sensitivity",
            relation=Named("skfairdp.privacy.NeighboringRelation", "ZERO_OUT"),
        )
    ),
    "gradient.numbers_counted_up_to_each_edge": also(
        COLUMN_TABLES(
            "test_removing_any_record_moves_a_table_by_at_most_the_sensitivity",
            relation=Named("skfairdp.privacy.NeighboringRelation", "ZERO_OUT"),
        )
    ),
    "gradient.cells_that_follow_the_exact_counts": also(
        COLUMN_TABLES("test_given_its_releases_no_knot_hangs_on_a_row")
    ),
    "gradient.scales_by_the_range_of_the_rows": also(
        COLUMN_TABLES("test_given_its_releases_no_knot_hangs_on_a_row"),
        MUTANTS_REPLAY("neighbours_look_the_same", entry="FairDPSGD-additive-raw", pair="all of a row in the middle"),
    ),
    "gradient.a_network_for_as_many_rows_as_there_are": also(
        USUAL_NET("test_rows_that_are_declared_decide_and_not_those_that_there_are")
    ),
    "gradient.norms_of_rows_before_their_basis": also(
        COLUMN_TABLES("test_no_row_moves_a_sum_of_scaled_rows_past_the_bound", hidden=()),
        COLUMN_TABLES("test_no_row_moves_a_sum_of_scaled_rows_past_the_bound", hidden=(5,)),
    ),
    "gradient.weighted_sampler_accounted_as_uniform": trap(
        31, FAIR_DPSGD("test_every_row_is_drawn_with_the_accounted_probability_whatever_its_label")
    ),
    "gradient.batches_of_a_fixed_size": trap(
        31, FAIR_DPSGD("test_every_row_is_drawn_with_the_accounted_probability_whatever_its_label")
    ),
    "gradient.noise_search_stops_above_the_target": trap(
        32, FAIR_DPSGD("test_calibrated_steps_cost_at_most_the_target", q=0.01, steps=1000, epsilon=1.0)
    ),
    "gradient.clipping_layer_by_layer": also(
        FAIR_DPSGD("test_no_step_moves_further_than_the_clipping_bound_when_any_record_is_removed", name="aggregate")
    ),
    "gradient.sums_in_the_precision_of_the_module": trap(
        39,
        WIDE_SUMS("test_rounding_does_not_pile_up_over_many_rows"),
        CONSTRAINT_GRADIENT("test_rounding_does_not_take_a_sum_past_what_is_declared", kind="fused", everyone=True),
    ),
    "gradient.tables_of_rows_summed_in_sequence": trap(
        39, PFLD_PLAN("test_tables_of_sums_are_exact_however_many_rows_there_are")
    ),
    "gradient.norms_in_the_precision_of_the_module": trap(
        39, WIDE_SUMS("test_norms_do_not_underflow", width=2, bound=0.0001, fused=True)
    ),
    "gradient.norms_of_what_is_left_after_cancelling": trap(
        39, WIDE_SUMS("test_positions_that_cancel_do_not_carry_their_rounding_into_the_sum", positions=40, width=30)
    ),
    "gradient.settings_of_torch_unread": trap(
        39,
        PRECISION(
            "test_no_fit_spends_under_a_setting_that_reduces_precision", name="FairDPSGD-plain", setting="medium"
        ),
        PRECISION(
            "test_no_fit_spends_under_a_setting_that_reduces_precision", name="PFGuard-gs-wgan", setting="medium"
        ),
        PRECISION("test_private_thresholds_do_not_ask_a_network_under_it"),
    ),
    "gradient.half_precision_taken": trap(
        39,
        PRECISION(
            "test_a_module_of_less_than_single_precision_is_refused_before_anything_is_spent",
            kind="pfld",
            module="float16",
        ),
        PRECISION(
            "test_a_teacher_of_less_than_single_precision_is_refused_before_anything_is_spent",
            kind="skorch",
            module="autocast",
        ),
    ),
    "gradient.empty_batches_skipped": also(FAIR_DPSGD("test_empty_batches_are_steps_of_pure_noise_and_count")),
    "gradient.noise_without_the_clipping_bound": trap(
        10, FAIR_DPSGD("test_the_noise_of_a_fit_has_the_accounted_scale")
    ),
    "gradient.dropout_from_a_public_seed": also(
        FAIR_DPSGD("test_dropout_is_secret_and_the_global_generator_is_untouched")
    ),
    "gradient.noise_scaled_to_the_mean_bound_of_the_groups": also(
        FAIR_CLIPPING("test_no_record_costs_more_than_the_event_says_counts_included", method="dpsgd_f")
    ),
    "gradient.weights_after_clipping_with_the_noise_of_plain_dpsgd": also(
        FAIR_CLIPPING("test_no_record_costs_more_than_the_event_says_counts_included", method="reweight")
    ),
    "gradient.counts_of_a_batch_are_free": also(
        FAIR_CLIPPING("test_no_record_costs_more_than_the_event_says_counts_included", method="dpsgd_f"),
        FAIR_CLIPPING("test_no_record_costs_more_than_the_event_says_counts_included", method="global_adapt"),
    ),
    "gradient.sizes_of_the_groups_without_noise": also(
        FAIR_CLIPPING("test_no_record_costs_more_than_the_event_says_counts_included", method="reweight")
    ),
    "gradient.weights_without_a_cap": also(
        FAIR_CLIPPING("test_weights_are_capped_however_small_a_group_is_said_to_be")
    ),
    # ---- lagrangian.py ------------------------------------------------------------------------------------------
    "lagrangian.errors_of_accuracy_parity_have_no_price": also(
        ACCURACY_PARITY("test_equal_accuracy_is_not_bought_with_errors_for_everybody", epsilon=2.0),
        ACCURACY_PARITY("test_noisy_gradients_do_not_buy_it_with_errors_either", part=NOTHING_GIVEN),
    ),
    "lagrangian.errors_in_a_stack_have_no_price": also(
        ACCURACY_PARITY("test_a_perceptron_of_its_own_does_not_buy_it_with_errors_either"),
        ACCURACY_PARITY("test_neither_kind_of_sfpate_buys_it_with_errors", **BOUGHT),
    ),
    "lagrangian.a_rate_of_one_true_class_is_held_in_all": also(
        PFLD_CONSTRAINT(
            "test_a_rate_of_one_true_class_is_made_equal_by_multipliers_of_its_own_rows",
            notion="equal_opportunity",
            true_class=1,
            primal="group_model",
        )
    ),
    "lagrangian.a_bound_is_held_as_equality": also(
        PFLD_CONSTRAINT("test_a_bound_that_holds_by_itself_changes_nothing")
    ),
    "lagrangian.a_bound_on_a_rate_is_pulled_apart_only": also(
        PFLD_CONSTRAINT(
            "test_all_who_follow_multipliers_hold_a_bound",
            make=Named("skfairdp.lagrangian.LagrangianClassifier"),
            kind="few selected",
        )
    ),
    "lagrangian.a_bound_of_one_group_is_held_in_all": also(
        PFLD_CONSTRAINT(
            "test_a_bound_of_one_group_pulls_no_other_and_one_of_all_rows_pulls_all_alike", primal="group_model"
        )
    ),
    "lagrangian.a_judge_of_drawn_answers": also(
        JUDGED_FITS(
            "test_what_is_told_is_of_the_hard_answers_of_what_is_returned",
            made=JUDGED_FIT["PF-LD"],
            asked=JUDGED_PARITY,
        )
    ),
    "lagrangian.a_judge_of_the_network_that_gave_way": also(
        JUDGED_FITS("test_a_class_for_everybody_is_what_is_judged", made=JUDGED_CONSTANT["PF-LD"])
    ),
    "lagrangian.a_judge_of_all_levels": also(
        JUDGED_FITS("test_a_student_of_sampled_rows_is_judged_by_the_look_at_private_ones")
    ),
    "lagrangian.loss_and_constraint_share_a_batch": trap(
        28, CONSTRAINT_GRADIENT("test_a_poisson_sample_of_everything_estimates_the_full_gradient")
    ),
    "lagrangian.sign_of_the_exact_violation": trap(29, PFLD_PLAN("test_the_noise_has_the_accounted_scale", scale=1.0)),
    "lagrangian.noise_scaled_to_private_group_sizes": trap(
        30,
        PFLD_PLAN(
            "test_no_change_of_a_group_moves_the_violations_further_than_declared",
            m=2,
            notions=["demographic_parity"],
            n_classes=2,
        ),
    ),
    "lagrangian.only_one_group_is_thought_to_move": also(
        CONSTRAINT_GRADIENT(
            "test_no_change_of_a_group_moves_the_gradient_further_than_declared",
            m=2,
            notions=["demographic_parity"],
            kind="by hand",
        )
    ),
    "lagrangian.one_of_several_groups_is_thought_to_move": also(
        PFLD_PLAN("test_more_than_two_groups_cost_a_root_of_two"),
        PFLD_PLAN("test_no_change_of_a_group_moves_the_moments_further_than_declared", m=3),
    ),
    "lagrangian.rows_of_rare_groups_first": also(
        STREAMED_PFLD("test_groups_move_what_is_released_and_no_more_than_is_declared", way="some rows")
    ),
    # ---- ledgers.py ---------------------------------------------------------------------------------------------
    "ledgers.threads_start_outside_of_the_block": also(
        LEDGER_BLOCK("test_a_thread_started_inside_counts_and_after_the_block_it_does_not")
    ),
    "ledgers.workers_start_outside_of_the_block": also(
        LEDGER_BLOCK("test_tasks_that_are_sent_to_a_worker_count_there")
    ),
    "ledgers.a_ledger_in_memory_is_copied_by_fork": trap(
        40,
        LEDGER_FAILURES("test_five_forked_fits_under_a_ceiling_for_one_are_one_charge", on_disk=False),
        LEDGER_FAILURES("test_pools_of_every_kind_share_one_ledger_in_memory", how="pool"),
    ),
    "ledgers.a_child_trusts_the_memory_of_its_parent": trap(
        40, LEDGER_FAILURES("test_a_child_whose_parent_had_no_room_for_a_file_is_refused_and_the_parent_still_counts")
    ),
    "ledgers.a_lock_for_every_name_of_a_file": trap(
        40,
        LEDGER_FAILURES(
            "test_nothing_is_charged_under_another_name_between_a_decision_and_its_line", link=Named("os.symlink")
        ),
        LEDGER_FAILURES(
            "test_nothing_is_charged_under_another_name_between_a_decision_and_its_line", link=Named("os.link")
        ),
    ),
    "ledgers.promotion_that_forgets_on_a_full_disk": trap(
        40, LEDGER_FAILURES("test_a_promotion_that_finds_no_room_keeps_every_entry_in_memory", limit=100)
    ),
    "ledgers.promotion_through_a_planted_link": trap(
        40, LEDGER_FAILURES("test_a_promotion_follows_no_planted_link", target="dangling")
    ),
    "ledgers.locks_of_a_thread_are_inherited_by_a_fork": trap(
        40,
        LEDGER_FAILURES("test_a_lock_that_a_thread_holds_at_the_fork_is_not_inherited"),
        LEDGER_FAILURES("test_a_fork_while_a_thread_charges_neither_hangs_nor_loses_a_charge", on_disk=True),
    ),
    "ledgers.a_last_line_without_newline_is_dropped": trap(
        40, LEDGER_FAILURES("test_a_whole_line_beyond_the_count_counts_and_a_torn_one_was_never_charged")
    ),
    "ledgers.lines_without_a_chain": trap(
        40,
        LEDGER_FAILURES(
            "test_a_damaged_file_is_refused_by_those_who_know_it_and_by_those_who_do_not", damage="swapped"
        ),
        LEDGER_FAILURES(
            "test_a_damaged_file_is_refused_by_those_who_know_it_and_by_those_who_do_not", damage="noise edited"
        ),
    ),
    "ledgers.a_chain_without_a_count": trap(
        40,
        LEDGER_FAILURES(
            "test_a_damaged_file_is_refused_by_those_who_know_it_and_by_those_who_do_not", damage="last line cut"
        ),
        LEDGER_FAILURES(
            "test_a_damaged_file_is_refused_by_those_who_know_it_and_by_those_who_do_not", damage="all entries cut"
        ),
    ),
    "ledgers.an_older_copy_is_taken_for_the_ledger": trap(
        40,
        LEDGER_FAILURES("test_a_file_rolled_back_is_noticed_by_objects_pickles_and_notes"),
        LEDGER_FAILURES("test_a_file_replaced_by_a_fresh_one_is_noticed"),
    ),
    "ledgers.a_charge_in_the_middle_of_another_one_is_lost": trap(
        40, LEDGER_FAILURES("test_a_charge_in_the_middle_of_another_one_loses_neither", on_disk=False)
    ),
    "ledgers.memory_trusted_over_disk": trap(
        40,
        LEDGER_FAILURES("test_an_interrupt_at_any_step_of_a_charge_leaves_memory_and_disk_alike", step=10, after=True),
    ),
    "ledgers.a_torn_line_is_left_as_if_charged": trap(
        40, LEDGER_FAILURES("test_a_disk_that_is_full_in_the_middle_of_a_line_charges_nothing", room=30)
    ),
    "ledgers.a_ceiling_with_a_tolerance": also(
        LEDGER(
            "test_a_charge_is_accepted_up_to_the_ceiling_and_by_no_part_of_it_beyond", kind="gaussian", on_disk=False
        ),
        LEDGER("test_a_charge_is_accepted_up_to_the_ceiling_and_by_no_part_of_it_beyond", kind="pure", on_disk=True),
    ),
    "ledgers.epsilon_as_the_floats_have_it": also(
        ROUNDING("test_epsilon_of_a_gaussian_never_lies_below_the_truth", delta=1e-10),
        ROUNDING("test_epsilon_of_a_gaussian_never_lies_below_the_truth", delta=1e-05),
    ),
    "gradient.absent_rows_are_counted": also(SIGNED_LOSS("test_absent_rows_of_a_declared_table_count_nowhere")),
    "thresholding.a_calibrated_model_judged_by_what_taught_it": also(
        CALIBRATOR("test_what_is_learned_by_heart_of_few_public_rows_is_not_taken_for_parity", seed=0)
    ),
    "thresholding.a_network_judged_as_if_nothing_taught_it": also(
        OPTIMISM("test_all_of_it_may_be_in_the_smallest_group_and_true_classes_share_it")
    ),
    "thresholding.labels_known_by_heart_that_parity_has_nothing_to_do_with": also(
        OPTIMISM("test_parity_that_labels_known_by_heart_make_up_for_is_not_expected_of_others", kind="SF-PATE"),
        OPTIMISM("test_on_other_rows_answers_follow_labels_by_as_much_less_as_errors_were_spared_on_rows_seen"),
    ),
    "thresholding.a_bound_judged_by_networks_that_are_held_to_nothing": also(
        OPTIMISM("test_a_rate_of_a_rare_class_that_is_bounded_by_heart_is_not_expected_of_others", kind="PF-LD")
    ),
    "thresholding.rows_of_one_subject_on_both_sides_of_a_trial": also(
        USELESS("test_rows_of_one_subject_are_kept_from_a_network_together", make=PFLDClassifier)
    ),
    "thresholding.a_module_that_makes_many_of_two_counted_as_two": also(
        OPTIMISM("test_what_a_module_makes_of_few_columns_counts_and_not_these")
    ),
    "thresholding.thresholds_of_many_groups_judged_as_if_other_rows_had_chosen_them": also(
        PRIVATE_THRESHOLDS("test_the_bound_allows_for_thresholds_of_many_groups_that_the_same_rows_have_chosen")
    ),
    "thresholding.a_total_spent_by_each_of_two_fits": also(
        PRIVATE_THRESHOLDS("test_a_total_covers_the_release_of_a_schema")
    ),
    "thresholding.moved_answers_judged_as_if_others_had_taught_them": also(
        OPTIMISM(
            "test_what_answers_know_of_groups_by_heart_is_not_taken_for_what_they_know_of_others", kind="barycenter"
        ),
        OPTIMISM(
            "test_what_answers_know_of_groups_by_heart_is_not_taken_for_what_they_know_of_others", kind="thresholds"
        ),
    ),
    "thresholding.errors_judged_as_if_others_had_taught_them": also(
        OPTIMISM("test_errors_that_a_regressor_does_not_make_on_its_rows_are_expected_of_others", loss="absolute")
    ),
    "thresholding.teachers_and_sums_judged_as_if_others_had_taught_them": also(
        OPTIMISM("test_errors_that_teachers_or_sums_know_by_heart_are_expected_of_others", kind="FairPATE"),
        OPTIMISM("test_errors_that_teachers_or_sums_know_by_heart_are_expected_of_others", kind="synthetic rows"),
    ),
    "thresholding.rows_of_a_penalty_bound_the_gap_of_others": also(
        OPTIMISM("test_public_rows_that_a_penalty_may_know_by_heart_bound_no_gap_of_others")
    ),
    "thresholding.a_student_judged_by_what_taught_it": also(
        JUDGED_FITS("test_what_a_student_learns_by_heart_of_few_public_rows_is_not_taken_for_parity")
    ),
    "thresholding.a_second_look_for_nothing": also(JUDGE("test_a_table_costs_its_share_and_many_rows_cost_less")),
    "thresholding.noise_of_one_cell": also(
        GAP_BOUNDS("test_noise_of_several_cells_adds_up_in_what_is_counted_over_them")
    ),
    "thresholding.bounds_of_another_rate": also(GAP_BOUNDS("test_each_interval_is_that_of_its_own_rate_and_group")),
    "boundary.words_that_are_markup": also(STATEMENT("test_no_text_of_a_statement_is_markup")),
    "ledgers.what_is_drawn_is_not_weighed": also(
        SPENDING("test_what_is_drawn_never_costs_more_than_what_is_charged", name="once more"),
        SPENDING("test_what_is_drawn_never_costs_more_than_what_is_charged", name="answers nearer to the truth"),
        SPENDING("test_what_is_drawn_never_costs_more_than_what_is_charged", name="rare values once more"),
    ),
    "ledgers.trials_weighed_together": also(
        SPENDING("test_each_trial_of_a_selection_may_draw_what_one_trial_costs_and_none_is_told", mean=6.0)
    ),
    "ledgers.last_hash_is_not_compared": also(VERIFY("test_a_header_of_another_ledger_is_refuted")),
    "ledgers.a_ledger_that_continues_by_its_count": also(
        LEDGER_FAILURES("test_a_ledger_of_as_many_entries_is_not_the_one_that_was_noted")
    ),
    "ledgers.what_is_held_is_added_up_after_the_charge": trap(
        18, SPENDING("test_what_does_not_add_up_with_what_is_held_is_refused_before_the_charge")
    ),
    "ledgers.verify_knows_no_parts": also(
        VERIFY("test_a_statement_that_contradicts_itself_is_refused", lie="what was given was paid for by nobody")
    ),
    "ledgers.any_entry_is_the_fit": also(
        VERIFY("test_a_statement_that_contradicts_itself_is_refused", lie="an entry of nothing"),
        VERIFY("test_a_statement_that_contradicts_itself_is_refused", lie="an entry of one release"),
    ),
    "ledgers.events_of_any_size": also(
        VERIFY("test_an_event_that_would_take_minutes_is_one_clear_line", name="teachers")
    ),
    "ledgers.malformed_events_are_accepted": trap(
        42,
        EVENT_VALIDITY("test_every_door_refuses", name="nan noise"),
        EVENT_VALIDITY("test_every_door_refuses", name="negative noise"),
        EVENT_VALIDITY("test_every_door_refuses", name="negative count"),
        EVENT_VALIDITY("test_every_door_refuses", name="fractional count"),
        EVENT_VALIDITY("test_every_door_refuses", name="nan threshold"),
    ),
    "ledgers.nan_counts_as_nothing": trap(
        42, EVENT_VALIDITY("test_nothing_that_an_accountant_computes_is_taken_for_zero_because_it_is_nan")
    ),
    "ledgers.unknown_units_are_counted_as_nothing": trap(
        42,
        LEDGER("test_what_is_not_well_formed_is_refused_and_leaves_no_entry", wrong="unknown unit", dry_run=False),
        LEDGER(
            "test_what_is_not_well_formed_is_refused_and_leaves_no_entry",
            wrong="unit of another relation",
            dry_run=False,
        ),
    ),
    "ledgers.fits_for_records_tell_nothing_of_the_attribute": also(
        ATTRIBUTE_COST(
            "test_the_total_for_attributes_bounds_all_outputs_together_and_the_separate_totals_do_not", name="gaussian"
        ),
        ATTRIBUTE_COST("test_a_fit_for_records_is_held_against_the_total_for_attributes_and_dry_runs_too"),
    ),
    "ledgers.another_attribute_is_as_near_as_none": also(
        *(
            ATTRIBUTE_COST("test_the_event_of_an_attribute_bounds_it_and_that_of_a_null_record_does_not", name=name)
            for name in (*CONVERTED, "worst of two", "votes above a threshold", "which of two", "disclosure")
        ),
        ATTRIBUTE_COST("test_parts_of_an_event_count_twice_each"),
    ),
    "ledgers.another_attribute_is_a_root_of_two_away": also(
        *(
            ATTRIBUTE_COST("test_the_event_of_an_attribute_bounds_it_and_that_of_a_null_record_does_not", name=name)
            for name in CONVERTED
        )
    ),
    "ledgers.a_charge_is_held_against_its_own_total_only": also(
        ATTRIBUTE_COST("test_a_fit_for_records_is_held_against_the_total_for_attributes_and_dry_runs_too")
    ),
    "ledgers.verify_forgets_the_way_back_from_no_record": also(
        ATTRIBUTE_COST("test_the_second_implementation_finds_the_same_event", name="gaussian"),
        ATTRIBUTE_COST("test_a_statement_carries_the_total_for_attributes_and_a_lower_one_is_refuted", relation=NULL),
    ),
    "ledgers.a_null_record_counts_as_any_record": also(LEDGER("test_no_relation_implies_one_that_costs_more")),
    "ledgers.any_release_under_any_neighbours": also(
        RELATIONS("test_the_refusal_names_the_event_to_state_instead_and_that_one_is_taken"),
        *(
            RELATIONS(
                "test_every_door_refuses_what_is_not_proven_for_its_neighbours_and_takes_the_rest",
                name="PoissonSampledDpEvent",
                relation=REPLACED,
                around=around,
            )
            for around in ("alone", "deep")
        ),
    ),
    "ledgers.a_private_model_vouches_for_what_is_around_it": also(
        PRIVACY_OF("test_a_private_model_inside_does_not_vouch_for_what_is_around_it", kind="adaptive boosting")
    ),
    "ledgers.sampled_rows_for_nothing": also(PAID_ROWS("test_rows_that_were_sampled_cost_what_they_cost")),
    "ledgers.an_edited_statement_is_as_it_was_written": also(
        VERIFY("test_what_no_figure_tells_is_seen_by_the_digest", edit="more noise")
    ),
    "ledgers.one_part_on_the_ledger_is_enough": also(
        VERIFY("test_each_part_that_was_charged_is_on_the_ledger", entry=0)
    ),
    "ledgers.verify_looks_at_the_relation_of_statements_only": also(
        RELATIONS(
            "test_verify_refutes_a_ledger_of_unproven_neighbours_and_no_ledger_opens_it",
            name="PoissonSampledDpEvent",
            relation=REPLACED,
        )
    ),
    "ledgers.a_second_fit_keeps_what_the_first_one_learned": also(
        INTERRUPTED("test_no_model_of_one_fit_stands_beside_the_report_of_another", name="pate"),
        INTERRUPTED("test_a_fit_that_fails_inside_its_budget_leaves_no_model", name="synthetic"),
    ),
    # ---- noise.py -----------------------------------------------------------------------------------------------
    "noise.ten_to_the_delta_in_the_noise_scale": trap(
        2,
        NOISE_SCALE("test_noise_added_in_a_fit_has_the_accounted_scale", name="FairPATE-soft-2classes"),
        NOISE_SCALE("test_noise_added_in_a_fit_has_the_accounted_scale", name="FairPATE-gnmax-2classes"),
    ),
    "noise.noise_on_labels_instead_of_votes": trap(
        4,
        ZERO_NOISE_DIFFERENTIAL("test_every_output_is_what_its_noisy_value_says", name="FairPATE-gnmax-2classes"),
        ZERO_NOISE_DIFFERENTIAL("test_every_output_is_what_its_noisy_value_says", name="FairPATE-gnmax-3classes"),
    ),
    "noise.scale_for_its_inverse": trap(
        10,
        NOISE_SCALE("test_noise_added_in_a_fit_has_the_accounted_scale", name="FairPATE-soft-2classes"),
        NOISE_SCALE("test_noise_added_in_a_fit_has_the_accounted_scale", name="FairPATE-confident-2classes-binary"),
    ),
    "noise.one_noise_vector_for_all_queries": trap(
        22,
        NOISE_SCALE("test_every_query_gets_noise_of_its_own", name="FairPATE-soft-2classes"),
        NOISE_SCALE("test_every_query_gets_noise_of_its_own", name="FairPATE-soft-3classes"),
        NOISE_SCALE("test_every_query_gets_noise_of_its_own", name="FairPATE-gnmax-2classes"),
        NOISE_SCALE("test_every_query_gets_noise_of_its_own", name="FairPATE-confident-2classes-binary"),
    ),
    "noise.generator_seeded_at_import": trap(
        33,
        NOISE_SCALE("test_noise_is_a_function_of_operating_system_entropy_alone", noise="gaussian"),
        NOISE_SCALE("test_noise_is_a_function_of_operating_system_entropy_alone", noise="discrete_gaussian"),
        NOISE_SCALE("test_forked_processes_draw_different_noise"),
    ),
    "noise.noise_from_the_global_generator": trap(
        33,
        NOISE_SCALE("test_two_fits_never_share_noise_whatever_is_seeded"),
        NOISE_SCALE("test_noise_is_a_function_of_operating_system_entropy_alone", noise="gaussian"),
    ),
    "noise.noise_scale_from_private_counts": trap(
        30,
        ZERO_NOISE_DIFFERENTIAL("test_the_scale_of_the_noise_does_not_depend_on_private_rows"),
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-soft-2classes"
        ),
    ),
    "noise.sensitivity_one_for_a_histogram": also(
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-soft-3classes"
        )
    ),
    "noise.sensitivity_one_for_counts_of_rows": also(
        LAPLACE_COUNTS("test_no_replaced_record_moves_counts_further_than_declared", n_kinds=3),
        LAPLACE_COUNTS("test_it_costs_the_pure_epsilon_asked_for_and_no_delta", n_kinds=3, epsilon=0.5),
    ),
    "noise.laplace_numbers_without_a_sign": also(
        LAPLACE_COUNTS("test_noise_is_laplace_noise_of_the_accounted_scale_rounded_down_to_the_grid", scale=2.0)
    ),
    "noise.counts_rounded_before_the_noise": also(
        ZERO_NOISE_DIFFERENTIAL("test_noise_is_added_to_counts_that_were_not_rounded_to_a_coarser_grid")
    ),
    "noise.floats_published_as_they_come": trap(
        38,
        RELEASE_ROUNDING("test_every_release_is_a_multiple_of_a_grid_that_follows_sigma_alone"),
        RELEASE_ROUNDING("test_neighbours_have_the_same_possible_releases"),
        PFLD_GUARANTEE("test_published_sizes_lie_on_the_public_grid"),
    ),
    "noise.sizes_released_beside_the_mechanism": trap(
        38, PFLD_GUARANTEE("test_published_sizes_lie_on_the_public_grid")
    ),
    "noise.tails_that_end": trap(38, RELEASE_ROUNDING("test_the_tails_do_not_end")),
    # ---- partition.py -------------------------------------------------------------------------------------------
    "partition.parts_of_chunks_by_content": also(
        STREAMED_TEACHERS("test_one_record_changes_one_teacher", key="id"),
        STREAMED_TEACHERS("test_one_record_changes_one_teacher", key=None),
    ),
    "partition.folds_by_content": also(
        STREAMED_FOLDS("test_a_record_that_differs_in_every_cell_stays_in_its_fold", row=17),
        STREAMED_FOLDS("test_tables_of_neighbours_differ_by_one_row_in_one_fold", row=17),
    ),
    "partition.folds_that_are_scored_and_learned_from": also(
        STREAMED_FOLDS("test_a_fold_reads_its_rows_alone_and_all_folds_read_each_row_once")
    ),
    "partition.places_by_partition": also(
        PLACES("test_a_record_that_moves_the_ends_of_partitions_moves_no_row_to_another_teacher")
    ),
    "partition.files_named_after_values": also(
        PLACES("test_files_in_folders_named_after_values_need_a_key", declared=False),
        PLACES("test_files_in_folders_named_after_values_need_a_key", declared=True),
        PLACES(
            "test_only_files_that_are_numbered_in_one_folder_have_places", names=["f/part-0", "m/part-0"], known=False
        ),
        PLACES("test_only_files_that_are_numbered_in_one_folder_have_places", names=["f", "m"], known=False),
    ),
    "partition.order_of_named_files": also(
        STREAMED_GROUPS("test_files_whose_order_says_what_is_in_them_are_refused_before_anything_is_spent"),
        PLACES("test_fits_that_use_rows_in_their_order_refuse_files_named_after_values"),
    ),
    "partition.places_by_file": also(
        PLACES("test_a_longer_text_that_moves_rows_to_the_next_file_moves_none_to_another_teacher"),
        PLACES("test_votes_of_stores_that_are_cut_by_bytes_are_the_same"),
        PLACES("test_a_record_moves_no_query_by_more_than_a_vote_wherever_files_end"),
        MUTANTS_REPLAY("neighbours_look_the_same", entry="FairPATE-files-raw", pair="huge numbers in the first row"),
    ),
    "partition.files_in_the_order_of_texts": also(
        PLACES("test_a_longer_text_that_moves_rows_to_the_next_file_moves_none_to_another_teacher"),
        PLACES("test_votes_of_stores_that_are_cut_by_bytes_are_the_same"),
    ),
    "partition.ids_by_their_chunk": also(PLACES("test_a_key_is_hashed_by_itself_whatever_else_is_in_its_chunk")),
    "partition.ids_as_their_reader_has_them": also(
        PLACES("test_an_id_has_one_hash_whatever_type_its_reader_gave_it", one="fraction")
    ),
    "partition.bars_that_end_with_partitions": also(
        DASK("test_bars_do_not_show_where_partitions_end", scheduler="synchronous")
    ),
    "partition.groups_dealt_by_group": also(
        STREAMED_SFPATE("test_the_group_of_a_row_moves_no_row_to_another_teacher", key=None),
        STREAMED_SFPATE("test_the_group_of_a_row_moves_no_row_to_another_teacher", key="id"),
    ),
    "partition.kept_rows_by_content": also(STREAMED_SFPATE("test_which_rows_are_kept_does_not_follow_their_groups")),
    "partition.products_over_those_with_two_classes": also(
        LOGISTIC("test_how_others_are_computed_does_not_follow_from_how_many_classes_a_teacher_has_seen", n_classes=2),
        LOGISTIC("test_how_others_are_computed_does_not_follow_from_how_many_classes_a_teacher_has_seen", n_classes=3),
        LOGISTIC("test_shares_of_many_classes_do_not_follow_from_how_many_teachers_have_seen_them"),
    ),
    "partition.shares_rounded_up": also(
        STREAMED_SFPATE(
            "test_shares_in_steps_are_exact_in_any_order_and_no_more_than_one_vote", teacher="logistic", n_groups=3
        )
    ),
    "partition.retried_task_counted_twice": also(
        STREAMED_TEACHERS("test_rows_that_are_counted_twice_are_noticed_before_anything_is_released")
    ),
    "partition.no_partition": trap(
        1,
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-soft-2classes"
        ),
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-gnmax-2classes"
        ),
    ),
    "partition.stale_loop_index": trap(
        9,
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-soft-2classes"
        ),
        ZERO_NOISE_DIFFERENTIAL("test_every_part_has_its_one_vote_in_every_query"),
    ),
    "partition.new_partition_with_warm_teachers": trap(
        11,
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-soft-2classes"
        ),
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-gnmax-2classes"
        ),
    ),
    "partition.wrap_around_partition": trap(
        24,
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-soft-2classes"
        ),
    ),
    "partition.stratified_partition": trap(
        25,
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-soft-2classes"
        ),
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-soft-3classes"
        ),
    ),
    "partition.partition_stratified_by_the_group": trap(
        25,
        SF_PATE(
            "test_any_changed_group_changes_one_teacher_and_moves_votes_by_root_two",
            name="SFS-soft",
            n_classes=2,
            n_groups=2,
        ),
        SF_PATE(
            "test_any_changed_group_changes_one_teacher_and_moves_votes_by_root_two",
            name="SFS-gnmax",
            n_classes=3,
            n_groups=3,
        ),
        SF_PATE("test_the_partition_is_a_function_of_the_number_of_rows_alone", variant="teacher"),
    ),
    "partition.partition_by_content_hash": also(
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-soft-3classes"
        )
    ),
    "partition.scaled_by_private_range": trap(
        6,
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-soft-2classes"
        ),
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-gnmax-2classes"
        ),
    ),
    "partition.class_ratio_of_the_whole_table": trap(
        21,
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="FairPATE-soft-3classes"
        ),
        ZERO_NOISE_DIFFERENTIAL(
            "test_no_release_moves_further_than_its_declared_sensitivity", name="PATE-soft-3classes"
        ),
    ),
    "partition.student_sees_private_rows": trap(
        16,
        POST_PROCESSING(
            "test_the_fitted_state_is_a_function_of_the_released_votes_and_public_rows",
            name="FairPATE-soft-2classes",
            student=None,
        ),
        POST_PROCESSING(
            "test_the_built_in_student_is_given_public_rows_and_released_votes_only", name="FairPATE-soft-2classes"
        ),
        POST_PROCESSING(
            "test_the_built_in_student_is_given_public_rows_and_released_votes_only", name="FairPATE-gnmax-2classes"
        ),
    ),
    "partition.given_student_gets_private_rows": trap(
        16,
        POST_PROCESSING("test_a_student_is_given_public_rows_and_released_labels_only", name="FairPATE-gnmax-2classes"),
    ),
    # ---- randomized.py ------------------------------------------------------------------------------------------
    "randomized.chunks_handed_out_as_they_came": also(
        STREAMED_GROUPS("test_what_is_handed_out_of_a_replayed_neighbour_is_the_same", to="no such group")
    ),
    "randomized.truth_as_often_for_many_groups_as_for_two": also(
        RANDOMIZED_RESPONSE("test_the_ratio_of_probabilities_is_exactly_at_most_e_to_the_epsilon", epsilon=1.0, k=3),
        RANDOMIZED_RESPONSE("test_frequencies_are_those_of_the_epsilon_and_of_no_other", epsilon=2.0, k=5),
    ),
    "randomized.probability_of_a_lie_rounded_down": also(
        RANDOMIZED_RESPONSE("test_the_ratio_of_probabilities_is_exactly_at_most_e_to_the_epsilon", epsilon=1.0, k=7),
        RANDOMIZED_RESPONSE("test_the_ratio_of_probabilities_is_exactly_at_most_e_to_the_epsilon", epsilon=0.5, k=2),
    ),
    "randomized.a_lie_that_may_be_the_truth": also(
        RANDOMIZED_RESPONSE("test_words_at_the_thresholds_are_answered_as_the_ratio_says", epsilon=1.0, k=3),
        RANDOMIZED_RESPONSE("test_frequencies_are_those_of_the_epsilon_and_of_no_other", epsilon=1.0, k=3),
    ),
    "randomized.answers_taken_for_the_truth": also(
        RANDOMIZED_RESPONSE("test_weights_have_the_true_membership_as_their_exact_expectation", epsilon=1.0, k=2),
        RANDOMIZED_RESPONSE("test_weights_have_the_true_membership_as_their_exact_expectation", epsilon=3.0, k=7),
    ),
    "randomized.answers_given_again_for_nothing": trap(
        5, RANDOMIZED_RESPONSE("test_it_is_pure_and_only_pure_releases_have_a_figure_at_delta_zero")
    ),
    # ---- replay.py ----------------------------------------------------------------------------------------------
    "replay.one_by_one_where_one_fails": also(
        MUTANTS_REPLAY(
            "neighbours_look_the_same", entry="PrivateThresholds-tied", pair="huge numbers in the first row"
        ),
        ROWS_IN_SEATS("test_a_row_that_fails_changes_no_other_answer", container=np.asarray, row=0, value=1e200),
    ),
    "replay.coins_by_call": also(
        MUTANTS_REPLAY(
            "neighbours_look_the_same", entry="PrivateThresholds-coins", pair="huge numbers in the first row"
        )
    ),
    "replay.seats_by_chunk": also(
        MUTANTS_REPLAY(
            "neighbours_look_the_same", entry="PrivateThresholds-cut-by-bytes-raw", pair="huge numbers in the first row"
        ),
        ROWS_IN_SEATS("test_where_chunks_end_changes_no_answer"),
    ),
    "replay.type_of_private_labels_kept": also(
        MUTANTS_REPLAY("neighbours_look_the_same", entry="PFGuard-marginals", pair="y in a list, and one float")
    ),
    "replay.number_of_unknown_labels_in_the_error": also(
        MUTANTS_REPLAY("refusals_are_constant", entry="PATE-soft-2", cause="a label outside the domain in y")
    ),
    "replay.parts_with_two_classes_are_printed": also(
        MUTANTS_REPLAY("neighbours_look_the_same", entry="FairPATE-soft-2", pair="the only one of its kind in y")
    ),
    "replay.warnings_of_teachers_pass": also(
        MUTANTS_REPLAY("neighbours_look_the_same", entry="PATE-confident-2", pair="huge numbers in the first row")
    ),
    "replay.one_failing_teacher_ends_the_fit": also(
        MUTANTS_REPLAY("neighbours_look_the_same", entry="FairPATE-gnmax-2", pair="huge numbers in the first row")
    ),
    "replay.votes_go_round_the_mechanism": also(
        MUTANTS_REPLAY("neighbours_look_the_same", entry="PATE-soft-2", pair="all of a row in the middle")
    ),
    "replay.a_warning_of_exact_counts": also(
        MUTANTS_REPLAY("neighbours_look_the_same", entry="PFGuard-gs-wgan", pair="the only one of its kind in groups")
    ),
    "replay.how_many_groups_were_randomised_is_kept": also(
        MUTANTS_REPLAY(
            "neighbours_look_the_same", entry="RandomizedResponse-logistic", pair="the group of the first row"
        )
    ),
    "replay.the_rate_follows_the_rows": also(
        MUTANTS_REPLAY("neighbours_look_the_same", entry="FairDPSGD-declared-rows", pair="the last row missing")
    ),
    "replay.clipped_to_twice_the_bound": also(
        MUTANTS_REPLAY("neighbours_look_the_same", entry="FairDPSGD-declared-rows", pair="one large row more")
    ),
    "replay.sizes_of_secret_batches_are_logged": also(
        MUTANTS_REPLAY(
            "neighbours_look_the_same", entry="FairDPSGD-plain", pair="all of a row in the middle", same_secrets=False
        )
    ),
    # ---- searched_rows.py ---------------------------------------------------------------------------------------
    "schemas.threshold_for_an_absent_value": also(
        RARE_DISCLOSURE("test_one_record_reaches_the_threshold_with_at_most_the_probability_that_is_paid"),
        RARE_DISCLOSURE("test_a_value_of_one_record_is_shown_as_often_as_is_paid"),
    ),
    "schemas.threshold_at_a_tenth_of_the_quantile": also(
        RARE_DISCLOSURE("test_one_record_reaches_the_threshold_with_at_most_the_probability_that_is_paid")
    ),
    "schemas.sensitivity_of_one_count": also(
        RARE_DISCLOSURE("test_a_replaced_record_moves_the_counts_by_no_more_than_is_declared"),
        SCHEMA_RELEASE("test_tables_of_counts_move_by_no_more_than_is_declared"),
    ),
    "schemas.values_in_order_of_appearance": also(
        RARE_DISCLOSURE("test_the_order_of_appearance_does_not_show"),
        SCHEMA_RELEASE("test_the_order_of_the_rows_does_not_show", seed=0),
    ),
    "schemas.missing_is_counted_only_where_it_occurs": also(MUTANTS_REPLAY("schemas_look_the_same", what="missing")),
    "schemas.kinds_from_dtypes": also(MUTANTS_REPLAY("schemas_look_the_same", what="texts")),
    "schemas.a_release_that_no_column_names_is_free": also(
        ACCOUNT("test_a_release_that_no_column_names_is_paid_by_all_that_name_none")
    ),
    "schemas.a_trained_module_for_nothing": also(ACCOUNT("test_a_net_of_the_lagrangian_carries_what_was_paid_for_it")),
    "schemas.texts_of_pandas_own_type": also(MUTANTS_REPLAY("schemas_look_the_same", what="half a surrogate pair")),
    "schemas.a_text_as_its_class_has_it": also(MUTANTS_REPLAY("schemas_look_the_same", what="unordered")),
    "schemas.released_as_the_type_of_its_column": also(
        SCHEMA_RELEASE("test_values_of_a_file_are_released_alike_where_one_cell_of_it_is_none", cells=[0, 1])
    ),
    "schemas.read_as_the_type_of_its_column": also(
        SCHEMAS("test_one_cell_of_a_file_does_not_change_how_the_others_are_read", written="True False")
    ),
    "schemas.range_of_the_known_cells": also(MUTANTS_REPLAY("schemas_look_the_same", what="extreme")),
    "schemas.a_parser_of_whole_columns": also(
        SCHEMA_RELEASE("test_what_a_cell_is_read_as_follows_from_that_cell_alone")
    ),
    "schemas.truths_that_occur": also(SCHEMA_RELEASE("test_the_only_false_among_truths_does_not_show")),
    "schemas.one_complex_number_is_that_of_a_column": also(
        SCHEMA_RELEASE("test_what_a_cell_is_read_as_follows_from_no_type_of_a_column", beside=complex(1, 2))
    ),
    "schemas.all_of_mu_in_every_step": also(
        SCHEMA_RELEASE("test_the_event_costs_what_was_asked_for_and_every_path_of_a_column_is_covered")
    ),
    "schemas.failures_are_not_charged": also(
        SCHEMA_RELEASE("test_a_released_schema_charges_what_its_mechanisms_declare")
    ),
    "schemas.classes_of_the_rows": also(
        MUTANTS_REPLAY("neighbours_look_the_same", entry="PFGuard-raw", pair="the only one of its kind in y")
    ),
    "schemas.unforeseen_cells_raise": also(
        RAW_REPLAY("test_an_unforeseen_private_record_does_not_show", name="fair_pate", row=0)
    ),
    "schemas.unforeseen_records_are_dropped": also(
        RAW_REPLAY("test_an_unforeseen_private_record_does_not_show", name="generator", row=1)
    ),
    "schemas.numbers_scaled_by_the_rows": also(
        MUTANTS_REPLAY("neighbours_look_the_same", entry="FairPATE-raw", pair="all of a row in the middle")
    ),
    "schemas.bounds_of_the_rows": also(
        RAW_FITS("test_an_unforeseen_private_value_counts_as_what_the_schema_says", name="dpsgd", column="wage")
    ),
    "schemas.disclosures_do_not_add_up": also(
        RARE_DISCLOSURE("test_there_is_no_epsilon_at_a_delta_that_the_disclosure_uses_up")
    ),
    "searched_rows.all_of_scikit_learn_is_row_wise": also(
        SEARCH_ROWS("test_one_row_moves_the_tables_of_thresholds_behind_a_factorisation_by_root_two")
    ),
    "searched_rows.figures_of_a_table_in_one_call": also(
        OWN_TABLE("test_a_row_at_which_a_model_fails_moves_two_cells_of_its_figures")
    ),
    "searched_rows.rows_in_the_types_of_their_table": also(
        ROWS_IN_SEATS("test_a_cell_of_another_type_changes_the_types_of_no_other_row", name="whole", alone=None)
    ),
    "searched_rows.private_rows_in_free_seats": also(
        ROWS_IN_SEATS("test_a_public_row_stands_where_a_row_fails_and_where_there_is_none", value=1e200)
    ),
    "searched_rows.private_rows_predicted_in_one_call": trap(
        35,
        SEARCH_ROWS(
            "test_one_record_moves_a_score_table_by_root_two_whatever_the_predictor_does",
            kind=Named("tests.model_selection.test_search_rows.HidesIDP3"),
        ),
        SEARCH_ROWS(
            "test_one_record_moves_a_score_table_by_root_two_whatever_the_predictor_does",
            kind=Named("tests.model_selection.test_search_rows.Standardises"),
        ),
    ),
    "searched_rows.idp3_scored_on_private_rows": trap(
        35, SEARCH_ROWS("test_idp3_is_refused_on_private_rows_before_anything_is_spent")
    ),
    "searched_rows.teachers_that_raise": trap(
        36,
        TOTAL_TEACHERS("test_whatever_a_part_does_to_its_teacher_it_keeps_its_one_vote", what="raise", n_jobs=1),
        TOTAL_TEACHERS("test_searches_choose_the_same_way_with_and_without_a_record_that_makes_teachers_fail"),
    ),
    "searched_rows.votes_outside_the_classes": trap(
        36,
        TOTAL_TEACHERS("test_whatever_a_part_does_to_its_teacher_it_keeps_its_one_vote", what="negative", n_jobs=1),
        TOTAL_TEACHERS("test_whatever_a_part_does_to_its_teacher_it_keeps_its_one_vote", what="nan", n_jobs=1),
    ),
    "searched_rows.trials_whose_failure_loses": trap(
        36,
        PRIVATE_SEARCH("test_a_fit_that_fails_neither_loses_nor_tells_why", method="composition"),
        PRIVATE_SEARCH("test_a_fit_that_fails_neither_loses_nor_tells_why", method="selection"),
    ),
    "searched_rows.failed_fits_scored_as_nan": trap(
        36,
        PARETO_SEARCH(
            "test_a_fit_that_fails_after_the_charge_ends_the_search_and_tells_nothing",
            fails=(True, False),
            error_score=math.nan,
        ),
    ),
    "searched_rows.silent_typos": also(
        TOTAL_TEACHERS(
            "test_a_teacher_with_a_wrong_parameter_is_an_error_before_anything_is_spent",
            teacher=LogisticRegression(C=-1.0),
            message="'C' parameter",
        )
    ),
    "searched_rows.bar_over_parts_with_two_classes": trap(
        41,
        TOTAL_TEACHERS("test_nothing_that_teachers_say_is_heard_and_bars_show_public_totals", how="in turn", verbose=1),
        TOTAL_TEACHERS("test_nothing_that_teachers_say_is_heard_and_bars_show_public_totals", how="fair", verbose=1),
    ),
    "searched_rows.teachers_that_talk": trap(
        41,
        TOTAL_TEACHERS("test_nothing_that_teachers_say_is_heard_and_bars_show_public_totals", how="in turn", verbose=0),
        TOTAL_TEACHERS("test_nothing_that_teachers_say_is_heard_and_bars_show_public_totals", how="threads", verbose=0),
    ),
    "searched_rows.train_part_scored": trap(
        44,
        SEARCH_ROWS("test_the_released_table_is_of_the_test_part_that_is_charged", name="pareto"),
        SEARCH_ROWS("test_the_released_table_is_of_the_test_part_that_is_charged", name="private holdout"),
    ),
    "searched_rows.domains_of_the_rows_in_spite_of_a_schema": also(
        RAW_SEARCHES("test_an_unforeseen_private_record_does_not_show", name="synthetic", row=0)
    ),
    "searched_rows.report_that_counts_trials": also(
        SPENDING("test_each_trial_of_a_selection_may_draw_what_one_trial_costs_and_none_is_told", mean=6.0)
    ),
    "searched_rows.total_of_finished_fits": also(
        FRONTIER("test_what_a_failed_attempt_was_charged_stays_in_the_total", ledger=None),
        FRONTIER("test_what_a_failed_attempt_was_charged_stays_in_the_total", ledger="given"),
    ),
    "searched_rows.relations_not_told_apart": also(
        FRONTIER("test_rows_of_unlike_relations_are_never_compared"),
        TRANSFER_FRONTIER("test_operating_points_of_unlike_relations_are_never_compared"),
    ),
    "searched_rows.corner_of_the_source": also(
        TRANSFER_FRONTIER("test_the_default_corner_is_the_worst_of_both_tables")
    ),
    # ---- searching.py -------------------------------------------------------------------------------------------
    "searching.fits_of_a_search_count_on_the_block_as_well": also(
        LEDGER_BLOCK("test_a_fit_inside_counts_exactly_as_one_that_is_given_the_ledger", name="Private-public")
    ),
    "searching.a_total_that_is_added_up_without_the_refit": also(
        TOTAL_EPSILON("test_the_whole_search_costs_the_total_and_no_more", name="folds", total=3.0)
    ),
    "searching.stratified_folds": also(PARETO_SEARCH("test_one_changed_record_moves_no_other_between_folds")),
    "searching.test_folds_for_free": also(PARETO_SEARCH("test_vector_of_plain_cross_validation")),
    "searching.one_fit_for_all_folds": also(PARETO_SEARCH("test_vector_of_plain_cross_validation")),
    "searching.holdout_scores_for_free": also(
        PRIVATE_SEARCH("test_private_scores_of_a_holdout_cost_no_more_than_the_fit")
    ),
    "searching.table_of_sensitivity_one": also(
        PARETO_SEARCH("test_one_changed_record_moves_a_table_by_no_more_than_its_sensitivity")
    ),
    "searching.sums_of_amounts_of_sensitivity_one": also(
        AMOUNT_SEARCHES("test_no_neighbour_moves_the_sums_by_more_than_their_sensitivity", relation=REPLACED)
    ),
    "searching.errors_of_any_size_in_a_score": also(
        AMOUNT_SEARCHES("test_no_neighbour_moves_the_sums_by_more_than_their_sensitivity", relation=REPLACED)
    ),
    "searching.winner_at_the_price_of_one_trial": trap(
        5, PRIVATE_SEARCH("test_ten_candidates_cost_what_the_vectors_say", law="logarithmic", epsilon=0.693839)
    ),
    "searching.number_of_trials_from_a_known_seed": trap(
        33, PRIVATE_SEARCH("test_the_number_of_trials_varies_and_no_seed_repeats_it")
    ),
    "searching.search_charged_when_it_is_over": trap(
        18, PRIVATE_SEARCH("test_the_ledger_has_one_entry_written_before_any_trial")
    ),
    "searching.trials_that_warn": also(PRIVATE_SEARCH("test_warnings_of_trials_but_the_winners_are_kept_back")),
    "searching.ceiling_noticed_after_the_fit": trap(
        18, PARETO_SEARCH("test_a_ceiling_that_affords_nothing_refuses_before_the_first_fit")
    ),
    # ---- own_rows.py --------------------------------------------------------------------------------------------
    "own_rows.tables_are_not_charged": also(
        OWN_ROWS("test_what_is_certified_is_what_the_noise_of_tables_and_votes_costs_together", name="two classes"),
        OWN_ROWS("test_the_tables_cost_their_share_and_the_votes_the_rest"),
    ),
    "own_rows.the_look_at_parity_is_not_charged": also(
        OWN_ROWS("test_the_tables_cost_their_share_and_the_votes_the_rest")
    ),
    "own_rows.the_look_at_parity_counts_one_level": also(
        OWN_ROWS("test_no_release_moves_further_than_its_declared_sensitivity", name="two classes")
    ),
    "own_rows.private_groups_teach_a_constrained_student": also(
        MUTANTS_REPLAY("neighbours_look_the_same", entry="FairPATE-constrained", pair="the group of the first row")
    ),
    "own_rows.labels_are_estimated_without_the_group": also(
        CONSTRAINED_STUDENT("test_true_positive_rates_of_new_rows_with_their_true_labels_come_together")
    ),
    "own_rows.a_calibrator_takes_the_private_rows": also(
        CALIBRATOR_OWN_ROWS(
            "test_neighbours_look_the_same", make=Named("tests.postprocessing.test_calibrator_own_rows.pate")
        )
    ),
    "own_rows.a_calibrator_takes_the_private_labels": also(
        CALIBRATOR_CONSTRAINTS("test_neighbours_look_the_same", constraints="equalized_odds")
    ),
    "own_rows.rows_of_the_private_table_among_the_queries": also(
        OWN_ROWS("test_replaying_the_releases_gives_the_rows_and_the_student_without_the_private_rows", voting="soft"),
        OWN_ROWS("test_no_sampled_row_is_a_private_one"),
    ),
    "own_rows.groups_dealt_by_their_true_shares": also(
        OWN_ROWS("test_replaying_the_releases_gives_the_rows_and_the_student_without_the_private_rows", voting="soft")
    ),
    "own_rows.ranges_read_from_the_private_rows": also(
        OWN_ROWS("test_replaying_the_releases_gives_the_rows_and_the_student_without_the_private_rows", voting="gnmax")
    ),
    "own_rows.tables_weighed_by_how_well_they_fit_the_private_labels": also(
        OWN_ROWS("test_the_weight_of_the_tables_follows_public_numbers_only")
    ),
    # ---- summing.py ---------------------------------------------------------------------------------------------
    "summing.sums_are_not_charged": trap(
        5,
        CLASS_SUMS(
            "test_what_is_certified_is_what_the_noise_of_sums_and_votes_costs_together",
            n_classes=2,
            make=Named("skfairdp.FairPATEClassifier"),
        ),
        CLASS_SUMS("test_sums_get_half_of_the_squared_cost_and_votes_the_rest"),
    ),
    "summing.rows_are_as_long_as_they_come": also(
        CLASS_SUMS("test_no_release_moves_further_than_its_declared_sensitivity", n_classes=2),
        CLASS_SUMS("test_two_rows_of_a_class_at_opposite_ends_move_the_sums_by_all_of_the_sensitivity"),
    ),
    "summing.scaled_by_the_private_rows": also(
        CLASS_SUMS("test_replaying_the_releases_gives_the_student_without_the_private_rows", n_classes=2)
    ),
    "summing.rates_of_classes_from_the_private_labels": also(
        CLASS_SUMS("test_replaying_the_releases_gives_the_student_without_the_private_rows", n_classes=2)
    ),
    "summing.squares_beside_the_sums_are_free": also(
        CLASS_SUMS(
            "test_squares_beside_the_sums_move_them_by_no_more_than_is_declared_and_add_up_in_any_order", n_classes=2
        )
    ),
    "summing.sums_beside_tables_are_not_charged": also(
        SYNTHETIC_SUMS("test_what_is_planned_is_spent_and_is_at_most_epsilon", epsilon=1.0, constraint={})
    ),
    "summing.private_rows_stand_for_themselves": also(
        SYNTHETIC_SUMS("test_replaying_the_releases_gives_the_model_without_the_private_rows", n_classes=2)
    ),
    # ---- thresholding.py ----------------------------------------------------------------------------------------
    "thresholding.requests_that_share_their_room": also(
        IDP3_REQUESTS("test_the_gap_holds_after_every_answer_of_eight_threads")
    ),
    "thresholding.bins_for_nothing": trap(
        5, PRIVATE_THRESHOLDS("test_all_tables_together_cost_at_most_epsilon", relation=REPLACED, epsilon=1.0)
    ),
    "thresholding.a_look_at_moved_scores_for_nothing": trap(
        5, PRIVATE_BARYCENTER("test_all_tables_together_cost_at_most_epsilon", relation=REPLACED)
    ),
    "thresholding.a_barycenter_with_half_the_noise": also(
        PRIVATE_BARYCENTER("test_one_row_moves_no_table_by_more_than_declared", relation=REPLACED)
    ),
    "thresholding.a_bound_that_forgets_who_was_sampled": also(
        PRIVATE_BARYCENTER("test_the_bound_holds_in_nineteen_of_twenty_runs_and_says_something", n=800, epsilon=40.0)
    ),
    "thresholding.a_bound_that_takes_points_for_lines": also(
        PRIVATE_BARYCENTER(
            "test_the_bound_holds_where_many_rows_are_at_a_point",
            law="half of one group",
            n=60_000,
            epsilon=3.0,
            above=0.02,
        )
    ),
    "thresholding.a_guess_for_nothing": trap(
        5,
        GUESSED_GROUPS(
            "test_all_releases_together_cost_epsilon_and_are_those_that_are_planned", relation=NULL, epsilon=2.0
        ),
    ),
    "thresholding.a_gradient_that_enters_without_one_that_leaves": also(
        GUESSED_GROUPS("test_one_record_moves_a_step_by_no_more_than_its_sensitivity", relation=REPLACED, moved=2.0)
    ),
    "thresholding.a_guess_by_the_rows_of_the_bound": also(
        GUESSED_GROUPS("test_from_some_epsilon_on_the_rows_of_the_bound_have_taught_no_guess", epsilon=3.0)
    ),
    "thresholding.a_barycenter_that_guesses_for_nothing": also(
        GUESSED_BARYCENTER(
            "test_all_releases_together_cost_epsilon_and_are_those_that_are_planned", relation=REPLACED, epsilon=1.0
        )
    ),
    "thresholding.a_distance_of_rows_that_said_how_to_move": also(
        GUESSED_BARYCENTER("test_the_rows_of_the_bound_have_taught_nothing")
    ),
    "thresholding.a_look_for_nothing": trap(
        5, PRIVATE_THRESHOLDS("test_all_tables_together_cost_at_most_epsilon", relation=REPLACED, epsilon=1.0)
    ),
    "thresholding.rows_that_count_twice": also(
        PRIVATE_THRESHOLDS("test_where_no_network_guesses_groups_the_bound_is_of_the_answers_to_all_rows")
    ),
    "thresholding.a_bound_from_rows_that_are_alike": also(
        PRIVATE_THRESHOLDS("test_the_rows_of_the_bound_stand_for_all_where_rows_are_alike")
    ),
    "thresholding.a_bound_by_the_middle_of_two_laws": also(
        GAP_BOUNDS("test_a_bound_without_noise_is_at_least_that_of_clopper_and_pearson"),
        GAP_BOUNDS(
            "test_the_bound_holds_for_rates_of_zero_and_one_and_for_groups_of_few_rows_or_none",
            name="opposite ends",
            repeats=40,
        ),
    ),
    "thresholding.a_bound_that_does_not_know_of_the_noise": also(
        GAP_BOUNDS("test_the_gap_stays_below_its_bound_in_95_of_100_samples", name="much noise", repeats=40)
    ),
    "thresholding.half_the_sensitivity": also(
        PRIVATE_THRESHOLDS(
            "test_one_record_moves_each_table_by_no_more_than_its_sensitivity", relation=REPLACED, bound=math.sqrt(2)
        )
    ),
    "thresholding.the_classifier_for_nothing": trap(
        5, PRIVATE_THRESHOLDS("test_the_guarantee_of_a_private_classifier_is_composed_and_charged_once")
    ),
    "thresholding.a_row_without_a_score_ends_the_fit": trap(
        36, PRIVATE_THRESHOLDS("test_one_row_that_the_classifier_fails_on_does_not_stop_the_fit")
    ),
    "thresholding.labels_that_the_model_guesses": also(
        CALIBRATOR_CONSTRAINTS(
            "test_constraints_hold_on_the_public_rows", constraints=CONSTRAINED["odds"], n_groups=2, method=AWARE
        )
    ),
    "thresholding.only_the_first_constraint_holds": also(
        CALIBRATOR_CONSTRAINTS(
            "test_constraints_hold_on_the_public_rows", constraints=CONSTRAINED["several"], n_groups=2, method=AWARE
        )
    ),
    "thresholding.a_gate_without_the_constraints_bound": also(
        IDP3_TESTS(
            "test_constraints_hold_after_every_answer_from_the_first_moment_they_do",
            constraints=PARITY_BOUND,
            n_groups=3,
            n_classes=3,
        )
    ),
    "thresholding.a_gate_that_looks_at_one_side": also(
        IDP3_TESTS(
            "test_constraints_hold_after_every_answer_from_the_first_moment_they_do",
            constraints=PARITY_BOUND,
            n_groups=3,
            n_classes=3,
        )
    ),
    "thresholding.a_gate_that_forgets_what_is_outstanding": also(
        RATE_GATE("test_no_answer_lets_any_labels_break_more_than_they_could_before_it", asked=GATED_ODDS, seed=1)
    ),
    "thresholding.a_gate_that_expects_every_label": also(
        RATE_GATE(
            "test_no_answer_lets_any_labels_break_more_than_they_could_before_it", asked=GATED_OPPORTUNITY, seed=1
        )
    ),
    "thresholding.a_gate_that_compares_a_group_with_itself": also(
        RATE_GATE("test_a_group_is_not_compared_with_what_it_could_be_itself")
    ),
    "thresholding.a_gate_that_lets_a_broken_constraint_drift": also(
        RATE_GATE("test_an_inequality_that_is_broken_at_first_is_never_broken_by_more_and_can_be_mended")
    ),
    "thresholding.a_label_that_leaves_its_answer_outstanding": also(
        IDP3_LABELS("test_rows_are_counted_when_their_label_comes_and_not_before")
    ),
    "thresholding.coins_of_the_moment": also(
        CALIBRATOR_CONSTRAINTS("test_a_prediction_follows_from_its_row_in_any_order_and_container", method=AWARE)
    ),
    # ---- subjects.py --------------------------------------------------------------------------------------------
    "subjects.parts_by_row": also(
        SUBJECTS("test_no_release_moves_further_than_declared_where_all_rows_of_a_subject_are_others", name="given"),
        SUBJECTS("test_all_rows_of_a_subject_have_one_teacher_whatever_else_is_in_the_table"),
        replayed_with_other_rows("PATE, sums"),
    ),
    "subjects.parts_by_content": also(
        SUBJECTS("test_no_release_moves_further_than_declared_where_all_rows_of_a_subject_are_others", name="given"),
        SUBJECTS("test_all_rows_of_a_subject_have_one_teacher_whatever_else_is_in_the_table"),
    ),
    "subjects.rows_that_count_in_full": also(
        SUBJECTS("test_no_release_moves_further_than_declared_where_all_rows_of_a_subject_are_others", name="sums"),
        replayed_with_other_rows("PATE, sums"),
    ),
    "subjects.weights_to_the_nearest": also(
        SUBJECTS("test_sums_move_by_no_more_than_two_whatever_rows_a_subject_has", n_classes=2)
    ),
    "subjects.lengths_of_features_alone": also(
        SUBJECTS("test_sums_move_by_no_more_than_two_whatever_rows_a_subject_has", n_classes=2)
    ),
    "subjects.all_rows_are_counted": also(
        SUBJECTS("test_no_release_moves_further_than_declared_where_all_rows_of_a_subject_are_others", name="counts"),
        SUBJECTS("test_no_release_moves_further_than_declared_where_all_rows_of_a_subject_are_others", name="own rows"),
        replayed_with_other_rows("PATE, counts"),
        DPSGD_SUBJECTS("test_no_release_moves_further_than_declared_where_a_subject_has_no_rows", way="plain"),
    ),
    "subjects.the_row_of_a_subject_by_the_table": also(
        SUBJECTS("test_no_release_moves_further_than_declared_where_all_rows_of_a_subject_are_others", name="own rows"),
        SUBJECTS("test_one_row_of_each_subject_follows_from_its_own_rows_alone"),
    ),
    "subjects.rows_of_a_subject_are_clipped_one_by_one": also(
        DPSGD_SUBJECTS("test_no_release_moves_further_than_declared_where_a_subject_has_no_rows", way="plain")
    ),
    "subjects.rows_are_drawn_instead_of_subjects": also(
        DPSGD_SUBJECTS("test_no_release_moves_further_than_declared_where_a_subject_has_no_rows", way="plain"),
        replayed_with_other_rows("DP-SGD"),
    ),
    "subjects.rows_are_kept_by_the_table": also(
        DPSGD_SUBJECTS("test_which_rows_of_a_subject_are_learned_from_follows_its_own_rows_alone")
    ),
    "subjects.a_subject_that_is_gone_covers_each_of_its_rows": also(
        SUBJECT_UNIT(
            "test_a_subject_that_gives_way_to_none_counts_twice_as_far_for_its_rows_and_as_it_is_for_subjects",
            order=Named("tests.privacy.test_subject_unit.ORDERS", 0),
        )
    ),
    "subjects.subjects_without_rows_move_others": also(replayed_with_other_rows("PATE-GAN")),
    "subjects.rows_in_chunks_by_their_number": also(
        STREAMED_SUBJECTS("test_a_subject_with_other_rows_moves_one_vote_and_one_count", how="more"),
        replayed_with_other_rows("PATE in chunks"),
    ),
    "subjects.rows_in_chunks_counted_as_subjects": also(
        STREAMED_SUBJECTS("test_twice_the_rows_change_neither_plan_nor_parts", epsilon=8.0),
        replayed_with_other_rows("PATE in chunks, counts"),
    ),
    "subjects.rows_in_chunks_are_all_counted": also(
        STREAMED_SUBJECTS("test_a_subject_with_other_rows_moves_one_vote_and_one_count", how="more"),
        SUBJECT_TABLES("test_a_subject_with_other_rows_moves_one_count_of_each_table", how="more"),
        replayed_with_other_rows("PATE in chunks, counts"),
        replayed_with_other_rows("PFGuard in chunks"),
        SUBJECT_SCORES("test_a_subject_with_other_rows_moves_one_score_of_one_fold", how="more"),
        SUBJECT_SCORES("test_no_table_of_thresholds_moves_further_than_declared", how="more"),
    ),
    "subjects.groups_in_chunks_row_by_row": also(
        SUBJECT_TABLES("test_rows_that_disagree_about_the_group_follow_the_first_one"),
        SUBJECTS_REPLAYED(
            "test_the_group_of_a_subject_is_that_of_its_first_row",
            entry=Named("tests.replay.test_subjects.WAYS_OF_GROUPS", "SF-PATE in chunks"),
        ),
    ),
    "subjects.rows_in_chunks_are_chosen_by_the_table": also(
        SUBJECT_TABLES("test_a_subject_with_other_rows_moves_one_count_of_each_table", how="more")
    ),
    "subjects.rows_in_chunks_as_they_come": also(
        STREAMED_SUBJECTS(
            "test_neither_the_order_of_rows_nor_where_chunks_end_matters",
            teacher=Named("tests.rows.test_streamed_subjects.NETWORKS"),
        )
    ),
    "subjects.folds_in_chunks_by_row": also(
        SUBJECT_SCORES("test_a_fold_in_chunks_holds_all_rows_of_its_subjects_and_lists_those_without_rows"),
        SUBJECT_SCORES("test_a_subject_with_other_rows_moves_one_score_of_one_fold", how="more"),
    ),
    "subjects.folds_in_chunks_of_those_who_have_rows": also(
        SUBJECT_SCORES("test_a_fold_in_chunks_holds_all_rows_of_its_subjects_and_lists_those_without_rows")
    ),
    "subjects.subjects_in_chunks_as_they_turn_up": also(
        SUBJECT_GRADIENTS("test_in_chunks_no_release_moves_further_where_a_subject_has_no_rows", way="plain"),
        replayed_with_other_rows("DP-SGD in chunks"),
    ),
    "subjects.the_group_chooses_the_row_that_is_asked_for": also(
        SUBJECT_GROUPS_IN_CHUNKS(
            "test_the_group_of_a_subject_is_that_of_its_first_row_and_no_other_row_says_anything_of_it"
        )
    ),
    "subjects.rows_in_chunks_without_ids": also(
        STREAMED_SUBJECTS(
            "test_missing_ids_are_refused_before_anything_is_spent_in_words_that_hold_none", ids="texts", value=None
        )
    ),
    "subjects.bars_over_the_rows_of_subjects": also(
        STREAMED_SUBJECTS("test_bars_count_tenths_and_no_rows", engine="chunks"),
        replayed_with_other_rows("PATE in chunks"),
    ),
    "subjects.sizes_by_rows": also(
        DPSGD_SUBJECTS("test_plans_follow_the_number_of_subjects_and_never_that_of_rows"),
        SUBJECTS("test_twice_the_rows_change_nothing_that_is_planned", epsilon=0.3, own=False),
        replayed_with_other_rows("PATE, counts"),
    ),
    "subjects.a_subject_is_said_to_be_a_record": also(
        SUBJECT_UNIT(
            "test_a_statement_says_whose_rows_are_protected_together",
            rows_of="patient_id",
            said="all rows of one patient_id",
        )
    ),
    "subjects.frontiers_by_row": also(
        SUBJECT_SEARCHES("test_a_frontier_of_subjects_is_stated_for_them", by_name=False)
    ),
    "subjects.parts_without_their_subjects": also(
        SUBJECT_UNIT("test_a_part_that_says_it_protects_others_is_refuted", part=1, lie="other subjects")
    ),
    "subjects.records_that_subjects_do_not_count_for": also(SUBJECT_UNIT("test_the_ceiling_holds_for_each_total")),
    "subjects.rows_that_cover_their_subject": also(
        SUBJECT_UNIT("test_a_mechanism_for_replaced_rows_is_refused_where_subjects_are_protected")
    ),
    "subjects.generators_count_all_rows": also(replayed_with_other_rows("PFGuard")),
    "subjects.scores_count_all_rows": also(replayed_with_other_rows("folds")),
    "subjects.folds_of_those_who_have_rows": also(
        SUBJECT_SEARCHES("test_a_fold_holds_all_rows_of_its_subjects_and_lists_those_without_rows")
    ),
    "subjects.schemas_count_all_rows": also(replayed_with_other_rows("schema")),
    "subjects.groups_are_randomised_row_by_row": also(
        SUBJECTS_REPLAYED(
            "test_a_subject_of_another_group_looks_the_same",
            entry=Named("tests.replay.test_subjects.WAYS_OF_GROUPS", "randomised response"),
        )
    ),
    "subjects.gradients_of_all_rows": also(
        CONSTRAINT_GRADIENT(
            "test_no_change_of_the_group_of_all_rows_of_a_subject_moves_the_gradient_further_than_declared",
            sampled=False,
        ),
        SUBJECTS_REPLAYED(
            "test_a_subject_of_another_group_looks_the_same",
            entry=Named("tests.replay.test_subjects.WAYS_OF_GROUPS", "PF-LD, gradients"),
        ),
    ),
}
