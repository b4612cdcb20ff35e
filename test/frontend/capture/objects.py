"""Objects of users' classes that a function makes, and what they hold."""

from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from capture.cases import W, captured


class Queue:
    """Of numbers, in an array that goes round."""

    def __init__(self, n: int) -> None:
        self.data = np.zeros(n)
        self.head = self.size = 0

    def push(self, v: Any) -> None:
        """Add a number."""
        if self.size == len(self.data):
            raise OverflowError("full")
        self.data[(self.head + self.size) % len(self.data)] = v
        self.size += 1

    def pop(self) -> Any:
        """Take the oldest number."""
        v = self.data[self.head]
        self.head = (self.head + 1) % len(self.data)
        self.size -= 1
        return v


@captured((W,), (W * 2,))
def an_object_with_an_array(w: Any) -> Any:
    q = Queue(9)
    s = 0.0
    for i in range(12):
        q.push(w[i])
        if i % 3 == 2:
            s += q.pop() * i
    return s, q.data, q.size


@dataclass
class Vec:
    """In the plane."""

    x: Any
    y: Any
    length: Any = 0.0

    def __post_init__(self) -> None:
        self.length = self.x + abs(self.y)

    def __add__(self, other: Any) -> Any:
        return Vec(self.x + other.x, self.y + other.y)

    def __rmul__(self, k: Any) -> Any:
        return Vec(self.x * k, self.y * k)


@captured((W, 5), (W, 0))
def objects_made_in_a_loop(w: Any, n: Any) -> Any:
    p, v = Vec(w[0], w[1]), Vec(1.0, 0.0)
    e = 0.0
    for i in range(n):
        v = v + 0.1 * Vec(-p.x, -p.y)
        p = p + 0.1 * v
        parts = [p.x, p.y]
        parts.append(w[i])
        table = {"a": parts[0], "b": parts[-1]}
        table["c"] = max(parts) + p.length
        e += table["c"] * len(table)
    return p.x, p.y, e


@captured((W,), (W * 2,))
def arrays_made_in_expressions(w: Any) -> Any:
    state = {"x": np.zeros(3), "n": [np.ones(2, int) for _ in range(2)]}
    state["x"][1] = w[0]
    state["n"][1][0] = w.argmax()
    late = np.arange(3.0) if len(w) > 3 else np.ones(3)
    late[0] += w[1]
    return state, late, np.repeat(w, np.arange(12))


@dataclass
class Account:
    """What was paid, in what order."""

    total: Any = 0.0
    history: list[Any] = field(default_factory=list[Any])
    last: Any = field(default_factory=lambda: np.zeros(3))

    def add(self, v: Any) -> None:
        """Pay."""
        self.total += v
        self.history.append(v)
        self.last[len(self.history) % 3] = v


@captured((W,), (W * 2,))
def factories_of_a_dataclass(w: Any) -> Any:
    a, b = Account(), Account(1.0)
    for i in range(4):
        a.add(w[i])
    b.add(w[5])
    return a.total, a.history, a.last, b.last, b.total


@captured((W,), (W * 2,))
def copied_by_the_library(w: Any) -> Any:
    y, z = copy(w), deepcopy({"a": w, "b": [w[2:5]]})
    y[0] = 5
    z["a"][1] = 6
    z["b"][0][0] = 7
    return y, z


class _Base:
    def __init__(self, scale: float) -> None:
        self.__scale = scale

    def __one(self, x: Any) -> Any:
        return x * self.__scale

    def total(self, x: Any) -> Any:
        found: Any = 0.0
        for i in range(len(x)):
            each: float = x[i]
            if each > 2:
                found += self.__one(each)
        return found


class _Derived(_Base):
    __scale = 7.0

    def total(self, x: Any) -> Any:
        if x[0] < 100:
            return super().total(x) + self.__scale
        return super().total(-x)


@captured((W,), (W * 200,))
def private_names_super_and_annotations(w: Any) -> Any:
    return _Base(2.0).total(w), _Derived(3.0).total(w)
