"""What every estimator that spends privacy shares: public inputs, ledger, report, score. Kept small on purpose."""

import math
import warnings
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.privacy import (
    DpEvent,
    LedgerEntry,
    NeighboringRelation,
    PrivacyLedger,
    PrivacySpent,
    PublicFact,
    PublicReads,
    Spending,
    StatesPrivacy,
)
from skfairdp.utils import (
    PublicData,
    as_groups,
    as_labels,
    encode_labels,
    given_domain,
    group_domain,
    private_error,
    public_generator,
    split_sensitive_columns,
    without_types,
    without_values,
)

__all__ = ["FairPrivateMixin", "PublicRows"]

LARGEST_PUBLIC = 1e100
_NUMBER_OF_ROWS = "number of private rows"


class _PlanReady(BaseException):
    """Ends a fit where it would charge. Not an Exception: nothing that fits for others may take it for a failure."""


class _EndsTheFit:
    """Stands in for a ledger."""

    def charge(self, event: DpEvent, *, label: str, protects: str, neighboring_relation: str,
               releases: Iterable[str] = (), dry_run: bool = False) -> None:  # fmt: skip
        raise _PlanReady(LedgerEntry(label, event, protects, neighboring_relation, tuple(releases)))

    def __sklearn_clone__(self) -> "_EndsTheFit":
        return self


def _ended_at_its_charge(model: Any, X: Any, y: Any, **fit_params: Any) -> LedgerEntry:
    try:
        model.set_params(ledger=_EndsTheFit()).fit(X, y, **fit_params)
    except _PlanReady as ready:
        entry: LedgerEntry = ready.args[0]
        return entry
    raise AssertionError("every fit of a private estimator charges its ledger")


class PublicRows:
    """Public rows after validation: features, and group codes with their domain where groups are used."""

    def __init__(
        self,
        X: NDArray[np.float64],
        groups: NDArray[np.int64] | None = None,
        domain: NDArray[np.object_] | None = None,
    ) -> None:
        self.X = X
        self.groups = groups
        self.domain = domain

    @property
    def n_groups(self) -> int:
        return 0 if self.domain is None else len(self.domain)


