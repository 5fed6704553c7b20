"""PFGuardGenerator: synthetic rows that are differentially private, balanced between groups and labels."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from sklearn.base import clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from skfairdp import _tables
from skfairdp._docs import shared_docs
from skfairdp._tables import GeneratorBackend, GeneratorPlan, MarginalsPlan, Model, drawn_cells, on_simplex
from skfairdp._typing import ArrayLike, Floats, Ints, MaybeArray, RandomStateLike, SubjectLike, Values
from skfairdp._utils import PublicData, public_generator, warn_caller
from skfairdp._utils._sklearn import Interval, StrOptions
from skfairdp.exceptions import FairnessWarning, UtilityWarning
from skfairdp.generative import _group_rates, _inputs
from skfairdp.generative._group_rates import BALANCES
from skfairdp.generative._inputs import GeneratorData, ReadsCells, raw_features, raw_table, read_balance
from skfairdp.generative._table_codec import TableCodec, TableEncoder, UnitCodec
from skfairdp.generative._usefulness import TableForecast
from skfairdp.privacy import NoiseSource, note_paid
from skfairdp.schema import RawTable, with_schema

#: Backends that have a name, and where each lies: rooms above this one are not imported before they are asked for.
BACKENDS = {
    "marginals": "generative:MarginalsBackend",
    "pate_gan": "papers:PATEGANBackend",
    "gs_wgan": "papers:GSWGANBackend",
    "g_pate": "papers:GPATEBackend",
    "datalens": "papers:DataLensBackend",
}

_MEASURED = 10_000  # rows of each group
_SHOWN, _LOST = 1000, 0.9  # rows that are drawn for a look; of these without a value, to call a column lost

#: Stands for an argument that is left out, where None means something.
UNCHANGED: Any = object()


@shared_docs
@with_schema
class PFGuardGenerator(ReadsCells):
    """Private generator of synthetic rows that may be published, with groups and labels in balance.

    **Guarantee.** (ε, δ)-differential privacy for one record under replacement, features, label and group together.
    ``privacy_.epsilon`` is computed from the event of everything that a fit may release, before it releases anything,
    and is the same for every table of that shape. Sampling is post-processing: you may draw any number of rows at no
    cost. The number of rows, the column names, whether X is a DataFrame or an array, and what you give as parameters or
    as ``X_public`` count as public. A column of numbers without public bounds or public rows pays for its bins; one
    whose range the noise hides is 0 in all rows that are sampled, and a UtilityWarning names it. Networks release
    besides how many values each column misses, and make missing ones only where that shows some.

    The *types* of private containers are not public, because numpy and pandas infer them from values. Which columns are
    numbers, their dtypes, the width of strings and the lists of categories come from what you declare. What you leave
    undeclared is read from the private rows: a PrivacyLeakWarning names it and ``privacy_.public`` lists it.

    No entry of a declared column raises an error. A number beyond the bounds counts as the bound, and an entry that is
    no number as missing. In a column of categories an entry outside the list is counted as "none of these", which is
    never sampled. Labels and groups outside ``classes`` and ``groups`` raise one ValueError, the same for all.

    This is PFGuard (Kim et al. 2024): fair sampling on the private side, a private release, and balanced rates on the
    public side. Its published claims do not hold where parts are stratified by a private attribute, or weights are
    counted over the whole table. Here a teacher gets its rows by position, and its weights from its own part.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of a fit, in [1e-3, 1e6].
    {delta}
    backend : str or GeneratorBackend, default="marginals"
        ``"marginals"``: a graphical model over noisy tables of counts (:class:`MarginalsBackend`), for tables.
        ``"gs_wgan"``: networks taught by an ensemble (:class:`GSWGANBackend`), for images. ``"pate_gan"``,
        ``"g_pate"``, ``"datalens"``: published ensembles (:class:`PATEGANBackend`, :class:`GPATEBackend`,
        :class:`DataLensBackend`). A name stands for the defaults; the number of teachers, how they sample and all else
        that only one backend has are parameters of its class.
    balance : {"label", "group", "group_and_label", "fair"}, dict or None, default="label"
        How often each group and label is sampled; :meth:`refit` changes it at no cost. ``"label"``: groups as often as
        in the private rows, each with the overall shares of the labels, so that the group by itself tells nothing of
        the label. ``"group"``: groups equally often, each with its own shares of the labels. ``"group_and_label"``:
        both, as published. A dict maps each group to the share of the last class, or to the shares of all classes;
        groups are as often as they were. None: as in the private rows, for learners that hold a constraint themselves.
        ``"fair"``: groups equally often, with shares of the labels tilted with or against the groups' own, and
        sharpened, as makes the model's own best classifier least unfair in equalized odds and demographic parity
        together, at .01 less accuracy at most. It lowers the one at the cost of the other where they pull apart.
        Backends without a density keep the overall shares.
    admissible : column of X, by name or position, or list of them, default=None
        Columns through which alone the label may depend on anything: each row gets a label drawn anew from P(label |
        these columns) of the released tables, the same in every group. Rows are then drawn with their group's own
        shares of the labels, and ``balance`` counts for groups alone: it is a name other than "fair", or None. Needs
        ``backend="marginals"``.
    codec : {"auto", "table", "units"}, TableCodec or UnitCodec, default="auto"
        ``"table"``: columns are categories, or numbers cut into bins (:class:`TableCodec`). ``"units"``: numbers
        between public ``bounds`` (0 to 255 for uint8) as they are, for images (:class:`UnitCodec`); auto takes it for
        arrays of more than two dimensions.
    bounds : dict of column to (low, high), or one pair for all, default=None
        Public bounds of number columns; a pair for all is for those that are not in ``categories``. Private values
        beyond them count as the bound.
    categories : dict of column to list, default=None
        Public values of a column. Private values outside the list are counted, and never sampled. A list with a type
        of its own (a pandas Categorical, Series or CategoricalDtype, an array) gives the column that type.
    dtypes : dict or Series of column to dtype, or one dtype for all, default=None
        Public types of what is sampled, for example ``{"age": int, "visits": "Int32"}``; ``table.dtypes`` where you
        know that these say nothing about the rows. A dtype of numbers alone declares a column of numbers whose range
        is paid for. Columns without one get that of ``X_public``, else float64 for numbers and for categories what
        pandas makes of their list. An integer dtype cannot hold a missing value, so none is sampled.
    classes, groups : array-like, default=None
        Public domains of the label and of the group (tuples for intersections). Labels and groups are sampled with the
        type that these lists have.
    sensitive_columns : str, int or list of them, default=None
        Columns of X that are the group. They are among the columns that are sampled.
    {schema, public_data, random_state, noise_seed, ledger}

    Attributes
    ----------
    model_ : object
        The released model. It holds no private row.
    rates_ : ndarray of shape (n_groups, n_classes)
        Shares of groups and labels in what is sampled. Chosen from released values; with ``admissible``, measured on
        10,000 rows of each group.
    observed_rates_ : ndarray of shape (n_groups, n_classes)
        Released shares of groups and labels in the private rows.
    classes_ : ndarray of shape (n_classes,)
        None where no labels were given.
    groups_ : ndarray of shape (n_groups,), dtype object
        None where no groups were given.
    {privacy_, epsilon_spent_, n_features_in_, feature_names_in_}

    {fit_raises}

    Examples
    --------
    >>> from skfairdp import PFGuardGenerator
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(5000, disparity=0.3, as_frame=True, random_state=0)
    >>> generator = PFGuardGenerator(epsilon=1.0, bounds=(-6.0, 6.0), classes=[0, 1], groups=[0, 1])
    >>> generator = generator.fit(X, y, sensitive_features=groups)
    >>> print(generator.privacy_)
    epsilon=... at delta=1e-05, protecting one record (replace one record); certified by exact Gaussian accounting
    >>> X_new, y_new, s_new = generator.sample_labels(1000, return_sensitive=True, random_state=0)
    >>> X_new.shape, list(X_new.columns) == list(X.columns), [round(y_new[s_new == s].mean(), 2) for s in (0, 1)]
    ((1000, 10), True, [..., ...])

    The group may move the label through two columns, and in no other way:

    >>> justified = generator.refit(admissible=["x0", "x1"])
    >>> justified.rates_.shape, justified.privacy_ is generator.privacy_  # no noise was drawn, and nothing paid
    ((2, 2), True)
    """

    backend: str | GeneratorBackend = "marginals"
    balance: str | Mapping[Any, Any] | None = "label"
    admissible: Any = None
    codec: str | TableCodec | UnitCodec = "auto"
    bounds: Mapping[Any, tuple[float, float]] | tuple[float, float] | None = None
    categories: Mapping[Any, Values] | None = None
    dtypes: Any = None
    classes: MaybeArray = None
    public_data: PublicData | None = None

    #: Whether rows are for a learner, who needs labels and is asked how far it got; set by whoever trains it.
    _for_learner = False
    _reads_amounts = False
    #: Whether that learner may be asked about many rows in one call; one that is asked row by row is not asked often.
    _asked_in_blocks = True

    __metadata_request__fit = {"X_public": True, "sensitive_features_public": UNUSED}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "epsilon": [Interval(Real, 1e-3, 1e6, closed="both")],
        "backend": [StrOptions(set(BACKENDS)), GeneratorBackend],
        "balance": [StrOptions(set(BALANCES)), Mapping, None],
        "admissible": [str, Integral, "array-like", None],
        "codec": [StrOptions({"auto", "table", "units"}), TableCodec, UnitCodec],
        "bounds": [dict, tuple, None],
        "categories": [dict, None],
        "dtypes": "no_validation",
        "public_data": [PublicData, None],
    }

    def fit(
        self,
        X: ArrayLike,
        y: MaybeArray = None,
        *,
        sensitive_features: MaybeArray = None,
        X_public: Any = None,
        subject: SubjectLike = None,
    ) -> "PFGuardGenerator":
        """Learn a generator of X, y and groups.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_columns), or images of shape (n_rows, ...)
            Private. Numbers, categories, booleans, missing values. With a ``schema`` and noisy tables also rows that do
            not fit into memory, with their label and groups among the columns: a path of Parquet files, a
            ``pyarrow.dataset.Dataset``, a Polars LazyFrame, a dask or Spark DataFrame, or a function without arguments
            that returns an iterable of DataFrames, the same rows each time.
        y : array-like of shape (n_rows,), default=None
            Private labels.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups. Needed where ``balance`` is not None, unless ``sensitive_columns`` names them or an
            unbiased ``X_public`` stands in.
        X_public : DataFrame, array-like or PublicData, default=None
            Public rows in the columns of X: number columns take their bins from them, others their categories, and
            all that ``dtypes`` does not name their types; a column in which they miss no value is sampled without
            missing ones. Without groups, networks' teachers balance their batches towards these rows, whose groups
            need not be known.
        {subject}

        {returns_self}
        """
        data = self._read(X, y, sensitive_features=sensitive_features, X_public=X_public, subject=subject)
        plan, rng = self._plan(data), public_generator(self.random_state)

        with self._spend(plan, data.reads) as noise:
            released = self._release(data, plan, noise, rng)

        return self._learn(data, released, rng)._tell(data.balance)

    def _release(self, data: GeneratorData, plan: GeneratorPlan, noise: NoiseSource, rng: Generator) -> tuple[Any, ...]:
        """Release everything that is sampled from: edges of bins, rates of groups and labels, a model of the rows."""
        data = data if plan.sums is None else data.on_wide_bins(getattr(self.codec, "n_bins", None))
        encoder = data.encoder.release_bins(data.fine_counts, plan.bins, noise, data.layout.n_rows)
        observed = self._release_rates(data, plan, noise)
        rows = data.encoded(encoder, observed, _group_rates.target_rates(observed, data.balance))
        if plan.sums is None:
            return encoder, observed, plan.backend.release(rows, plan.scale, noise, rng)
        model, observed = _group_rates.release_by_sums(plan, encoder.columns, rows, noise, rng)
        return encoder, observed, model

    def _learn(self, data: GeneratorData, released: tuple[Any, Floats, Model], rng: Generator) -> "PFGuardGenerator":
        """Keep what was released, and decide by it how often each group and label is drawn: post-processing."""
        self._codec, self.observed_rates_, self.model_ = released
        self._form, self._schema = data.form, self.schema
        self.classes_, self.groups_ = data.form.classes, data.form.groups
        self._choose_rates(data.balance, data.admissible, rng)
        return self

    def _tell(self, balance: _group_rates.Balance) -> "PFGuardGenerator":
        """Say what is odd in what was released, after all of it is kept: warnings may be errors."""
        if balance is not None and self._noisy_counts is not None:
            self._warn_of_small_groups(*self._noisy_counts)
        if not isinstance(self._codec, TableEncoder):
            return self
        rng, rates = np.random.default_rng(0), self.observed_rates_
        codes = self.model_.sample(drawn_cells(rates.ravel(), _SHOWN, rng), rng)
        columns = [(one, codes[:, j]) for j, one in enumerate(self._codec.columns) if one.nullable]
        lost = [one.name for one, own in columns if (own == one.null_code).mean() > _LOST]
        if lost:
            warn_caller(
                f"{self._spends_as or type(self).__name__} found hardly any value in {lost}: by released counts nearly "
                "all cells are missing or cannot be read as the declared kind, such as dates, durations or texts with "
                "a decimal comma where 'bounds' declare numbers. Leave the column out, or describe its format: "
                "schema=Schema(...).",
                UtilityWarning,
            )
        return self

    def _choose_rates(self, balance: _group_rates.Balance, admissible: tuple[int, ...], rng: Generator) -> None:
        """Decide how often each group and label is drawn, from released values only."""
        model, observed = self.model_, self.observed_rates_
        rates = _group_rates.target_rates(observed, balance)
        if isinstance(balance, str) and balance == "fair":
            rates = _group_rates.fair_label_rates(model, observed, rng) / len(observed)
        self._drawn_rates, self._admissible = rates, None
        if admissible:
            self._admissible = _group_rates.AdmissibleLabels(model, admissible, observed)
            self._drawn_rates = _group_rates.target_rates(observed, None if balance in (None, "label") else "group")
            rates = self._admissible.rates(self._drawn_rates, _MEASURED, rng)
        self.rates_ = rates

    @np.errstate(all="warn", under="ignore")
    def refit(self, *, balance: Any = UNCHANGED, admissible: Any = UNCHANGED) -> "PFGuardGenerator":
        """Draw from the same released model by another balance. It releases nothing, so it costs nothing.

        Networks keep the balance that their teachers' batches had; what changes is which rows are asked of them.

        Parameters
        ----------
        balance, admissible : object
            As of the constructor. Left out: as they are.

        Returns
        -------
        PFGuardGenerator
            A fitted one, with the same ``model_`` and the same ``privacy_``. This one stays as it is.

        Raises
        ------
        ValueError
            A value that the constructor refuses as well, or a balance where no groups were given to ``fit``.

        Examples
        --------
        >>> from skfairdp import PFGuardGenerator
        >>> from skfairdp.datasets import make_biased_classification
        >>> X, y, groups = make_biased_classification(5000, disparity=0.3, random_state=0)
        >>> generator = PFGuardGenerator(bounds=(-6.0, 6.0), dtypes=float, classes=[0, 1], groups=["a", "b"])
        >>> generator = generator.fit(X, y, sensitive_features=["ab"[group] for group in groups])
        >>> generator.refit(balance={"a": 0.5, "b": 0.25}).rates_[1].round(1)
        array([0.4, 0.1])
        """
        check_is_fitted(self, "model_")
        changes = {"balance": balance, "admissible": admissible}
        other = clone(self).set_params(**{name: new for name, new in changes.items() if new is not UNCHANGED})
        other._validate_params()
        fitted = {name: value for name, value in vars(self).items() if name not in self.get_params(deep=False)}
        vars(other).update(fitted)
        if balance not in (UNCHANGED, None) and self.groups_ is None:
            raise ValueError(
                f"refit of {type(self).__name__} cannot balance groups, as none were given to fit. Pass "
                "sensitive_features to fit, or leave 'balance' out."
            )
        names = [column.name for column in self._codec.columns]
        wanted = read_balance(other, self.classes_, self.groups_)
        columns = _group_rates.read_admissible(other, names, self.classes_, self.groups_)
        if wanted is not None and self._noisy_counts is not None:
            other._warn_of_small_groups(*self._noisy_counts)
        other._choose_rates(wanted, columns, public_generator(self.random_state))
        return other

    def _plan(self, data: GeneratorData) -> GeneratorPlan:
        backend: GeneratorBackend
        if isinstance(self.backend, str):
            room, _, name = BACKENDS[self.backend].partition(":")
            backend = getattr(import_module(f"skfairdp.{room}"), name)()
        else:
            backend = clone(self.backend)
        rows_of = "" if data.subjects is None else data.subjects.name
        plan = GeneratorPlan(
            self.epsilon, self.delta, data.encoder.sensitivity, data.layout.n_cells, backend.plan(data.layout),
            relation=data.layout.relation, rows_of=rows_of,
        )  # fmt: skip
        if not self._for_learner:
            return plan
        forecast = self._forecast_of(data, plan.backend)
        # not at rows that are read in chunks
        looks = len(data.cells) > 0 and (forecast.snr_marginal or self._asked_in_blocks)
        gain = forecast.gain if looks else None
        if forecast.sums is not None:  # labels are left to them
            plan = replace(plan, backend=backend.plan(replace(data.layout, n_classes=1)))
        counts: dict[str, Any] = {"counts_share": forecast.counts_share, "pure_counts": forecast.pure_counts}
        return replace(plan, gain=gain, sums=forecast.sums, **counts)

    def _forecast_of(self, data: GeneratorData, plan: Any) -> TableForecast:
        """What a learner may hope for, by public numbers; sums may stand for tables that nothing else is asked of."""
        plain = isinstance(plan, MarginalsPlan) and not plan.joint_share and data.balance is None
        may_sum = plain and not data.admissible and len(data.cells) > 0
        return replace(TableForecast.of(data.layout, self.epsilon, self.delta), may_sum=may_sum)

    def _release_rates(self, data: GeneratorData, plan: GeneratorPlan, noise: NoiseSource) -> Floats:
        """Shares of groups and labels from their noisy counts."""
        shape = data.layout.n_groups, data.layout.n_classes
        self._noisy_counts: tuple[Floats, float] | None = None
        if plan.counts is None:
            return np.ones(shape)
        noisy = plan.counts.release(data.cell_counts, noise).reshape(shape)
        self._noisy_counts = noisy, plan.counts.sigma
        return on_simplex(noisy.ravel()).reshape(shape)

    def _warn_of_small_groups(self, noisy: Floats, sigma: float) -> None:
        """Say where balance rests on too few rows, by released counts only."""
        least = 4 * sigma * np.sqrt(noisy.shape[1])
        small = int(np.count_nonzero(noisy.sum(axis=1) < least))
        if small:
            warn_caller(
                f"{small} of the {len(noisy)} groups of {self._spends_as or type(self).__name__} have a released "
                f"count below {least:.0f}, four standard deviations of its noise: their synthetic rows are mostly "
                "those of the other groups with the same label. Raise 'epsilon', or merge groups.",
                FairnessWarning,
            )

    def sample(
        self,
        n_samples: int,
        *,
        conditions: Mapping[str, Any] | None = None,
        return_sensitive: bool = False,
        random_state: RandomStateLike = None,
    ) -> Any:
        """Draw synthetic rows in the container and columns of X. Costs no privacy, however many.

        A DataFrame and a Series say in their ``attrs`` what was paid for them, also after a copy, a selection or a
        Parquet file: whatever reads them as public rows adds it up in its own ``privacy_``. Arrays, polars and CSV do
        not; give both fits one ledger.

        With a schema these are whole rows: a DataFrame with all its columns, the label and the groups among them.
        Without one they are rows of X and nothing else: :meth:`sample_labels` returns their labels as well.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        conditions : dict, default=None
            ``{"y": label}``, ``{"sensitive_features": group}`` or both: rows of that label or group only, in the
            proportions that ``rates_`` has among them.
        return_sensitive : bool, default=False
            Return the groups as well.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the rows that are drawn.

        Returns
        -------
        X : DataFrame or ndarray of shape (n_samples, n_columns)
            Synthetic rows.
        sensitive_features : Series, DataFrame or ndarray
            Their groups, only with ``return_sensitive``.
        """
        X, labels, groups = self._draw(n_samples, conditions, random_state)
        if self._schema is not None:
            X = raw_table(
                self._schema, X, None if self.classes_ is None else self._form.decode_labels(labels),
                None if self.groups_ is None else self._form.groups_of(groups),
            )  # fmt: skip
        return self._paid(X, self._form.groups_of(groups)) if return_sensitive else self._paid(X)[0]

    def sample_labels(
        self,
        n_samples: int,
        *,
        conditions: Mapping[str, Any] | None = None,
        return_sensitive: bool = False,
        random_state: RandomStateLike = None,
    ) -> Any:
        """Draw synthetic rows with their labels: a training set.

        Parameters
        ----------
        n_samples, conditions, return_sensitive, random_state : object
            As for :meth:`sample`.

        Returns
        -------
        X : DataFrame or ndarray of shape (n_samples, n_columns)
            Synthetic rows.
        y : Series or ndarray of shape (n_samples,)
            Their labels.
        sensitive_features : Series, DataFrame or ndarray
            Their groups, only with ``return_sensitive``.

        Raises
        ------
        ValueError
            ``fit`` was given no labels.
        """
        check_is_fitted(self, "model_")
        if self.classes_ is None:
            raise ValueError(
                f"{type(self).__name__} was fitted without y, so it has no labels to sample. Pass y to fit, or call "
                "sample."
            )
        X, labels, groups = self._draw(n_samples, conditions, random_state)
        if self._schema is not None:
            X = raw_features(self._schema, X)
        y = self._form.decode_labels(labels)
        return self._paid(X, y, self._form.groups_of(groups)) if return_sensitive else self._paid(X, y)

    def _paid(self, *rows: Any) -> tuple[Any, ...]:
        if hasattr(self, "privacy_"):  # inside of a fit it is not yet
            for some in rows:
                note_paid(some, self.privacy_)
        return rows

    def _draw(self, n_samples: int, conditions: Any, random_state: RandomStateLike) -> tuple[Any, Any, Ints]:
        """Rows, the codes of their labels, or amounts, and those of their groups."""
        check_is_fitted(self, "model_")
        owner = type(self).__name__
        if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
            raise ValueError(f"n_samples of {owner}.sample must be an integer >= 1. Got {n_samples!r} instead.")
        rng = public_generator(random_state)
        if self._admissible is not None and isinstance(conditions, Mapping) and "y" in conditions:
            raise ValueError(
                f"'conditions' of {owner}.sample cannot fix y, as 'admissible' draws it from the columns of a row. "
                "Draw more rows, and keep those with the label."
            )
        rates = self.rates_ if self._admissible is None else self._drawn_rates
        rates = _group_rates.restricted(rates, conditions, self.groups_, self.classes_, owner)
        cells = drawn_cells(rates.ravel(), int(n_samples), rng)
        values = self.model_.sample(cells, rng)
        groups, labels = np.divmod(cells, self.rates_.shape[1])
        if self._admissible is not None:
            labels = self._admissible.draw(values, rng)
        rows = self._codec.decode(values, rng, self._form.columns_of_groups(groups))
        return rows, self._form.placed(labels, rng), groups

    def _label_shares(self, features: Any) -> Floats | None:
        """Shares of the labels by the released counts of an interaction, of a table of features; None without one."""
        if not isinstance(self.model_, _tables.InteractionModel):
            return None
        if self._schema is not None:
            features = _inputs.numbers_of(RawTable.read(self._schema, features, owner=type(self).__name__))
        return self.model_.label_shares(self._codec.encode(_tables.read_table(features)))
