"""Whole numbers are looked up in a table, and get the codes that a dictionary would give them."""

import numpy as np
import pandas as pd
import pytest

from skfairdp._utils import as_groups, encode_groups, encode_many, group_domain

DOMAINS = {
    "whole numbers": [3, -2, 7],
    "truths": [False, True],
    "floats that are whole": [3.0, 0.5, 7.0],
    "mixed": [1, "1", (1, 2), 2.5],
    "no number": ["f", "m"],
    "far apart": [0, 2**40],
    "at the ends": [-(2**63), 2**63 - 1],
}
DTYPES = [np.bool_, np.int8, np.uint8, np.int32, np.int64, np.uint64]


def by_dictionary(values, domain):
    """The codes, or None where a value is unknown."""
    index = {label: code for code, label in enumerate(domain.tolist())}
    codes = [index.get(value, -1) for value in values.tolist()]
    return None if -1 in codes else codes


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("labels", list(DOMAINS.values()), ids=list(DOMAINS))
def test_integers_get_the_codes_that_a_dictionary_gives(labels, dtype):
    domain = np.empty(len(labels), dtype=object)
    domain[:] = labels
    within = [label for label in labels if isinstance(label, int | float) and label == int(label)]
    ends = [0, 1] if dtype is np.bool_ else [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 2, 3]
    for value in [*within, *ends]:
        try:
            values = np.array([int(value)] * 3, dtype=dtype)
        except OverflowError:
            continue
        expected = by_dictionary(values, domain)
        asked = {"owner": "IDP3", "name": "y", "parameter": "classes"}
        if expected is None:
            with pytest.raises(ValueError, match="y of IDP3"):
                encode_many(values, domain, **asked)
        else:
            found = encode_many(values, domain, **asked)
            assert found.dtype == np.int64
            assert found.tolist() == expected


def test_what_is_encoded_is_left_as_it_was():
    values = np.array([5, 4, 5])
    encode_many(values, np.array([4, 5]), owner="IDP3", name="y", parameter="classes")
    assert values.tolist() == [5, 4, 5]


@pytest.mark.parametrize(
    "groups",
    [
        np.array([2, 0, 1]),
        np.array([True, False, True]),
        pd.Series([2, 0, 1]),
        pd.Series([2, 0, 1], dtype="Int64"),
        np.array([[2, 0], [1, 0], [2, 0]]),
        pd.DataFrame({"a": [2, 1, 2], "b": ["x", "y", "x"]}),
        np.array(["f", "m", "f"]),
        [0, 1, 0],
        np.array([0.0, 1.0, 0.0]),
    ],
    ids=["ints", "truths", "Series", "nullable", "two columns", "frame", "texts", "list", "floats"],
)
def test_groups_of_every_form_get_the_codes_of_their_objects(groups):
    values = as_groups(groups, 3, owner="IDP3")
    domain = group_domain(values)
    found = encode_groups(groups, domain, 3, owner="IDP3", parameter="groups")
    assert found.tolist() == by_dictionary(values, domain)


@pytest.mark.parametrize(
    "groups", [np.array([0, 1]), pd.Series([0.0, np.nan, 1.0]), np.ma.array([0, 1, 0], mask=[1, 0, 0])]
)
def test_groups_that_cannot_be_read_are_refused_as_before(groups):
    with pytest.raises(ValueError) as expected:
        as_groups(groups, 3, owner="IDP3")
    with pytest.raises(ValueError) as found:
        encode_groups(groups, np.array([0, 1], dtype=object), 3, owner="IDP3", parameter="groups")
    assert str(found.value) == str(expected.value)


def test_half_a_surrogate_pair_is_a_group_as_any_other():
    """Found: another error than that of a group that is not listed, since pandas could not encode it."""
    values = np.array(["f", "\ud800", "m"], dtype=object)
    for given in (values, values.astype(str), values.tolist(), np.array([[value] for value in values], dtype=object)):
        found = as_groups(given, 3, owner="IDP3")
        assert found.tolist() == values.tolist() and {type(value) for value in found} == {str}
