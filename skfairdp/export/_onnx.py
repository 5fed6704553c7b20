"""Fitted models as ONNX graphs: linear students, networks, additive terms, and the encoder of a schema."""

import json
from typing import Any

import numpy as np
import torch
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from skfairdp import pate
from skfairdp._inputs import amount_bounds
from skfairdp._networks import input_dtype, module_of
from skfairdp._utils import silence
from skfairdp._utils._sklearn import as_fitted
from skfairdp.baselines import ParityLogisticRegression, RandomizedResponseClassifier
from skfairdp.generative import SyntheticDataClassifier
from skfairdp.lagrangian import Perceptron
from skfairdp.postprocessing import FairnessCalibrator
from skfairdp.schema import Category, Schema, SchemaEncoder

#: What answers by a learner that it holds.
_HOLD: dict[type, str] = {
    **dict.fromkeys((pate.PATEClassifier, pate.FairPATEClassifier, pate.SFPATEClassifier), "student_"),
    RandomizedResponseClassifier: "fair_estimator_",
    SyntheticDataClassifier: "estimator_",
}
#: The layers of what is no network.
_LAYERS: dict[type, Any] = {
    pate.NetworkStudent: lambda student, n_inputs: student.network.as_module(),
    pate.SoftLabelStudent: lambda student, n_inputs: _linear(student.coef_, student.intercept_),
    pate.ParityPenaltyStudent: lambda student, n_inputs: _with_tanh(student),
    **dict.fromkeys(
        (LogisticRegression, ParityLogisticRegression),
        lambda learner, n_inputs: _linear(learner.coef_.T, learner.intercept_),
    ),
    **dict.fromkeys((pate.ConstantStudent, DummyClassifier), lambda learner, n_inputs: _constant(learner, n_inputs)),
}
#: Why some have no graph, where it is for good.
_WHY = {
    "PrivateThresholds": ": a keyed hash of each row decides between two answers, and ONNX has no such function",
    "IDP3": ": an answer depends on the answers before it, and a graph keeps no counts",
    "FairnessCalibrator": ": thresholds give classes without probabilities. Export its estimator_, without them",
    **dict.fromkeys(
        ("PrivateBarycenter", "FairDPSGDRegressor"),
        ": moved amounts jump where many rows have one score, and the last digit of a score decides on which side",
    ),
}


def to_onnx(model: Any) -> Any:
    """Return the ONNX graph of what a fitted model predicts.

    Of networks, PATE's own students, linear models on randomised groups or synthetic rows, searches over these, and
    :class:`~skfairdp.schema.SchemaEncoder`. The input ``"X"`` is a matrix of float64 without ``sensitive_columns``.
    With a schema it has one column for each of its features, of cells as ``schema.numbers(table)`` reads them: numbers,
    days since 1970-01-01, 1 and 0 for a Boolean, the place of a value in the list of its Category, and NaN for none.
    The output is ``"probabilities"``, ``"amounts"`` of a regressor, or ``"encoded"``. The metadata hold ``"classes"``
    and ``"schema"`` as JSON.

    Parameters
    ----------
    model : object
        Fitted. Post-processing that moves thresholds or amounts, hashes rows or counts its answers has no graph.

    Returns
    -------
    onnx.ModelProto
        It computes in float64, and a network in the precision of its parameters, which is float32 as a rule. What it
        answers differs from ``predict_proba`` by at most 1e-6, or 1e-9 without a network; amounts from ``predict`` by
        at most 1e-6 of the range of their bounds.

    Raises
    ------
    ValueError
        There is no graph of this model. The message says which part has none.

    Examples
    --------
    >>> from skfairdp.export import to_onnx
    >>> from skfairdp.schema import Number, Schema, SchemaEncoder
    >>> encoder = SchemaEncoder(Schema({"age": Number(17, 90)}))
    >>> graph = to_onnx(encoder)  # doctest: +SKIP
    >>> [one.name for one in graph.graph.output]  # doctest: +SKIP
    ['encoded']
    """
    try:
        import onnx
        import onnxscript  # noqa: F401
    except ImportError:
        raise ImportError("to_onnx needs onnx and onnxscript: pip install skfairdp[export]") from None
    model = as_fitted(getattr(model, "best_estimator_", model))
    check_is_fitted(model)
    if isinstance(model, FairnessCalibrator) and hasattr(model, "predict_proba"):
        model = model.estimator_  # fine-tuned
    encodes, schema = isinstance(model, SchemaEncoder), getattr(getattr(model, "encoder_", model), "schema", None)
    apart = getattr(model, "sensitive_columns", None)
    n_inputs = encoded = getattr(model, "n_features_in_", 0) - (0 if apart is None else np.size(apart))
    parts: list[nn.Module] = []
    if schema is not None:
        n_inputs, encoded = len(schema.features), len(SchemaEncoder(schema).get_feature_names_out())
        parts = [_Columns(schema)]
    parts += [] if encodes else [_answers(model, type(model).__name__, encoded)]
    output = "encoded" if encodes else "probabilities" if hasattr(model, "classes_") else "amounts"
    # the graph of modules one after the other, for any number of rows "X" of so many numbers
    rows, batch = torch.zeros((2, n_inputs), dtype=torch.float64), torch.export.Dim("n_rows")
    try:
        with silence():
            made: Any = torch.onnx.export(
                nn.Sequential(*parts).eval(), (rows,), dynamo=True, input_names=["X"], output_names=[output],
                dynamic_shapes=({0: batch},), verbose=False,
            )  # fmt: skip
    except torch.onnx.OnnxExporterError as error:
        raise ValueError(f"to_onnx: torch.onnx has no graph of this network ({error.__cause__}).") from error
    graph = made.model_proto
    if not graph.graph.input[0].type.tensor_type.shape.dim[0].dim_param:
        raise ValueError(
            "to_onnx: this network has a graph for one number of rows only. Let it use X.shape[0], not len(X)."
        )
    for node in graph.graph.node:  # it says where the code of a layer lies on this machine, and quotes it
        node.ClearField("metadata_props")
    facts = {} if schema is None else {"schema": schema.to_dict()}
    facts |= {"classes": np.asarray(model.classes_).tolist()} if output == "probabilities" else {}
    onnx.helper.set_model_props(graph, {name: json.dumps(fact) for name, fact in facts.items()})
    return graph


