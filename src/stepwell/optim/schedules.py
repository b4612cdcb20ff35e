"""Schedules: functions from the number of steps done to a number such as a learning rate.

A Python number gives a Python number; an int32 array, inside and outside of `sw.jit`, gives a
float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stepwell.optim.numbers import reals
from stepwell.optim.states import Schedule


def constant_schedule(value: Any) -> Schedule:
    """Return a schedule that is constantly ``value``.

    source : `optax.constant_schedule`

    >>> import stepwell as sw
    >>> sw.optim.constant_schedule(0.1)(1000)
    0.1
    """
    return lambda count: value


def polynomial_schedule(
    init_value: Any,
    end_value: Any,
    power: Any,
    transition_steps: int,
    transition_begin: int = 0,
) -> Schedule:
    """Return a schedule between two values along a power of the remaining fraction of steps.

    init_value, end_value : the value until ``transition_begin``, and after the transition
    power : the exponent of the remaining fraction
    transition_steps : the length of the transition; at 0 or less ``init_value`` is constant
    source : `optax.polynomial_schedule`

    >>> import stepwell as sw
    >>> [sw.optim.polynomial_schedule(1.0, 0.0, 2, 4)(n) for n in (0, 1, 2, 4, 9)]
    [1.0, 0.5625, 0.25, 0.0, 0.0]
    """
    if transition_steps <= 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count: Any) -> Any:
        done = _within(reals(count) - begin, transition_steps)
        left = 1 - done / transition_steps
        return (init_value - end_value) * left**power + end_value

    return schedule


def _within(count: Any, most: int) -> Any:
    """Clamp a count to 0 .. ``most``."""
    if isinstance(count, float):
        return min(max(count, 0.0), float(most))
    return np.minimum(np.maximum(count, 0), most)


def linear_schedule(
    init_value: Any, end_value: Any, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """Return a schedule that interpolates linearly between two values.

    init_value, end_value : the values until ``transition_begin``, and ``transition_steps`` later
    source : `optax.linear_schedule`

    >>> import stepwell as sw
    >>> [sw.optim.linear_schedule(0.0, 1.0, 4)(n) for n in (0, 1, 2, 4, 9)]
    [0.0, 0.25, 0.5, 1.0, 1.0]
    """
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def piecewise_constant_schedule(
    init_value: Any, boundaries_and_scales: Mapping[int, Any] | None = None
) -> Schedule:
    """Return a schedule that is multiplied by a scale at each of some steps.

    init_value : the value before the first of them
    boundaries_and_scales : the scales by step: each applies from its step on
    raises ValueError : a scale is negative
    source : `optax.piecewise_constant_schedule`

    >>> import stepwell as sw
    >>> drops = sw.optim.piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.1})
    >>> drops(9), drops(10), drops(20)
    (1.0, 0.5, 0.05)
    """
    steps = sorted((boundaries_and_scales or {}).items())
    if any(scale < 0 for _, scale in steps):
        raise ValueError(f"scales are not negative, got {dict(steps)}")

    def schedule(count: Any) -> Any:
        value = init_value
        for boundary, scale in steps:
            value = _chosen(count, boundary, value, value * scale)
        return value

    return schedule


def _chosen(count: Any, boundary: int, before: Any, after: Any) -> Any:
    """Return ``before`` until the step ``boundary``, and then ``after``; arrays give float32."""
    if isinstance(count, int | float) and not isinstance(count, np.generic):
        return before if count < boundary else after
    found = np.where(count < boundary, _single(before, count), _single(after, count))
    return found


def _single(value: Any, count: Any) -> Any:
    """Return a Python number in the dtype of schedules for such a count."""
    dtype = reals(count).dtype
    return np.asarray(value, dtype) if isinstance(value, int | float) else value


def exponential_decay(
    init_value: Any,
    transition_steps: int,
    decay_rate: Any,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Any = None,
) -> Schedule:
    """Return a schedule that is multiplied by ``decay_rate`` in each ``transition_steps`` steps.

    init_value : the value until ``transition_begin``; it is constant if ``transition_steps`` is 0
        or less, or ``decay_rate`` is 0
    staircase : decay in one jump at the end of the transition steps, instead of continuously
    end_value : a lower bound if the rate is below 1, else an upper bound
    source : `optax.exponential_decay`

    >>> import stepwell as sw
    >>> halved = sw.optim.exponential_decay(1.0, 10, 0.5, staircase=True, end_value=0.2)
    >>> halved(9), halved(10), halved(25), halved(99)
    (1.0, 0.5, 0.25, 0.2)
    """
    if transition_steps <= 0 or (isinstance(decay_rate, int | float) and decay_rate == 0):
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count: Any) -> Any:
        done = reals(count) - begin
        power = done / transition_steps
        if staircase:
            power = float(math.floor(power)) if isinstance(power, float) else np.floor(power)
        value = _chosen(done, 0, init_value, init_value * decay_rate**power)
        if end_value is None:
            return value
        low = decay_rate < 1
        if isinstance(value, int | float):
            return max(value, end_value) if low else min(value, end_value)
        return np.maximum(value, end_value) if low else np.minimum(value, end_value)

    return schedule


def cosine_decay_schedule(
    init_value: Any, decay_steps: int, alpha: Any = 0.0, exponent: Any = 1.0
) -> Schedule:
    """Return a schedule that decays along half a period of a cosine.

    init_value : the value at the first step
    decay_steps : the length of the decay, to ``alpha * init_value``, which is constant from then on
    exponent : of the cosine, scaled to 0 .. 1
    raises ValueError : ``decay_steps`` is not positive
    source : `optax.cosine_decay_schedule`, Loshchilov and Hutter 2016, `SGDR`

    >>> import stepwell as sw
    >>> [round(sw.optim.cosine_decay_schedule(1.0, 4)(n), 6) for n in (0, 1, 2, 4, 9)]
    [1.0, 0.853553, 0.5, 0.0, 0.0]
    """
    if decay_steps <= 0:
        raise ValueError(f"decay_steps is positive, got {decay_steps}")

    def schedule(count: Any) -> Any:
        angle = _within(reals(count), decay_steps) / decay_steps * math.pi
        cosine = math.cos(angle) if isinstance(angle, float) else np.cos(angle)
        return init_value * ((1 - alpha) * (0.5 * (1 + cosine)) ** exponent + alpha)

    return schedule


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Return consecutive schedules as one; each counts steps from its own beginning.

    boundaries : the steps at which all but the first begin
    raises ValueError : the number of boundaries is not the number of schedules minus one
    source : `optax.join_schedules`

    >>> import stepwell as sw
    >>> up = sw.optim.linear_schedule(0.0, 1.0, 2)
    >>> both = sw.optim.join_schedules([up, sw.optim.constant_schedule(1.0)], [2])
    >>> [both(n) for n in range(4)]
    [0.0, 0.5, 1.0, 1.0]
    """
    if len(boundaries) != len(schedules) - 1:
        raise ValueError(f"{len(schedules)} schedules have {len(boundaries)} boundaries")

    def schedule(count: Any) -> Any:
        value = schedules[0](count)
        for boundary, following in zip(boundaries, schedules[1:], strict=True):
            value = _chosen(count, boundary, value, following(count - boundary))
        return value

    return schedule


