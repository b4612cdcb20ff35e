"""Closures, classes, generators, side effects and exceptions."""

# ruff: noqa: SIM108
import math
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from capture.cases import M, V, W, X, captured, refused

SCALE = 3.0
COUNT = 0


@captured((W,), (W * 2,))
def nonlocal_counter(w: Any) -> Any:
    n = 0

    def bump(x: Any) -> Any:
        nonlocal n
        n += 1
        return x * n

    return bump(w) + bump(w), n


@captured((W,), (W - 5,))
def nonlocal_traced(w: Any) -> Any:
    total = 0.0

    def add(x: Any) -> None:
        nonlocal total
        if x > 0:
            total += x

    for i in range(12):
        add(w[i])
    return total


@captured((V,), (V - 3,))
def recursion(v: Any) -> Any:
    def power(x: Any, n: int) -> Any:
        if n == 0:
            return np.ones_like(x)
        half = power(x, n // 2)
        return half * half * (x if n % 2 else 1)

    return power(v, 5)


@captured((V,), (V + 2,))
def functions_in_a_list(v: Any) -> Any:
    for f in [np.sin, np.cos, lambda x: x + 1]:
        v = f(v)
    return v


@captured((V,), (V + 2,))
def partials(v: Any) -> Any:
    def scaled(x: Any, k: Any, *, b: Any = 0.0) -> Any:
        return k * x + b if x[0] > 1 else x

    return partial(scaled, k=2.0)(v) + partial(scaled, b=1.0)(v, 3.0)


@captured((V,), (V + 2,))
def reduced(v: Any) -> Any:
    return reduce(lambda a, b: a * 0.5 + b, v)


@captured((V,), (V + 2,))
def globals_and_math(v: Any) -> Any:
    return v * SCALE * math.pi + math.sqrt(2)


@captured((4.0,), (-1.0,))
def math_domain(x: Any) -> Any:
    return math.sqrt(x), math.log10(x * x), math.ceil(x / 3)


@captured((0.5,), (2.0,))
def math_of_traced(x: Any) -> Any:
    return math.sin(x), math.exp(-x), math.sqrt(x), math.floor(x), math.atan2(x, 2)


class Body:
    """Has a place and a speed."""

    def __init__(self, x: Any, v: Any) -> None:
        self.x = x
        self.v = v

    @property
    def energy(self) -> Any:
        """Of motion."""
        return (self.v**2).sum()

    def step(self, dt: Any) -> None:
        """Go on."""
        self.x = self.x + dt * self.v
        self.v = self.v - dt * self.x


@captured((W,), (W - 2,))
def objects_step(w: Any) -> Any:
    b = Body(w, np.zeros(12))
    for _ in range(5):
        b.step(0.1)
    return b.x, b.energy


@captured((W,), (W - 2,))
def objects_step_long(w: Any) -> Any:
    b = Body(w, np.zeros(12))
    for _ in range(20):
        b.step(0.1)
    return b.x, b.energy


@dataclass
class State:
    """Of a filter."""

    mean: Any
    gain: float = 0.5


@captured((W,), (W - 2,))
def dataclass_state(w: Any) -> Any:
    s = State(0.0)
    for i in range(12):
        s.mean = s.mean + s.gain * (w[i] - s.mean)
    return s.mean


@captured((W,), (W - 2,))
def dataclass_rebuilt(w: Any) -> Any:
    s = State(0.0)
    for i in range(12):
        s = State(s.mean + s.gain * (w[i] - s.mean))
    return s.mean


@captured((V,), (V - 2,))
def a_class_in_a_function(v: Any) -> Any:
    class Scale:
        def __init__(self, k: Any) -> None:
            self.k = k

        def __call__(self, x: Any) -> Any:
            if x[0] > 0:
                return x * self.k
            return x

    return Scale(3.0)(v)


@captured((V,), (V - 2,))
def an_import_in_a_function(v: Any) -> Any:
    import math as m
    from math import pi

    return v * m.sqrt(2.0) + pi


@captured((W,), (W - 2,))
def generator_of_rows(w: Any) -> Any:
    def pairs(a: Any) -> Any:
        for i in range(0, len(a), 2):
            yield a[i], a[i + 1]

    s = 0.0
    for a, b in pairs(w):
        s += a * b
    return s


@captured((W,), (W - 2,))
def generator_with_next(w: Any) -> Any:
    def counter() -> Any:
        k = 0
        while True:
            yield k
            k += 1

    g = counter()
    return w[next(g)] + w[next(g)] * next(g)


@captured((V,), (V - 2,))
def try_without_error(v: Any) -> Any:
    try:
        y = v[2] * 2
    except IndexError:
        y = v[0]
    finally:
        z = v[1]
    return y, z


@captured((V,), (V[:1],))
def try_with_error_of_shapes(v: Any) -> Any:
    try:
        return v[2]
    except IndexError:
        return v[0]


@captured((V,), (V[:1],))
def try_else(v: Any) -> Any:
    try:
        k = {5: 2.0}[len(v)]
    except KeyError as error:
        k = float(error.args[0])
    else:
        k = k + 1
    return v * k


@captured((V,), (V - 3,))
def branch_in_try(v: Any) -> Any:
    try:
        if v[0] >= 0:
            y = v * 2
        else:
            y = v
    finally:
        v = v + 1
    return y + v


@captured((W,), (W - 3,))
def loop_in_try(w: Any) -> Any:
    total = 0.0
    try:
        for i in range(12):
            if w[i] > 0:
                total += w[i]
    except ValueError:
        total = -1.0
    return total


@captured((V, X), (V[:3], X))
def shape_errors(v: Any, x: Any) -> Any:
    return x + v


@captured((V,), (W,))
def index_error(v: Any) -> Any:
    return v[7]


@captured((V,), (W,))
def key_error(v: Any) -> Any:
    return v * {12: 1.0}[len(v)]


@captured((V,), (W,))
def zero_division(v: Any) -> Any:
    return v * (1 / (len(v) - 5))


@captured((W,))
def zero_division_in_a_loop(w: Any) -> Any:
    s = 0.0
    for i in range(12):
        s += w[i] * (1 / (i - 7))
    return s


@captured((W,))
def key_error_in_a_loop(w: Any) -> Any:
    table = {k: 2.0 for k in range(10)}
    s = 0.0
    for i in range(12):
        s += w[i] * table[i]
    return s


@captured((W,))
def index_error_in_a_loop(w: Any) -> Any:
    s = 0.0
    for i in range(20):
        s += w[i]
    return s


@captured((V,), (W,))
def raised_by_shape(v: Any) -> Any:
    if v.shape[0] != 5:
        raise ValueError(f"five are wanted, not {v.shape[0]}")
    return v


@captured((V,), (W,))
def asserted_shape(v: Any) -> Any:
    assert len(v) == 5, "five"
    return v


@captured((V,), (V * 2,))
def deleted(v: Any) -> Any:
    t = v * 2
    u = t + 1
    del t
    d = {"a": u, "b": v}
    del d["b"]
    return d


@captured((V,), (V * 2,))
def strings_and_formats(v: Any) -> Any:
    name = f"{len(v)}-{v.dtype}"
    return {name: v, f"{v.ndim}": v[0]}


@captured((V,), (V * 2,))
def with_errstate(v: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        y = v / v[0]
    return y


@captured((V,), (V - 2,))
def early_return_in_with(v: Any) -> Any:
    with np.errstate(all="ignore"):
        if v[0] < 0:
            return v
    return v + 1


@captured((W,), (W - 2,))
def helper_with_loop_and_default(w: Any) -> Any:
    def smooth(a: Any, n: int = 10) -> Any:
        for _ in range(n):
            a = np.concatenate([a[:1], 0.5 * (a[:-1] + a[1:])])
        return a

    return smooth(w) + smooth(w, 3)


@captured((M,), (M * 2,))
def callbacks(m: Any) -> Any:
    def integrate(f: Any, y: Any, n: int) -> Any:
        h = 1.0 / n
        for k in range(n):
            k1 = f(k * h, y)
            k2 = f(k * h + h / 2, y + h / 2 * k1)
            y = y + h * k2
        return y

    return integrate(lambda t, y: -y + t, m[0], 20)


@captured((V,), (V + 1,))
def conditional_functions(v: Any) -> Any:
    if v.ndim == 1:
        f = np.sum
    else:
        f = np.max
    return f(v)


@captured((V,), (V + 1,))
def none_defaults(v: Any, w: Any = None) -> Any:
    if w is None:
        w = np.ones_like(v)
    return v + w


@captured((V,), (V - 1,))
def raises_by_value(v: Any) -> Any:
    if v[0] < 0:
        raise ValueError("negative")
    return v


@refused("an attribute is changed in a branch or loop that only the run decides", (W,))
def attribute_by_value(w: Any) -> Any:
    s = State(0.0)
    if w[0] > 0:
        s.mean = w[0]
    return s.mean


@refused("'COUNT' is defined outside of the traced function and assigned in it", (V,))
def changes_a_global(v: Any) -> Any:
    global COUNT
    COUNT += 1  # pyright: ignore[reportConstantRedefinition]
    return v


@captured((W, 5), (W, 11), (W, 0))
def ranges_backwards(w: Any, n: Any) -> Any:
    out = np.zeros(12)
    for i in reversed(range(3, n)):
        out[i] = w[n - i] + out.sum()
    for i in reversed(range(0, n, 2)):
        out[i] -= 2 * i
    return out, len(range(1, n, 3))


@captured((W, "sum"), (W, "rms"), (W, "sum"), (W, "none"), (W, np.max), (W, np.min))
def chosen_by_a_text_or_a_function(w: Any, how: Any) -> Any:
    table = {"sum": np.sum, "rms": lambda a: np.sqrt(np.mean(a**2))}
    if callable(how):
        return how(w)
    if how not in table:
        raise ValueError(f"unknown reduction {how!r}; choose from {sorted(table)}")
    return table[how](w)