class FairPrivateMixin(StatesPrivacy):
    """Validation, public rows, classes, ledger and report of a private estimator.

    A subclass has the constructor parameters ``delta``, ``classes``, ``groups``, ``sensitive_columns``,
    ``public_size``, ``random_state``, ``noise_seed`` and ``ledger``, and sets ``privacy_``.
    """

    privacy_: PrivacySpent
    delta: float

    # Asked for by default, so that a search with metadata routing never fits without the groups by accident.
    __metadata_request__fit = {
        "sensitive_features": True,
        "X_public": True,
        "sensitive_features_public": True,
    }
    __metadata_request__score = {"sensitive_features": True}

    @property
    def epsilon_spent_(self) -> float:
        """Shorthand for ``privacy_.epsilon``: the certified cap of this fit."""
        check_is_fitted(self, "privacy_")
        return self.privacy_.epsilon

    def planned_privacy(self, X: Any, y: Any = None, **fit_params: Any) -> PrivacySpent:
        """What ``fit`` with the same arguments is going to certify, before anything is released or trained.

        It is the plan of the fit itself, which is ended where it would charge a ledger: the event depends on public
        values only (sizes, domains, constructor parameters), and is that of the fit to the letter.

        Parameters
        ----------
        X, y, **fit_params
            As for ``fit``.

        Returns
        -------
        PrivacySpent
            Equal to the ``privacy_`` of the fit but for its list of public values.
        """
        model = clone(self).set_params(noise_seed=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit gives them
            entry = _ended_at_its_charge(model, X, y, **fit_params)
        return PrivacySpent.of(
            entry.event,
            self.delta,
            protects=entry.protects,
            neighboring_relation=entry.neighboring_relation,
            secret_noise=self.noise_seed is None,  # type: ignore[attr-defined]
        )

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Accuracy on the given rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sensitive_features : ignored
            Accepted so that it can be routed; predictions do not use the group.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        float
        """
        predicted = self.predict(X)  # type: ignore[attr-defined]
        y = self._check_target(y, len(predicted))
        try:
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
        except (ValueError, TypeError) as error:
            problem = without_values(error, owner=type(self).__name__, name="y")
        raise problem

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.non_deterministic = self.noise_seed is None  # type: ignore[attr-defined]
        tags.input_tags.sparse = False
        return tags

    # ------------------------------------------------------------------ inputs

    def _split_features(
        self, X: Any, *, reset: bool = False, read_groups: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.object_] | None]:
        """Numeric features and, with ``sensitive_columns``, the groups among them if they are wanted."""
        columns, owner = self.sensitive_columns, type(self).__name__  # type: ignore[attr-defined]
        features, groups, problem = X, None, None
        if columns is not None:
            features, groups = split_sensitive_columns(X, columns, owner=owner, read_groups=read_groups)
        try:
            if columns is None:
                features = validate_data(self, X, reset=reset, dtype=np.float64)
            else:
                features = check_array(features, dtype=np.float64, estimator=self, input_name="X")
                validate_data(self, X, reset=reset, skip_check_array=True)
        except Exception as error:  # whatever a strange cell makes numpy raise, its type would speak of that cell
            problem = without_values(error, owner=owner)
        if problem is not None:
            raise problem
        if reset:
            self._start_reading(features)
        return features, groups

    def _start_reading(self, private: Any) -> None:
        """Begin the list of public facts of a fit with the shape of its table."""
        self._reads = PublicReads()
        names = getattr(self, "feature_names_in_", None)
        shape = getattr(self, "n_features_in_", None) if names is None else names
        self._reads.note("columns of X", "read", shape, "their number and names are public")
        self._note_rows(len(private))

    def _note_rows(self, number: int) -> None:
        """Where the relation makes it public; :meth:`_facts` takes it off the list elsewhere."""
        self._note(_NUMBER_OF_ROWS, "read", number, "public, as neighbours have equally many")

    def _note(self, name: str, how: Any, value: Any = None, consequence: str = "") -> None:
        """Put a public value on the list of this fit: whoever reads one calls this."""
        reads: PublicReads = self.__dict__.setdefault("_reads", PublicReads())
        reads.note(name, how, value, consequence)

    def _facts(self, relation: NeighboringRelation) -> tuple[PublicFact, ...]:
        """All that was noted in this fit, which ends the list."""
        reads: PublicReads = self.__dict__.pop("_reads", PublicReads())
        declared = getattr(self, "public_n_rows", None)
        if not relation.number_is_public:
            reads.drop(_NUMBER_OF_ROWS)
        if declared is not None:
            reads.note("declared number of rows", "given", declared, "nothing follows the true number")
        if relation.protects == "sensitive attribute" and "columns of X" in reads:
            reads.note("features and labels", "read", None, "used without noise: the guarantee is for the group only")
        reads.note("constructor parameters", "given", None, "public, and the budget among them")
        return tuple(reads)

    def _check_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        # Given classes settle what is a label; without them the kind of y is read along with its classes.
        given = getattr(self, "classes", None) is not None
        return as_labels(y, n_rows, owner=type(self).__name__, check_kind=not given)

    def _encode_classes(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The class domain (given, or inferred with a warning) and the rows' class codes."""
        owner = type(self).__name__
        given = self.classes  # type: ignore[attr-defined]
        if given is None:
            classes, codes = np.unique(y, return_inverse=True)
            if len(classes) < 2:
                raise private_error("one class", owner=owner)
            warnings.warn(
                f"{owner} read its classes from the private y, which reveals them outside the guarantee. "
                "Give them with the 'classes' parameter.",
                PrivacyLeakWarning,
                stacklevel=4,
            )
            self._note("classes", "read", classes, "from the private y, outside the guarantee")
            return classes, codes.astype(np.int64)
        labels = given_domain(given, owner=owner, parameter="classes").tolist()
        try:
            classes = np.asarray(sorted(labels))  # scikit-learn keeps classes_ sorted
        except TypeError:
            classes = np.empty((0, 0))
        if classes.ndim != 1:
            raise ValueError(f"The 'classes' parameter of {owner} must be labels of one kind, such as strings or ints.")
        self._note("classes", "given", classes)
        return classes, encode_labels(y, classes, owner=owner, name="y", parameter="classes")

    def _public_classes(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Classes and codes where labels are public: those of y unless given."""
        if self.classes is not None:  # type: ignore[attr-defined]
            return self._encode_classes(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise private_error("one class", owner=type(self).__name__)
        self._note("classes", "read", classes, "from y, which is public here")
        return classes, codes.astype(np.int64)

    def _public_rows(
        self,
        X: NDArray[np.float64],
        y: NDArray[Any],
        groups_in_X: NDArray[np.object_] | None,
        sensitive_features: Any,
        X_public: Any,
        sensitive_features_public: Any,
        *,
        use_groups: str,
    ) -> tuple[NDArray[np.float64], NDArray[Any], PublicRows]:
        """Private rows, their labels, and the public rows: those given, or the share held out by ``public_size``.

        ``use_groups`` is "required", "optional" (kept where given) or "ignored".
        """
        owner = type(self).__name__
        if isinstance(X_public, PublicData):
            if sensitive_features_public is None:
                sensitive_features_public = X_public.sensitive_features
            elif X_public.sensitive_features is not None:
                raise ValueError(
                    f"{owner} got public groups twice: inside X_public (PublicData) and as sensitive_features_public."
                )
            X_public = X_public.X
        if self.sensitive_columns is not None and not (  # type: ignore[attr-defined]
            sensitive_features is None and sensitive_features_public is None
        ):
            raise ValueError(
                f"{owner} got groups twice: by 'sensitive_columns' and as an argument of fit. Leave one of them out."
            )
        if X_public is not None:
            public, groups = self._split_features(X_public, read_groups=True)
            public = public.copy()  # a view would keep the array alive that it may share with private rows
            if sensitive_features_public is not None:
                groups = as_groups(
                    sensitive_features_public, len(public), owner=owner, name="sensitive_features_public"
                )
            if use_groups == "required" and groups is None:
                raise ValueError(
                    f"{owner} needs the groups of the public rows: pass sensitive_features_public (or "
                    "X_public=PublicData(X, sensitive_features)), or name them with 'sensitive_columns'."
                )
        else:
            if self.public_size is None:  # type: ignore[attr-defined]
                raise ValueError(
                    f"{owner} needs public rows: pass X_public to fit, or set 'public_size' to hold out a "
                    "share of X that will not be protected."
                )
            if sensitive_features_public is not None:
                raise ValueError(f"{owner} got sensitive_features_public without X_public.")
            groups = groups_in_X
            if sensitive_features is not None:
                groups = as_groups(sensitive_features, len(X), owner=owner)
            if use_groups == "required" and groups is None:
                raise ValueError(
                    f"{owner} needs groups for its fairness constraint: pass sensitive_features to fit, or name the "
                    "columns of X that hold them with 'sensitive_columns'."
                )
            n_public = math.ceil(self.public_size * len(X))  # type: ignore[attr-defined]
            if n_public >= len(X):
                raise ValueError(
                    f"{owner} cannot hold out public rows: X has n_samples = {len(X)} and public_size="
                    f"{self.public_size}."  # type: ignore[attr-defined]
                )
            # By position only: a stratified draw would let one private record move others.
            order = public_generator(self.random_state).permutation(len(X))  # type: ignore[attr-defined]
            held_out, kept = np.sort(order[:n_public]), np.sort(order[n_public:])
            public = X[held_out]
            groups = None if groups is None else without_types(groups[held_out])
            X, y = X[kept], y[kept]
            self._note(
                "rows held out by 'public_size'",
                "held out",
                n_public,
                f"nothing protects them; their positions follow random_state={self.random_state}",  # type: ignore[attr-defined]
            )
            self._note_rows(len(X))
        if X_public is not None:
            self._note("public rows", "given", len(public), f"{'without' if groups is None else 'with'} their groups")
        if np.abs(public).max() > LARGEST_PUBLIC:
            raise ValueError(
                f"The public rows of {owner} hold numbers beyond {LARGEST_PUBLIC:g}, whose squares are no floats. "
                "Scale the features."
            )
        if use_groups == "ignored" or groups is None:
            return X, y, PublicRows(public)
        domain = self._group_domain(groups, required=use_groups == "required")
        codes = encode_labels(groups, domain, owner=owner, name="The public groups", parameter="groups")
        empty = len(domain) - len(np.unique(codes))
        if empty:
            raise ValueError(
                f"{empty} of the {len(domain)} groups of {owner} have no public row, so nothing can be said about "
                "them. Add public rows of every group, or leave those groups out of 'groups'."
            )
        return X, y, PublicRows(public, codes, domain)

    def _private_groups(
        self, groups_in_X: NDArray[np.object_] | None, sensitive_features: Any, n_rows: int
    ) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
        """Group codes of private rows, and the domain: given, or inferred with a warning."""
        owner = type(self).__name__
        if groups_in_X is not None and sensitive_features is not None:
            raise ValueError(
                f"{owner} got groups twice: by 'sensitive_columns' and as an argument of fit. Leave one of them out."
            )
        if sensitive_features is not None:
            groups_in_X = as_groups(sensitive_features, n_rows, owner=owner)
        if groups_in_X is None:
            raise ValueError(
                f"{owner} needs the groups of the private rows: pass sensitive_features to fit, or name the columns "
                "of X that hold them with 'sensitive_columns'."
            )
        given = self.groups  # type: ignore[attr-defined]
        if given is not None:
            domain = given_domain(given, owner=owner, parameter="groups")
            self._note("names of the groups", "given", domain)
        else:
            domain = group_domain(groups_in_X)
            if len(domain) < 2:
                raise private_error("one group", owner=owner)
            warnings.warn(
                f"{owner} read its groups from the private rows, which reveals them outside the guarantee. Give them "
                "with the 'groups' parameter.",
                PrivacyLeakWarning,
                stacklevel=4,
            )
            self._note("names of the groups", "read", domain, "from the private rows, outside the guarantee")
        codes = encode_labels(groups_in_X, domain, owner=owner, name="sensitive_features", parameter="groups")
        return codes, domain

    def _group_domain(self, public_groups: NDArray[np.object_], *, required: bool) -> NDArray[np.object_]:
        given = self.groups  # type: ignore[attr-defined]
        if given is None:
            domain = group_domain(public_groups)
            if len(domain) < 2 and required:
                raise ValueError(
                    f"{type(self).__name__} found only one group in the public rows, so every fairness statement "
                    "would be vacuous. Add public rows of the other groups, or give the 'groups' parameter."
                )
            self._note("names of the groups", "read", domain, "from the public rows")
            return domain
        domain = given_domain(given, owner=type(self).__name__, parameter="groups")
        self._note("names of the groups", "given", domain)
        return domain

    # ------------------------------------------------------------------ budget

    def _spend(
        self,
        event: DpEvent,
        *,
        relation: NeighboringRelation,
        releases: Iterable[str],
        public: Iterable[str] = (),
    ) -> Spending:
        """The budget of this fit: ``with self._spend(...) as noise`` hands out the only noise there is."""
        seed = self.noise_seed  # type: ignore[attr-defined]
        ledger: PrivacyLedger | None = self.ledger  # type: ignore[attr-defined]
        owner = type(self).__name__
        if seed is not None and ledger is not None:
            raise ValueError(
                f"{owner} got both 'noise_seed' and 'ledger': seeded noise protects nobody, so no ledger may count "
                "it. Leave one of them out."
            )
        if seed is not None:
            warnings.warn(
                f"{owner} draws its noise from 'noise_seed': whoever knows the seed can remove the noise. "
                "privacy_.epsilon will be inf; use this for research and tests only.",
                PrivacyLeakWarning,
                stacklevel=4,
            )
        return Spending(
            event,
            self.delta,
            relation,
            label=owner,
            ledger=ledger,
            noise_seed=seed,
            releases=releases,
            public=(*self._facts(relation), *public),
            report_to=partial(setattr, self, "privacy_"),
        )
