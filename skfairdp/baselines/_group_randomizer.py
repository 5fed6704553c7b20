"""Randomised response as a step of its own: released groups for anything that needs groups."""

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from skfairdp._docs import shared_docs
from skfairdp._estimator import SpendsPrivacy
from skfairdp._inputs import read_private_groups, refuse_chunks
from skfairdp._rows import Chunk, RowSource, check_order, even_tables, opened, other_rows
from skfairdp._typing import ArrayLike
from skfairdp._utils import as_groups, encode_labels
from skfairdp._utils._sklearn import HasMethods, Interval
from skfairdp.privacy import DpEvent, NeighboringRelation, PrivacyLedger, PublicReads, RandomizedResponse
from skfairdp.schema import SCHEMA_CONSTRAINT, RawTable, Schema, schema_of


@dataclass(frozen=True)
class RandomizedGroups:
    """The plan of a release of every row's group, or every subject's; its δ is 0."""

    mechanism: RandomizedResponse
    domain: NDArray[np.object_]
    n_rows: int
    relation: NeighboringRelation
    rows_of: str = ""

    @classmethod
    def of(
        cls,
        epsilon: float,
        domain: NDArray[np.object_],
        n_rows: int,
        *,
        owner: str,
        relation: NeighboringRelation = NeighboringRelation.REPLACE_ATTRIBUTE,
        rows_of: str = "",
    ) -> "RandomizedGroups":
        """For these groups, of which there must be two."""
        if len(domain) < 2:
            raise ValueError(
                f"The 'groups' parameter of {owner} must list at least two groups; one has nothing to hide."
            )
        return cls(RandomizedResponse(epsilon, len(domain), relation=relation), domain, n_rows, relation, rows_of)

    @property
    def event(self) -> DpEvent:
        return self.mechanism.event

    @property
    def releases(self) -> tuple[str, ...]:
        return (f"{self.n_rows} randomised groups",)


