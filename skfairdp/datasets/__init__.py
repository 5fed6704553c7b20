"""Benchmark data with its groups, data with a known gap, and the split every experiment uses."""

from skfairdp.datasets._faces import fetch_celeba, fetch_chexpert, fetch_fairface, fetch_utkface
from skfairdp.datasets._fetch import data_file, fetch_adult, fetch_bank, fetch_compas, fetch_credit, fetch_parkinsons
from skfairdp.datasets._images import fetch_mnist, make_color_mnist
from skfairdp.datasets._make import make_biased_classification, make_class_bias, make_raw_table, make_rotated_subgroups
from skfairdp.datasets._split import PrivatePublicTestSplit as PrivatePublicTestSplit, train_private_public_test_split

__all__ = ["data_file", "fetch_adult", "fetch_bank", "fetch_celeba", "fetch_chexpert", "fetch_compas"]
__all__ += ["fetch_credit", "fetch_fairface", "fetch_mnist", "fetch_parkinsons", "fetch_utkface"]
__all__ += ["make_biased_classification", "make_class_bias", "make_color_mnist", "make_raw_table"]
__all__ += ["make_rotated_subgroups", "train_private_public_test_split"]
