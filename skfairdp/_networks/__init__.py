"""Networks: many small ones as one tensor program, and clipped sums of per-sample gradients.

This private room imports torch when it is imported; the others load it on first use.
"""

from skfairdp._networks._adversarial import AdversarialTraining, ImageLayers, as_features
from skfairdp._networks._clipping import (
    BoundsByGroup,
    ClippingRule,
    DPStep,
    FairClippingStep,
    GlobalScaling,
    WeightsByGroup,
    fused_layers,
    looped_gradients,
    private_outputs,
    trace_layers,
    vectorized_gradients,
)
from skfairdp._networks._layers import StackedModule
from skfairdp._networks._mlp import (
    AdditiveParts,
    ColumnScales,
    StackedMLP,
    additive_parts,
    behind,
    one_answer,
    with_parts,
)
from skfairdp._networks._nets import (
    Net,
    as_net,
    constant_module,
    fitted_net,
    input_dtype,
    is_constant,
    module_of,
    scale_last_layer,
    unset_net,
    width_of,
)
from skfairdp._networks._parity import (
    AmountLoss,
    AmountScale,
    MeanPenalty,
    ParityPenalty,
    constant_amount,
    fine_tune_for_parity,
    fit_with_parity,
    predicting,
    rows_read_by,
    sums_by_group,
)
from skfairdp._networks._process import (
    PrecisionWatch,
    check_precision,
    own_generator,
    products_of_step,
    reduced_precision,
    resolve_device,
    seconds_of_steps,
    threads_of_steps,
)
from skfairdp._networks._shorthands import CNN, MLP, ResNet
from skfairdp._networks._stacked import batch_stream, one_vector, predict_stacked, predict_stacked_proba, train_stacked
from skfairdp._networks._training import (
    Network,
    PrivateRows,
    RowsOnDemand,
    TailAverage,
    predict_logits,
    prepare_network,
    private_logits,
)
from skfairdp._networks._wide_sums import SLACK, DenseRows, LayerRows, Total, wide
