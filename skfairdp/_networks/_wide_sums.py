"""Norms and weighted sums of rows' gradients in double precision, so that one row moves a sum by its bound at most.

What is shown here, for float arithmetic as it runs: let D and D' be batches of the same shape that differ in what one
row holds, of which one may be nothing at all (an absent row has the weight 0). If every other row has the same gradient
in both, and each weight w_i keeps ``w_i · norm_i ≤ C (1 - SLACK)``, with the norms of :meth:`LayerRows.norms`, then
the two sums are at most C apart, for up to 1e7 rows, whatever the order in which a kernel adds.

Why the other rows have the same gradient. The row-parallel operations of a network (a matrix product, a convolution, an
activation) run the same instructions on a row whatever the others hold: which kernel runs, how it blocks and in which
order it adds follow from the *shape* of the batch and the place of the row in it. (They do depend on those: for odd
widths, up to all rows of a batch change in their last bits when one row is taken out. Multiplied by an ill-conditioned
network and the number of rows, nothing bounds that. So batches keep their shapes and rows keep their places.) Of
numbers narrower than single precision it is not true, and :mod:`._process` refuses them.

How far rounding goes. u = 2^-53; γ_k ≤ 1.01 k u bounds the relative error of k additions and multiplications in any
order.

* Inputs a and signals b of a layer are converted to double, which is exact, and every number is 0 or lies between
  1e-70 and 1e70 in absolute value (single precision does; double precision is cut, and a row with larger numbers counts
  as not finite). So no square and no product of squares overflows or underflows, and norms are right up to γ_k for
  k < 1e10 numbers: below 2e-6.
* A layer sums over the positions t of a row (the pixels of a convolution, the tokens of a sentence). Those terms may
  cancel, and their rounding follows the sum of their sizes, ``A_i = Σ_t |a_t| |b_t|``, not the norm. Hence the norm
  of a row is never taken below A_i / κ, with κ = max(64, 8 sqrt(positions)): positions at right angles have A_i =
  norm sqrt(positions). So ``w_i A_i ≤ κ C``, and what the norm itself may lose is below 1e-5 of it.
* Sums run over pieces of R ≤ 8192 rows with R · positions ≤ 2^18. Pieces without the row that differs are equal bit by
  bit. In the piece that holds it, either sum is off by at most ``γ_{R T + 2} R κ C``, together below 3.2e-5 C (the
  largest value of 2.03 R² T κ u, at T = 32).
* Pieces are added with the error of every addition kept (Knuth's two-sum): below 1e-8 C for 1e7 rows.

In all less than 5e-5, half of SLACK. The other half is room.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from skfairdp._networks._layers import LayerRule

SLACK = 1e-4
"""Rows are scaled to ``C (1 - SLACK)``, so that rounding cannot take a sum past C."""

_ROWS, _TERMS, _NUMBERS = 2**13, 2**18, 2**24
_LEAST, _LARGEST = 1e-70, 1e70

Prepared = tuple[LayerRule, tuple[Tensor, ...]]
Piece = tuple[slice, tuple[Tensor, ...]]


def wide(part: Tensor) -> Tensor:
    """A part in double precision, where its squares are neither 0 nor infinite; integers stay as they are."""
    if not part.is_floating_point():
        return part
    if part.dtype != torch.float64:
        return part.double()
    size = part.abs()
    return torch.where(size > _LARGEST, torch.inf, torch.where(size < _LEAST, 0.0, part))


class Total:
    """A sum of tensors that loses nothing worth mentioning, however many they are (two-sum)."""

    def __init__(self) -> None:
        self._sum: Tensor | None = None
        self._lost: Tensor | None = None

    def add(self, value: Tensor) -> None:
        if self._sum is None:
            self._sum = value
            return
        new = self._sum + value
        back = new - self._sum
        lost = (self._sum - (new - back)) + (value - back)
        self._lost = lost if self._lost is None else self._lost + lost
        self._sum = new

    @property
    def value(self) -> Tensor:
        assert self._sum is not None
        return self._sum if self._lost is None else self._sum + self._lost


class LayerRows:
    """From the inputs of layers and the signals that come back to them; no gradient of a row is ever formed."""

    def __init__(self, layers: dict[str, nn.Module], prepared: dict[str, Prepared], largest: int | None = None) -> None:
        self._layers, self._prepared, self._largest = layers, prepared, largest
        self._pieces: dict[str, list[Piece]] = {}

    @property
    def positions(self) -> int:
        """The most positions that a layer sums over."""
        return max(rule.positions(parts) for rule, parts in self._prepared.values())

    @property
    def terms(self) -> int:
        """How many numbers are added up for one of the sum, at most, one after the other."""
        return max(
            len(parts[0]) // self._size(name) + 1 + self._size(name) * rule.positions(parts)
            for name, (rule, parts) in self._prepared.items()
        )

    def squared_norms(self) -> Tensor:
        """Shape (n_rows,), without regard to what cancels between positions."""
        return self._summed(lambda name, rule, parts: rule.squared_norms(self._layers[name], parts))

    def squared_sizes(self) -> Tensor:
        """Squares of the A_i, shape (n_rows,): of the norms, had no positions cancelled."""
        return self._summed(lambda name, rule, parts: rule.squared_sizes(self._layers[name], parts))

    def norms(self) -> Tensor:
        """Norms of shape (n_rows,) in double precision; infinite or NaN for a gradient that is not finite."""
        squared = self.squared_norms()
        if any(rule.positions(parts) > 1 for rule, parts in self._prepared.values()):
            floors = self._summed(lambda name, rule, parts: _squared_floors(self._layers[name], rule, parts))
            squared = torch.maximum(squared, floors)
        return squared.sqrt()

    def weighted_sum(self, weights: Tensor, left_out: Tensor | None = None, *, start: int = 0) -> dict[str, Tensor]:
        """Σ weight times gradient by parameter name, in double precision; nothing of rows that are left out. Over as
        many rows as there are weights, from row ``start``."""
        totals: dict[str, Total] = {}
        for name, (rule, _) in self._prepared.items():
            for rows, parts in self._pieces_of(name):
                first, stop = max(rows.start, start), min(rows.stop, start + len(weights))
                if first >= stop:
                    continue
                parts = tuple(part[first - rows.start : stop - rows.start] for part in parts)
                here = slice(first - start, stop - start)
                if left_out is not None:
                    parts = tuple(_without(part, left_out[here]) for part in parts)
                for parameter, value in rule.weighted_sum(self._layers[name], parts, weights[here]).items():
                    totals.setdefault(f"{name}.{parameter}" if name else parameter, Total()).add(value)
        return {name: total.value for name, total in totals.items()}

    def public_sum(self, weights: Tensor) -> dict[str, Tensor]:
        """The same over the first rows, in the precision of the layers: where weights and gradients are all public."""
        totals: dict[str, Tensor] = {}
        for name, (rule, parts) in self._prepared.items():
            first = tuple(part[: len(weights)] for part in parts)
            for parameter, value in rule.weighted_sum(self._layers[name], first, weights.to(parts[-1].dtype)).items():
                totals[f"{name}.{parameter}" if name else parameter] = value.double()
        return totals

    def inner(self, given: dict[str, Tensor]) -> Tensor:
        """Inner products of each row's gradient with one given by parameter, shape (n_rows,)."""

        def own(layer: str) -> dict[str, Tensor]:
            split = [(*key.rpartition("."), value) for key, value in given.items()]
            return {parameter: value for of, _, parameter, value in split if of == layer}

        return self._summed(lambda name, rule, parts: rule.inner(self._layers[name], parts, own(name)))

    def _summed(self, measure: Callable[[str, LayerRule, tuple[Tensor, ...]], Tensor]) -> Tensor:
        """What the layers say of each row, added up."""
        total: Tensor | None = None
        for name, (rule, _) in self._prepared.items():
            found = [measure(name, rule, parts) for _, parts in self._pieces_of(name)]
            here = found[0] if len(found) == 1 else torch.cat(found)
            total = here if total is None else total + here
        assert total is not None
        return total

    def _pieces_of(self, name: str) -> Iterable[Piece]:
        _, parts = self._prepared[name]
        n, size = len(parts[0]), self._size(name)
        if n > size:
            return (
                (slice(i, min(n, i + size)), tuple(wide(part[i : i + size]) for part in parts))
                for i in range(0, n, size)
            )
        if name not in self._pieces:
            self._pieces[name] = [(slice(0, n), tuple(wide(part) for part in parts))]
        return self._pieces[name]

    def _size(self, name: str) -> int:
        rule, parts = self._prepared[name]
        return max(1, min(self._largest or _ROWS, _TERMS // rule.positions(parts)))


class DenseRows:
    """Every row's gradient formed, for modules without rules for all their layers."""

    def __init__(self, gradients: dict[str, Tensor], shared: dict[str, Tensor] | None = None) -> None:
        self._gradients, self._shared = gradients, shared or {}

    positions = 1

    @property
    def terms(self) -> int:
        """See :class:`LayerRows`."""
        n = len(next(iter(self._gradients.values())))
        return max(n // self._size(name) + 1 + self._size(name) for name in self._gradients)

    def squared_norms(self) -> Tensor:
        """Shape (n_rows,)."""
        squared = [torch.cat([piece.square().sum(1) for _, piece in self._pieces_of(name)]) for name in self._gradients]
        return torch.stack(squared).sum(0)

    squared_sizes = squared_norms

    def norms(self) -> Tensor:
        """See :class:`LayerRows`."""
        return self.squared_norms().sqrt()

    def weighted_sum(self, weights: Tensor, left_out: Tensor | None = None, *, start: int = 0) -> dict[str, Tensor]:
        """See :class:`LayerRows`."""
        out = {}
        for name, gradient in self._gradients.items():
            total = Total()
            total.add(weights.new_zeros(gradient.shape[1:].numel()))
            for rows, piece in self._pieces_of(name, start, start + len(weights)):
                here = slice(rows.start - start, rows.stop - start)
                total.add(weights[here] @ (piece if left_out is None else _without(piece, left_out[here])))
            out[name] = total.value.reshape(gradient.shape[1:])
        return out

    public_sum = weighted_sum

    def inner(self, given: dict[str, Tensor]) -> Tensor:
        """Inner products of each row's gradient with one given by parameter, shape (n_rows,)."""
        found = [
            torch.cat([piece @ given[name].flatten() for _, piece in self._pieces_of(name)]) for name in self._gradients
        ]
        return torch.stack(found).sum(0)

    def _size(self, name: str) -> int:
        return max(1, min(_ROWS, _NUMBERS // max(1, self._gradients[name].shape[1:].numel())))

    def _pieces_of(self, name: str, start: int = 0, stop: int | None = None) -> Iterator[tuple[slice, Tensor]]:
        flat = self._gradients[name].flatten(1)
        stop, size = len(flat) if stop is None else stop, self._size(name)
        for i in range(start, stop, size):
            rows = slice(i, min(stop, i + size))
            piece = wide(flat[rows])
            if name in self._shared:
                piece = wide(piece + self._shared[name].double().flatten())
            yield rows, piece


def _squared_floors(module: nn.Module, rule: LayerRule, parts: tuple[Tensor, ...]) -> Tensor:
    """(A / κ)², below which no squared norm is taken; 0 for a layer without positions."""
    positions = rule.positions(parts)
    if positions == 1:
        return torch.zeros(len(parts[0]), dtype=torch.float64, device=parts[0].device)
    return rule.squared_sizes(module, parts) / max(64.0, 8.0 * math.sqrt(positions)) ** 2


def _without(part: Tensor, left_out: Tensor) -> Tensor:
    """Zeros in the rows that are left out: 0 times what is not finite is not 0."""
    return part.masked_fill(left_out.view(-1, *[1] * (part.ndim - 1)), 0)


@dataclass(frozen=True)
class Places:
    """Where each row lies."""

    size: int
    of_rows: Tensor | None = None

    @classmethod
    def secret(cls, n_rows: int, declared: int) -> "Places":
        """Random places, from torch's generator, in a table for so many declared rows. Their number is public up to six
        standard deviations of a count beyond these; past that the table doubles, triples and so on."""
        room = cls.room(declared)
        size = room * max(1, -(-n_rows // room))
        return cls(size, torch.randperm(size)[:n_rows])

    @staticmethod
    def room(declared: int) -> int:
        """Places in a table for so many declared rows."""
        return declared + math.ceil(6 * math.sqrt(declared))

    @property
    def present(self) -> Tensor | None:
        """Which places hold a row; None: all."""
        if self.of_rows is None:
            return None
        out = torch.zeros(self.size, dtype=torch.bool)
        out[self.of_rows] = True
        return out

    def lay(self, values: Tensor) -> Tensor:
        """Values of the rows at their places, zeros elsewhere."""
        if self.of_rows is None:
            return values
        out = values.new_zeros((self.size, *values.shape[1:]))
        out[self.of_rows.to(values.device)] = values
        return out
