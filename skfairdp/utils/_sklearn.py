"""The only importer of scikit-learn's private names: when one moves, this file changes and nothing else."""

from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

__all__ = ["HasMethods", "Interval", "StrOptions", "take_rows"]
