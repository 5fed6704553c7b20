"""Images with a known bias: turned subgroups and rare classes."""

import numpy as np
import pytest

from skfairdp.datasets import make_class_bias, make_rotated_subgroups


def images(n=400, side=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, side, side), dtype=np.uint8), rng.integers(0, 3, n)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_turned_images_are_the_minority_and_all_others_stay_as_they_are(turns):
    pixels, labels = images()
    rows = make_rotated_subgroups(pixels, labels, minority_share=0.3, quarter_turns=turns, random_state=0)
    turned = rows.sensitive_features == "turned"
    assert 0.24 < turned.mean() < 0.36 and set(rows.sensitive_features) == {"turned", "upright"}
    np.testing.assert_allclose(rows.data[~turned], pixels[~turned] / 255, atol=1e-6)
    expected = np.stack([np.rot90(image, turns) for image in pixels[turned] / 255])
    np.testing.assert_allclose(rows.data[turned], expected, atol=1e-6)
    np.testing.assert_array_equal(rows.target, labels)


def test_which_images_are_turned_depends_on_positions_alone():
    pixels, labels = images()
    one = make_rotated_subgroups(pixels, labels, random_state=3)
    two = make_rotated_subgroups(pixels[::-1], 2 - labels, size=3, random_state=3)
    np.testing.assert_array_equal(one.sensitive_features, two.sensitive_features)
    assert two.data.shape == (400, 3, 3)
    np.testing.assert_allclose(two.data.mean(axis=(1, 2)), one.data[::-1].mean(axis=(1, 2)), atol=1e-5)


def test_one_in_level_of_the_rare_class_stays_and_every_row_of_the_others():
    pixels, labels = images()
    rows = make_class_bias(pixels, labels, minority=1, level=4, random_state=0)
    counts = np.bincount(labels), np.bincount(rows.target)
    assert counts[1][1] == round(counts[0][1] / 4)
    assert counts[1][0] == counts[0][0] and counts[1][2] == counts[0][2]
    np.testing.assert_array_equal(rows.data, pixels[rows.indices])
    assert (np.diff(rows.indices) > 0).all()


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (make_rotated_subgroups, {"minority_share": 1.0}, "'minority_share' parameter"),
        (make_rotated_subgroups, {"quarter_turns": 4}, "'quarter_turns' parameter"),
        (make_rotated_subgroups, {"size": 7}, "'size' parameter"),
        (make_rotated_subgroups, {"labels": [1, 2]}, "'labels' parameter"),
        (make_class_bias, {"minority": 9}, "'minority' parameter"),
        (make_class_bias, {"minority": 1, "level": 0.5}, "'level' parameter"),
        (make_class_bias, {"minority": 1, "labels": [1, 2]}, "'labels' parameter"),
    ],
)
def test_unusable_parameters(make, change, message):
    pixels, labels = images()
    with pytest.raises(ValueError, match=message):
        make(pixels, change.pop("labels", labels), **change)
