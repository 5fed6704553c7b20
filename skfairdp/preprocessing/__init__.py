"""Preparing rows: encoders fitted on public rows only, and the parity filter (which makes no privacy claim)."""

from skfairdp.preprocessing._parity_filter import DemographicParityFilter
from skfairdp.preprocessing._public_preprocessor import PublicPreprocessor, make_tabular_encoder

__all__ = ["DemographicParityFilter", "PublicPreprocessor", "make_tabular_encoder"]
