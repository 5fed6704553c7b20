"""Privacy accounting: events, accountants, mechanisms, ledger. Knows neither data nor model."""

from skfairdp.privacy._account import (
    Account as Account,
    carrying as carrying,
    composed as composed,
    held_by as held_by,
    note_paid as note_paid,
    privacy_of,
    record_of as record_of,
    releases_of as releases_of,
)
from skfairdp.privacy._accountants import (
    RDP_ORDERS as RDP_ORDERS,
    accountant_of as accountant_of,
    epsilon_of,
    rdp_of as rdp_of,
)
from skfairdp.privacy._attribute_cost import attribute_event, group_privacy
from skfairdp.privacy._divergences import bit_deltas as bit_deltas, bit_rdp as bit_rdp
from skfairdp.privacy._dp_accounting import (
    ComposedDpEvent as ComposedDpEvent,
    DpEvent as DpEvent,
    GaussianDpEvent as GaussianDpEvent,
    LaplaceDpEvent as LaplaceDpEvent,
    NonPrivateDpEvent as NonPrivateDpEvent,
    NoOpDpEvent as NoOpDpEvent,
    PoissonSampledDpEvent as PoissonSampledDpEvent,
    RandomizedResponseDpEvent as RandomizedResponseDpEvent,
    RepeatAndSelectDpEvent as RepeatAndSelectDpEvent,
    SelfComposedDpEvent as SelfComposedDpEvent,
    rdp_to_epsilon as rdp_to_epsilon,
)
from skfairdp.privacy._events import (
    ArgmaxBit,
    DiscreteGaussian,
    RareDisclosure,
    ReplaceSampledGaussian,
    ThresholdBit,
    WorstOf as WorstOf,
    check_event as check_event,
    compose,
    event_from_dict as event_from_dict,
    event_to_dict as event_to_dict,
    flatten as flatten,
    repeat,
)
from skfairdp.privacy._gdp import GDPFilter as GDPFilter, gdp_delta, gdp_epsilon, gdp_mu
from skfairdp.privacy._ledger import PrivacyLedger, reopen as reopen
from skfairdp.privacy._ledger_block import (
    UNCHARGED as UNCHARGED,
    ledger_in_use as ledger_in_use,
    note_release as note_release,
)
from skfairdp.privacy._ledger_file import LedgerEntry as LedgerEntry
from skfairdp.privacy._mechanisms import (
    CommonValues,
    GaussianMechanism as GaussianMechanism,
    GNMax as GNMax,
    LaplaceCounts as LaplaceCounts,
    NoisyThreshold as NoisyThreshold,
    NoisyVotes as NoisyVotes,
    PrivateSelection,
    RandomizedResponse as RandomizedResponse,
    calibrate_noise,
    smooth_sensitivity_release as smooth_sensitivity_release,
    smooth_sensitivity_release_cost as smooth_sensitivity_release_cost,
)
from skfairdp.privacy._noise import (
    NoiseSource as NoiseSource,
    PoissonSample as PoissonSample,
    SecretChoice as SecretChoice,
    SecretDraws as SecretDraws,
)
from skfairdp.privacy._report import (
    NeighboringRelation,
    PerformedRelease as PerformedRelease,
    PrivacySpent,
    Protects,
    StatesPrivacy as StatesPrivacy,
    relation_for as relation_for,
    rounded_down as rounded_down,
    rounded_up as rounded_up,
)
from skfairdp.privacy._spending import (
    SIZES as SIZES,
    Plan as Plan,
    PublicFact as PublicFact,
    PublicReads as PublicReads,
    Spending as Spending,
    public_facts as public_facts,
    refuse_ledger_of_seed as refuse_ledger_of_seed,
)
from skfairdp.privacy._verify import (
    Check as Check,
    UnreadableStatementError as UnreadableStatementError,
    verify_file as verify_file,
)

__all__ = [
    "ArgmaxBit",
    "CommonValues",
    "DiscreteGaussian",
    "NeighboringRelation",
    "PrivacyLedger",
    "PrivacySpent",
    "PrivateSelection",
    "Protects",
    "RareDisclosure",
    "ReplaceSampledGaussian",
    "ThresholdBit",
    "attribute_event",
    "calibrate_noise",
    "compose",
    "epsilon_of",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "group_privacy",
    "privacy_of",
    "repeat",
]