def _answers(model: Any, owner: str, n_inputs: int, **rows: Any) -> "_Answers":
    """The layers of a model, or of the learner that it holds, and what is done to rows before them."""
    if hasattr(model, "net_") and getattr(model, "_transport", None) is None:
        bounds = None if hasattr(model, "classes_") else amount_bounds(model)
        return _Answers(module_of(model.net_), bounds=bounds, **rows)
    if type(model) in _HOLD:
        held = getattr(model, _HOLD[type(model)])
        if getattr(held, "n_features_in_", 0) > n_inputs:
            raise ValueError(
                f"to_onnx has no graph of the interaction that the learner of this {owner} reads. Fit it with "
                "backend=MarginalsBackend(structure='tree')."
            )
        places = np.eye(len(model.classes_))[np.asarray(getattr(held, "classes_", []), dtype=np.int64)]
        return _answers(held, owner, n_inputs, limits=getattr(model, "row_limits", None), places=places)
    if type(model) is pate.ConstrainedStudent:
        labels, by_group, groups = model.estimates
        n_read = n_inputs + groups[2].shape[1] * by_group
        places = np.eye(len(model.classes_))[np.asarray(labels.classes_, dtype=np.int64)]
        return _Answers(
            _Moved(_answers(labels, owner, n_read, places=places), by_group, groups, model.weights_), **rows
        )
    if type(model) in _LAYERS:
        return _Answers(_LAYERS[type(model)](model, n_inputs), bends=getattr(model, "bends_", None), **rows)
    what = owner if type(model).__name__ == owner else f"the {type(model).__name__} of this {owner}"
    raise ValueError(
        f"to_onnx has no graph of {what}{_WHY.get(type(model).__name__, '')}. It exports networks, PATE's own "
        "students, LogisticRegression, ParityLogisticRegression and SchemaEncoder."
    )


def _linear(weights: Any, bias: Any) -> nn.Module:
    layers: nn.Module = Perceptron([weights], [bias]).as_module()
    return layers


def _with_tanh(student: pate.ParityPenaltyStudent) -> nn.Module:
    pairs = zip(student.coefs_, student.intercepts_, strict=True)
    layers = [layer for weights, bias in pairs for layer in (_linear(weights, bias), nn.Tanh())]
    return nn.Sequential(*layers[:-1])


def _constant(learner: Any, n_inputs: int) -> nn.Module:
    with np.errstate(divide="ignore"):
        shares = np.log(learner.predict_proba(np.zeros((1, n_inputs)))[0])
    return _linear(np.zeros((n_inputs, len(shares))), shares)


