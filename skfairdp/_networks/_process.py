"""What torch has once for a whole process: its generator and threads, ours for a while, and how precisely it computes.

Private rows are never computed in less than single precision. The proof of :mod:`._wide_sums` needs that a row is
computed alike whatever the others of its batch hold. Kernels for narrower numbers choose their way by the whole batch:
with bfloat16 weights one row has changed the gradients of others.
"""

import contextlib
import math
import operator
import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from skfairdp._utils import BLAS, GENERATORS

#: Steps of fewer products than this are over before threads have met: some five milliseconds of one core.
_SMALL = 2**26


@contextlib.contextmanager
def own_generator(seed: int | None = None, device: Any = "cpu") -> Iterator[None]:
    """Seed torch for a while, and give its generators back as they were. Threads of a process have them in common: two
    trainings at once would read what the other left there, so they take turns."""
    device = torch.device(device)
    with GENERATORS[0], torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        if seed is not None:
            torch.default_generator.manual_seed(seed)
            if device.type == "cuda":
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(seed)
        yield


def products_of_step(n_rows: float, module: nn.Module) -> float:
    """How many products a step makes on so many rows; no number for convolutions, whose weights count many times."""
    if any("conv" in type(part).__name__.lower() for part in module.modules()):
        return math.inf
    return n_rows * sum(p.numel() for p in module.parameters())


def seconds_of_steps(n_steps: int, n_products: float, *, row_by_row: bool = False) -> float:
    """About how long so many steps take one core; four times as long where the gradient of every row is measured."""
    return n_steps * (5e-4 + 5e-10 * min(n_products, 2**27)) * (4 if row_by_row else 1)


@contextlib.contextmanager
def threads_of_steps(n_products: float) -> Iterator[None]:
    """One thread where steps are small; torch has its own number again behind it, also after an error.
    Threads that wait for each other cost more than they bring there, and many times more on a busy machine."""
    if n_products >= _SMALL:
        yield
        return
    given = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with BLAS.limit(limits=1):
            yield
    finally:
        torch.set_num_threads(given)


_WIDE = (torch.float32, torch.float64)
#: Of torch.backends. Those of cuDNN are reduced unless somebody says otherwise, and matter on CUDA alone.
_SETTINGS = ("", "cuda.matmul.", "cudnn.", "mkldnn.", "mkldnn.matmul.", "mkldnn.conv.", "mkldnn.rnn.")
_OF_CUDNN = ("cudnn.conv.", "cudnn.rnn.")
_OF_ONEDNN = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")


def reduced_precision(device: Any = "cpu") -> str | None:
    """Name the setting by which torch computes single precision in less, and how to undo it; None for none."""
    kind = torch.device(device).type
    if any(torch.is_autocast_enabled(one) for one in {"cpu", kind}):
        return "torch.autocast is on. Call fit outside of it."
    if torch.get_default_dtype() not in _WIDE:
        return f"torch's default dtype is {torch.get_default_dtype()}. Call torch.set_default_dtype(torch.float32)."
    for name in _OF_ONEDNN:
        if os.environ.get(name, "STRICT").upper() not in ("", "STRICT"):
            return f"the environment variable {name} is set. Start Python without it."
    with contextlib.suppress(RuntimeError):  # the backends have been told different things: they are asked below
        if torch.get_float32_matmul_precision() != "highest":
            return "torch.set_float32_matmul_precision is not 'highest'. Set it to 'highest'."
    for path in _SETTINGS + (_OF_CUDNN if kind == "cuda" else ()):
        if _setting(f"{path}fp32_precision") in ("tf32", "bf16"):
            return f"torch.backends.{path}fp32_precision is reduced. Set it to 'ieee'."
    for path in ("cuda.matmul.", "cudnn.") if kind == "cuda" else ("cuda.matmul.",):
        if _setting(f"{path}allow_tf32") is True:
            return f"torch.backends.{path}allow_tf32 is on. Set it to False."
    return None


def check_precision(owner: str, device: Any = "cpu") -> None:
    """Refuse settings of torch under which rows are computed in less than single precision."""
    found = reduced_precision(device)
    if found is not None:
        raise ValueError(
            f"{owner} needs single precision: in less, one row changes how the others of its batch are computed, which "
            f"no noise covers. Here {found}"
        )


def resolve_device(device: str, *, owner: str) -> torch.device:
    """Return the torch device, or say before any work what is missing, or too coarse for private rows."""
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(
            f"The 'device' parameter of {owner} must name a torch device such as 'cpu' or 'cuda'. "
            f"Got {device!r} instead."
        ) from None
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"The 'device' parameter of {owner} is {device!r}, but torch finds no CUDA device here. Use device='cpu'."
        )
    check_precision(owner, resolved)
    return resolved


def check_module_precision(module: nn.Module, owner: str) -> None:
    """Refuse a module with parameters or buffers of less than single precision, complex or quantized."""
    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        if _is_narrow(value) or value.is_complex():
            raise ValueError(
                f"'{name}' of the module of {owner} is of {value.dtype}. Networks of private rows need "
                "float32 or float64: in less, one row changes how the others of its batch are computed, which no noise "
                "covers. Convert it with module.float()."
            )


class PrecisionWatch(TorchDispatchMode):
    """Refuses, on leaving, what computed in less than single precision while it was entered, or set torch to do so."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.found: str | None = None
        self.is_used = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result, self.is_used = func(*args, **(kwargs or {})), True
        if self.found is None:
            narrow = (x for x in tree_leaves((args, result)) if isinstance(x, Tensor) and _is_narrow(x))
            is_quantized = func.namespace == "quantized"
            self.found = str(func) if is_quantized else next((str(x.dtype) for x in narrow), None)
        return result

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        found = self.found or (reduced_precision() if self.is_used else None)
        if found is not None:
            raise ValueError(
                f"{self.what} computes in less than single precision ({found.rstrip('.')}). There one row changes how "
                "the others of its batch are computed, which no noise covers. Take out conversions to bfloat16 or "
                "float16, torch.autocast and quantized layers."
            ) from None


def _is_narrow(value: Tensor) -> bool:
    if value.dtype == torch.complex32 or value.is_quantized:
        return True
    return value.dtype.is_floating_point and value.dtype not in _WIDE


def _setting(path: str) -> Any:
    """A setting of torch.backends; None where this torch has none, or answers by an error."""
    with contextlib.suppress(AttributeError, RuntimeError):
        return operator.attrgetter(path)(torch.backends)
    return None
