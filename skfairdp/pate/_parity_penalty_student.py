"""A student with demographic parity in its loss: what the baseline PATE-S_in trains."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from skfairdp._docs import shared_docs
from skfairdp._estimator import check_numbers
from skfairdp._typing import Floats as Array, Ints as Codes
from skfairdp._utils import NamedEstimator, RandomStateLike, public_generator
from skfairdp._utils._sklearn import Interval, StrOptions
from skfairdp.fairness import largest_disparity, tally
from skfairdp.pate._soft_label_student import ShareProblem


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class ParityPenaltyStudent(ClassifierMixin, NamedEstimator):
    """Softmax regression or a small network on released votes, with λ times the demographic disparity in its loss.

    What PATE-S_in of the FairPATE paper trains: ``FairPATEClassifier(gate=None, student=ParityPenaltyStudent())``.
    Everything it reads is public or differentially private, so whatever it does is post-processing and costs nothing.
    The loss is mean cross-entropy + λ · DPFR, the largest disparity of softened predictions on the public rows
    (FairPATE paper, equation 1). **No bound on the gap follows**: λ has to be chosen, and ``gap_`` says what came of
    it.

    Parameters
    ----------
    penalty_weight : float, default=1.0
        λ >= 0. 0 is cross-entropy alone.
    hidden : tuple of int, default=()
        Widths of hidden layers with tanh units. None of them: softmax regression.
    temperature : float, default=0.1
        Softness of predictions and maximum in the penalty; it tends to the hard gap as this goes to 0. The paper takes
        0.01, where most rows have no gradient left.
    alpha : float or None, default=None
        L2 penalty. None: the value with the largest evidence under the known noise, as in :class:`SoftLabelStudent`.
        It is the evidence of a linear model: with hidden layers and much noise it can be too large (on Adult at ε = 1 a
        fifth of it did better).
    max_iter : int, default=300
        Iterations of L-BFGS.
    disparity : {"others", "overall", "between"}, default="others"
        Which disparity ``gap_`` is. The loss takes each group against all others.
    random_state : int, RandomState, Generator or None, default=None
        Initial weights of hidden layers.

    Attributes
    ----------
    coefs_ : list of ndarray of shape (n_in, n_out)
        Weights of each layer. Post-processing of released values: public.
    intercepts_ : list of ndarray of shape (n_out,)
    bends_ : object
        The columns that rows get before they are weighed. A function of the public rows.
    alpha_ : float
        The penalty used.
    gap_ : float or None
        Disparity of its predictions on the public rows; None without groups.
    classes_ : ndarray of shape (n_classes,)
        Class codes, 0 to n_classes - 1.
    {n_features_in_}

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.pate import ParityPenaltyStudent
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.integers(2, size=500)
    >>> X = rng.normal(size=(500, 3)) + groups[:, None]
    >>> shares = np.eye(2)[(X[:, 0] > 0.5).astype(int)]
    >>> free, fair = (
    ...     ParityPenaltyStudent(penalty_weight=weight).fit(X, shares, groups=groups) for weight in (0.0, 3.0)
    ... )
    >>> print(f"{free.gap_:.1f} without, {fair.gap_:.1f} with the penalty")
    0.4 without, 0.0 with the penalty
    """

    penalty_weight: float = 1.0
    hidden: tuple[int, ...] = ()
    temperature: float = 0.1
    alpha: float | None = None
    max_iter: int = 300
    disparity: str = "others"
    random_state: RandomStateLike = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty_weight": [Interval(Real, 0, 1e9, closed="both")],
        "hidden": [tuple, list],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "disparity": [StrOptions({"others", "overall", "between"})],
        "random_state": ["random_state"],
    }

    def check_parameters(self) -> None:
        """Raise a ValueError where a parameter is outside its range: before votes are paid for."""
        self._validate_params()
        check_numbers(self)
        if not all(isinstance(width, Integral) and not isinstance(width, bool) and width >= 1 for width in self.hidden):
            raise ValueError(
                "The 'hidden' parameter of ParityPenaltyStudent must list positive integers. "
                f"Got {self.hidden!r} instead."
            )

    def fit(
        self,
        X: Array,
        shares: Array,
        *,
        noise_std: float = 0.0,
        X_public: Array | None = None,
        groups: Codes | None = None,
        n_groups: int | None = None,
        bends: bool = False,
    ) -> "ParityPenaltyStudent":
        """Fit on released shares.

        Parameters
        ----------
        {released_shares, rows_of_parity}
        bends : bool, default=False
            Whether a softmax regression may bend, as :class:`SoftLabelStudent`. A network bends by itself.

        {returns_student}
        """
        from skfairdp._networks import ParityPenalty, fit_with_parity  # torch, on first use

        self.check_parameters()
        if self.penalty_weight > 0 and groups is None:
            raise ValueError("ParityPenaltyStudent needs 'groups' for its penalty; set penalty_weight=0 to go without.")
        problem = ShareProblem.of(X, shares, X_public, noise_std, self.alpha, bends=bends and not self.hidden)
        rows, public = (terms[:, :-1] for terms in (problem.rows, problem.public))
        n_classes, parity, self.bends_ = shares.shape[1], None, problem.bends
        self.n_features_in_, self.classes_, self.alpha_ = X.shape[1], np.arange(n_classes), problem.alpha
        n_groups = 0 if groups is None else int(n_groups or groups.max() + 1)
        if groups is not None and self.penalty_weight > 0:
            parity = ParityPenalty.of_rows(public, groups, n_groups, self.penalty_weight, self.temperature)
        # two classes have two weight vectors here, whose difference is the one that alpha speaks of
        alpha, hidden = 2 * self.alpha_ if n_classes == 2 else self.alpha_, tuple(int(width) for width in self.hidden)
        seed = int(public_generator(self.random_state).integers(2**31 - 1))
        how: dict[str, Any] = {"alpha": alpha, "hidden": hidden, "max_iter": int(self.max_iter), "seed": seed}
        with threadpool_limits(limits=1):  # threads do not pay for products this small
            layers = fit_with_parity(rows, problem.targets, parity, **how)
        first = layers[0][0] / problem.scale[:, None]
        layers[0] = first, layers[0][1] - problem.center @ first
        self.coefs_, self.intercepts_ = map(list, zip(*layers, strict=True))
        self.gap_ = None
        if groups is not None:
            predicted = self.predict(X if X_public is None else X_public)
            self.gap_ = largest_disparity(tally(groups, predicted, (n_groups, n_classes)), self.disparity)
        return self

    def _scores(self, X: Array) -> Array:
        check_is_fitted(self, "coefs_")
        values = self.bends_(np.asarray(X, dtype=float)) @ self.coefs_[0] + self.intercepts_[0]
        for weights, biases in zip(self.coefs_[1:], self.intercepts_[1:], strict=True):
            values = np.tanh(values) @ weights + biases
        return values

    def predict(self, X: Array) -> Codes:
        """Class codes of shape (n_rows,).

        {predicts_labels}
        """
        return self.classes_[self._scores(X).argmax(axis=1)]

    def predict_proba(self, X: Array) -> Array:
        """Class probabilities of shape (n_rows, n_classes).

        {predicts_proba}
        """
        return softmax(self._scores(X), axis=1)
