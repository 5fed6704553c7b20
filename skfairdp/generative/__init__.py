"""Synthetic data: private generators that sample groups and labels at balanced rates."""

from skfairdp._tables import GeneratorBackend as GeneratorBackend, MarginalsBackend, SyntheticRows
from skfairdp.generative._generator import PFGuardGenerator
from skfairdp.generative._synthetic_data_classifier import SyntheticDataClassifier
from skfairdp.generative._synthetic_data_regressor import SyntheticDataRegressor
from skfairdp.generative._table_codec import TableCodec, UnitCodec

__all__ = ["MarginalsBackend", "PFGuardGenerator", "SyntheticDataClassifier", "SyntheticDataRegressor"]
__all__ += ["SyntheticRows", "TableCodec", "UnitCodec"]