class _Moved(nn.Module):
    """Logarithms of what a ConstrainedStudent answers: likely labels and groups, moved by what each answer costs."""

    def __init__(self, labels: "_Answers", by_group: bool, groups: Any, weights: Any) -> None:
        super().__init__()
        *self.limits, of_groups = (torch.as_tensor(np.array(part)) for part in groups)
        self.of_groups = nn.Parameter(of_groups, requires_grad=False)  # the first: its precision is that of the rows
        self.labels, self.by_group, self.weights = labels, by_group, torch.as_tensor(np.array(weights))

    def forward(self, X: Tensor) -> Tensor:
        center, scale = self.limits
        rows = ((X - center) / scale).clamp(-1e6, 1e6)  # standard deviations, as it does
        groups = (rows @ self.of_groups[:-1] + self.of_groups[-1]).softmax(dim=1)
        own = [torch.zeros_like(groups) + one for one in torch.eye(groups.shape[1])]  # each row in each group in turn
        read = [torch.cat([X, one], dim=1) if self.by_group else X for one in own]
        likely = [groups[:, a : a + 1] * self.labels(asked) for a, asked in enumerate(read)]
        scores = sum(part @ (torch.eye(part.shape[1]).double() - self.weights[a]) for a, part in enumerate(likely))
        return _on_simplex(scores + (1 - scores.sum(dim=1, keepdim=True)) / scores.shape[1]).log()


def _on_simplex(rows: Tensor) -> Tensor:
    """The nearest shares to rows that sum to 1: for each class, as many are kept as leave its excess the largest."""
    falling = rows.sort(dim=1, descending=True).values
    excess = [(falling[:, :k].sum(dim=1, keepdim=True) - 1.0) / k for k in range(1, rows.shape[1] + 1)]
    return (rows - torch.cat(excess, dim=1).max(dim=1, keepdim=True).values).clamp_min(0.0)


class _Columns(nn.Module):
    """Encodes cells that a schema has read as ``SchemaEncoder`` does."""

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self.columns: Any = [schema.columns[name] for name in schema.features]

    def forward(self, X: Tensor) -> Tensor:
        blocks = []
        for column, cells in zip(self.columns, X.split(1, dim=1), strict=True):
            absent = cells.isnan()
            if isinstance(column, Category):
                block = (cells == torch.arange(len(column.values), dtype=torch.float64)).double()
            else:
                low, high = torch.tensor(column.ends, dtype=torch.float64)
                block = (2 * cells.clamp(low, high) - low - high) / (high - low)
                block = torch.where(absent, torch.zeros_like(block), block)
            blocks += [block, absent.double()] if column.missing else [block]
        return torch.cat(blocks, dim=1)


class _Answers(nn.Module):
    """Probabilities of the classes, or, within bounds, amounts: of rows that may be cut, get bends, and pass layers."""

    def __init__(
        self, layers: nn.Module, *, limits: Any = None, bends: Any = None, places: Any = None, bounds: Any = None
    ) -> None:
        super().__init__()
        self.layers, self.precision = layers, input_dtype(layers)
        self.limits, self.bends, self.places, self.bounds = limits, bends, places, bounds

    def forward(self, X: Tensor) -> Tensor:
        if self.limits is not None:
            X = X.clamp(*(torch.as_tensor(np.array(limit)) for limit in self.limits))
        if self.bends is not None and len(self.bends.numbers):
            X = torch.cat([X, *self._bent(X)], dim=1)
        scores = self.layers(X.to(self.precision)).double()
        if self.bounds is not None:
            return scores[:, 0].clamp(*self.bounds)
        if scores.shape[1] == 1:
            scores = torch.cat([torch.zeros_like(scores), scores], dim=1)
        found = scores.softmax(dim=1)
        return found if self.places is None else found @ torch.as_tensor(self.places)

    def _bent(self, X: Tensor) -> tuple[Tensor, Tensor]:
        names = ("numbers", "below", "above", "center", "scale", "low", "high")
        numbers, below, above, center, scale, low, high = (torch.as_tensor(getattr(self.bends, name)) for name in names)
        units = ((X[:, numbers] - center) / scale).clamp(-self.bends.farthest, self.bends.farthest)
        return (low - units[:, below]).clamp_min(0.0), (units[:, above] - high).clamp_min(0.0)
