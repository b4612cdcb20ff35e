"""Optimisers and schedules, as calls: what is run beside references, and beside optax itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ROWS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda o: o.sgd(0.1),
    "sgd momentum": lambda o: o.sgd(0.1, momentum=0.9),
    "sgd nesterov": lambda o: o.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda o: o.adam(0.1),
    "adam eps_root": lambda o: o.adam(0.1, b1=0.8, b2=0.95, eps=1e-3, eps_root=1e-4),
    "adamw": lambda o: o.adamw(0.1, weight_decay=0.01),
    "adamw masked": lambda o: o.adamw(0.1, weight_decay=0.5, mask={"w": True, "b": False}),
    "nadam": lambda o: o.nadam(0.1),
    "nadamw": lambda o: o.nadamw(0.1, weight_decay=0.01),
    "rmsprop": lambda o: o.rmsprop(0.1),
    "rmsprop eps": lambda o: o.rmsprop(0.1, eps=0.1, eps_in_sqrt=False, initial_scale=1.0),
    "rmsprop centered": lambda o: o.rmsprop(0.1, centered=True, momentum=0.9, nesterov=True),
    "rmsprop corrected": lambda o: o.rmsprop(0.1, eps=0.01, bias_correction=True),
    "lion": lambda o: o.lion(0.1),
    "adagrad": lambda o: o.adagrad(0.1),
    "schedule": lambda o: o.sgd(o.linear_schedule(0.1, 0.01, 3)),
    "clipped": lambda o: o.chain(o.clip_by_global_norm(0.5), o.clip(0.3), o.scale(-0.1)),
    "injected": lambda o: o.inject_hyperparams(o.adam)(o.linear_schedule(0.1, 0.01, 3), b1=0.8),
}

SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "constant": lambda o: o.constant_schedule(0.3),
    "linear": lambda o: o.linear_schedule(0.5, 0.1, 7, 2),
    "polynomial": lambda o: o.polynomial_schedule(0.5, 0.1, 1.5, 7, 1),
    "exponential": lambda o: o.exponential_decay(0.5, 4, 0.7, 2),
    "staircase": lambda o: o.exponential_decay(0.5, 4, 0.7, staircase=True, end_value=0.2),
    "cosine": lambda o: o.cosine_decay_schedule(0.5, 9, 0.1, 1.5),
    "warm cosine": lambda o: o.warmup_cosine_decay_schedule(0.1, 0.5, 4, 10, 0.05),
    "warm exponential": lambda o: o.warmup_exponential_decay_schedule(0.1, 0.5, 3, 2, 0.8),
    "warm": lambda o: o.warmup_constant_schedule(0.1, 0.5, 3),
    "pieces": lambda o: o.piecewise_constant_schedule(0.5, {3: 0.1, 8: 2.0}),
    "joined": lambda o: o.join_schedules(
        [o.constant_schedule(0.5), o.linear_schedule(0.4, 0.0, 4)], [5]
    ),
}
COUNTS = range(14)


def parameters(dtype: Any = np.float32) -> dict[str, Any]:
    """Return what is optimised."""
    w = np.asarray([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]], dtype)
    return {"w": w, "b": np.asarray([1.0, -0.5], dtype)}


def gradients(step: int, dtype: Any = np.float32) -> dict[str, Any]:
    """Return the gradients of one step."""
    w = np.cos(np.arange(6).reshape(3, 2) * (step + 1)) * 0.7
    return {"w": w.astype(dtype), "b": np.asarray([0.3 * step, -0.2], dtype)}


STEPS = 4
