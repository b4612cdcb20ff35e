"""Lists, tuples and dicts of arrays and numbers."""

from collections import namedtuple
from typing import Any

import numpy as np

from capture.cases import I, M, V, W, X, captured, refused

Point = namedtuple("Point", ["x", "y"])  # pyright: ignore[reportUntypedNamedTuple]


@captured((W,), (V,))
def append_then_array(w: Any) -> Any:
    out = []
    for i in range(len(w)):
        out.append(w[i] * 2)
    return np.array(out)


@captured((W,), (W - 4,))
def append_in_a_long_loop(w: Any) -> Any:
    out = []
    s = 0.0
    for k in range(60):
        s = 0.9 * s + w[k % 12]
        out.append(s)
    return np.array(out)


@captured((M,), (M * 2,))
def append_rows(m: Any) -> Any:
    rows = []
    for row in m:
        rows.append(row / np.abs(row).sum())
    return np.stack(rows)


@captured((M,), (M * 2,))
def list_of_rows_concatenated(m: Any) -> Any:
    parts = [m[i, : i + 1] for i in range(4)]
    return np.concatenate(parts)


@captured((W,), (W - 4,))
def list_comprehension(w: Any) -> Any:
    return np.array([x * x for x in w])


@captured((W,), (W + 4,))
def sum_of_generator(w: Any) -> Any:
    return sum(x * x for x in w), max(x for x in w), min(abs(x) for x in w)


@captured((W,), (W + 4,))
def any_and_all(w: Any) -> Any:
    return any(x > 8 for x in w), all(x > -6 for x in w)


@captured((W,), (W * 2,))
def dict_of_arrays(w: Any) -> Any:
    state = {"x": w, "v": w * 0}
    for _ in range(20):
        a = -state["x"]
        state = {"x": state["x"] + 0.1 * state["v"], "v": state["v"] + 0.1 * a}
    return state


@captured((W,), (W * 2,))
def dict_updated_in_a_loop(w: Any) -> Any:
    state = {"x": w, "n": 0}
    for _ in range(20):
        state["x"] = state["x"] * 0.9
        state["n"] += 1
    return state["x"], state["n"]


@captured((W,), (W - 3,))
def tuple_state(w: Any) -> Any:
    state = (w[0], w[1])
    for i in range(2, 12):
        state = (state[1], state[0] + w[i])
    return state


@captured((W,), (W - 3,))
def named_tuple_state(w: Any) -> Any:
    p = Point(w[0], 0.0)
    for i in range(1, 12):
        p = Point(p.x + w[i], max(p.y, p.x))
    return p


@captured((W,), (W - 3,))
def list_as_state(w: Any) -> Any:
    s = [w[0], w[1]]
    for i in range(2, 12):
        s[0] += w[i]
        s[1] = s[0] * 0.5
    return s


@captured((W,), (W - 3,))
def unpacking(w: Any) -> Any:
    a, b, *rest = w[:5]
    (c, d), e = (a, b), rest[0]
    return c + d * e, len(rest)


@captured((X,), (X * 2,))
def swapping(x: Any) -> Any:
    a, b = x[0].copy(), x[1].copy()
    for _ in range(3):
        a, b = b, a + b
    return a, b


@captured((V,), (V + 1,))
def lookup_in_python_list(v: Any) -> Any:
    weights = [0.5, 0.25, 0.125, 2.0, 4.0]
    s = 0.0
    for i in range(5):
        s += weights[i] * v[i]
    return s


@captured((W,), (W + 1,))
def lookup_in_long_python_list(w: Any) -> Any:
    weights = [0.5, 0.25, 0.125, 2.0, 4.0, 1.0, 3.0, 5.0, 0.1, 0.2, 0.3, 0.4]
    s = 0.0
    for i in range(12):
        s += weights[i] * w[i]
    return s


@captured((V, {"a": 1.0, "b": V}), (V, {"a": 3.0, "b": -V}))
def dict_argument(v: Any, p: Any) -> Any:
    if p["a"] > 2:
        return v + p["b"]
    return v * p["a"]


@captured((V, [V, V + 1]), (V, [V * 2, V - 1]))
def list_argument(v: Any, parts: Any) -> Any:
    for p in parts:
        v = v + p
    return v, len(parts)


