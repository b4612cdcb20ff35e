"""Programs written op by op, as frontends write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.diagnostics import CompileError
from stepwell.core.dtypes import DTYPES
from stepwell.dialects.parsing import parse_module
from stepwell.driver.registry import registry
from stepwell.extending import Builder


def test_every_dtype_and_shape_of_a_constant_reaches_the_program() -> None:
    b = Builder()
    arrays: list[np.ndarray[Any, Any]] = []
    for name, kind in DTYPES.items():
        if name == "bf16":
            continue  # NumPy has none; below
        for shape in ((), (0, 3), (2, 17)):
            array = np.ones(shape, kind.numpy)
            arrays.append(array)
            value = b.constant(array, name)
            b.result(b.op("nd.reshape", value, results=[(array.dtype, shape[::-1])]))
    found = b.compile()()
    for got, array in zip(found, arrays, strict=True):
        assert got.dtype == array.dtype and got.shape == array.shape[::-1] and (got == 1).all()


def test_a_constant_that_changes_later_stays_as_it_was() -> None:
    array = np.arange(4.0)[::-1]
    b = Builder()
    b.result(b.constant(array), "y")
    array[:] = 7
    np.testing.assert_array_equal(b.compile()(), [3, 2, 1, 0])


def test_names_that_are_taken_or_odd_get_others() -> None:
    b = Builder("entry")
    x, y = b.argument("add_1", "float32", (None,)), b.argument("2 x/y", "float32", (None,))
    once = b.op("nd.add", x, y)
    b.result(b.op("nd.add", once, x), 'twice "quoted"')
    text = b.module().text
    assert "%add_2" in text and "%v2_x_y" in text
    module = parse_module(registry().context(), text, "built")
    module.verify()
    got = b.compile()(np.array([1, 2], np.float32), np.array([3, 4], np.float32))
    np.testing.assert_array_equal(got, [5, 8])


def test_what_a_region_defines_is_not_known_outside() -> None:
    b = Builder(source="a.model")
    x = b.argument("x", "float32", ())
    kept: list[Any] = []

    def body(v: Any) -> Any:
        kept.append(b.op("nd.neg", v))
        return kept[0]

    with b.at(4, 2):
        b.region([("float32", ())], body)
        with pytest.raises(CompileError, match=r"a.model:4:2: error: nd.add uses %neg, which is"):
            b.op("nd.add", kept[0], x)
        with pytest.raises(CompileError, match="the program uses %neg"):
            b.result(kept[0])


@pytest.mark.parametrize(
    "act, said",
    [
        (lambda b, x: b.op("nd.ad", x, x), "there is no op 'nd.ad'; did you mean"),
        (lambda b, x: b.op("nd.add", x), r"nd.add takes \(a, b\), got 1 arguments"),
        (lambda b, x: b.op("nd.neg", x, axis=1), "has no attribute 'axis'"),
        (lambda b, x: b.op("nd.while", x), "write it in text|any number of results"),
    ],
)
def test_what_an_op_refuses_is_told_at_its_place(act: Any, said: str) -> None:
    b = Builder(source="a.model")
    x = b.argument("x", "float32", (None,))
    with b.at(9), pytest.raises(CompileError, match=said) as caught:
        act(b, x)
    assert "a.model:9:1" in str(caught.value)


def test_wrong_types_are_refused() -> None:
    b = Builder()
    with pytest.raises(TypeError, match="complex"):
        b.argument("x", complex, ())
    with pytest.raises(ValueError, match="a size is a number from 0 on"):
        b.argument("x", "float32", (-1,))
    with pytest.raises(ValueError, match="named as a word"):
        Builder("two words")


def test_places_of_the_model_reach_messages_of_the_compiler() -> None:
    b = Builder(source="a.model")
    x = b.argument("x", "float32", (None,))
    with b.at(12, 3):
        b.result(b.op("nd.sqrt", x), "y")
    assert "a.model:12" in b.compile().source
    assert isinstance(b.compile(), sw.Compiled)
