"""Network classifiers whose settings of the net and of the parity part tests give side by side."""

from typing import Any

from skorch import NeuralNetClassifier

from skfairdp import FairClippingClassifier, FairDPSGDClassifier
from skfairdp.gradient import PublicPenalty, SignedLoss, cnn, mlp
from skfairdp.papers import DPSGDF, GlobalAdapt, Reweighting

__all__ = ["clipping", "dpsgd", "net_of"]

NET = ("lr", "batch_size", "max_epochs", "device", "optimizer", "optimizer__momentum", "optimizer__average_last")
PARITY = {
    "public_penalty": (PublicPenalty, {"temperature": "temperature", "max_type": "max_type", "apply_to": "apply_to",
                                       "public_batch_size": "batch_size"}),
    "signed_loss": (SignedLoss, {"dual_steps": "dual_steps", "dual_step": "dual_step",
                                 "budget_share": "budget_share", "constraints": "constraints"}),
}  # fmt: skip
METHODS = {"reweight": Reweighting, "dpsgd_f": DPSGDF, "global_adapt": GlobalAdapt}
OF_METHODS = ("max_ratio", "quantile", "start")


def net_of(settings: dict[str, Any]) -> Any:
    """Take the settings of the net out of a dict: ``module`` or the sizes of the built-in ones, ``lr`` and so on."""
    training = {name: settings.pop(name) for name in NET if name in settings}
    module, hidden = settings.pop("module", "mlp"), settings.pop("hidden", (64,))
    image_shape = settings.pop("image_shape", None)
    if module == "mlp":
        return mlp(hidden, **training)
    if module == "cnn":
        return cnn(image_shape, **training)
    if not callable(module):
        return module  # what is no network is to be refused
    unset = {"lr": None, "batch_size": None, "max_epochs": None, "optimizer": None}
    return NeuralNetClassifier(module, **{**unset, **training})


def dpsgd(kind: Any = FairDPSGDClassifier, **settings: Any) -> Any:
    """A FairDPSGDClassifier; ``parity`` is "public_penalty" or "signed_loss", its settings beside it."""
    net = net_of(settings)
    parity = settings.pop("parity", "public_penalty")
    given = {}
    for name, (_, names) in PARITY.items():
        own = {names[key]: settings.pop(key) for key in names if key in settings}
        given[name] = own
    part = PARITY[parity][0](**given[parity]) if parity in PARITY else parity
    return kind(net=net, parity=part, **settings)


def clipping(kind: Any = FairClippingClassifier, **settings: Any) -> Any:
    """A FairClippingClassifier; ``method`` is a name, the settings of all methods beside it."""
    net = net_of(settings)
    own = {name: settings.pop(name) for name in OF_METHODS if name in settings}
    method = settings.pop("method", "reweight")
    if method in METHODS:
        method = METHODS[method]()
        method.set_params(**{name: value for name, value in own.items() if name in method.get_params()})
    return kind(net=net, method=method, **settings)
