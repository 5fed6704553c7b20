"""Preparing features without an uncharged release: encoders that are fitted on public rows only."""

from skfairdp.preprocessing._public_preprocessor import PublicPreprocessor
from skfairdp.preprocessing._tabular import make_tabular_encoder

__all__ = ["PublicPreprocessor", "make_tabular_encoder"]
