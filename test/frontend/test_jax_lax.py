"""sw.lax beside JAX: values, dtypes and shapes that JAX 0.10.2 gave, its signatures, its names.

jax_lax.txt has calls and what `jax.lax` gave; jax_signatures.txt what `inspect.signature` says of
each function that both have, where ``~`` stands before what is given by keyword only.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw

HERE = Path(__file__).parent
R = np.random.default_rng(5)


def draw(*shape: int) -> Any:
    return np.round(R.uniform(-3, 3, shape), 2).astype(np.float32)


ARRAYS: dict[str, Any] = {
    "x": draw(2, 3),
    "y": draw(2, 3),
    "v": draw(3),
    "z": draw(2, 2, 3),
    "u": np.round(R.uniform(-0.9, 0.9, (3,)), 2).astype(np.float32),
    "i": np.array([-7, 2, 0, 5], np.int32),
    "j": np.array([2, -3, 0, 6], np.int32),
    "k": np.int32(1),
    "img": draw(1, 2, 4, 5),
    "ker": draw(2, 2, 2, 3),
    "idx": np.array([[1], [-1], [0], [2]], np.int32),
    "idx2": np.array([[1, 1], [0, 5]], np.int32),
    "rows": draw(4, 3),
}
LINES = [line.split("\n=> ") for line in (HERE / "jax_lax.txt").read_text().strip().split("\n\n")]


def test_values_are_jaxs() -> None:
    """All calls are one program."""

    def program(*arrays: Any) -> list[list[Any]]:
        given = dict(zip(ARRAYS, arrays, strict=True))
        space = {"lax": sw.lax, "np": np, "np_add": np.add, **given}
        found = [eval(f"lax.{call}", dict(space)) for call, _ in LINES]
        return [list(f) if isinstance(f, list | tuple) else [f] for f in found]

    results = interpreted(program, *ARRAYS.values())
    for (call, told), found in zip(LINES, results, strict=True):
        wanted = told.strip().split("; ")
        assert len(wanted) == len(found), call
        for text, got in zip(wanted, found, strict=True):
            kind, _, numbers = text.partition("] ")
            assert f"{got.dtype}{[*got.shape]}" == f"{kind}]", call
            want = eval(numbers, {"nan": np.nan, "inf": np.inf})
            np.testing.assert_allclose(
                np.ravel(got).astype(float), np.array(want, float), 3e-6, 1e-6, err_msg=call
            )


def signatures() -> list[str]:
    return (HERE / "jax_signatures.txt").read_text().splitlines()


ABOUT_DEVICES = {"out_sharding", "sharding", "_split_transpose"}


def test_signatures_are_jaxs() -> None:
    """Names, order, kinds and defaults; but for what is about devices and derivatives."""
    other: list[str] = []
    for line in signatures():
        name, _, parameters = line.partition("(")
        module, _, own = name.partition(".")
        ours = [_spelled(p) for p in inspect.signature(_named(module, own)).parameters.values()]
        theirs = [p for p in parameters.rstrip(")").split(", ") if p]
        theirs = [p for p in theirs if p.strip("~").split("=")[0] not in ABOUT_DEVICES]
        if ours != theirs and own not in ("cond", "switch", "round"):
            other.append(f"{name}: {', '.join(ours)}, not {', '.join(theirs)}")
    assert other == []


def _named(module: str, name: str) -> Any:
    return getattr(getattr(sw, module), name)


def _spelled(p: inspect.Parameter) -> str:
    marks = {p.VAR_POSITIONAL: "*", p.KEYWORD_ONLY: "~", p.POSITIONAL_ONLY: "!"}
    return marks.get(p.kind, "") + p.name + ("" if p.default is p.empty else f"={p.default!r}")


@pytest.mark.parametrize(
    "name, said",
    [
        ("psend", "stepwell.lax has no 'psend', which jax.lax has: it is about several devices"),
        ("erf_inv", "stepwell.lax has no 'erf_inv', which jax.lax has: not here yet"),
        ("dot_genral", "has no attribute 'dot_genral'; the nearest is dot_general"),
    ],
)
def test_what_is_not_here_is_refused_by_name(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(sw.lax, name)


@pytest.mark.parametrize(
    "call, kind, said",
    [
        (lambda x: sw.lax.add(x, x.astype("int32")), TypeError, "same dtypes, got float32, int32"),
        (lambda x: sw.lax.add(x, x[0]), TypeError, r"same shape, got \[2x3\], \[3\]"),
        (lambda x: sw.lax.exp(x > 0), TypeError, "lax.exp does not accept dtype bool"),
        (lambda x: sw.lax.dot(x[None], x), TypeError, "vectors and matrices, got 3 and 2 axes"),
        (lambda x: sw.lax.slice(x, (0, 0), (3, 3)), ValueError, "does not lie within"),
        (lambda x: sw.lax.pad(x, 0, [(1, 1, 0)]), ValueError, "low, high, interior"),
        (lambda x: sw.lax.select_n(x, x, x), TypeError, "booleans or int32"),
        (lambda x: sw.lax.top_k(x, 4), ValueError, r"k must lie in 0\.\.3"),
    ],
)
def test_what_jax_refuses(call: Any, kind: Any, said: str) -> None:
    with pytest.raises(kind, match=said):
        sw.eval_shape(call, sw.ShapeDtypeStruct((2, 3), "float32"))
