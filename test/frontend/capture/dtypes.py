"""Dtypes: numbers, integers, booleans, and what becomes of them."""

# ruff: noqa: SIM108
from typing import Any

import numpy as np

from capture.cases import F, I, V, W, X, captured


@captured((V,), (V * 2,))
def zeros_are_float64(v: Any) -> Any:
    out = np.zeros(len(v))
    out[0] = 1
    return out


@captured((I, np.int32(3)), (I, np.int32(-2)))
def integer_division(a: Any, b: Any) -> Any:
    return a / b, a // b, a % b, -a // b, divmod(a, b)


@captured((F,), (F * 2,))
def float32_stays(f: Any) -> Any:
    s = 0.0
    for i in range(len(f)):
        s += f[i] * 0.5
    return s, f * 2, f.sum(), f.mean(), f + np.float64(1)


@captured((I,), (I * 3,))
def means_of_ints(a: Any) -> Any:
    return a.mean(), a.sum(), a.max(), a.std(), np.cumsum(a), a.prod()


@captured((I.astype(np.int8), 3), (I.astype(np.int8) * 5, 120))
def small_ints_wrap(a: Any, b: Any) -> Any:
    return a + a * a, a + b


@captured((I.astype(np.uint8),), (I.astype(np.uint8) + 200,))
def unsigned(a: Any) -> Any:
    return a - 5, a.sum(), a / 2, -a, a << 1, ~a


@captured((W,), (W - 4,))
def booleans(w: Any) -> Any:
    m = w > 0
    return m.sum(), m.mean(), m * 2, m & (w < 4), ~m, np.where(m, 1, 2), m.astype(int).cumsum()


@captured((W,), (W * 1.5,))
def casts(w: Any) -> Any:
    return w.astype(int), w.astype(np.float32), int(w[2]), float(w[3]), bool(w[0]), w.astype(bool)


@captured((2, 0.5), (3, 1.5))
def weak_scalars(n: Any, a: Any) -> Any:
    return n + a, n * 2, n / 2, n // 2, n**2, a**n, -n, abs(-a)


@captured((F, 2.0), (F, 3))
def weak_with_float32(f: Any, a: Any) -> Any:
    return f * a, f + 1, f > a, np.maximum(f, a), np.where(f > 0, f, a)


@captured((I, F), (I, F * 2))
def mixed(a: Any, f: Any) -> Any:
    return a + f, a.astype(np.int32) * f, a.astype(np.int16) + f, (a > 2) + f


@captured((W,), (W / 3,))
def stores_convert(w: Any) -> Any:
    n = np.zeros(3, dtype=np.int64)
    n[0] = w[1] * 1.7
    n[1] = 2.9
    b = np.zeros(3, dtype=bool)
    b[1] = w[2]
    return n, b


@captured((I,), (I - 3,))
def ints_in_branches(a: Any) -> Any:
    if a[0] > 2:
        r = 1.0
    else:
        r = 0.5
    return r * a


@captured((np.array(2.5), V), (np.array(-1.0), V))
def zero_dimensional(s: Any, v: Any) -> Any:
    return s * v, s + 1, s.ndim, s.shape


@captured((X,), (X * 2,))
def scalars_of_arrays(x: Any) -> Any:
    a = x[0, 1]
    return a + 1, a.dtype == np.float64, np.sqrt(a), a * np.float32(2), round(a), x.max() - a


@captured((W,), (W * 10,))
def rounding(w: Any) -> Any:
    return (
        np.round(w),
        np.floor(w),
        np.round(w / 3, 2),
        np.rint(w / 2),
        np.trunc(w),
        round(w[2] / 3, 1),
    )


@captured((I, 3), (I, 1))
def shifts_and_bits(a: Any, k: Any) -> Any:
    return a << k, a >> 1, a & 6, a | k, a ^ 5


@captured((7, 3), (-7, 3), (7, -3))
def python_integer_rules(a: Any, b: Any) -> Any:
    return a // b, a % b, divmod(a, b), a / b, a * b, (a > b) + 1


@captured((I,), (I * 2,))
def argmax_type(a: Any) -> Any:
    k = np.argmax(a)
    return k, a[k], k + 0.5, k.dtype == np.int64


@captured((V,), (V + 1,))
def linspace_and_arange(v: Any) -> Any:
    t = np.linspace(0, 1, 5)
    return v * t + np.arange(5), np.arange(0, 1, 0.2) * v, np.full(5, 2) * v, np.ones_like(v) / 3
