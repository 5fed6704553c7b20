"""Leaks past the noise, each of which the replay test must tell: kinds that were found once, planted again."""

import contextlib
import logging
import warnings
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfairdp import FairDPSGDClassifier, PFGuardGenerator, RandomizedResponseClassifier, _row_wise
from skfairdp._networks import _clipping as dp_step
from skfairdp._utils import encode_labels
from skfairdp.privacy import NoisyVotes, PoissonSample
from tests._tools.catalogue import by_name
from tests._tools.inside import fit_teachers
from tests._tools.neighbours import pairs, refused
from tests._tools.observing import observed
from tests._tools.replay import Recording
from tests._tools.sources import recording_noise
from tests.mutants.harness import mutant, replace_everywhere


# ---- the replay test, one pair at a time and nothing kept -----------------------------------------------------------
def neighbours_look_the_same(entry, pair, same_secrets=True):
    """As in tests/replay: a fit and its replay on one of the catalogue's pairs."""
    fit = by_name(entry)
    (chosen,) = (candidate for candidate in pairs(fit) if candidate.name == pair)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recording = Recording(fit.make, fit.fit, chosen.data, lambda fitted: fit.probe(fitted, chosen.data))
        seen = recording.on(chosen.neighbour, same_secrets=same_secrets)
    assert seen.original.error is None
    assert not seen.differences(times=chosen.times if same_secrets else None)


