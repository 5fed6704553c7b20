"""Fitted models as ONNX graphs: linear students, networks, additive terms, and the encoder of a schema."""

import json
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from skfairdp._inputs import amount_bounds
from skfairdp.baselines import ParityLogisticRegression, RandomizedResponseClassifier
from skfairdp.generative import SyntheticDataClassifier
from skfairdp.pate import (
    ConstantStudent,
    FairPATEClassifier,
    NetworkStudent,
    ParityPenaltyStudent,
    PATEClassifier,
    SFPATEClassifier,
    SoftLabelStudent,
)
from skfairdp.schema import SchemaEncoder

#: What answers by a learner that it holds.
_HOLD: dict[Any, str] = {
    PATEClassifier | FairPATEClassifier | SFPATEClassifier: "student_",
    RandomizedResponseClassifier: "fair_estimator_",
    SyntheticDataClassifier: "estimator_",
}


def to_onnx(model: Any) -> Any:
    """Return the ONNX graph of what a fitted model predicts.

    Of networks, PATE's own students, linear models on randomised groups or synthetic rows, searches over these, and
    :class:`~skfairdp.schema.SchemaEncoder`. Without a schema the input ``"X"`` is a matrix of float64. With a schema
    each feature is an input of its own, a matrix of one column: texts for a Category of texts, float64 for all else,
    with NaN for what is missing, 1 and 0 for a Boolean and days since 1970-01-01 for a Date. Texts are compared as the
    schema lists them, and cells are not cleaned. The output is ``"probabilities"`` of the classes that the metadata
    lists under ``"classes"``, ``"amounts"`` of a regressor, or ``"encoded"``.

    Parameters
    ----------
    model : object
        Fitted. Post-processing that looks at the group of a row, tosses coins or counts its answers has no graph.

    Returns
    -------
    onnx.ModelProto
        Its probabilities are those of ``predict_proba`` to 1e-6, and to 1e-9 unless a network computes in float32.

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
    >>> [one.name for one in graph.graph.input]  # doctest: +SKIP
    ['age']
    """
    try:
        import onnx
        import onnxscript  # noqa: F401
    except ImportError:
        raise ImportError("to_onnx needs onnx and onnxscript: pip install skfairdp[export]") from None
    from skfairdp._networks import ExportedColumns, as_onnx

    model = getattr(model, "best_estimator_", model)
    check_is_fitted(model)
    owner, encodes = type(model).__name__, isinstance(model, SchemaEncoder)
    schema = getattr(getattr(model, "encoder_", model), "schema", None)
    texts = None if schema is None else _texts_read(schema)
    n_inputs = encoded = getattr(model, "n_features_in_", 0)
    if schema is not None:
        n_inputs, encoded = len(schema.features), len(SchemaEncoder(schema).get_feature_names_out())
    parts: list[Any] = [] if schema is None else [ExportedColumns(schema)]
    parts += [] if encodes else [_answers(model, owner, encoded)]
    output = "encoded" if encodes else "probabilities" if hasattr(model, "classes_") else "amounts"
    graph = as_onnx(parts, n_inputs, output)
    if texts is not None:
        texts.ir_version, texts.opset_import[0].version = graph.ir_version, graph.opset_import[0].version
        graph = onnx.compose.add_prefix(graph, "model/", rename_outputs=False)
        graph = onnx.compose.merge_models(texts, graph, io_map=[("model/cells", "model/X")])
    if output == "probabilities":
        onnx.helper.set_model_props(graph, {"classes": json.dumps(np.asarray(model.classes_).tolist())})
    return graph


def _answers(model: Any, owner: str, n_inputs: int, **rows: Any) -> Any:
    """The layers of a model, or of the learner that it holds, and what is done to rows before them."""
    from skfairdp._networks import ExportedAnswers, module_of, perceptron

    if hasattr(model, "net_"):
        bounds = None if hasattr(model, "classes_") else amount_bounds(model)
        return ExportedAnswers(module_of(model.net_), bounds=bounds, **rows)
    if (holds := next((name for kind, name in _HOLD.items() if isinstance(model, kind)), None)) is not None:
        held = getattr(model, holds)
        places = np.eye(len(model.classes_))[np.asarray(getattr(held, "classes_", []), dtype=np.int64)]
        return _answers(held, owner, n_inputs, limits=getattr(model, "row_limits", None), places=places)
    if isinstance(model, ConstantStudent | DummyClassifier):
        with np.errstate(divide="ignore"):
            shares = np.log(model.predict_proba(np.zeros((1, n_inputs)))[0])
        return ExportedAnswers(perceptron([np.zeros((n_inputs, len(shares)))], [shares]), **rows)
    if isinstance(model, NetworkStudent):
        return ExportedAnswers(model.network.as_module(), **rows)
    if isinstance(model, SoftLabelStudent):
        return ExportedAnswers(perceptron([model.coef_], [model.intercept_]), bends=model.bends, **rows)
    if isinstance(model, ParityPenaltyStudent):
        return ExportedAnswers(perceptron(model.coefs_, model.intercepts_), bends=model.bends, **rows)
    if isinstance(model, LogisticRegression | ParityLogisticRegression):
        return ExportedAnswers(perceptron([model.coef_.T], [model.intercept_]), **rows)
    what = owner if type(model).__name__ == owner else f"the {type(model).__name__} of this {owner}"
    raise ValueError(
        f"to_onnx has no graph of {what}. It exports networks, PATE's own students but ConstrainedStudent, "
        "LogisticRegression, ParityLogisticRegression and SchemaEncoder."
    )


def _texts_read(schema: Any) -> Any:
    """A graph from one input a column to a matrix of numbers, in which texts are their places in the schema."""
    from onnx import TensorProto, helper

    inputs, nodes, cells = [], [], []
    for place, name in enumerate(schema.features):
        values = getattr(schema.columns[name], "values", ())
        texts = [isinstance(value, str) for value in values]
        if any(texts) and not all(texts):
            raise ValueError(f"to_onnx needs values of one type in column {name!r}. Got {list(values)!r}.")
        kind = TensorProto.STRING if any(texts) else TensorProto.DOUBLE
        inputs.append(helper.make_tensor_value_info(name, kind, ["n_rows", 1]))
        if any(texts):
            found, read = f"model/place_{place}", f"model/cell_{place}"
            places = {"keys_strings": list(values), "values_int64s": range(len(values)), "default_int64": -1}
            nodes.append(helper.make_node("LabelEncoder", [name], [found], domain="ai.onnx.ml", **places))
            nodes.append(helper.make_node("Cast", [found], [read], to=TensorProto.DOUBLE))
        cells.append(read if any(texts) else name)
    nodes.append(helper.make_node("Concat", cells, ["model/cells"], axis=1))
    made = [helper.make_tensor_value_info("model/cells", TensorProto.DOUBLE, ["n_rows", len(cells)])]
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph(nodes, "cells", inputs, made), opset_imports=versions)