@shared_docs
class GroupRandomizer(SpendsPrivacy):
    """Release groups by randomised response; what is computed from them costs nothing more.

    **Guarantee.** (ε, 0)-differential privacy for the *sensitive attribute* of one row, everything else about the rows
    being public. (k-ary randomised response: each row's answer is its group with probability e^ε / (e^ε + k - 1), and
    each other group with probability 1 / (e^ε + k - 1).) Each call of ``release`` is a release of its own and is
    charged as one.

    Parameters
    ----------
    epsilon : float, default=1.0
        In [1e-9, 1e9].
    {groups, schema, noise_seed}
    ledger : PrivacyLedger, default=None
        Charged before each release.

    Attributes
    ----------
    {groups_}
    mechanism_ : RandomizedResponse
        The channel: its probabilities and its event.
    privacy_ : PrivacySpent
        The guarantee of the last release, at δ = 0.

    Raises
    ------
    BudgetExceededError
        From ``release``, before anything is released, when the ledger cannot afford it.

    Examples
    --------
    >>> from skfairdp.baselines import GroupRandomizer
    >>> randomizer = GroupRandomizer(epsilon=1.0, groups=["a", "b"])
    >>> released = randomizer.release(["a", "b", "b"])
    >>> released.shape, randomizer.weights(released).shape, str(randomizer.privacy_.protects)
    ((3,), (3, 2), 'sensitive attribute')
    """

    _parameter_constraints: dict[str, Any] = {
        "epsilon": [Interval(Real, 1e-9, 1e9, closed="both")],
        "groups": ["array-like", None],
        "schema": [SCHEMA_CONSTRAINT, None],
        "noise_seed": [Interval(Integral, 0, None, closed="left"), None],
        "ledger": [HasMethods(["charge"]), None],
    }

    delta = 0.0

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        groups: Sequence[Any] | None = None,
        schema: Schema | None = None,
        noise_seed: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.groups = groups
        self.schema = schema
        self.noise_seed = noise_seed
        self.ledger = ledger

    def release(self, sensitive_features: ArrayLike | pd.Series | pd.DataFrame) -> NDArray[np.object_] | pd.Series:
        """Return a randomised group per row.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame
            Private groups; several columns form intersections.

        Returns
        -------
        ndarray of shape (n_rows,), dtype object, or Series
            A Series, with the index of the input, where that was a Series or DataFrame.
        """
        self._validate_params()
        refuse_chunks(type(self).__name__, sensitive_features=sensitive_features)
        index = sensitive_features.index if isinstance(sensitive_features, pd.Series | pd.DataFrame) else None
        n_rows = len(sensitive_features) if isinstance(sensitive_features, Sized) else 0
        reads = PublicReads()
        codes, domain = read_private_groups(self, None, sensitive_features, n_rows, reads)
        reads.note_number_of_rows(n_rows)
        plan = RandomizedGroups.of(self.epsilon, domain, n_rows, owner=type(self).__name__)

        with self._spend(plan, reads) as noise:
            answers = plan.mechanism.release(codes, noise)

        released = domain[answers]
        self.groups_, self.mechanism_ = domain, plan.mechanism
        if index is None:
            return released
        return pd.Series(list(released), index=index, name=getattr(sensitive_features, "name", None), dtype=object)

    def release_chunks(self, X: Any) -> Iterator[pd.DataFrame]:
        """Hand out the rows of a table that does not fit into memory, with randomised groups in place of their own.

        All groups are read, one or two bytes each, before anything is spent, and released at once, as by
        :meth:`release`. A second pass hands out the rows.

        Parameters
        ----------
        X : object
            A path of Parquet files, a ``pyarrow.dataset.Dataset``, a Polars LazyFrame, a dask DataFrame, or a function
            without arguments that returns an iterable of DataFrames, which have the columns that the ``schema`` names
            as groups. It must give the same rows in the same order each time.

        Returns
        -------
        iterator of DataFrame
            Of 131,072 rows, wherever chunks of X end: that may follow the length of a group's name. They have released
            groups. **All other columns are handed out as they are**, for they are public.

        Raises
        ------
        ValueError
            There is no schema; X lies in memory, or its rows have no order.

        Examples
        --------
        >>> import pandas as pd
        >>> from skfairdp.baselines import GroupRandomizer
        >>> from skfairdp.schema import Category, Number, Schema
        >>> schema = Schema({"age": Number(0, 99), "sex": Category(["f", "m"])}, groups="sex")
        >>> table = pd.DataFrame({"age": [20, 30, 40], "sex": ["f", "m", "m"]})
        >>> randomizer = GroupRandomizer(epsilon=1.0, schema=schema)
        >>> [chunk.shape for chunk in randomizer.release_chunks(lambda: [table[:2], table[2:]])]
        [(3, 2)]
        """
        self._validate_params()
        owner = type(self).__name__
        schema, source = schema_of(self), opened(X)
        if schema is None or source is None or not source.knows_order:
            raise ValueError(
                f"release_chunks of {owner} needs a 'schema' and an X that is read in chunks, in the same order each "
                "time: Spark's rows have none. Of a table in memory pass the groups to 'release'."
            )
        check_order(source, owner)
        if not source.n_rows:
            raise ValueError(f"Found array with 0 sample(s) while a minimum of 1 is required: X of {owner}.")
        n_rows, reads = source.n_rows, PublicReads()
        domain = RawTable(schema, owner, None, {}, n_rows).domain
        reads.note("names of the groups", "given", domain, by=schema)
        reads.note_number_of_rows(n_rows)
        codes = np.concatenate(list(source.each(partial(_codes, schema, owner, len(domain)))))
        if len(codes) != n_rows:
            raise other_rows(owner)
        plan = RandomizedGroups.of(self.epsilon, domain, n_rows, owner=owner)

        with self._spend(plan, reads) as noise:
            answers = plan.mechanism.release(codes, noise).astype(codes.dtype)

        self.groups_, self.mechanism_ = domain, plan.mechanism
        return _with_groups(source, schema, domain, answers, owner)

    def weights(self, released: ArrayLike | pd.Series) -> NDArray[np.float64]:
        """Return the unbiased reading of released groups: a signed weight for each row and group.

        Parameters
        ----------
        released : array-like of shape (n_rows,) or Series
            As returned by :meth:`release`.

        Returns
        -------
        ndarray of shape (n_rows, n_groups)
            Columns in the order of ``groups_``; each row sums to 1.
        """
        if not hasattr(self, "mechanism_"):
            raise NotFittedError("This GroupRandomizer has released nothing yet. Call 'release' first.")
        labels = as_groups(released, len(np.asarray(released, dtype=object)), owner="GroupRandomizer", name="released")
        codes = encode_labels(labels, self.groups_, owner="GroupRandomizer", name="released", parameter="groups")
        return self.mechanism_.weights(codes)


def _codes(schema: Schema, owner: str, n_groups: int, chunk: Chunk) -> NDArray[Any]:
    """The groups of a chunk, in the smallest type."""
    return RawTable.roles(schema, chunk.table, owner=owner).groups().astype(np.min_scalar_type(n_groups - 1))


def _with_groups(
    source: RowSource, schema: Schema, domain: NDArray[np.object_], answers: NDArray[Any], owner: str
) -> Iterator[pd.DataFrame]:
    """The chunks of a source, with released groups in place of their own."""
    start = 0
    for table in even_tables(source):
        names = domain[answers[start : start + len(table)]].tolist()
        start += len(table)
        if len(names) < len(table):
            raise other_rows(owner)
        cells = zip(*names, strict=True) if len(schema.groups) > 1 else [names]
        columns = [pd.Series(list(own), index=table.index, dtype=object) for own in cells]
        yield table.assign(**dict(zip(schema.groups, columns, strict=True)))
    if start < len(answers):
        raise other_rows(owner)
