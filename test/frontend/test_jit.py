"""What tracing refuses, and what the text of a trace looks like."""

import operator
import re
import traceback
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw
import stepwell.numpy as snp
from stepwell.frontend.pytree import flatten, paths, unflatten

X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: snp.ones(3) if x[0, 0] > 0 else -x, "the conditional expression is f64[3]"),
        (lambda x: operator.index(x[0, 0]), "static_argnames"),
        (lambda x: np.packbits(x), "numpy.packbits of a traced value is not known to Stepwell"),
        (lambda x: np.histogramdd(x), "the nearest is numpy.histogram2d"),
        (lambda x: x[x > 0], "a result whose shape is not known while tracing"),
        (lambda x: snp.zeros(x[0, 0]), "a shape"),
        (lambda x: snp.tile(x, (6, 6)).tolist(), "a loop may go through it"),
        (lambda x: [1, 2, 3][x[0, 0]], "static_argnames"),
        (lambda x: x[0, 0].__setitem__(0, 1.0), "is a number, which cannot be assigned to"),
        (lambda x: sw.jit(lambda y: y).trace(x), "argument 'y' is a traced value"),
    ],
)
def test_what_needs_numbers_is_refused_at_the_users_line(function: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        sw.jit(function).trace(X)
    assert message in str(caught.value)
    assert any(f.filename == __file__ for f in traceback.extract_tb(caught.value.__traceback__))


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: x + np.ones((2, 2), np.float32), r"shapes \[2x3\] and \[2x2\] cannot be"),
        (lambda x: x @ x, "3 is not 2|must|contract|inner"),
        (lambda x: snp.reshape(x, (4,)), r"cannot reshape \[2x3\], 6 elements, to \(4,\)"),
        (lambda x: snp.sum(x, axis=2), "axis 2 is out of range for 2 axes"),
        (lambda x: x[5], "index 5 is out of bounds for axis 0 with size 2"),
        (lambda x: x[0, 0, 0], "3 indices for 2 axes"),
        (lambda x: snp.concat([x, x[0]]), "cannot join"),
        (lambda x: snp.bitwise_and(x, 1), "bitwise_and is not defined for float32 and int"),
        (lambda x: x.astype("complex64"), "no such dtype"),
        (lambda x: sw.nn.conv(x, x[:, :2]), "3 input features must be 1 groups of the window's 2"),
    ],
)
def test_wrong_shapes_and_dtypes(function: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        sw.jit(function).trace(X)


def test_functions_of_nn_and_lax_belong_inside_jit() -> None:
    with pytest.raises(sw.TraceError, match="inside a function given to"):
        sw.nn.relu(X)


def test_values_do_not_leak_from_one_trace_to_another() -> None:
    kept: list[Any] = []
    sw.jit(lambda x: kept.append(x) or x).trace(X)
    with pytest.raises(sw.TraceError, match="a value of one traced function was used in another"):
        sw.jit(lambda y: y + kept[0]).trace(X)


@dataclass
class Weights:
    w: Any


def norm(x: Any) -> Any:
    return snp.sqrt(snp.sum(x * x))


def test_arguments_that_are_no_data() -> None:
    with pytest.raises(TypeError, match=r"argument 'mode': expected an array .* static_argnames"):
        sw.jit(lambda x, mode: x).trace(X, object())
    with pytest.raises(TypeError, match=r"argument 'p\['act'\]': .* got str; .* of its own"):
        sw.jit(lambda p: p).trace({"act": "relu"})
    with pytest.raises(TypeError, match=r"got mappingproxy; pass a plain dict of it: dict\(...\)"):
        sw.jit(lambda p: p).trace(MappingProxyType({"x": X}))
    with pytest.raises(TypeError, match="norm: got an unexpected keyword argument 'axes'"):
        sw.jit(norm).trace(X, axes=1)
    with pytest.raises(TypeError, match="arrays of dtype complex128 are not supported"):
        sw.jit(lambda x: x).trace(np.ones(2, np.complex128))
    with pytest.raises(TypeError, match=r"'n' must be hashable: .* 'list'; pass a tuple"):
        sw.jit(lambda x, n: x, static_argnames="n").trace(X, [1])
    with pytest.raises(ValueError, match="has no argument y"):
        sw.jit(lambda x: x, static_argnames="y")


def test_static_arguments_choose_the_program() -> None:
    f = sw.jit(lambda x, n: x * n if n > 1 else x, static_argnames=("n",))
    assert "nd.mul" in str(f.trace(X, 2))
    assert "nd.mul" not in str(f.trace(X, n=1))


def test_a_jitted_function_has_the_plain_one() -> None:
    twice = sw.jit(lambda x: x * 2)
    assert "nd.mul" in str(sw.jit(lambda x: twice.__wrapped__(x)).trace(X))


class Pair(NamedTuple):
    a: Any
    b: Any


def test_structures_in_and_out() -> None:
    def f(p: Any, q: Any) -> Any:
        return {"sum": p["w"] + p["b"][0], "pair": Pair(q, None), "list": [q]}

    out = interpreted(f, {"w": X, "b": (X,)}, X * 2)
    np.testing.assert_array_equal(out["sum"], 2 * X)
    assert isinstance(out["pair"], Pair) and out["pair"].b is None
    leaves, tree = flatten({"b": [1, (2,)], "a": None})
    assert leaves == [1, 2]
    assert unflatten(tree, leaves) == {"b": [1, (2,)], "a": None}
    assert paths(tree, "p") == ["p['b'][0]", "p['b'][1][0]"]


def test_every_op_has_the_users_line() -> None:
    def f(x: Any) -> Any:
        y = x * x
        return snp.tanh(-y)

    text = sw.jit(f).trace(X).module.text
    first = f.__code__.co_firstlineno
    places = [int(n) for n in re.findall(r'= "nd\..*loc\(".*test_jit\.py":(\d+):\d+\)', text)]
    assert places == [first + 1, first + 2, first + 2]
    assert len(places) == text.count('"nd.')


def test_the_same_function_has_the_same_text() -> None:
    texts = {
        sw.jit(lambda x: snp.sum(x + np.arange(100.0, dtype="f")[:3])).trace(X).module.text
        for _ in range(2)
    }
    assert len({re.sub(r":\d+:\d+", "", t) for t in texts}) == 1


def test_large_arrays_become_weights() -> None:
    w = np.arange(60, dtype=np.float32).reshape(3, 20)
    traced = sw.jit(lambda x: x @ w + w[0]).trace(X)
    assert list(traced.module.resources) == [name for name in traced.module.resources]
    assert len(traced.module.resources) == 2  # w and w[0], which NumPy cut off before tracing
    assert "#nd.resource<" in traced.module.text
    np.testing.assert_array_equal(interpreted(lambda x: x @ w + w[0], X), X @ w + w[0])


def test_python_numbers_as_arguments_are_data() -> None:
    f = sw.jit(lambda x, s: x * s)
    assert f.trace(X, 2.0).module.text == f.trace(X, 3.0).module.text.replace("3.0", "2.0")
