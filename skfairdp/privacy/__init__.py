"""Privacy accounting: events, accountants, mechanisms, ledger. Knows neither data nor model."""

from skfairdp.privacy._account import (
    Account,
    carrying,
    composed,
    held_by,
    note_paid,
    privacy_of,
    record_of,
    releases_of,
)
from skfairdp.privacy._accountants import RDP_ORDERS, accountant_of, epsilon_of, rdp_of
from skfairdp.privacy._attribute_cost import attribute_event, group_privacy
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
from skfairdp.privacy._ledger import PrivacyLedger, reopen
from skfairdp.privacy._ledger_block import UNCHARGED, ledger_in_use, note_release
from skfairdp.privacy._ledger_file import LedgerEntry
from skfairdp.privacy._mechanisms import (
    CommonValues,
    ExponentialMechanism,
    GaussianMechanism,
    GNMax,
    LaplaceCounts,
    NoisyThreshold,
    NoisyVotes,
    PrivateSelection,
    RandomizedResponse,
    calibrate_noise,
    smooth_sensitivity_release,
    smooth_sensitivity_release_cost,
)
from skfairdp.privacy._noise import NoiseSource, PoissonSample, SecretChoice, SecretDraws
from skfairdp.privacy._report import (
    NeighboringRelation,
    PerformedRelease,
    PrivacySpent,
    Protects,
    StatesPrivacy,
    relation_for,
    rounded_down,
    rounded_up,
)
from skfairdp.privacy._spending import (
    SIZES,
    Plan,
    PublicFact,
    PublicReads,
    Spending,
    charge,
    check_room,
    public_facts,
    refuse_ledger_of_seed,
    scale_for,
)
from skfairdp.privacy._verify import Check, UnreadableStatementError, verify_file

__all__ = ["ArgmaxBit", "CommonValues", "DiscreteGaussian", "NeighboringRelation", "PrivacyLedger"]
__all__ += ["PrivacySpent", "PrivateSelection", "Protects", "RareDisclosure", "ReplaceSampledGaussian"]
__all__ += ["ThresholdBit", "attribute_event", "calibrate_noise", "compose", "epsilon_of", "gdp_delta"]
__all__ += ["gdp_epsilon", "gdp_mu", "group_privacy", "privacy_of", "repeat"]
