"""PFGuardGenerator: synthetic rows that are differentially private, from a balanced law of groups and labels."""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skfairdp._base import FairPrivateMixin
from skfairdp.generative._backend import RELATION, FittedModel, GeneratorBackend, Layout, PrivateRows
from skfairdp.generative._budget import Budget
from skfairdp.generative._fair_rates import fair_rates
from skfairdp.generative._gradient_gan import DataLensBackend, GPATEBackend
from skfairdp.generative._group_rates import BALANCES, on_simplex, target_law
from skfairdp.generative._gs_wgan import GSWGANBackend
from skfairdp.generative._inputs import ReadsRows
from skfairdp.generative._marginals import MarginalsBackend
from skfairdp.generative._pate_gan import PATEGANBackend
from skfairdp.generative._samplers import NORMALIZATIONS, SAMPLINGS
from skfairdp.generative._strata import drawn_strata, restricted
from skfairdp.generative._table_codec import TableCodec
from skfairdp.generative._vector_codec import UnitCodec
from skfairdp.privacy import PrivacyLedger
from skfairdp.utils import RandomStateLike, public_generator
from skfairdp.utils._sklearn import HasMethods, Interval, StrOptions

__all__ = ["PFGuardGenerator"]

BACKENDS: dict[str, type[GeneratorBackend]] = {
    "marginals": MarginalsBackend,
    "pate_gan": PATEGANBackend,
    "gs_wgan": GSWGANBackend,
    "g_pate": GPATEBackend,
    "datalens": DataLensBackend,
}