def schemas_look_the_same(what):
    """As in tests/schema: a release of a schema, and its replay where one record holds something else."""
    from tests.schema import test_release as schemas

    neighbour = schemas.with_record(schemas.TABLE, schemas.NASTY[what], 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = Recording(schemas.Made, schemas.released, schemas.TABLE, schemas.probe).on(neighbour)
    assert seen.original.error is None
    assert not seen.differences()


def refusals_are_constant(entry, cause):
    """As in tests/replay: two data sets that must be refused are refused in the same words."""
    fit = by_name(entry)
    (chosen,) = ((one, more) for name, one, more in refused(fit) if name == cause)
    with recording_noise(entropy=0):
        first, second = (observed(fit.make, partial(fit.fit, rows=rows)) for rows in chosen)
    assert first.error is not None
    assert not first.differences(second)


def after_fit(patch, cls, look):
    """Let ``look`` see the fitted estimator and the arguments of its fit."""
    honest = cls.fit

    def fit(self, X, y=None, **given):
        honest(self, X, y, **given)
        look(self, X, y, **given)
        return self

    patch.setattr(cls, "fit", fit)


def beside_teachers(patch, look):
    """Let ``look`` see the private rows and the parts before the teachers are trained."""

    def looking(teacher, X, y, assignment, **options):
        look(np.asarray(X), np.asarray(y), np.asarray(assignment))
        return fit_teachers(teacher, X, y, assignment, **options)

    replace_everywhere(patch, fit_teachers, looking)


# ---- the mutants -----------------------------------------------------------------------------------------------
@mutant
def type_of_private_labels_kept(patch):
    """Found: samples in the dtype that numpy infers from private labels. Right: in that of the declared classes."""
    after_fit(patch, PFGuardGenerator, lambda self, X, y, **given: setattr(self, "_type", np.asarray(y).dtype))


@mutant
def number_of_unknown_labels_in_the_error(patch):
    """Found: "133 row(s) whose value is not among the known ones". Right: a constant text."""

    def planted(values, domain, **names):
        unknown = len(set(values.tolist()) - set(domain.tolist()))
        if unknown:
            rows = sum(value not in set(domain.tolist()) for value in values.tolist())
            raise ValueError(f"{rows} row(s) hold a value that is not known")
        return encode_labels(values, domain, **names)

    replace_everywhere(patch, encode_labels, planted)


@mutant
def parts_with_two_classes_are_printed(patch):
    """Found: a progress bar over the parts that hold two classes. Right: over all parts."""

    def look(X, y, assignment):
        print(sum(len(np.unique(y[assignment == part])) > 1 for part in np.unique(assignment)), "teachers")

    beside_teachers(patch, look)


@mutant
def warnings_of_teachers_pass(patch):
    """Found: a teacher that does not converge says so. Right: teachers are silent, whatever their rows."""

    def look(X, y, assignment):
        if np.abs(X).max() > 1e30:
            warnings.warn("lbfgs failed to converge", ConvergenceWarning)

    beside_teachers(patch, look)


@mutant
def one_failing_teacher_ends_the_fit(patch):
    """Found: one part on which the teacher raises ends the fit. Right: that part votes a constant."""

    def look(X, y, assignment):
        if np.abs(X).max() > 1e30:
            raise FloatingPointError("overflow in a part")

    beside_teachers(patch, look)


@mutant
def votes_go_round_the_mechanism(patch):
    """Found: noise is drawn, and the exact votes are used. Right: what is used is what was released."""
    patch.setattr(NoisyVotes, "release", lambda self, values, source: (source.release(self, values), values)[1])


@mutant
def a_warning_of_exact_counts(patch):
    """Found: a warning of small groups from exact counts. Right: from released ones."""

    def look(self, X, y, sensitive_features):
        if min(np.bincount(sensitive_features, minlength=2)) == 0:
            warnings.warn("a group is empty", UserWarning)

    after_fit(patch, PFGuardGenerator, look)


@mutant
def how_many_groups_were_randomised_is_kept(patch):
    """Found: the number of answers that are lies, kept for a report. Right: only the answers."""

    def look(self, X, y, sensitive_features):
        self._lies = int(np.count_nonzero(self.released_groups_ != sensitive_features))

    after_fit(patch, RandomizedResponseClassifier, look)


@mutant
def the_rate_follows_the_rows(patch):
    """Found: "add or remove one record", and a rate and a divisor from len(X). Right: from the declared number."""
    honest = FairDPSGDClassifier.fit

    def fit(self, X, y, **given):
        declared, self.public_n_rows = self.public_n_rows, len(X)
        try:
            return honest(self, X, y, **given)
        finally:
            self.public_n_rows = declared

    patch.setattr(FairDPSGDClassifier, "fit", fit)


@mutant
def clipped_to_twice_the_bound(patch):
    """Found: sums that one row moves by more than the bound. Right: by C at most, which the true values show."""
    honest = dp_step.clipped_gradient_sum
    patch.setattr(
        dp_step,
        "clipped_gradient_sum",
        lambda module, loss, X, y, max_norm, **options: honest(module, loss, X, y, 2 * max_norm, **options),
    )


@mutant
def sizes_of_secret_batches_are_logged(patch):
    """Found: the realised size of a Poisson batch in a log. Right: nothing of a secret sample is told."""
    honest = PoissonSample.draw

    def draw(self, n_rows, source):
        positions = honest(self, n_rows, source)
        logging.getLogger("training").info("a batch of %d rows", len(positions))
        return positions

    patch.setattr(PoissonSample, "draw", draw)


@mutant
def one_by_one_where_one_fails(patch):
    """Found: as soon as one row made the predictor fail all rows were asked alone, and had other last bits. Right: a
    public row takes its seat, and no other row has another call."""

    def of_block(ask, rows, seats):
        call = np.full(_row_wise.BLOCK, -1)
        call[seats] = rows
        found = _row_wise._answers(ask, call, int(rows[0]))
        alone = [_row_wise._alone(ask, row) for row in rows.tolist()] if found is None else None
        return _row_wise.as_objects(np.array(found)[seats].tolist() if alone is None else alone)

    patch.setattr(_row_wise, "_of_block", of_block)


@mutant
def coins_by_call(patch):
    """Found: what draws when it predicts drew one number after the other, so that a row that it does not answer moved
    the coins of all others. Right: each row has coins of its place."""

    @contextlib.contextmanager
    def one_after_the_other():
        with honest() as start:
            start(0)
            yield lambda place: place

    honest = _row_wise._global_generators
    patch.setattr(_row_wise, "_global_generators", one_after_the_other)


@mutant
def seats_by_chunk(patch):
    """Found: a row had its position in its chunk for a seat, and chunks that end after so many bytes end elsewhere
    where a text is longer. Right: the number among all rows."""
    honest = _row_wise._in_blocks
    patch.setattr(_row_wise, "_in_blocks", lambda ask, kinds, places: honest(ask, kinds, np.arange(len(places))))
