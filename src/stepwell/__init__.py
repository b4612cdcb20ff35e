"""Stepwell: a tensor compiler whose every step is text one can read, test and extend."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stepwell.core.deferred_methods import deferred_methods
from stepwell.core.version import VERSION

if TYPE_CHECKING:
    from stepwell import optim
    from stepwell.api.compiled import Compiled, compile, load
    from stepwell.core.diagnostics import CompileError
    from stepwell.frontend import debug, lax, nn, random, tree
    from stepwell.frontend.callbacks import callback
    from stepwell.frontend.devices import device_get, device_put, devices
    from stepwell.frontend.disabling import disable_jit
    from stepwell.frontend.errors import TraceError
    from stepwell.frontend.evaluating import eval_shape
    from stepwell.frontend.foreign import Dialect, op
    from stepwell.frontend.freezing import freeze
    from stepwell.frontend.graphs import Graph
    from stepwell.frontend.jit import jit
    from stepwell.frontend.specs import Dim, ShapeDtypeStruct
    from stepwell.frontend.state.variables import Variable
    from stepwell.frontend.transformations.batching import vmap
    from stepwell.frontend.transformations.checking import check_grads
    from stepwell.frontend.transformations.checkpoint import (
        checkpoint,
        checkpoint_name,
        checkpoint_policies,
        remat,
    )
    from stepwell.frontend.transformations.custom import custom_jvp, custom_vjp, stop_gradient
    from stepwell.frontend.transformations.gradients import grad, value_and_grad
    from stepwell.frontend.transformations.jacobians import hessian, jacfwd, jacobian, jacrev
    from stepwell.frontend.transformations.products import hvp, jvp, linearize, vjp
    from stepwell.frontend.transformations.zero import float0
    from stepwell.runtime.device_arrays import DeviceArray

__version__ = VERSION

_PUBLIC = {
    "CompileError": "stepwell.core.diagnostics",
    "Compiled": "stepwell.api.compiled",
    "DeviceArray": "stepwell.runtime.device_arrays",
    "Dialect": "stepwell.frontend.foreign",
    "Graph": "stepwell.frontend.graphs",
    "Dim": "stepwell.frontend.specs",
    "ShapeDtypeStruct": "stepwell.frontend.specs",
    "TraceError": "stepwell.frontend.errors",
    "Variable": "stepwell.frontend.state.variables",
    "callback": "stepwell.frontend.callbacks",
    "eval_shape": "stepwell.frontend.evaluating",
    "compile": "stepwell.api.compiled",
    "device_get": "stepwell.frontend.devices",
    "device_put": "stepwell.frontend.devices",
    "devices": "stepwell.frontend.devices",
    "disable_jit": "stepwell.frontend.disabling",
    "freeze": "stepwell.frontend.freezing",
    "jit": "stepwell.frontend.jit",
    "load": "stepwell.api.compiled",
    "op": "stepwell.frontend.foreign",
    "check_grads": "stepwell.frontend.transformations.checking",
    "checkpoint": "stepwell.frontend.transformations.checkpoint",
    "checkpoint_name": "stepwell.frontend.transformations.checkpoint",
    "checkpoint_policies": "stepwell.frontend.transformations.checkpoint",
    "custom_jvp": "stepwell.frontend.transformations.custom",
    "custom_vjp": "stepwell.frontend.transformations.custom",
    "float0": "stepwell.frontend.transformations.zero",
    "grad": "stepwell.frontend.transformations.gradients",
    "hessian": "stepwell.frontend.transformations.jacobians",
    "hvp": "stepwell.frontend.transformations.products",
    "jacfwd": "stepwell.frontend.transformations.jacobians",
    "jacobian": "stepwell.frontend.transformations.jacobians",
    "jacrev": "stepwell.frontend.transformations.jacobians",
    "jvp": "stepwell.frontend.transformations.products",
    "linearize": "stepwell.frontend.transformations.products",
    "remat": "stepwell.frontend.transformations.checkpoint",
    "stop_gradient": "stepwell.frontend.transformations.custom",
    "value_and_grad": "stepwell.frontend.transformations.gradients",
    "vjp": "stepwell.frontend.transformations.products",
    "vmap": "stepwell.frontend.transformations.batching",
}
"""Public names and where they are defined; each is imported when it is first asked for."""

_MODULES = {
    "tree": "stepwell.frontend.tree",
    "debug": "stepwell.frontend.debug",
    "lax": "stepwell.frontend.lax",
    "nn": "stepwell.frontend.nn",
    "numpy": "stepwell.numpy",
    "optim": "stepwell.optim",
    "random": "stepwell.frontend.random",
}
"""Public modules, imported when they are first asked for."""

__all__ = [
    "CompileError",
    "Compiled",
    "DeviceArray",
    "Dialect",
    "Dim",
    "Graph",
    "ShapeDtypeStruct",
    "TraceError",
    "Variable",
    "callback",
    "check_grads",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "compile",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "eval_shape",
    "float0",
    "freeze",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linearize",
    "load",
    "nn",
    "op",
    "optim",
    "random",
    "remat",
    "stop_gradient",
    "tree",
    "value_and_grad",
    "vjp",
    "vmap",
]


def __getattr__(name: str) -> Any:
    home = _MODULES.get(name) or _PUBLIC.get(name)
    if home is None:
        raise AttributeError(f"module 'stepwell' has no attribute '{name}'")
    with deferred_methods():
        module = import_module(home)
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, *_MODULES, "__version__"])
