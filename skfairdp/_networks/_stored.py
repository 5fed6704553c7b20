"""Networks as plain values, for formats that run no code when they are read: layers by name, tensors as arrays."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from skfairdp._typing import Array
from skfairdp._utils import Plain, plain, restored

#: Classes from there are known by name; any other one is stored itself, so that a reader has to trust it.
_KNOWN = ("torch.nn.modules.", "torch.optim.", "skfairdp._networks.")
_CALLED = (nn.Module, torch.optim.Optimizer)
#: What every module has of torch, but for which buffers are saved.
_OWN_OF_TORCH = vars(nn.Module()).keys() - {"training", "_non_persistent_buffers_set"}
_HOOKS = {name for name in _OWN_OF_TORCH if name.endswith("_hooks")}


@dataclass(frozen=True)
class StoredType(Plain):
    """A layer or an optimiser, by its name."""

    module: str
    name: str

    def restored(self) -> type:
        kind = getattr(importlib.import_module(self.module), self.name) if self.module.startswith(_KNOWN) else None
        if not (isinstance(kind, type) and issubclass(kind, _CALLED)):
            raise ValueError(f"A stored network names {self.module}.{self.name}, which is no layer and no optimiser.")
        return kind


@dataclass(frozen=True)
class StoredModule(Plain):
    """A module: its class, its attributes, its parameters (and whether they are trained), its buffers, its layers."""

    kind: Any
    attributes: dict[str, Any]
    parameters: dict[str, tuple[Array, bool] | None]
    buffers: dict[str, Array | None]
    layers: dict[str, Any]

    def restored(self) -> nn.Module:
        """The module, on the CPU; no constructor of a layer runs."""
        kind = restored(self.kind)
        if not issubclass(kind, nn.Module) or self.attributes.keys() & _OWN_OF_TORCH:
            raise ValueError(f"A stored network holds {kind.__name__}, which is no layer or has attributes of torch's.")
        module: nn.Module = kind.__new__(kind)
        nn.Module.__init__(module)
        for name, layer in self.layers.items():
            module._modules[name] = restored(layer)
        for name, pair in self.parameters.items():
            module._parameters[name] = None if pair is None else nn.Parameter(torch.as_tensor(pair[0]), pair[1])
        for name, buffer in self.buffers.items():
            module._buffers[name] = None if buffer is None else torch.as_tensor(buffer)
        vars(module).update({name: restored(value) for name, value in self.attributes.items()})
        return module


@plain.register
def _(module: nn.Module) -> Any:
    if any(vars(module)[name] for name in _HOOKS):
        raise ValueError(f"A {type(module).__name__} with hooks, which are functions, is kept by pickles alone.")
    return StoredModule(
        plain(type(module)),
        {name: plain(value) for name, value in vars(module).items() if name not in _OWN_OF_TORCH},
        {
            name: None if p is None else (p.detach().cpu().numpy().copy(), p.requires_grad)
            for name, p in module._parameters.items()
        },
        {name: None if b is None else b.cpu().numpy().copy() for name, b in module._buffers.items()},
        {name: plain(layer) for name, layer in module._modules.items()},
    )


@plain.register
def _(kind: type) -> Any:
    known = issubclass(kind, _CALLED) and kind.__module__.startswith(_KNOWN)
    return StoredType(kind.__module__, kind.__qualname__) if known else kind


class PlainNet:
    """For skorch nets: ``__getstate__`` is plain values. skorch's own, which pickles use, has a pickle inside."""

    def __getstate__(self) -> dict[str, Any]:
        net: Any = self
        usual = type(net)(None).get_params(deep=False)
        given = {name: value for name, value in net.get_params(deep=False).items() if value is not usual.get(name)}
        if net.initialized_:  # the module as it is, and not how it was made
            given = {name: value for name, value in given.items() if not name.startswith("module")}
            given["module"] = net.module_
        spent = {"privacy_": net.privacy_} if hasattr(net, "privacy_") else {}
        return {"settings": {n: plain(value) for n, value in given.items()}, "initialized": net.initialized_, **spent}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        net: Any = self
        settings = {name: restored(value) for name, value in state["settings"].items()}
        net.__init__(**settings)
        if state["initialized"]:
            # what ``initialize`` calls is a layer or an optimiser; a file could name any other trusted class
            called = [settings.get(name, nn.Identity) for name in ("module", "criterion", "optimizer")]
            kinds = [one if isinstance(one, type) else type(one) for one in called]
            if settings.get("callbacks") != "disable" or not all(issubclass(one, _CALLED) for one in kinds):
                raise ValueError(f"A stored network calls something else than layers and optimisers: {kinds}.")
            net.initialize()
        if "privacy_" in state:
            net.privacy_ = state["privacy_"]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _unpickled, (type(self), super().__getstate__())


def _unpickled(kind: Any, state: dict[str, Any]) -> Any:
    net = kind.__new__(kind)
    super(PlainNet, net).__setstate__(state)
    return net
