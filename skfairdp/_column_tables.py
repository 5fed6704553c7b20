"""Where the numbers of each column lie: by public rows, or by noisy counts, three times ever more closely, within ε."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from skfairdp._inputs import TrainingData
from skfairdp._typing import Bools, Floats
from skfairdp._utils import warn_caller
from skfairdp.exceptions import UtilityWarning
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, gdp_mu, repeat
from skfairdp.schema import NumberPlace, Schema, number_places

if TYPE_CHECKING:
    from skfairdp._networks import Net

#: ε and δ of a fit, its neighbours, and what rates of groups leave of its squared cost.
Cost = tuple[float, float, NeighboringRelation, float]

#: At most of the squared cost of the fit that rates of groups leave: gradients have 4 % more noise.
SHARE = 0.08
#: Nor is a count known to less than a hundredth of the rows, which shifts quantiles by a few hundredths.
ENOUGH = 100.0
#: Curves follow amounts that one row in twelve has, such as gains on capital, which are not seen behind that.
ENOUGH_FOR_CURVES = 500.0
ROUNDS = 3
CELLS = 32  # a power of two; each round looks up to so many times more closely
LIGHT = 0.25  # neighbouring cells become one below this part of an equal share
UNSEEN = 0.2  # standard deviations of rows that either half of a range gets unseen, as wide as it is
KNOTS = 8
LEVELS = (np.arange(KNOTS) + 0.5) / KNOTS
#: Half of a column is counted with four standard deviations of a cell, which have to be a quarter of the rows at most.
CLEAR = 16.0
CLOSEST = 2.0**-17  # knots of bounds from -1 to 1: float32 tells them apart
ROWS_AT_ONCE = 8192
#: Without bounds cells grow by a constant factor: from 2^-12, below which numbers count as 0, up to 2^44.
SMALLEST, OCTAVES = 2.0**-12, 56.0
#: Where numbers up to about 4 end there.
NEAR = 0.25
#: Three rounds there where so many standard deviations of a cell are among the rows; else two, and for as much as makes
#: half of a column show, up to this share: a network that sees nothing of its columns learns nothing.
SHOWN, MOST_SHARE = 25.0, 0.2
#: A column whose numbers lie about so far, or of which nearly all are 0, is left as it is: most were scaled by hand, or
#: are marks of a category.
LEFT_FROM, LEFT_TO, NOUGHT = 0.03, 3.0, 2.0**-9
#: Numbers are cut off there, in half ranges: three standard deviations of normal ones, and where a column is left, what
#: a rare amount of thousands would be.
SCALED_FAR, LEFT_FAR = 2.0, 8.0
LEAST_RANGE = 1e-6  # of a centre: float32 tells knots apart
#: Which knot from either end says where a released column lies: beyond it noise may have put rows far away.
CLEAR_KNOT = 1
#: Standard deviations of noise that the outermost cells of a group have to hold.
CLEAR_OF_NOISE = 3.0
#: The outermost cells with rows are at most so many times as wide as the widest between them.
GROWTH = 4.0
MOST_PUBLIC = 16384  # rows are enough for quantiles
#: Public rows for each knot of a curve: with 18 a table of 2,000 was learned by heart, with 36 hardly any more. Where
#: no noise grows with it a hat is as high as so many rows allow, and at least as behind noise.
ENOUGH_FOR_KNOTS, ROWS_OF_HEIGHT, HEIGHT, HIGHEST = 24, 100, 0.5, 8.0
LEAST_PUBLIC = 64  # rows, of which four lie beyond either of the outermost quantiles


@dataclass(frozen=True)
class ColumnTables:
    """Counts of the rows by cells of every column of numbers, three times, each time in smaller cells where many are:
    from them follow quantiles, by which a network scales numbers. A record that comes, goes or gives way to a null
    record moves one count of every column by one; one that is replaced by any other one, two."""

    places: tuple[NumberPlace, ...]
    n_rows: int
    epsilon: float
    delta: float
    relation: NeighboringRelation
    share: float = 1.0
    has_bounds: bool = True
    for_curves: bool = False

    @property
    def should_release(self) -> bool:
        """Whether there are columns of numbers, and rows enough to be seen behind the noise."""
        return bool(self.places) and self.n_rows > CLEAR * self.counts.sigma

    @property
    def rounds(self) -> int:
        """How often the columns are looked at, ever more closely."""
        return ROUNDS if self.has_bounds or self.n_rows >= SHOWN * self._moved / self._mu(SHARE, ROUNDS) else 2

    @property
    def counts(self) -> GaussianMechanism:
        """For the cells of all columns together, once."""
        moved, mu = self._moved, self._mu(SHARE, self.rounds)
        if self.rounds < ROUNDS:
            mu = max(mu, min(self._mu(MOST_SHARE, self.rounds), CLEAR * moved / self.n_rows * 1.01))
        mu = min(mu, (ENOUGH_FOR_CURVES if self.for_curves else ENOUGH) * moved / self.n_rows)
        return GaussianMechanism(moved / mu, sensitivity=moved, relation=self.relation)

    @property
    def _moved(self) -> float:
        """A record in the place of another one leaves a cell of every column and enters another."""
        return math.sqrt(len(self.places) * (1 if self.relation.by_null else 2))

    def _mu(self, share: float, rounds: int) -> float:
        return math.sqrt(share * self.share / rounds) * gdp_mu(self.epsilon, self.delta)

    @property
    def event(self) -> DpEvent:
        """All rounds."""
        return repeat(self.counts.event, self.rounds)

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        return (f"{self.rounds} noisy tables of where the numbers of {len(self.places)} columns lie",)

    def table(self, X: Any, edges: Floats) -> Floats:
        """Count the rows in the cells between edges, column by column. Private."""
        found = np.zeros((len(self.places), CELLS))
        for i in range(0, len(X), ROWS_AT_ONCE):
            rows = X[i : i + ROWS_AT_ONCE]
            for place, ends, cells in zip(self.places, edges, found, strict=True):
                numbers = rows[:, place.column]
                known = np.isfinite(numbers)  # a null record counts nowhere
                if place.missing is not None:
                    known &= rows[:, place.missing] < 0.5
                inside = numbers[known] if self.has_bounds else _compressed(numbers[known])
                cells += np.bincount(np.searchsorted(ends[1:-1], inside, side="right"), minlength=CELLS)
        return found

    def release(self, X: Any, noise: NoiseSource, *, near: bool = False) -> Floats:
        """Release the tables, and return the quantiles that follow from them; ``near``: no row lies far from others.
        For curves a number that an eighth of the rows have takes one, and leaves the others to other numbers."""
        edges = self.release_cells(X, noise, self.rounds - 1)
        noisy = self.counts.release(self.table(X, edges), noise)
        shares = self.shares(edges, noisy)
        if self.for_curves:
            seen = CLEAR_OF_NOISE * self.counts.sigma * math.sqrt(CELLS) / self.n_rows
            shares = np.stack([_one_knot_a_cell(part, seen) for part in shares])
        if near:
            edges = np.stack(
                [without_far_ends(*of, self.counts.sigma) for of in zip(edges, noisy[:, None], strict=True)]
            )
        knots = np.stack([_quantiles(ends, part) for ends, part in zip(edges, shares, strict=True)])
        return knots if self.has_bounds else _expanded(knots)

    def release_cells(self, X: Any, noise: NoiseSource, rounds: int) -> Floats:
        """Release so many tables, and return the ends of cells of which none is heavy."""
        edges = np.tile(np.linspace(-1, 1, CELLS + 1), (len(self.places), 1))
        for _ in range(rounds):
            shares = self.shares(edges, self.counts.release(self.table(X, edges), noise))
            edges = np.stack([_finer(ends, part) for ends, part in zip(edges, shares, strict=True)])
        return edges

    def shares(self, edges: Floats, noisy: Floats) -> Floats:
        """Shares of the cells by noisy counts; post-processing. From the top each half of a range gets what is clear of
        the noise of its count; where neither has any, both get what they are wide."""
        n_columns = len(edges)
        if self.rounds < ROUNDS:  # so few rows that some far away may be mere noise: none are where more are near
            far = np.abs(edges[:, 1:] + edges[:, :-1]) > 2 * NEAR
            is_near = np.where(far, -noisy, noisy).sum(axis=1, keepdims=True) > 0
            noisy = np.where(far & is_near, 0.0, noisy)
        shares = np.ones((n_columns, 1))
        for size in (CELLS >> level for level in range(1, CELLS.bit_length())):
            halves = noisy.reshape(n_columns, -1, 2, size).sum(axis=3)
            wide = np.diff(edges).reshape(n_columns, -1, 2, size).sum(axis=3)
            error = self.counts.sigma * math.sqrt(size)
            kept = np.maximum(halves - error, 0.0) + UNSEEN * error * wide / wide.sum(axis=2, keepdims=True)
            shares = (shares[:, :, None] * kept / kept.sum(axis=2, keepdims=True)).reshape(n_columns, -1)
        return shares


@dataclass(frozen=True)
class Scaling:
    """How a network scales the columns of a table: by quantiles of public rows, or by released ones. Columns without
    bounds are left that lie near -1 … 1 already, or of which nearly all rows are 0."""

    places: tuple[NumberPlace, ...]
    has_bounds: bool
    has_hats: bool
    tables: ColumnTables | None = None
    known: Floats | None = None

    @classmethod
    def planned(
        cls, net: "Net", data: TrainingData, schema: Schema | None, n_rows: int, cost: Cost, *, by_public_rows: bool
    ) -> "Scaling | None":
        """Plan the scaling of a table, or None where there is nothing to go by, or nothing to scale."""
        n_features = data.X.shape[1]
        if not net.reads_columns(n_features, len(data.classes)):
            return None
        if schema is not None:
            tables = ColumnTables(number_places(schema), n_rows, *cost, for_curves=True)
            return cls(tables.places, True, net.hidden is not None, tables) if tables.should_release else None
        places = tuple(map(NumberPlace, range(n_features)))
        if by_public_rows and data.public is not None and len(data.public.X) >= LEAST_PUBLIC:
            return cls(places, False, False, known=_public_quantiles(data.public.X))
        tables = ColumnTables(places, n_rows, *cost, has_bounds=False)
        return cls(places, False, False, tables) if tables.should_release else None

    @property
    def n_added(self) -> int:
        """How many features it adds."""
        return KNOTS * len(self.places) if self.has_hats else 0

    def layer(self) -> Any:
        """Return the first layer of a network, which has no knots of its own yet."""
        from skfairdp._networks import ColumnScales

        columns, missing = [place.column for place in self.places], [place.missing for place in self.places]
        return ColumnScales(columns, missing, KNOTS, hats=self.has_hats)

    def settle(self, layer: Any, X: Any, noise: NoiseSource) -> None:
        """Put public or released quantiles into the layer."""
        outer = 0
        if self.tables is not None:
            knots, outer = self.tables.release(X, noise), CLEAR_KNOT
        else:
            assert self.known is not None
            knots = self.known
        if self.has_bounds:
            layer.set_knots(knots)
        else:
            told_apart = 0.0 if self.tables is None else 2.0 ** (8 * OCTAVES / CELLS**self.tables.rounds) - 1
            layer.set_knots(*_ranges(knots, outer, told_apart))
            _warn_of_points(knots, outer, told_apart)


def _warn_of_points(knots: Floats, outer: int, told_apart: float) -> None:
    """Say where numbers lie far from 0 and so close together that a network sees next to one number."""
    low, high = knots[:, outer], knots[:, KNOTS - 1 - outer]
    reach = np.maximum(np.abs(low), np.abs(high))
    is_point = (high - low <= told_apart * reach) & (reach > LEFT_TO)
    close = [f"{j} ({low[j]:.4g} to {high[j]:.4g})" for j in np.flatnonzero(is_point)]
    if close:
        warn_caller(
            f"Nearly all numbers of column {', '.join(close)} are, by released counts, so close together beside their "
            "size, or so far beyond 1e13, where they are cut off, that a network may hardly tell them apart. Where it "
            "matters how they differ, subtract a public number that is near them, or give bounds by a schema.",
            UtilityWarning,
        )


def scaled_by_public_rows(net: "Net", X: Any, n_classes: int, schema: Schema | None = None) -> tuple[Any, Any]:
    """Scale the columns of public rows that lie far from -1 … 1, if any do; and give curves to the numbers of a schema,
    where rows are enough for so many features more."""
    from skfairdp._networks import ColumnScales

    if not net.reads_columns(X.shape[1], n_classes):
        return X, None
    rows = np.asarray(X[:: -(-len(X) // MOST_PUBLIC)].cpu(), dtype=np.float64)
    places = () if schema is None or net.hidden is None else number_places(schema)
    if places and (rows_per_knot := len(X) / (KNOTS * len(places))) >= ENOUGH_FOR_KNOTS:
        layer = Scaling(places, True, True).layer()
        layer.height = float(np.clip(rows_per_knot / ROWS_OF_HEIGHT, HEIGHT, HIGHEST))
        layer.set_knots(np.stack([_knots_of(rows, place) for place in places]))
    else:
        knots, far = _ranges(_public_quantiles(rows), 0)
        columns = np.flatnonzero(far == SCALED_FAR)
        if len(columns) == 0:
            return X, None
        layer = ColumnScales(columns.tolist(), [None] * len(columns), KNOTS, hats=False)
        layer.set_knots(knots[columns], far[columns])
    layer.to(X)
    return layer(X), layer


def _knots_of(rows: Floats, place: NumberPlace) -> Floats:
    """Knots of one column by the rows themselves."""
    known = slice(None) if place.missing is None else rows[:, place.missing] < 0.5
    numbers, counts = np.unique(rows[known, place.column], return_counts=True)
    shares = _one_knot_a_cell(counts / max(counts.sum(), 1), 0.0)
    return _apart(np.interp(LEVELS, np.cumsum(shares) - shares / 2, numbers) if len(numbers) else np.zeros(KNOTS))


def _public_quantiles(X: Floats) -> Floats:
    """Quantiles of every column at KNOTS levels."""
    return np.quantile(X, LEVELS, axis=0).T


def _ranges(knots: Floats, outer: int = 0, told_apart: float = 0.0) -> tuple[Floats, Floats]:
    """Where each column lies by its quantiles, the outer of which are noise, and how far from there it is cut off.
    Without noise only zeros are nought; nearly all rows may also be at another point, closer than ``told_apart`` beside
    their size, as where zeros were standardised."""
    low, high = knots[:, outer], knots[:, KNOTS - 1 - outer]
    wider = norm.ppf(1 - 0.5 / KNOTS) / norm.ppf(1 - (0.5 + outer) / KNOTS)
    center, half = (low + high) / 2, np.maximum((high - low) / 2, LEAST_RANGE * np.abs(low + high)) * wider
    reach = np.maximum(np.abs(low), np.abs(high))
    is_point = high - low <= told_apart * reach
    left = ((reach <= LEFT_TO) & ((half >= LEFT_FROM) | is_point)) | (reach <= (NOUGHT if outer else 0.0))
    center, half = np.where(left, 0.0, center), np.where(left, 1.0, half)
    return center[:, None] + half[:, None] * np.linspace(-1, 1, KNOTS), np.where(left, LEFT_FAR, SCALED_FAR)


def _compressed(numbers: Floats) -> Floats:
    """Numbers of any size as numbers from -1 to 1, which tell sizes apart by their ratio."""
    bounded = np.minimum(np.abs(numbers), SMALLEST * 2.0**OCTAVES)  # none overflows, which a warning would tell
    return np.copysign(np.minimum(np.log2(1.0 + bounded / SMALLEST) / OCTAVES, 1.0), numbers)


def _expanded(compressed: Floats) -> Floats:
    """What :func:`_compressed` makes of numbers, turned round."""
    return np.copysign(SMALLEST * (np.exp2(np.abs(compressed) * OCTAVES) - 1.0), compressed)


def _finer(edges: Floats, shares: Floats) -> Floats:
    """Edges of as many cells, of which none is heavy: light neighbours become one, and the heaviest are halved."""
    cells = [(shares[0], edges[0], edges[1])]
    for share, low, high in zip(shares[1:], edges[1:-1], edges[2:], strict=True):
        before, start, _ = cells[-1]
        if before + share < LIGHT / CELLS:
            cells[-1] = (before + share, start, high)
        else:
            cells.append((share, low, high))
    while len(cells) < CELLS:
        wide = [cell for cell in cells if cell[2] - cell[1] >= 2 * CLOSEST]
        share, low, high = max(wide)
        middle = (low + high) / 2
        cells.remove((share, low, high))
        cells += [(share / 2, low, middle), (share / 2, middle, high)]
    return np.array([*sorted(low for _, low, _ in cells), edges[-1]])


def in_sight(counts: Floats, noise: float) -> Bools:
    """Cells of which neither what is beyond nor what is before them is no more than noise would put there."""
    clear = CLEAR_OF_NOISE * noise * np.sqrt(np.arange(1, counts.shape[1] + 1))
    below = np.maximum.accumulate(counts.cumsum(axis=1) > clear, axis=1)
    return below & np.maximum.accumulate(counts[:, ::-1].cumsum(axis=1) > clear, axis=1)[:, ::-1]


def without_far_ends(edges: Floats, counts: Floats, noise: float) -> Floats:
    """Edges of which none is further out than a few times the widest cell from where the last rows in sight begin.
    Cells hold about equal shares, so the last but one of a tail as heavy as 1/x is three times as wide as the one
    before."""
    seen = np.flatnonzero(in_sight(counts, noise).any(axis=0))
    if len(seen) == 0 or seen[-1] - seen[0] < 2:
        return edges
    first, last = edges[seen[0] + 1], edges[seen[-1]]
    widest = GROWTH * float(np.diff(edges[seen[0] + 1 : seen[-1] + 1]).max())
    return np.clip(edges, first - widest, last + widest)


def _quantiles(edges: Floats, shares: Floats) -> Floats:
    """Quantiles of one column at KNOTS levels, apart from each other."""
    return _apart(np.interp(LEVELS, np.r_[0.0, np.cumsum(shares)], edges))


def _one_knot_a_cell(shares: Floats, seen: float) -> Floats:
    """Shares with cells that would take more than one knot at one, where what the others have is more than noise."""
    heavy = shares > 1 / KNOTS
    rest = float(shares[~heavy].sum())
    found = np.where(heavy & (rest > seen), rest / (KNOTS - heavy.sum()), shares)
    return np.asarray(found / found.sum())


def _apart(knots: Floats) -> Floats:
    """Move knots apart that float32 could not tell from each other, within -1 … 1."""
    steps = np.arange(len(knots)) * CLOSEST
    return np.minimum(np.maximum.accumulate(np.clip(knots, -1, 1) - steps) + steps, 1 - steps[::-1])


def where_amounts_lie(knots: Floats, bounds: tuple[float, float]) -> tuple[float, float, float]:
    """Mean, middle and spread of amounts, by quantiles at even levels in units from -1 to 1 of the bounds. Beyond the
    outermost noise may have put rows far away: the next ones say how wide amounts lie."""
    middle, unit = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
    levels = (np.arange(len(knots)) + 0.5) / len(knots)
    wider = norm.ppf(levels[-1]) / norm.ppf(levels[-2])
    half = max(float(knots[-2] - knots[1]) / 2 * wider, 1e-6)
    return middle + unit * float(knots.mean()), middle + unit * float(np.median(knots)), unit * half
