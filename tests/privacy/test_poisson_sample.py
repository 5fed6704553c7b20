"""A Poisson batch without a coin per row: the same distribution, in time that follows the batch."""

import time
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from skfairdp.privacy import NoiseSource, PoissonSample
from skfairdp.privacy._noise import _heads_of_a_block
from tests._tools.sources import RecordingNoise


@pytest.mark.parametrize("probability", [1 / 16, 0.06, 0.0301, 1 / 1000, 3e-9, 2.0**-53])
def test_heads_of_a_block_are_binomial_to_the_last_of_256_bits(probability):
    chance = int(probability * 2**53)
    bits, thresholds = _heads_of_a_block(chance)
    assert 0.5 < 2**bits * chance / 2**53 <= 1
    rows, q = 2**bits, Fraction(chance, 2**53)
    if rows <= 64:
        total = Fraction(0)
        for k, threshold in enumerate(thresholds):
            total += comb(rows, k) * q**k * (1 - q) ** (rows - k)
            assert abs(total - Fraction(threshold, 2**256)) <= Fraction(1, 2**250)
    else:
        expected = binom.cdf(np.arange(6), rows, float(q))
        np.testing.assert_allclose([t / 2**256 for t in thresholds[:6]], expected, rtol=1e-12)
    assert thresholds == sorted(thresholds) and thresholds[-1] < 2**256


def test_words_that_do_not_tell_a_number_are_followed_by_more():
    thresholds = [2**255 + 5, 2**255 + 9]
    for rest, number in ((4, 0), (5, 1), (8, 1), (9, 2)):
        source = NoiseSource()
        answers = [np.array([2**63, 0, 2**64 - 1], dtype=np.uint64), np.array([0, 0, rest], dtype=np.uint64)]
        source._words = lambda n, answers=answers: answers.pop(0)
        assert source._numbers(thresholds, 3).tolist() == [number, 0, 2] and not answers


@pytest.mark.few(1)
@pytest.mark.parametrize(("probability", "rows"), [(1 / 16, 16), (0.05, 37), (0.03, 7)])
def test_every_row_joins_by_itself(probability, rows):
    source, n = NoiseSource(seed=1), 8_000
    joined = np.zeros((n, rows), dtype=bool)
    for i in range(n):
        joined[i, source.joined(probability, rows)] = True
    sizes = np.bincount(joined.sum(axis=1), minlength=rows + 1)
    expected = n * binom.pmf(np.arange(rows + 1), rows, probability)
    enough = expected > 10
    observed = np.append(sizes[enough], sizes[~enough].sum())
    assert chisquare(observed, np.append(expected[enough], expected[~enough].sum())).pvalue > 1e-4
    each = joined.mean(axis=0)
    assert np.abs(each - probability).max() < 5 * np.sqrt(probability / n)
    both = joined.T.astype(float) @ joined / n
    np.fill_diagonal(both, probability**2)
    assert np.abs(both - probability**2).max() < 6 * probability / np.sqrt(n)


def test_all_pairs_of_a_block_are_as_likely():
    source, pairs = NoiseSource(seed=2), []
    for _ in range(15_000):
        found = source.joined(1 / 16, 16)
        if len(found) == 2:
            pairs.append(found[0] * 16 + found[1])
    counts = np.bincount(pairs, minlength=256).reshape(16, 16)
    assert not np.tril(counts).any()
    assert chisquare(counts[np.triu_indices(16, 1)]).pvalue > 1e-4


def test_positions_are_sorted_and_distinct_and_a_stream_of_bits_gives_the_same_whatever_follows():
    for rows in (1, 15, 16, 17, 100, 4096, 4100):
        found = [PoissonSample(0.04).draw(n, RecordingNoise(entropy=rows)) for n in (rows, rows + 1)]
        assert np.all(np.diff(found[1]) > 0) and found[0].dtype == np.int64
        np.testing.assert_array_equal(found[0], found[1][found[1] < rows])
    assert len(PoissonSample(0.04).draw(0, NoiseSource())) == 0
    assert len(PoissonSample(1e-17).draw(100, NoiseSource())) == 0  # rounded down, as a coin is


def test_time_follows_the_batch_and_not_the_rows():
    def seconds(rows):
        source, sample = NoiseSource(), PoissonSample(256 / rows)
        sample.draw(rows, source)
        times = []
        for _ in range(30):
            start = time.perf_counter()
            sample.draw(rows, source)
            times.append(time.perf_counter() - start)
        return np.median(times)

    assert seconds(10**12) < 5 * seconds(10**5)
