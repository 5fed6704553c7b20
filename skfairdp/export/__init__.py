"""Fitted models in formats of others, which run no code when they are read."""

from skfairdp.export._onnx import to_onnx
from skfairdp.export._skops import trusted_types

__all__ = ["to_onnx", "trusted_types"]
