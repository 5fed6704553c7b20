"""Networks: many small ones as one tensor program, and clipped sums of per-sample gradients.

This room imports torch when it is imported; ``skfairdp.ensemble`` loads it on first use.
"""

from skfairdp.neural._adversarial import AdversarialTraining
from skfairdp.neural._clipping import check_rows_stay_apart, clipped_gradient_sum, fused_layers
from skfairdp.neural._cnn import build_cnn
from skfairdp.neural._constraints import CONSTRAINTS, FairnessConstraints, dual_schedule
from skfairdp.neural._dp_step import DPStep
from skfairdp.neural._dp_train import (
    Network,
    build_mlp,
    predict_logits,
    prepare_network,
    train_privately,
)
from skfairdp.neural._fair_clipping import (
    BoundsByGroup,
    ClippingRule,
    FairClippingStep,
    GlobalScaling,
    WeightsByGroup,
)
from skfairdp.neural._fair_fit import fit_with_parity
from skfairdp.neural._fine_tune import fine_tune_for_parity, rows_read_by
from skfairdp.neural._generator_net import GeneratorNet, StudentDiscriminator, one_hot_rows
from skfairdp.neural._lagrangian import LagrangianTraining, train_lagrangian
from skfairdp.neural._lagrangian_gradient import ConstraintGradient
from skfairdp.neural._mlp import StackedMLP
from skfairdp.neural._modules import StackedModule
from skfairdp.neural._penalties import (
    PublicPenalty,
    demographic_disparity_penalty,
    disparity_and_slope,
    group_contrasts,
)
from skfairdp.neural._pfld_plan import PFLDPlan
from skfairdp.neural._probe import check_network
from skfairdp.neural._signed_loss import DualPlan, PrivateParity, SignedLoss
from skfairdp.neural._stacked import (
    StackedNet,
    batch_stream,
    predict_stacked,
    predict_stacked_proba,
    resolve_device,
    train_stacked,
)
from skfairdp.neural._stacked_gan import StackedDiscriminators
from skfairdp.neural._stacked_lagrangian import StackedDual, StackedParity, train_stacked_lagrangian

__all__ = [
    "CONSTRAINTS",
    "AdversarialTraining",
    "BoundsByGroup",
    "ClippingRule",
    "ConstraintGradient",
    "DPStep",
    "DualPlan",
    "FairClippingStep",
    "FairnessConstraints",
    "GeneratorNet",
    "GlobalScaling",
    "LagrangianTraining",
    "Network",
    "PFLDPlan",
    "PrivateParity",
    "PublicPenalty",
    "SignedLoss",
    "StackedDiscriminators",
    "StackedDual",
    "StackedMLP",
    "StackedModule",
    "StackedNet",
    "StackedParity",
    "StudentDiscriminator",
    "WeightsByGroup",
    "batch_stream",
    "build_cnn",
    "build_mlp",
    "check_network",
    "check_rows_stay_apart",
    "clipped_gradient_sum",
    "demographic_disparity_penalty",
    "disparity_and_slope",
    "dual_schedule",
    "fine_tune_for_parity",
    "fit_with_parity",
    "fused_layers",
    "group_contrasts",
    "one_hot_rows",
    "predict_logits",
    "predict_stacked",
    "predict_stacked_proba",
    "prepare_network",
    "resolve_device",
    "rows_read_by",
    "train_lagrangian",
    "train_privately",
    "train_stacked",
    "train_stacked_lagrangian",
]
