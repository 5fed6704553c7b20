"""Amounts as the label of a generator: cut into classes in their order, at released places, and drawn between these."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.stats import norm

from skfairdp._column_tables import ColumnTables, where_amounts_lie
from skfairdp._inputs import warn_of_other_units
from skfairdp._tables import Form, Layout, SampleForm
from skfairdp._typing import Array, Floats, Ints
from skfairdp._usefulness import AmountLook, AmountMean, units_of, ways_of
from skfairdp._utils import warn_caller
from skfairdp.exceptions import UtilityWarning
from skfairdp.generative._inputs import GeneratorData
from skfairdp.generative._usefulness import TableForecast
from skfairdp.privacy import DpEvent, NoiseSource, compose
from skfairdp.schema import NumberPlace

#: Into how many classes amounts are cut: noise is in the counts of each, and what differs within one is not learned.
LEAST_CLASSES, MOST_CLASSES = 5, 12
#: Noise of tables in which a class more pays.
_NOISE = 0.03
#: Beyond the outermost quantiles amounts reach so many steps between quantiles further.
_TAIL = 1.5
#: Standard deviations of a cell that all rows are, so that quantiles are known; for up to so many times the usual share
#: of the squared cost, or where nothing but the constant is worth asking for, so many: bins and counts get a tenth.
_SEEN, _MOST, _ALL = 40.0, 6.0, 5.5
#: Noise of tables above which a learner of amounts is never better than the constant: less than classes can bear.
_HOPELESS = 0.04
#: Of the squared cost, at most, for the mean of amounts; of that of a fit of the constant alone.
_FOR_MEAN, _FOR_CONSTANT = 0.15, 0.4
#: Between quartiles amounts are apart by more of half of the bounds, or count as one.
_TOGETHER = 2.0**-9
#: From this part of it on noise may have put the outermost quantiles far away: they are so many steps further at most.
_DOUBTFUL, _FARTHEST = 0.1, 4.0


@dataclass(frozen=True)
class AmountLevels:
    """How amounts are spread, by released quantiles: a share of all amounts for each of them, and back. All public."""

    knots: Floats
    bounds: tuple[float, float]
    n_classes: int

    @property
    def _quantiles(self) -> tuple[Floats, Floats]:
        steps = np.diff(self.knots)
        ends = np.clip([self.knots[0] - _TAIL * steps[0], self.knots[-1] + _TAIL * steps[-1]], *self.bounds)
        levels = (np.arange(len(self.knots)) + 0.5) / len(self.knots)
        return np.r_[0.0, levels, 1.0], np.r_[ends[0], self.knots, ends[1]]

    def classes_of(self, amounts: Floats) -> Ints:
        """The class of each amount, in their order."""
        levels, values = self._quantiles
        starts = np.interp(np.arange(1, self.n_classes) / self.n_classes, levels, values)
        return np.searchsorted(starts, amounts, side="right").astype(np.int64)

    def drawn(self, classes: Ints, rng: Generator) -> Floats:
        """An amount of each class."""
        return np.interp((classes + rng.random(len(classes))) / self.n_classes, *self._quantiles)


@dataclass(frozen=True)
class AmountForm(SampleForm):
    """Samples whose labels are amounts."""

    amounts: AmountLevels | Any = field(default=None)

    def placed(self, codes: Ints, rng: Generator) -> Any:
        """Amounts of sampled rows."""
        return self.amounts.drawn(codes, rng)

    def decode_labels(self, codes: Array) -> Any:
        """The same in the container that fit was given."""
        return codes if self.labels_form.container == "array" else pd.Series(codes, name=self.labels_form.names[0])


@dataclass(frozen=True)
class AmountTables:
    """What says where amounts lie, and whether a learner is ahead of a constant."""

    layout: Layout
    epsilon: float
    delta: float
    bounds: tuple[float, float]
    is_asked: bool

    @property
    def forecast(self) -> TableForecast:
        """What tables are going to tell."""
        return TableForecast.of(self.layout, self.epsilon, self.delta, _HOPELESS)

    @property
    def _cost(self) -> tuple[float, float, Any]:
        return self.epsilon, self.delta, self.layout.relation

    @property
    def tables(self) -> ColumnTables | None:
        """For the quantiles; None where so few rows show behind no noise."""
        share = _ALL if self.forecast.snr_too_low else min(max(1.0, self._wanted), _MOST)
        tables = replace(self._usual_tables, share=share)
        return tables if tables.should_release else None

    @property
    def _usual_tables(self) -> ColumnTables:
        return ColumnTables((NumberPlace(0),), self.layout.n_rows, *self._cost)

    @property
    def _wanted(self) -> float:
        """Times its usual share of the squared cost, so that quantiles are known."""
        return float((_SEEN * self._usual_tables.counts.sigma / self.layout.n_rows) ** 2)

    @property
    def look(self) -> AmountLook | None:
        """For the gain; None where no learner is worth one."""
        if self.forecast.snr_too_low or not (self.is_asked or self.forecast.snr_marginal):
            return None
        return AmountLook(self.forecast.n_looked_at, self.layout.n_columns, *self._cost)

    @property
    def mean(self) -> AmountMean | None:
        """What a learner is compared with, where quantiles are not known well enough."""
        most = _FOR_CONSTANT if self.forecast.snr_too_low else _FOR_MEAN
        is_doubtful = self.tables is not None and (self.forecast.snr_too_low or self.forecast.snr_marginal)
        return AmountMean(self.layout.n_rows, *self._cost, most) if is_doubtful else None

    @property
    def _parts(self) -> list[ColumnTables | AmountMean | AmountLook]:
        return [part for part in (self.tables, self.mean, self.look) if part is not None]

    @property
    def event(self) -> DpEvent:
        """All of it."""
        return compose(*(part.event for part in self._parts))

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        return tuple(word for part in self._parts for word in part.releases)

    def release(self, data: GeneratorData, noise: NoiseSource, owner: str) -> tuple[GeneratorData, tuple[float, float]]:
        """Release where amounts lie. Data whose labels are classes of amounts, and the middle and spread of amounts."""
        low, high = self.bounds
        knots = low + (np.arange(8) + 0.5) / 8 * (high - low)
        mean, spread = (low + high) / 2, (high - low) / 4
        if self.tables is not None:
            between = self.tables.release((2 * (data.amounts - low) / (high - low) - 1)[:, None], noise)[0]
            if self._wanted > _DOUBTFUL:  # noise may have put the ends far away
                low_end = between[1] - _FARTHEST * (between[2] - between[1])
                high_end = between[-2] + _FARTHEST * (between[-2] - between[-3])
                between = np.r_[max(between[0], low_end), between[1:-1], min(between[-1], high_end)]
            warn_of_other_units(owner, "amounts", (between[1:-1] + 1) / 2, self.bounds, "bounds_y")
            mean, middle, spread = where_amounts_lie(between, self.bounds)
            if self.mean is not None:  # noise may have put outer quantiles far away
                inner = (between[-3] - between[2]) / 2  # half of the quartiles' distance
                by_middle = (high - low) / 2 * inner * float(norm.ppf(15 / 16) / norm.ppf(11 / 16))
                spread = spread if inner < _TOGETHER else min(spread, _FARTHEST * by_middle)
                mean = float(np.clip(self.mean.release(data.amounts, middle, spread, noise), low, high))
            knots = low + (between + 1) / 2 * (high - low)
        levels = AmountLevels(knots, self.bounds, self.layout.n_classes)
        cells = data.cells * self.layout.n_classes + levels.classes_of(data.amounts)
        assert isinstance(data.form, AmountForm)
        return replace(data, cells=cells, form=replace(data.form, amounts=levels)), (mean, spread)

    def warn_of_constant(self, usual: float, owner: str) -> None:
        """Say that so few rows or so small an ε leave a constant only."""
        units, enough = units_of(self.layout.relation), ways_of(self.forecast.enough, self.layout.relation)
        warn_caller(
            f"{owner} predicts for every row the constant {usual:.4g}: no learner could be clearly better. With "
            f"{self.layout.n_columns} columns, {self.layout.n_rows:,} {units} and epsilon={self.epsilon:g} the "
            f"relative noise of the tables is {self.forecast.noise:.2g}. {enough or 'A larger delta'} would suffice.",
            UtilityWarning,
        )


def with_amounts(data: GeneratorData, y: Any, epsilon: float, delta: float, label: str | None) -> GeneratorData:
    """Data whose labels are going to be classes of amounts, as many as public numbers say; ``label`` is the column that
    a schema names."""
    noise = TableForecast.of(data.layout, epsilon, delta).noise
    n_classes = int(np.clip(_NOISE / noise, LEAST_CLASSES, MOST_CLASSES))
    labels_form = Form.of(y, None) if label is None else Form("series", (label,))
    form = AmountForm(**vars(data.form) | {"classes": np.arange(n_classes), "labels_form": labels_form})
    return replace(data, layout=replace(data.layout, n_classes=n_classes), form=form)
