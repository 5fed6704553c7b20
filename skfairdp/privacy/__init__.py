"""Privacy accounting: events, accountants, mechanisms, ledger. Knows neither data nor model."""

from skfairdp.privacy._account import Account, composed, held_by, privacy_of, record_of, releases_of
from skfairdp.privacy._accountants import RDP_ORDERS, accountant_of, epsilon_of, rdp_of
from skfairdp.privacy._attribute_cost import attribute_event
from skfairdp.privacy._common_values import CommonValues
from skfairdp.privacy._divergences import bit_deltas, bit_rdp
from skfairdp.privacy._dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
    rdp_to_epsilon,
)
from skfairdp.privacy._events import (
    ArgmaxBit,
    DiscreteGaussian,
    RareDisclosure,
    ReplaceSampledGaussian,
    ThresholdBit,
    WorstOf,
    check_event,
    compose,
    event_from_dict,
    event_to_dict,
    flatten,
    repeat,
)
from skfairdp.privacy._gdp import GDPFilter, gdp_delta, gdp_epsilon, gdp_mu
from skfairdp.privacy._group_privacy import group_privacy
from skfairdp.privacy._ledger import LedgerEntry, PrivacyLedger
from skfairdp.privacy._ledger_block import UNCHARGED, ledger_in_use, note_release
from skfairdp.privacy._mechanisms import (
    GaussianMechanism,
    GNMax,
    LaplaceCounts,
    NoisyThreshold,
    NoisyVotes,
    calibrate_noise,
)
from skfairdp.privacy._noise import NoiseSource, PoissonSample, SecretChoice, SecretDraws, name_of_release
from skfairdp.privacy._private_selection import PrivateSelection
from skfairdp.privacy._randomized_response import RandomizedResponse
from skfairdp.privacy._report import (
    NeighboringRelation,
    PerformedRelease,
    PrivacySpent,
    Protects,
    StatesPrivacy,
    relation_for,
)
from skfairdp.privacy._smooth_release import smooth_sensitivity_release, smooth_sensitivity_release_cost
from skfairdp.privacy._spending import Plan, PublicFact, PublicReads, Spending, public_facts
from skfairdp.privacy._verify import Check, UnreadableStatementError, verify_file

__all__ = [
    "RDP_ORDERS",
    "UNCHARGED",
    "Account",
    "ArgmaxBit",
    "Check",
    "CommonValues",
    "ComposedDpEvent",
    "DiscreteGaussian",
    "DpEvent",
    "GDPFilter",
    "GNMax",
    "GaussianDpEvent",
    "GaussianMechanism",
    "LaplaceCounts",
    "LaplaceDpEvent",
    "LedgerEntry",
    "NeighboringRelation",
    "NoOpDpEvent",
    "NoiseSource",
    "NoisyThreshold",
    "NoisyVotes",
    "NonPrivateDpEvent",
    "PerformedRelease",
    "Plan",
    "PoissonSample",
    "PoissonSampledDpEvent",
    "PrivacyLedger",
    "PrivacySpent",
    "PrivateSelection",
    "Protects",
    "PublicFact",
    "PublicReads",
    "RandomizedResponse",
    "RandomizedResponseDpEvent",
    "RareDisclosure",
    "RepeatAndSelectDpEvent",
    "ReplaceSampledGaussian",
    "SecretChoice",
    "SecretDraws",
    "SelfComposedDpEvent",
    "Spending",
    "StatesPrivacy",
    "ThresholdBit",
    "UnreadableStatementError",
    "WorstOf",
    "accountant_of",
    "attribute_event",
    "bit_deltas",
    "bit_rdp",
    "calibrate_noise",
    "check_event",
    "compose",
    "composed",
    "epsilon_of",
    "event_from_dict",
    "event_to_dict",
    "flatten",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "group_privacy",
    "held_by",
    "ledger_in_use",
    "name_of_release",
    "note_release",
    "privacy_of",
    "public_facts",
    "rdp_of",
    "rdp_to_epsilon",
    "record_of",
    "relation_for",
    "releases_of",
    "repeat",
    "smooth_sensitivity_release",
    "smooth_sensitivity_release_cost",
    "verify_file",
]
