"""The inside of the package, by name: the one place of the tests that knows where it lies."""

from importlib import import_module
from typing import Any

PLACES = {
    "_cli": "Sweep print_frontier",
    "_cli._files": "check_columns replaced",
    "_column_tables": "CELLS ColumnTables KNOTS ROUNDS without_far_ends",
    "_docs": "shared_docs",
    "_estimator": "PlainLedger PrivateEstimator",
    "_inputs": "PublicRows TrainingData",
    "_inputs._table": "refuse_large",
    "_judge": "KSJudgement SHARE Judge Judgement held_by_learner",
    "_networks": (
        "AdversarialTraining AmountScale BoundsByGroup CNN ColumnScales DPStep FairClippingStep GlobalScaling "
        "ImageLayers MLP Network ParityPenalty PrivateRows RowsOnDemand StackedMLP StackedModule WeightsByGroup "
        "additive_parts as_net batch_stream constant_module fitted_net is_constant module_of one_answer predict_logits "
        "predict_stacked prepare_network private_outputs products_of_step reduced_precision resolve_device "
        "sums_by_group threads_of_steps train_stacked width_of with_parts"
    ),
    "_networks._clipping": "has_hooks check_rows_stay_apart clipped_gradient_sum",
    "_networks._wide_sums": "Places DenseRows LayerRows SLACK Total wide",
    "_networks._training": "hooks_agree vectorizes check_network",
    "_transport": "Transport TransportPlan",
    "_row_wise": "BLOCK NO_CLASS known_row_wise row_wise_predictions",
    "_rows": (
        "FoldRows FoldRule PartWork SubjectFolds Subjects check_free_disk even_tables fold_sizes opened row_hashes"
    ),
    "_rows._keyed": "id_hashes",
    "_rows._dask": "DaskRows",
    "_rows._parquet": "ParquetRows",
    "_rows._source": "Chunk RowSource Spill",
    "_rows._opened": "FrameRows SparkRows",
    "gradient._dpsgd": "MajorityBaselineTest",
    "_tables._interactions": "InteractionModel Levels Surprise sets_of",
    "_tables": "table_of",
    "_tables._backend": "GeneratorPlan Layout Rows",
    "_tables._columns": "NumberColumn fine_grid finer_starts look_twice",
    "_tables._counting": "BinSearch code_type counted_pairs together",
    "_tables._declared": "as_entries as_numbers codes_of_entries Form",
    "_tables._marginals": "MarginalsPlan TreeModel joint_given_cells",
    "_tables._matrix": "MatrixColumn grid_counts number_column",
    "_teachers": (
        "MLPTeachers Parts Teachers as_classifiers bytes_on_disk counted_once fit_teachers position_partition "
        "streamed_class_counts streamed_counts streamed_votes vote_histogram"
    ),
    "_teachers._logistic": "LogisticEnsemble",
    "_usefulness": (
        "AmountLook AmountMean CLEAR Comparison LEAST_ROWS MOST_ROWS MOST_TEACHERS ROWS_PER_TEACHER VoteForecast "
        "learned_by_heart may_fall_back rows_to_try seen spread_by_rows tried tried_on_parts default_n_teachers "
        "what_is_enough"
    ),
    "datasets._fetch": "ADULT",
    "fairness._constraints": "project_to_bounds ConstraintColumn",
    "fairness._gate_stream": "TOLERANCE",
    "papers._adversarial": (
        "AdversarialPlan BinnedGradients CountsOfRows MeanGradient SanitisedGradient TopSigns "
        "TeacherParts density_ratios importance_weights normalized"
    ),
    "generative._group_rates": "fair_label_rates given_label_rates target_rates tilted_label_rates",
    "papers._gan_ensembles": "PATEGANPlan",
    "generative._amounts": "AmountTables",
    "model_selection._amount_scores": "AmountTable ReleasedAmounts",
    "model_selection._own_figures": "AmountFigures LabelFigures",
    "generative._inputs": "StreamedTable",
    "generative._table_codec": "TableCodec TableEncoder",
    "generative._usefulness": "TableForecast",
    "gradient._amounts": "AmountConstraints AmountJudge AmountJudgement MovingPlan",
    "gradient._parity": "DPSGDPlan EDGES ODDS Temperature beside default_parity",
    "gradient._signed_loss": "DualPlan RateLagrangian largest_price",
    "inspection._audit_worlds": "bits_delta bits_epsilon rates_epsilon rates_of_band",
    "inspection._frontier_frame": "epsilon_text parts_of staircase_surface",
    "inspection._html": "frontier_page",
    "papers._data_dependent": "data_dependent_rdp log_q smooth_sensitivity",
    "lagrangian._constraint_gradient": "ConstraintGradient",
    "lagrangian._dual_ascent": "DualAscent LagrangianTraining OneNetwork dual_schedule",
    "lagrangian._fld": "as_perceptron",
    "lagrangian._plan": "PublicFeatures estimate_groups group_coefficients release_asked PFLDPlan",
    "lagrangian._stack": "Stack StackedParity",
    "lagrangian._trainer": "train_lagrangian train_stacked_lagrangian",
    "model_selection._candidate": "SearchFailedError planned_entry",
    "model_selection._scores": "read_scoring ChunkScores PrivateScores ScoreTable",
    "model_selection._frame": "mark_non_dominated pareto_frontier",
    "model_selection._private_search": "Trials",
    "model_selection._search_data": "read_search split_event",
    "model_selection._pareto_search": "SearchRun",
    "pate._query_plan": "ALL_BUT COUNT_NOISE PATEPlan plan_counts",
    "pate._votes": "Budget ReleasedVotes UNANSWERED VotePlan",
    "pate._usefulness": "FAIR_NOISE FAIR_PART FairForecast fall_back_to_majority majority_class warn_of_gaps",
    "pate._fair_votes": "fit_fair_teachers dry_run_teacher",
    "pate._constrained_student": (
        "group_blind_rule APART NoisyParityEstimate shrink_gaps comparisons corrected share_of_look"
    ),
    "pate._student_training": "ConstantStudent StudentTrainingSet fit_student seeded",
    "pate._soft_label_student": "LEVELS LevelRates SmoothRates",
    "postprocessing._bins": "BinsPlan HELD chance_of_gap owed_to_choosing smoothed_counts",
    "postprocessing._constrained": "row_numbers answer_counts fair_answers for_own_answers predicted_counts",
    "postprocessing._group_guess": "GroupGuess GuessPlan GuessedTransport GuessedTransportPlan",
    "postprocessing._gated": "LaterLabels",
    "postprocessing._thresholding": "CalibrationRows contrast search_multipliers TradeOff",
    "privacy._spending": "Allowance allowance",
    "privacy._divergences": "selection_rdp stopping_parameter inclusion_epsilon losses_epsilon",
    "privacy._dp_accounting": "epsilon_from_pld gaussian_pld rdp_to_epsilon self_compose",
    "privacy._ledger": "PrivacyLedger",
    "privacy._recompute": "SecondOpinion to_replace_one",
    "privacy._statement": "PrivacyStatement attack_bound digest_of",
    "privacy._account": "carrying held_by record_of",
    "privacy._report": "PerformedRelease rounded_down rounded_up",
    "privacy._verify": "UnreadableStatementError verify_file",
    "schema._release": "plan_release",
    "_utils": "PrivateRowsError",
    "_networks._parity": "disparity_and_slope disparity_of_contrasts group_contrasts",
    "fairness._rates": "RATES RATE_NOTIONS",
    "_teachers._classifiers": "NetClassifier",
    "_networks._adversarial": "StackedDiscriminators GeneratorNet",
    "_networks._mlp": "ScaledModule",
}
WHERE = {name: place for place, names in PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"tests._tools.inside has no {name!r}: say in PLACES where it is")
    return getattr(import_module(f"skfairdp.{WHERE[name]}"), name)