def warmup_constant_schedule(init_value: Any, peak_value: Any, warmup_steps: int) -> Schedule:
    """Return a schedule that rises linearly, and is then constant.

    init_value, peak_value : the values at the first step, and after ``warmup_steps``
    source : `optax.warmup_constant_schedule`

    >>> import stepwell as sw
    >>> [sw.optim.warmup_constant_schedule(0.0, 1.0, 2)(n) for n in (0, 1, 2, 9)]
    [0.0, 0.5, 1.0, 1.0]
    """
    return linear_schedule(init_value, peak_value, warmup_steps)


def warmup_cosine_decay_schedule(
    init_value: Any,
    peak_value: Any,
    warmup_steps: int,
    decay_steps: int,
    end_value: Any = 0.0,
    exponent: Any = 1.0,
) -> Schedule:
    """Return a schedule that rises linearly and then decays along a cosine.

    init_value, peak_value : the values at the first step, and after ``warmup_steps``
    decay_steps : the steps of both together; then it is ``end_value``
    exponent : of the cosine, scaled to 0 .. 1
    raises ValueError : there are no steps for the decay
    source : `optax.warmup_cosine_decay_schedule`

    >>> import stepwell as sw
    >>> rate = sw.optim.warmup_cosine_decay_schedule(0.0, 1.0, 2, 6)
    >>> [round(rate(n), 6) for n in (0, 1, 2, 4, 6, 9)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """
    alpha = (
        0.0 if isinstance(peak_value, int | float) and not peak_value else end_value / peak_value
    )
    up = linear_schedule(init_value, peak_value, warmup_steps)
    down = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)
    return join_schedules([up, down], [warmup_steps])


def warmup_exponential_decay_schedule(
    init_value: Any,
    peak_value: Any,
    warmup_steps: int,
    transition_steps: int,
    decay_rate: Any,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Any = None,
) -> Schedule:
    """Return a schedule that rises linearly and then decays as `exponential_decay`.

    init_value, peak_value : the values at the first step, and after ``warmup_steps``
    transition_steps, decay_rate, transition_begin, staircase, end_value : as in `exponential_decay`
    source : `optax.warmup_exponential_decay_schedule`

    >>> import stepwell as sw
    >>> rate = sw.optim.warmup_exponential_decay_schedule(0.0, 1.0, 2, 1, 0.5)
    >>> [rate(n) for n in range(5)]
    [0.0, 0.5, 1.0, 0.5, 0.25]
    """
    up = linear_schedule(init_value, peak_value, warmup_steps)
    down = exponential_decay(
        peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value
    )
    return join_schedules([up, down], [warmup_steps])
