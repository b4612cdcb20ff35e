"""Optimizers as plain functions of trees of arrays: `stepwell.optim`, with the names of optax.

``optimizer = sw.optim.adam(1e-3)``; ``state = optimizer.init(params)``; at each step ``updates,
state = optimizer.update(gradients, state, params)`` and ``params = sw.optim.apply_updates(params,
updates)``. They work in a function given to `sw.jit`, where a whole step is one program, and
outside. By default state has the dtype of the parameters; steps are counted in an int32.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from stepwell.optim.optimizers import (
    adagrad,
    adam,
    adamw,
    apply_updates,
    lion,
    nadam,
    nadamw,
    rmsprop,
    sgd,
)
from stepwell.optim.scaling import (
    scale_by_adam,
    scale_by_lion,
    scale_by_rms,
    scale_by_rss,
    scale_by_stddev,
    trace,
)
from stepwell.optim.schedules import (
    constant_schedule,
    cosine_decay_schedule,
    exponential_decay,
    join_schedules,
    linear_schedule,
    piecewise_constant_schedule,
    polynomial_schedule,
    warmup_constant_schedule,
    warmup_cosine_decay_schedule,
    warmup_exponential_decay_schedule,
)
from stepwell.optim.states import (
    EmptyState,
    GradientTransformation,
    InjectHyperparamsState,
    MaskedNode,
    MaskedState,
    ScaleByAdamState,
    ScaleByLionState,
    ScaleByRmsState,
    ScaleByRmsWithCountState,
    ScaleByRssState,
    ScaleByRStdDevState,
    ScaleByRStdDevWithCountState,
    ScaleByScheduleState,
    TraceState,
)
from stepwell.optim.transformations import (
    add_decayed_weights,
    chain,
    clip,
    clip_by_global_norm,
    global_norm,
    identity,
    scale,
    scale_by_learning_rate,
    scale_by_schedule,
    set_to_zero,
    stateless,
)
from stepwell.optim.wrappers import inject_hyperparams, masked

__all__ = [
    "EmptyState",
    "GradientTransformation",
    "InjectHyperparamsState",
    "MaskedNode",
    "MaskedState",
    "ScaleByAdamState",
    "ScaleByLionState",
    "ScaleByRStdDevState",
    "ScaleByRStdDevWithCountState",
    "ScaleByRmsState",
    "ScaleByRmsWithCountState",
    "ScaleByRssState",
    "ScaleByScheduleState",
    "TraceState",
    "adagrad",
    "adam",
    "adamw",
    "add_decayed_weights",
    "apply_updates",
    "chain",
    "clip",
    "clip_by_global_norm",
    "constant_schedule",
    "cosine_decay_schedule",
    "exponential_decay",
    "global_norm",
    "identity",
    "inject_hyperparams",
    "join_schedules",
    "linear_schedule",
    "lion",
    "masked",
    "nadam",
    "nadamw",
    "piecewise_constant_schedule",
    "polynomial_schedule",
    "rmsprop",
    "scale",
    "scale_by_adam",
    "scale_by_learning_rate",
    "scale_by_lion",
    "scale_by_rms",
    "scale_by_rss",
    "scale_by_schedule",
    "scale_by_stddev",
    "set_to_zero",
    "sgd",
    "stateless",
    "trace",
    "warmup_constant_schedule",
    "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule",
]


def __dir__() -> list[str]:
    """List the public names only."""
    return __all__


def __getattr__(name: str) -> Any:
    names = import_module("stepwell.frontend.torch_names")
    hint = "" if name.startswith("__") else names.nearest(name, __all__)
    raise AttributeError(f"module 'stepwell.optim' has no attribute '{name}'{hint}")
