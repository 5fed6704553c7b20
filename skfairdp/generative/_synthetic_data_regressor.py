"""Private rows in, any learner of amounts out: a regressor trained on synthetic rows."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, VotingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.utils.validation import check_is_fitted

from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateRegressor
from skfairdp._inputs import amount_bounds, refuse_chunks
from skfairdp._row_wise import row_wise_amounts
from skfairdp._tables import GeneratorBackend, GeneratorPlan
from skfairdp._teachers import rehearse_learner
from skfairdp._typing import ArrayLike, Floats, Ints, MaybeArray, SubjectLike, Values
from skfairdp._utils import public_generator, silence
from skfairdp._utils._sklearn import answers_as_fitted
from skfairdp.generative._amounts import AmountTables, with_amounts
from skfairdp.generative._inputs import GeneratorData
from skfairdp.generative._synthetic_learner import LearnsSyntheticRows
from skfairdp.generative._table_codec import TableCodec
from skfairdp.privacy import NoiseSource
from skfairdp.schema import schema_of, with_schema


@shared_docs
@with_schema(kw_only=False)
class SyntheticDataRegressor(PrivateRegressor, LearnsSyntheticRows):
    """Any scikit-learn or fairlearn regressor, trained on synthetic rows that a private generator makes.

    **Guarantee.** (ε, δ)-differential privacy for one *record* under replacement: its features, amount and group. All
    of ε goes to the generator (:class:`PFGuardGenerator`), to where amounts lie, and to one look at the learner, which
    sees synthetic rows only: its fit, its constraint and its parameters cost nothing more, and you may search over them
    freely. You need no public rows. Amounts beyond ``bounds_y`` count as the bound, and predictions stay within.

    **How.** Noisy counts say where amounts lie; at their quantiles these are cut into 5 to 12 classes in their order,
    more of them where there is less noise. Every feature is counted with these classes, and with one other feature. A
    synthetic row gets an amount from within its class. Where noise is large a noisy mean is released as well, and
    these amounts are moved to it. One noisy number says whether the learner is ahead of the mean. Where it is not, or
    noise hides everything, the mean is predicted, with a UtilityWarning.

    Parameters
    ----------
    estimator : regressor, default=None
        Trained on numbers: see :class:`SchemaEncoder`. Its ``fit`` gets the synthetic groups where it takes
        ``sensitive_features``, as fairlearn's reductions do; its ``predict`` has to do without. None is the mean of a
        ridge regression and of small boosted trees.
    epsilon : float, default=1.0
        In [1e-3, 1e6].
    {delta}
    bounds_y : tuple of two floats, default=None
        Smallest and largest y by public knowledge; needed, unless a schema has them of its label. They may be generous.
    backend : str or GeneratorBackend, default="marginals"
        Of the generator.
    {rows_to_learn_from}
    groups : array-like, default=None
        Public domain of the group.
    {columns_not_learnt, schema_of_amounts, random_state, noise_seed, ledger}

    Attributes
    ----------
    estimator_ : regressor
        The fitted learner. It has seen synthetic rows only.
    generator_ : PFGuardGenerator
        Draw more rows from it at no cost; ``sample_labels`` returns their amounts as well.
    encoder_ : SchemaEncoder
        What turns rows into the numbers that the learner gets.
    y_center_, y_spread_ : float
        Where amounts lie, by released counts: the constant that a learner has to beat, and half of the distance
        between their quantiles 1/16 and 15/16, about.
    {privacy_, epsilon_spent_, n_features_in_, feature_names_in_}

    {fit_raises}

    Warns
    -----
    UtilityWarning
        A constant is predicted for every row, or the learner is hardly better than that.

    See Also
    --------
    FairDPSGDRegressor : A network, which is more accurate on few rows and for a small ε.
    skfairdp.postprocessing.PrivateBarycenter : Makes distributions of predictions agree between groups.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairdp import SyntheticDataRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(8000, 3))
    >>> y = 20 + X @ [4.0, 2.0, 0.0] + rng.normal(size=8000)
    >>> model = SyntheticDataRegressor(
    ...     LinearRegression(), epsilon=2.0, bounds_y=(0, 50), bounds=(-5.0, 5.0), dtypes=float, random_state=0
    ... )
    >>> model = model.fit(X[:7000], y[:7000])
    >>> print(f"R² {model.score(X[7000:], y[7000:]):.2f} at ε = {model.privacy_.epsilon:.2f}")
    R² 0... at ε = 2.00
    """

    estimator: Any = None
    _: KW_ONLY
    bounds_y: tuple[float, float] | None = None
    backend: str | GeneratorBackend = "marginals"
    codec: str | TableCodec = "auto"
    n_samples: int | None = None
    bounds: Mapping[Any, tuple[float, float]] | tuple[float, float] | None = None
    categories: Mapping[Any, Values] | None = None
    dtypes: Any = None

    _kept: ClassVar[tuple[str, ...]] = (*LearnsSyntheticRows._kept, "y_center_", "y_spread_", "_has_mean")

    #: The generator's reader is to read amounts.
    _reads_amounts = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {"bounds_y": "no_validation"}  # amount_bounds says what is wrong

    def fit(
        self, X: ArrayLike, y: MaybeArray = None, *, sensitive_features: MaybeArray = None, subject: SubjectLike = None
    ) -> "SyntheticDataRegressor":
        """Learn a generator, draw rows from it, and train the learner on them.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_columns)
            Private, in memory. Numbers, categories, booleans, missing values.
        y : array-like of shape (n_rows,), default=None
            Private amounts. Those beyond ``bounds_y`` count as the bound. None takes those of X, where a schema says
            which column holds them.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups, for a learner that takes them.
        {subject}

        {returns_self}
        """
        data = self._read(X, y, sensitive_features=sensitive_features, subject=subject)
        generator = self._generator()
        learner, with_groups = self._another_learner()
        self._rehearse(learner, with_groups, data)
        plan, rng = self._plan(data), public_generator(generator.random_state)
        target: AmountTables = plan.target
        self._forecast, ahead = target.forecast, None
        self._is_behind, self._has_mean = self._forecast.snr_too_low, target.mean is not None
        with generator._spend(plan, data.reads, holder=self) as noise:
            data, (self.y_center_, self.y_spread_) = target.release(data, noise, type(self).__name__)
            generator._learn(data, generator._release(data, plan, noise, rng), rng)
            problem = self._taught(generator, data, learner, with_groups)
            if target.look is not None:
                ahead = self._looked_at(target, X, data, noise, has_learned=problem is None)
        # Released values only from here on.
        self._settled(generator, problem)
        generator._tell(data.balance)
        if ahead is not None and target.look is not None:
            self._is_behind = not target.look.may_stay(ahead)
            if not target.look.is_clear(ahead):
                target.look.warn(ahead, self.y_center_, type(self).__name__, "learner")
        elif self._is_behind:
            target.warn_of_constant(self.y_center_, type(self).__name__)
        return self._fall_back()

    def _looked_at(
        self, target: AmountTables, X: Any, data: GeneratorData, noise: NoiseSource, *, has_learned: bool
    ) -> float:
        """Release by how much the learner is ahead of the constant."""
        assert target.look is not None
        rows, of, places = replace(data, cells=np.arange(len(data.cells))).looked_at(target.look.n_rows)
        predicted = self._asked(X, rows, places) if has_learned else np.full(len(of), np.nan)
        return target.look.release(data.amounts[of], predicted, self.y_center_, self.y_spread_, noise)

    def _asked(self, X: Any, rows: Ints | None, places: Ints) -> Floats:
        """Private: the learner's amounts for rows, each judged by itself, NaN where there is none."""
        with silence():
            features = self._encoded(X, rows)  # cell by cell
        total = np.zeros(len(features))
        for weight, part in _parts(self.estimator_):
            total += weight * row_wise_amounts(part, features, None, places=places)
        return np.clip(total, *amount_bounds(self))

    @answers_as_fitted
    def predict(self, X: ArrayLike | pd.DataFrame) -> Floats:
        """Predict the amount of each row, without its group.

        Parameters
        ----------
        {X_predict}

        Returns
        -------
        amounts : ndarray of shape (n_rows,)
            Within ``bounds_y``.
        """
        check_is_fitted(self, "estimator_")
        features = self._encoded(X)
        said = [weight * np.asarray(part.predict(features)) for weight, part in _parts(self.estimator_)]
        return np.clip(np.sum(said, axis=0, dtype=np.float64), *amount_bounds(self))

    # ------------------------------------------------------------------ pieces

    def _read(self, X: Any, y: Any = None, **given: Any) -> GeneratorData:
        self._validate_params()
        schema_of(self)
        amount_bounds(self)
        refuse_chunks(type(self).__name__, X=X)
        data = super()._read(X, y, **given)
        name = None if self.schema is None else self.schema.label
        return with_amounts(data, y, self.epsilon, self.delta, name)

    def _plan(self, data: Any) -> GeneratorPlan:
        generator = self._generator()
        target = AmountTables(
            data.layout, self.epsilon, self.delta, amount_bounds(self), is_asked=generator._asked_in_blocks
        )
        generator._for_learner = False  # amounts have looks of their own
        return replace(generator._plan(data), target=target)

    def _rehearse(self, learner: Any, with_groups: bool, data: GeneratorData) -> None:
        """Try the learner on made-up rows that come by the way of the sampled ones, before anything is spent."""
        if self.estimator is None:
            return
        low, high = amount_bounds(self)

        def made_up(each: int) -> tuple[Any, Any, dict[str, Any]]:
            features, codes, given = self._made_up(data, with_groups, 0, each)
            return features, low + (codes + 0.5) / data.layout.n_classes * (high - low), given

        rehearse_learner(learner, made_up, parameter="estimator", owner=type(self).__name__, kind="regressor")

    def _another_learner(self) -> tuple[Any, bool]:
        """An unfitted learner, and whether its fit takes groups."""
        if self.estimator is None:
            seed = int(public_generator(self.random_state).integers(2**31 - 1))
            tree = HistGradientBoostingRegressor(max_iter=60, max_leaf_nodes=8, min_samples_leaf=100, random_state=seed)
            # A line where noise is large, and what it leaves where it is not.
            return VotingRegressor([("line", RidgeCV(np.logspace(-2, 4, 7))), ("trees", tree)]), False
        return self._with_groups(clone(self.estimator))

    def _learn(self, learner: Any, with_groups: bool) -> "SyntheticDataRegressor":
        """Train a learner on rows drawn from the generator."""
        features, amounts, groups = self._drawn(with_groups)
        amounts = np.asarray(amounts, dtype=np.float64)
        if self._has_mean:
            amounts = np.clip(amounts + (self.y_center_ - amounts.mean()), *amount_bounds(self))
        if self._is_behind:
            learner = DummyRegressor(strategy="constant", constant=self.y_center_)
            groups = []
        given = {"sensitive_features": groups[0]} if groups else {}
        self.estimator_ = learner.fit(features, amounts, **given)
        return self

    def _fall_back(self) -> "SyntheticDataRegressor":
        """Predict the released constant where the learner is not ahead of it."""
        if self._is_behind and not isinstance(self.estimator_, DummyRegressor):
            self._learn(None, False)
        self._note_paid(self.estimator_)
        del self._shown
        return self


def _parts(learner: Any) -> list[tuple[float, Any]]:
    """Learners whose weighted mean is predicted: of a reduction that tosses a coin for each row, what it expects."""
    predictors, weights = getattr(learner, "predictors_", None), getattr(learner, "weights_", None)
    if predictors is None or weights is None or not hasattr(learner, "_pmf_predict"):
        return [(1.0, learner)]
    return [(float(weights[i]), predictor) for i, predictor in enumerate(predictors) if weights[i] > 0]
