"""Variables that have a value on some ways only: read without one, they are Python's error."""

# ruff: noqa: F821, SIM108
# pyright: reportPossiblyUnboundVariable=false, reportUnboundVariable=false
from typing import Any

import numpy as np

from capture.cases import W, captured, refused


@captured((W, 3), (W, 0))
def of_the_last_iteration(w: Any, n: Any) -> Any:
    for i in range(n):
        label = w * i
        w[i] = label.sum()
    return label, i


@captured((W, 5.0), (W, -5.0))
def after_an_early_return(w: Any, t: Any) -> Any:
    if w[0] > t:
        return w
    else:
        x = w * 2
    return x + 1


@captured((W, 5.0), (W, -5.0), (W, 100.0))
def where_it_was_found(w: Any, t: Any) -> Any:
    s = 0.0
    for i in range(len(w)):
        if w[i] > t:
            at = w[i]
        if i > 8:
            s += at
    return s


@captured((W, 5.0), (W, -5.0))
def deleted_in_a_branch(w: Any, t: Any) -> Any:
    y = w * 2
    if w[0] > t:
        del y
    return y


@captured((W, 5), (W, 1), (W, 0))
def begun_in_the_loop(w: Any, n: Any) -> Any:
    for i in range(n):
        if i:
            acc += w[i]
        else:
            acc = w[i] * 1
    acc += 1
    return acc


@captured((W, 5.0), (W, -5.0), (W, 100.0))
def texts_and_numbers(w: Any, t: Any) -> Any:
    if w[0] > t:
        s = "abc"
    elif w[0] > -50:
        k = 3
    if w[0] > t:
        return w * len(s)
    return w * k


@captured((W, 5), (W, 0))
def read_by_a_function(w: Any, n: Any) -> Any:
    def doubled() -> Any:
        return [q * k for k in range(3)]

    while n > 0:
        q = w[n]
        n -= 1
    return doubled()


@captured((W, 4), (W, 1))
def of_the_iteration_before(w: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        if i > 0:
            s += w[i] * last
        last = w[i]
    return s, last


@captured((W,), (-W,))
def labels_of_clusters(w: Any) -> Any:
    centres = w[:3].copy()
    for _ in range(10):
        distance = (w[:, None] - centres[None, :]) ** 2
        label = np.argmin(distance, axis=1)
        for k in range(3):
            mine = label == k
            if np.sum(mine) > 0:
                centres[k] = np.sum(w * mine) / np.sum(mine)
    return label, centres


@refused("may lie in the same memory as another", (W, 5.0))
def a_view_of_one_branch(w: Any, t: Any) -> Any:
    if w[0] > t:
        v = w[2:4]
    else:
        v = w[5:7]
    v[0] = 7
    return w


@refused("may lie in the same memory as another", (W,))
def a_view_of_the_last_iteration(w: Any) -> Any:
    for i in range(10):
        u = w[i : i + 2]
    w[9] = 100
    return u