@captured((V,), (W,))
def dict_built_by_loop(v: Any) -> Any:
    out = {}
    for name, f in (("sum", np.sum), ("max", np.max), ("mean", np.mean)):
        out[name] = f(v)
    return out


@captured((W,), (W - 5,))
def dict_comprehension(w: Any) -> Any:
    parts = {k: w[k] for k in range(3)}
    return parts[0] + parts[1] * parts[2]


@captured((W,), (V,))
def sorted_keys(w: Any) -> Any:
    scale = {"b": 2.0, "a": 3.0}
    for key in sorted(scale):
        w = w * scale[key] + 1
    return w


@captured((W,), (W * 2,))
def list_methods(w: Any) -> Any:
    stack = [w]
    stack.append(w + 1)
    stack.insert(0, w * 2)
    last = stack.pop()
    stack.extend([last, w])
    stack.reverse()
    return stack[0] + stack[1], len(stack)


@captured((W,), (W * 2,))
def a_set_of_names(w: Any) -> Any:
    names = {"a", "b"}
    names.add("c")
    return w * len(names) if "c" in names else w


@captured((W,), (W * 0,))
def growing_list_in_branch(w: Any) -> Any:
    names = []
    if len(w) > 3:
        names.append(1)
    return w * len(names)


@refused("'append' is called in a branch or loop that only the run decides", (W,))
def append_when_positive(w: Any) -> Any:
    out = []
    for x in w:
        if x > 0:
            out.append(x)
    return np.array(out)


@captured((M,), (M * 3,))
def two_lists(m: Any) -> Any:
    lo, hi = [], []
    for i in range(10):
        lo.append(m[i].min())
        hi.append(m[i].max())
    return np.array(lo), np.array(hi)


@captured((M,), (M * 3,))
def list_of_lists(m: Any) -> Any:
    table = []
    for i in range(3):
        row = []
        for j in range(3):
            row.append(m[i, j] * 2)
        table.append(row)
    return np.array(table)


@captured((W,), (V,))
def windows_listed(w: Any) -> Any:
    frames = []
    for k in range(0, len(w) - 3, 2):
        frames.append(w[k : k + 3] * np.hanning(3))
    return np.array(frames)


@captured((W,), (W - 2,))
def history_with_last(w: Any) -> Any:
    hist = [w[0]]
    for k in range(1, 30):
        hist.append(hist[-1] * 0.5 + w[k % 12])
    return np.array(hist)


@captured((W,), (W - 2,))
def itertools_free_pairs(w: Any) -> Any:
    best = 0.0
    for i, a in enumerate(w[:-1]):
        for b in w[i + 1 :]:
            best = max(best, abs(a - b))
    return best


@captured((V,), (V * 3,))
def star_arguments(v: Any) -> Any:
    def f(*args: Any, **kwargs: Any) -> Any:
        return sum(args) * kwargs["k"]

    parts = [v, v + 1]
    return f(*parts, **{"k": 2.0})


@captured((X,), (X - 4,))
def mapped(x: Any) -> Any:
    rows = list(map(lambda r: r.sum(), x))
    keep = list(filter(lambda k: k % 2, range(4)))
    return np.array(rows), x[:, keep]


@captured((W,))
def lists_are_arrays_to_numpy(w: Any) -> Any:
    a, b = w[0], w[1] + 1
    both = np.logical_and.reduce([w > 0, w < 4])
    return (
        np.sqrt([a, b]),
        np.maximum.reduce([w, -w, w * w]),
        np.median([a, b, a * b]),
        np.argmax([b, a]),
        np.mean([w, w * 2], axis=0),
        np.sort([[b, a], [a, b]], axis=0),
        np.hypot([a, b], [[1.0], [2.0]]),
        w[both.argmax()],
    )


@captured((I.reshape(3, 4).copy(),))
def elements_in_order(m: Any) -> Any:
    counts = np.zeros(10, int)
    for value in m.flat:
        counts[value] += 1
    m.flat[2] = 7
    m.flat[[0, 5]] += 1
    return counts, m.flat[5], sum(i * v for i, v in enumerate(m.flat))
