"""Looking at models: frontiers, audits and displays; they read frames and say what is private."""

from skfairdp.inspection._additive_terms import AdditiveTerms
from skfairdp.inspection._audit import (
    AuditResult,
    OneRunAuditResult,
    TradeOffAuditResult,
    audit_count_statistic,
    audit_known_shift,
    audit_matched_filter,
    audit_one_run,
    audit_one_run_f_dp,
    audit_one_run_gaussian,
)
from skfairdp.inspection._audit_estimator import Canary, EstimatorAudit, audit
from skfairdp.inspection._audit_worlds import poisoned_queries
from skfairdp.inspection._frontier_display import ParetoFrontierDisplay
from skfairdp.inspection._frontier_frame import epsilon_meaning, epsilon_text
from skfairdp.inspection._group_columns import GroupColumns, columns_telling_the_group
from skfairdp.inspection._synthetic_report import SyntheticDataReport

__all__ = ["AdditiveTerms", "AuditResult", "Canary", "EstimatorAudit", "ParetoFrontierDisplay"]
__all__ += ["SyntheticDataReport", "audit", "audit_one_run", "columns_telling_the_group", "poisoned_queries"]
