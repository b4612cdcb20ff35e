"""Ops of other packages under `sw.jit`: by name, and defined by Python functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

DIALECT = sw.Dialect("outside")
X = np.linspace(-3, 3, 37, dtype=np.float32)


@DIALECT.elementwise
def leaky(x: Any, *, slope: float = 0.25, negate: bool = False) -> Any:
    """``y = x`` where x > 0, else ``slope * x``; the negative of this if ``negate``."""
    y = snp.where(x > 0, x, slope * x)
    return -y if negate else y


@DIALECT.elementwise
def mix(a: Any, b: Any, *, power: int = 2) -> Any:
    return leaky(a) ** power + b


@DIALECT.elementwise
def positive(x: Any) -> Any:
    return x > 0


def reference(x: Any, slope: float = 0.25) -> Any:
    return np.where(x > 0, x, np.asarray(slope, x.dtype) * x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7, 5), (37,)])
def test_a_function_is_an_op(dtype: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    f = sw.jit(lambda x: leaky(x, slope=0.5))
    np.testing.assert_array_equal(f(x), reference(x, 0.5), strict=True)
    assert "outside.leaky" in str(f.trace(x))


def test_outside_of_jit_an_op_is_compiled_at_its_first_call() -> None:
    np.testing.assert_array_equal(leaky(X, slope=0.5), reference(X, 0.5), strict=True)
    np.testing.assert_array_equal(sw.op("nd.neg")(X), -X, strict=True)
    with pytest.raises(TypeError, match="leaky has no attribute 'hi'"):
        leaky(X, hi=1)


def test_operands_are_broadcast_and_promoted_and_ops_nest() -> None:
    f = sw.jit(lambda a, b: mix(a, b, power=3))
    b = np.arange(4, dtype=np.float32)[:, None]
    np.testing.assert_allclose(f(X, b), reference(X) ** 3 + b, rtol=1e-5)


def test_the_result_has_the_dtype_that_the_function_gives() -> None:
    np.testing.assert_array_equal(sw.jit(positive)(X), X > 0, strict=True)
    text = "func.func @main(%x: tensor<?xf32>) -> tensor<?xi1> {\n"
    text += "  %y = outside.positive %x : tensor<?xf32> -> tensor<?xi1>\n"
    text += "  func.return %y : tensor<?xi1>\n}\n"
    np.testing.assert_array_equal(sw.compile(text)(X), X > 0, strict=True)
    with pytest.raises(sw.CompileError, match=r"result must be tensor<\?xi1>"):
        sw.compile(text.replace("xi1>", "xf32>"))


def test_flags_and_numbers_are_attributes() -> None:
    f = sw.jit(lambda x: leaky(x, slope=1, negate=True))
    np.testing.assert_array_equal(f(X), -X)
    assert "negate" in str(f.trace(X)) and "slope = 1.0" in str(f.trace(X))


def test_parameters_have_any_names() -> None:
    """Also that of the result, and what ops have themselves."""

    @DIALECT.elementwise
    def named(x: Any, y: Any, name: Any, *, results: float = 2.0, traits: int = 3) -> Any:
        return x * y * results + name * traits

    f = sw.jit(lambda x: named(x, x + 1, 1, results=0.5).sum())
    np.testing.assert_allclose(f(X), (X * (X + 1) * 0.5 + 3).sum(), rtol=1e-5)
    np.testing.assert_allclose(sw.grad(f)(X), X + 0.5, rtol=1e-5)
    assert "results = 0.5" in str(f.trace(X))


def test_an_edited_op_is_not_served_stale() -> None:
    def typed_in(factor: float) -> Any:
        scope = {"dialect": sw.Dialect("edited")}
        exec(f"@dialect.elementwise\ndef times(x):\n    return x * {factor}\n", scope)
        return scope["times"]

    def closed_over(factor: float) -> Any:
        @sw.Dialect("edited").elementwise
        def times(x: Any) -> Any:
            return x * factor

        return times

    for make in (typed_in, closed_over):
        for factor in (2.0, 5.0):
            np.testing.assert_array_equal(sw.jit(make(factor))(X), X * np.float32(factor))


def test_ops_by_name() -> None:
    relu, total = sw.op("nd.relu"), sw.op("nd.reduce_sum")
    f = sw.jit(lambda x: (relu(x), total(x, axes=(0,)), sw.op("outside.leaky")(x)))
    for got, want in zip(f(X), (np.maximum(X, 0), X.sum(), reference(X)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: leaky(x, x), r"outside\.leaky takes \(x\), got 2 arguments"),
        (lambda x: leaky(x, slop=1.0), r"has no attribute 'slop': it has slope, negate"),
        (lambda x: leaky(x, slope=x), r"the attribute 'slope' is float, not"),
        (lambda x: mix(x, x, power=2.5), r"the attribute 'power' is int, not 2\.5"),
        (lambda x: sw.op("outside.leeky")(x), r"no op 'outside\.leeky'; did you mean"),
        (lambda x: sw.op("nd.reduce_sum")(x, axis=0), r"no attribute 'axis'; did you mean 'axes'"),
        (lambda x: sw.op("nd.add")(x), r"nd\.add takes \(a, b\), got 1 arguments"),
        (
            lambda x: sw.op("nd.reduce_sum")(x, axes=(4,)),
            r"nd\.reduce_sum: axes must lie in 0\.\.0",
        ),
    ],
)
def test_misuse_is_one_message(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        sw.jit(call)(X)


def test_what_is_not_elementwise_is_refused() -> None:
    @DIALECT.elementwise
    def summed(x: Any) -> Any:
        return snp.sum(snp.asarray([1.0, 2.0]) * x)

    with pytest.raises(sw.CompileError, match="is made of elementwise ops"):
        sw.jit(lambda x: summed(x))(X)
    with pytest.raises(TypeError, match="must give one number for one number"):
        sw.jit(lambda x: sw.Dialect("wide").elementwise(lambda x: snp.stack([x, x]))(x))(X)


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda: 1, "has an operand"),
        (lambda *x: x, r"an op has no \*x"),
        (lambda x, *, y: x, "the attribute 'y' needs a number or text as default"),
    ],
)
def test_functions_that_are_no_ops(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        sw.Dialect("wrong").elementwise(function)
    with pytest.raises(ValueError, match="lower case"):
        sw.Dialect("Wrong dialect")
    with pytest.raises(ValueError, match="an op is named as"):
        sw.op("softsign")