class PFGuardGenerator(ReadsRows, BaseEstimator):
    """Synthetic rows that anyone may use, from a biased private table: private, and balanced between groups.

    **Guarantee.** (ε, δ)-differential privacy for one record under replacement, features, label and group together.
    ``privacy_.epsilon`` is computed from the event of everything that a fit may release, before it releases anything,
    and is the same for every table of that shape; sampling is post-processing, any number of rows at no cost. Public
    are: the number of rows, column names, whether X is a DataFrame or an array, and what you give as parameters or as
    ``X_reference``. A number column without public bounds or reference has its cells paid for. The *types* of private
    containers are not public, for numpy and pandas infer them from values: which columns are numbers, their dtypes,
    the width of strings and the lists of categories come from what you declare. What you leave undeclared is read from
    the private rows: a PrivacyLeakWarning names it and ``privacy_.public`` lists it.

    Of a column that is declared no cell raises an error. A number beyond the bounds counts as the bound, and a cell
    that is no number as missing. In a column of categories a cell outside the list is counted as "none of these", which
    is never sampled. Labels and groups outside ``classes`` and ``groups`` raise one ValueError, the same for all.

    PFGuard (Kim et al. 2024): fair sampling on the private side, a private release, a balanced law on the public side.
    Its published claims break where parts are stratified by a private attribute or weights are counted over the whole
    table; here rows are dealt to teachers by position and weights come from a teacher's own part.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of a fit, in [1e-3, 1e6].
    delta : float, default=1e-5
    backend : str or GeneratorBackend, default="marginals"
        ``"marginals"``: a graphical model over noisy tables of counts (:class:`MarginalsBackend`), for tables.
        ``"pate_gan"``, ``"gs_wgan"``, ``"g_pate"``, ``"datalens"``: networks taught by an ensemble
        (:class:`PATEGANBackend`, :class:`GSWGANBackend`, :class:`GPATEBackend`, :class:`DataLensBackend`).
    balance : {"group", "group_and_label"} or None, default="group_and_label"
        The law of group and label in what is sampled. ``"group"``: groups equally frequent, each with its own law of
        the label. ``"group_and_label"``: also the overall law of the label in every group. None: as in the private
        rows.
    label_rates : "fair", dict or None, default="fair"
        The law of the label in each group. A dict maps each group to the share of the last class, or to the shares of
        all classes. ``"fair"``, with ``balance="group_and_label"``: tilted with or against the groups' own laws, and
        sharpened, as makes the model's own best classifier least unfair in equalized odds and demographic parity
        together, at .01 less accuracy at most; backends without a density keep the overall law. None: as ``balance``.
    n_teachers : int, default=100
        Of the networks' backends: discriminators on disjoint parts, dealt by position. Public: a number taken from the
        private minority's size would be a release.
    sampling : {"importance", "stratified", "weights"}, default="importance"
        Balance by resampling (SIR), fixed numbers of each group and label in a batch, or weights in the teachers' loss.
    normalization : {"N1", "N2"}, default="N1"
        Of resampling probabilities: h / Σh, or h_i / (Σh − h_i), renormalised.
    teacher_loss : {"plain", "gold"}, default="plain"
        ``"gold"`` weighs rows inside a teacher by the ratio of densities it estimates itself.
    device : str, default="cpu"
        Of the networks: a torch device.
    codec : {"auto", "table", "units"}, default="auto"
        ``"units"``: numbers between public ``bounds`` (0 to 255 for uint8) as they are, for images; auto takes it for
        arrays of more than two dimensions.
    n_bins : int, default=24
        Cells that a column of numbers is cut into. Values are drawn evenly within a cell.
    bounds : dict of column to (low, high), or one pair for all, default=None
        Public bounds of number columns; a pair for all is for those that are not in ``categories``. Private values
        beyond them count as the bound.
    categories : dict of column to list, default=None
        Public values of a column. Private values outside the list are counted, and never sampled. A list with a type
        of its own (a pandas Categorical, Series or CategoricalDtype, an array) gives the column that type.
    dtypes : dict or Series of column to dtype, or one dtype for all, default=None
        Public types of what is sampled, for example ``{"age": int, "visits": "Int32"}``; ``table.dtypes`` where you
        know that these say nothing about the rows. A dtype of numbers alone declares a column of numbers whose range
        is paid for. Columns without one get that of ``X_reference``, else float64 for numbers and for categories what
        pandas makes of their list. An integer dtype cannot hold a missing value, so none is sampled.
    classes, groups : array-like, default=None
        Public domains of the label and of the group (tuples for intersections). Labels and groups are sampled with the
        type that these lists have.
    sensitive_columns : str, int or list of them, default=None
        Columns of X that are the group. They are among the columns that are sampled.
    random_state : int, RandomState, Generator or None, default=None
        Public randomness of the fit. Never the noise.
    noise_seed : int, default=None
        Research and tests only: makes the noise reproducible, so that ``privacy_.epsilon`` is inf.
    ledger : PrivacyLedger, default=None
        Shared budget; charged before the first release.
    verbose : int, default=0
        Above 0 shows a bar over the releases of a network.

    Attributes
    ----------
    model_ : FittedModel
        The released model. It holds no private row.
    codec_ : TableCodec
        Columns, their types and cells: public or released.
    law_ : ndarray of shape (n_groups, n_classes)
        Shares of groups and labels in what is sampled. Chosen from released values.
    observed_law_ : ndarray of shape (n_groups, n_classes)
        Released shares of groups and labels in the private rows.
    classes_ : ndarray of shape (n_classes,)
        None where no labels were given.
    groups_ : ndarray of shape (n_groups,), dtype object
        None where no groups were given.
    privacy_ : PrivacySpent
    epsilon_spent_ : float
        Shorthand for ``privacy_.epsilon``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when X had string column names.

    Raises
    ------
    BudgetExceededError
        From ``fit``, before the first release, when the ledger cannot afford it.
    ValueError
        From ``fit``, on unusable input, before anything is spent. No message holds a private value or count.

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
    >>> X_new.shape, list(X_new.columns) == list(X.columns), int((s_new == 0).sum())
    ((1000, 10), True, 500)
    """

    __metadata_request__fit = {"X_public": UNUSED, "sensitive_features_public": UNUSED, "X_reference": True}
    __metadata_request__score = {"sensitive_features": UNUSED}

    _parameter_constraints: dict[str, Any] = {
        "epsilon": [Interval(Real, 1e-3, 1e6, closed="both")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "backend": [StrOptions(set(BACKENDS)), GeneratorBackend],
        "balance": [StrOptions(set(BALANCES)), None],
        "label_rates": [StrOptions({"fair"}), dict, None],
        "n_teachers": [Interval(Integral, 1, None, closed="left")],
        "sampling": [StrOptions(set(SAMPLINGS))],
        "normalization": [StrOptions(set(NORMALIZATIONS))],
        "teacher_loss": [StrOptions({"plain", "gold"})],
        "device": [str],
        "codec": [StrOptions({"auto", "table", "units"})],
        "n_bins": [Interval(Integral, 2, 1000, closed="both")],
        "bounds": [dict, tuple, None],
        "categories": [dict, None],
        "dtypes": "no_validation",
        "classes": ["array-like", None],
        "groups": ["array-like", None],
        "sensitive_columns": [str, Integral, list, tuple, None],
        "random_state": ["random_state"],
        "noise_seed": [Interval(Integral, 0, None, closed="left"), None],
        "ledger": [HasMethods(["charge"]), None],
        "verbose": ["verbose"],
    }

    score = available_if(lambda self: False)(FairPrivateMixin.score)  # it predicts nothing

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        backend: str | GeneratorBackend = "marginals",
        balance: str | None = "group_and_label",
        label_rates: str | Mapping[Any, Any] | None = "fair",
        n_teachers: int = 100,
        sampling: str = "importance",
        normalization: str = "N1",
        teacher_loss: str = "plain",
        device: str = "cpu",
        codec: str = "auto",
        n_bins: int = 24,
        bounds: Mapping[Any, tuple[float, float]] | tuple[float, float] | None = None,
        categories: Mapping[Any, Sequence[Any]] | None = None,
        dtypes: Any = None,
        classes: ArrayLike | None = None,
        groups: Sequence[Any] | None = None,
        sensitive_columns: str | int | Sequence[str | int] | None = None,
        random_state: RandomStateLike = None,
        noise_seed: int | None = None,
        ledger: PrivacyLedger | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.backend = backend
        self.balance = balance
        self.label_rates = label_rates
        self.n_teachers = n_teachers
        self.sampling = sampling
        self.normalization = normalization
        self.teacher_loss = teacher_loss
        self.device = device
        self.codec = codec
        self.n_bins = n_bins
        self.bounds = bounds
        self.categories = categories
        self.dtypes = dtypes
        self.classes = classes
        self.groups = groups
        self.sensitive_columns = sensitive_columns
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.ledger = ledger
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike | pd.DataFrame,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | pd.DataFrame | None = None,
        X_reference: Any = None,
    ) -> "PFGuardGenerator":
        """Learn a generator of X, y and groups.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_columns), or images of shape (n_rows, ...)
            Private. Numbers, categories, booleans, missing values.
        y : array-like of shape (n_rows,), default=None
            Private labels.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups. Needed where ``balance`` is not None, unless ``sensitive_columns`` names them or an
            unbiased ``X_reference`` stands in.
        X_reference : DataFrame, array-like or PublicData, default=None
            Public rows in the columns of X: number columns take their cells from them, others their categories, and
            all that ``dtypes`` does not name their types; a column in which they miss no value is sampled without
            missing ones. Without groups, networks' teachers
            balance their batches towards these rows, whose groups need not be known.

        Returns
        -------
        self
        """
        self._validate_params()
        given = self._read_rows(X, X_reference)
        private, codec, reference = given.private, given.codec, given.reference
        labels, classes = self._read_labels(y, len(private))
        groups, domain = self._read_groups(
            given.groups, sensitive_features, len(private), estimated=reference is not None
        )
        rates = self._rates_asked_for(classes, domain)
        rng = public_generator(self.random_state)
        layout = Layout(
            kind="cells" if codec.columns else "units",
            n_rows=len(private),
            n_columns=len(codec.columns) or math.prod(private.shape[1:]),
            n_groups=1 if domain is None else len(domain),
            n_classes=1 if classes is None else len(classes),
            n_teachers=self.n_teachers,
            random_state=rng,
            settings={
                "balance": self.balance,
                "sampling": self.sampling,
                "normalization": self.normalization,
                "teacher_loss": self.teacher_loss,
                "unknown_groups": domain is None and self.balance is not None,
                "device": self.device,
                "verbose": self.verbose,
            },
        )
        budget = Budget(self.epsilon, self.delta, codec.sensitivity, layout.n_strata, self._backend().plan(layout))
        multiplier = budget.calibrated()
        spending = self._spend(
            budget.event_at(multiplier),
            relation=RELATION,
            releases=budget.releases,
        )
        with spending as noise:
            if isinstance(codec, TableCodec) and budget.ranges is not None:
                codec = codec.settle(private, budget.ranges, noise)
            observed = np.ones((layout.n_groups, layout.n_classes))
            if budget.law is not None:
                strata = groups * layout.n_classes + labels
                counts = np.bincount(strata, minlength=layout.n_strata)
                noisy = budget.law.release(counts, noise)
                self._warn_of_small_groups(noisy.reshape(observed.shape), budget.law.sigma, domain)
                observed = on_simplex(noisy).reshape(observed.shape)
            law = target_law(observed, None if domain is None else self.balance, rates)
            rows = PrivateRows(
                values=codec.encode(private),
                n_cells=codec.n_cells,
                nullable=tuple(column.nullable for column in codec.columns),
                sampled=tuple(column.sampled for column in codec.columns),
                groups=groups,
                labels=labels,
                observed=observed,
                law=law,
                reference=None if reference is None else codec.encode(reference),
            )
            model = budget.backend.learn(rows, multiplier, noise)
        del rows, given, private, groups, labels
        # Released values only from here on.
        if rates is None and self.label_rates == "fair" and self.balance == "group_and_label" and domain is not None:
            law = target_law(observed, self.balance, fair_rates(model, observed, rng))
        self.model_: FittedModel = model
        self.codec_: TableCodec | UnitCodec = codec
        self.law_, self.observed_law_ = law, observed
        self.classes_, self.groups_ = classes, domain
        return self

    def sample(
        self,
        n_samples: int,
        *,
        conditions: Mapping[str, Any] | None = None,
        return_sensitive: bool = False,
        random_state: RandomStateLike = None,
    ) -> Any:
        """Draw synthetic rows in the container and columns of X. Costs no privacy, however many.

        Parameters
        ----------
        n_samples : int
        conditions : dict, default=None
            ``{"y": label}``, ``{"sensitive_features": group}`` or both: rows of that label or group only, in the
            proportions that ``law_`` has among them.
        return_sensitive : bool, default=False
            Return the groups as well.
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        X : DataFrame or ndarray of shape (n_samples, n_columns)
        sensitive_features : only with ``return_sensitive``
        """
        X, _, groups = self._draw(n_samples, conditions, random_state)
        return (X, self._restored(groups)) if return_sensitive else X

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
        n_samples, conditions, return_sensitive, random_state
            As for :meth:`sample`.

        Returns
        -------
        X : DataFrame or ndarray of shape (n_samples, n_columns)
        y : Series or ndarray of shape (n_samples,)
        sensitive_features : only with ``return_sensitive``

        Raises
        ------
        ValueError
            ``fit`` was given no labels.
        """
        check_is_fitted(self, "model_")
        if self.classes_ is None:
            raise ValueError(f"{type(self).__name__} was fitted without y, so it has no labels to sample.")
        X, labels, groups = self._draw(n_samples, conditions, random_state)
        y = self._labels_form.restore(*labels)
        return (X, y, self._restored(groups)) if return_sensitive else (X, y)

    def _draw(self, n_samples: int, conditions: Any, random_state: RandomStateLike) -> Any:
        check_is_fitted(self, "model_")
        owner = type(self).__name__
        if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
            raise ValueError(f"n_samples of {owner}.sample must be an integer >= 1. Got {n_samples!r} instead.")
        rng = public_generator(random_state)
        law = restricted(self.law_, conditions, self.groups_, self.classes_, owner)
        strata = drawn_strata(law.ravel(), int(n_samples), rng)
        values = self.model_.sample(strata, rng)
        group_codes, label_codes = np.divmod(strata, self.law_.shape[1])
        domain = None if self.groups_ is None else self.groups_.tolist()
        X = self.codec_.decode(values, rng, self._columns_of_groups(domain, group_codes))
        classes = None if self.classes_ is None else self.classes_.tolist()
        return X, (classes, label_codes), (domain, group_codes)

    def _backend(self) -> GeneratorBackend:
        return BACKENDS[self.backend]() if isinstance(self.backend, str) else clone(self.backend)
