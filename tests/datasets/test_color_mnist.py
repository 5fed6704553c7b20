"""MNIST from its file, and colours whose link to the class is known exactly."""

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from skfairdp.datasets import _images, data_file, fetch_mnist, make_color_mnist
from skfairdp.fairness import largest_disparity


def grey(n=4000, side=4, n_classes=10, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(1, 256, size=(n, side, side), dtype=np.uint8), rng.integers(n_classes, size=n)


def table(bunch):
    """Images by colour and class."""
    classes = np.unique(bunch.target)
    return np.array(
        [[np.sum(bunch.target[bunch.sensitive_features == color] == k) for k in classes] for color in ("red", "green")]
    )


# --- the gap


@pytest.mark.parametrize("bias", [0.5, 0.75, 0.9, np.linspace(0.2, 0.7, 10)])
def test_gap_of_the_labels_is_the_one_stated_within_sampling_error(bias):
    images, labels = grey(60_000, side=1)
    colored = make_color_mnist(images, labels, bias=bias, random_state=0)
    # the standard deviation of a difference of two rates of about .1, over two groups of at least 20,000
    assert abs(largest_disparity(table(colored)) - colored.disparity) < 4 * np.sqrt(0.09 * 2 / 20_000)


def test_share_of_red_in_each_class_is_its_rate_within_sampling_error():
    images, labels = grey(60_000, side=1)
    colored = make_color_mnist(images, labels, bias=np.linspace(0.1, 0.9, 10), random_state=0)
    red = colored.sensitive_features == "red"
    assert abs(red.mean() - 0.5) < 4 * np.sqrt(0.25 / 60_000)
    shares = [red[colored.target == k].mean() for k in range(10)]
    np.testing.assert_allclose(shares, colored.red_rates, atol=4 * np.sqrt(0.25 / 5_800))


def test_stated_gap_is_computed_exactly_from_class_counts_and_bias():
    labels = np.repeat([0, 1, 2], [500, 300, 200])
    colored = make_color_mnist(np.zeros((1000, 2, 2)), labels, bias=[0.8, 0.5, 0.1], random_state=0)
    red, green = np.array([400, 150, 20]) / 570, np.array([100, 150, 180]) / 430
    assert colored.disparity == pytest.approx(np.abs(red - green).max(), abs=1e-12)
    np.testing.assert_array_equal(colored.red_rates, [0.8, 0.5, 0.1])


def test_one_number_gives_half_the_classes_that_rate_and_the_others_its_complement():
    images, labels = grey(n_classes=5)
    np.testing.assert_allclose(make_color_mnist(images, labels, bias=0.9).red_rates, [0.9, 0.9, 0.9, 0.1, 0.1])
    assert make_color_mnist(images, labels % 2, bias=1.0).disparity == 1.0


def test_color_that_is_independent_of_the_class_states_no_gap():
    assert make_color_mnist(*grey(), bias=0.5).disparity == pytest.approx(0, abs=1e-12)


# --- the images


def test_only_the_channel_of_the_group_holds_the_image():
    images, labels = grey(50)
    colored = make_color_mnist(images, labels, random_state=0)
    assert colored.data.shape == (50, 48) and colored.data.dtype == np.float32 and colored.image_shape == (3, 4, 4)
    cubes = colored.data.reshape(50, *colored.image_shape)
    for i, color in enumerate(colored.sensitive_features):
        channel = ("red", "green").index(color)
        np.testing.assert_allclose(cubes[i, channel], images[i] / 255, atol=1e-6)
        assert not np.delete(cubes[i], channel, axis=0).any()
    np.testing.assert_array_equal(colored.target, labels)


def test_a_colour_error_paints_that_share_of_the_images_in_the_colour_of_the_other_group():
    images, labels = grey(4000)
    plain, wrong = (make_color_mnist(images, labels, color_error=e, random_state=0) for e in (0.0, [0.0, 1.0] * 2000))
    np.testing.assert_array_equal(plain.sensitive_features, wrong.sensitive_features)
    red = wrong.data.reshape(-1, 3, 16)[:, 0].any(axis=1)
    np.testing.assert_array_equal(red[::2], (wrong.sensitive_features == "red")[::2])
    np.testing.assert_array_equal(red[1::2], (wrong.sensitive_features == "green")[1::2])
    some = make_color_mnist(images, labels, color_error=0.2, random_state=0)
    assert np.mean((some.data != plain.data).any(axis=1)) == pytest.approx(0.2, abs=0.03)


def test_smaller_images_average_the_area_of_each_pixel():
    images, labels = grey(20, side=6)
    exact = make_color_mnist(images, labels, size=3, random_state=0).data.reshape(20, 3, 3, 3).sum(axis=1)
    blocks = images.reshape(20, 3, 2, 3, 2).mean(axis=(2, 4)) / 255
    np.testing.assert_allclose(exact, blocks, atol=1e-6)
    uneven = make_color_mnist(images, labels, size=4, random_state=0).data.reshape(20, 3, 4, 4).sum(axis=1)
    # a side of 6 over 4 pixels: the first takes one whole pixel and half of the next
    share = np.array([1, 0.5]) / 1.5
    corner = np.einsum("a,b,nab->n", share, share, images[:, :2, :2] / 255)
    np.testing.assert_allclose(uneven[:, 0, 0], corner, atol=1e-6)
    np.testing.assert_allclose(uneven.mean(axis=(1, 2)), images.mean(axis=(1, 2)) / 255, atol=1e-5)


def test_bytes_and_floats_give_the_same_images():
    images, labels = grey(30)
    from_bytes = make_color_mnist(images, labels, random_state=0).data
    from_floats = make_color_mnist(images.astype(float) / 255, labels, random_state=0).data
    np.testing.assert_allclose(from_bytes, from_floats, atol=1e-6)
    assert from_bytes.min() >= 0 and from_bytes.max() <= 1


# --- randomness


def test_same_random_state_gives_the_same_rows():
    images, labels = grey(300)
    first, again = (make_color_mnist(images, labels, n_samples=100, random_state=3) for _ in range(2))
    for name in ("data", "target", "sensitive_features"):
        np.testing.assert_array_equal(first[name], again[name])
    other = make_color_mnist(images, labels, n_samples=100, random_state=4)
    assert (first.sensitive_features != other.sensitive_features).any()


def test_replacing_one_image_changes_no_other_row():
    images, labels = grey(200)
    before = make_color_mnist(images, labels, random_state=0)
    images, labels = images.copy(), labels.copy()
    images[17] = 0
    labels[17] = (labels[17] + 5) % 10
    after = make_color_mnist(images, labels, random_state=0)
    others = np.arange(200) != 17
    np.testing.assert_array_equal(before.data[others], after.data[others])
    np.testing.assert_array_equal(before.sensitive_features[others], after.sensitive_features[others])


def test_fewer_samples_are_drawn_without_replacement():
    images = np.arange(200, dtype=np.uint8).reshape(200, 1, 1)
    colored = make_color_mnist(images, np.arange(200) % 10, n_samples=60, random_state=0)
    values = np.rint(colored.data.max(axis=1) * 255).astype(int)
    assert len(set(values)) == 60 == len(colored.target)
    np.testing.assert_array_equal(values % 10, colored.target)  # labels stay with their images


# --- bad input


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"images": np.zeros((10, 4, 5))}, "square images in grey"),
        ({"images": np.zeros((10, 16))}, "Got shape (10, 16)"),
        ({"images": np.full((10, 4, 4), 2.0)}, "floats in the range [0, 1]. Got float64 outside that range"),
        ({"images": np.full((10, 4, 4), np.nan)}, "outside that range"),
        ({"images": np.zeros((10, 4, 4), dtype=np.int64)}, "Got int64"),
        ({"labels": np.arange(9)}, "shape (10,), one per image. Got shape (9,)"),
        ({"bias": 1.5}, "'bias' parameter of make_color_mnist must be a float in the range [0, 1]"),
        ({"bias": [0.5, 0.5]}, "or 10 of them"),
        ({"bias": np.nan}, "'bias'"),
        ({"bias": "red"}, "Got 'red'"),
        ({"bias": [1.0] * 10}, "the same colour"),
        ({"color_error": -0.1}, "'color_error' parameter of make_color_mnist must be a float in the range [0, 1]"),
        ({"color_error": [0.1] * 9}, "Got an array of shape (9,)"),
        ({"color_error": "some"}, "Got 'some'"),
        ({"color_error": np.nan}, "Got nan"),
        ({"size": 5}, "'size' parameter of make_color_mnist must be an int in the range [1, 4]"),
        ({"size": 2.0}, "Got 2.0"),
        ({"n_samples": 11}, "'n_samples' parameter of make_color_mnist must be an int in the range [1, 10]"),
        ({"n_samples": 0}, "Got 0"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_bad_input_is_refused_by_name(change, words):
    arguments = {"images": np.zeros((10, 4, 4)), "labels": np.arange(10), **change}
    images, labels = arguments.pop("images"), arguments.pop("labels")
    with pytest.raises(ValueError) as refusal:
        make_color_mnist(images, labels, **arguments)
    assert words in str(refusal.value)


# --- the file


def test_published_arrays_have_the_documented_size_and_the_gap_of_the_default_is_eleven_percent():
    if data_file("mnist") is None:
        pytest.skip("mnist.npz is not in the folder named by SKFAIRDP_DATA")
    mnist = fetch_mnist()
    assert mnist.images.shape == (70_000, 28, 28) and mnist.images.dtype == np.uint8
    assert mnist.target[:5].tolist() == [5, 0, 4, 1, 9] and (mnist.split == "train").sum() == 60_000
    train = mnist.split == "train"
    colored = make_color_mnist(mnist.images[train], mnist.target[train], size=7, random_state=0)
    assert round(colored.disparity, 2) == 0.11


def test_without_file_and_network_the_error_says_where_to_put_it(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    with pytest.raises(FileNotFoundError, match=r"has no mnist\.npz.*SKFAIRDP_DATA or with data_home="):
        fetch_mnist(data_home=tmp_path)
    monkeypatch.delenv("SKFAIRDP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="no folder was given"):
        fetch_mnist()


def test_other_arrays_than_the_published_ones_are_refused(tmp_path):
    images, labels = grey(100, side=28)
    parts = {"X_train": images[:80], "y_train": labels[:80], "X_test": images[80:], "y_test": labels[80:]}
    np.savez(tmp_path / "mnist.npz", **parts)
    with pytest.raises(ValueError, match="not the published ones"):
        fetch_mnist(data_home=tmp_path)
    np.savez(tmp_path / "mnist.npz", X_train=images)
    with pytest.raises(ValueError, match="with the arrays X_train"):
        fetch_mnist(data_home=tmp_path)
    (tmp_path / "mnist.npz").write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="with the arrays X_train"):
        fetch_mnist(data_home=tmp_path)


@pytest.mark.slow
def test_copy_of_openml_is_brought_to_the_same_form(tmp_path, monkeypatch):
    target = np.concatenate([np.repeat(np.arange(10), counts) for counts in _images._DIGITS])
    data = np.zeros((70_000, 784), dtype=np.int64)
    data[:, 28] = 255  # first pixel of the second line
    monkeypatch.setattr(
        sklearn.datasets, "fetch_openml", lambda **_: Bunch(data=data, target=target.astype(str).astype(object))
    )
    mnist = fetch_mnist(data_home=tmp_path)
    assert mnist.images.dtype == np.uint8 and (mnist.images[:, 1, 0] == 255).all() and not mnist.images[:, 0].any()
    np.testing.assert_array_equal(mnist.target, target)
    assert mnist.target.dtype == np.int64 and mnist.source == "OpenML, data_id=554"
