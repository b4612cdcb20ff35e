"""Steps that contain steps: loops, scans and branches, with recipes as bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stepwell.frontend import lax
from stepwell.testing.user_programs.known import Known
from stepwell.testing.user_programs.recipe import OPS, Op, Recipe, operand, run_known, run_traced

How = Mapping[str, Any]


def body_known(xp: Any, body: Recipe, leaves: Sequence[Known]) -> list[Known]:
    """Return the results of a body on NumPy."""
    values = run_known(xp, body.steps, leaves)
    return [operand(n, leaves, values) for n in body.results]


def body_traced(xp: Any, body: Recipe, leaves: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of a body, traced."""
    values = run_traced(xp, body.steps, leaves)
    return tuple(operand(n, leaves, values) for n in body.results)


def _number(k: int) -> Known:
    return Known(np.asarray(k, np.int32), "i32")


def _with_branch_error(found: Known, others: Sequence[Known]) -> Known:
    """Return the result of a branch, with an error if the condition may be wrong."""
    exact = all(k.exact for k in others)
    return found if exact else Known(found.array, found.dtype, np.inf)


# the arguments of a loop's body: the iteration number, the carried values, the captured ones


def _loop(xp: Any, ks: Sequence[Known], how: How) -> list[Known]:
    count, carried, rest = how["carried"], list(ks[: how["carried"]]), list(ks[how["carried"] :])
    times = how["times"] if how["times"] is not None else int(rest.pop(0).array)
    for k in range(times):
        carried = body_known(xp, how["body"], [_number(k), *carried, *rest])
    assert len(carried) == count
    return carried


def _fori(xp: Any, xs: Sequence[Any], how: How) -> Any:
    count = how["carried"]
    start, rest = tuple(xs[:count]), list(xs[count:])
    times = how["times"] if how["times"] is not None else rest.pop(0)

    def body(k: Any, carry: Any) -> Any:
        return body_traced(xp, how["body"], [xp.cast(k, "i32"), *carry, *rest])

    return lax.fori_loop(0, times, body, start)


def _while(xp: Any, xs: Sequence[Any], how: How) -> Any:
    count = how["carried"]
    start, rest = tuple(xs[:count]), list(xs[count:])
    times = how["times"] if how["times"] is not None else rest.pop(0)

    def body(state: Any) -> Any:
        k, carry = state
        return k + 1, body_traced(xp, how["body"], [xp.cast(k, "i32"), *carry, *rest])

    return lax.while_loop(lambda s: s[0] < times, body, (0, start))[1]


OPS["fori"] = Op(_fori, direct=_loop)
OPS["while"] = Op(_while, direct=_loop)


def _scan_known(xp: Any, ks: Sequence[Known], how: How) -> list[Known]:
    count, xs = how["carried"], ks[how["carried"]]
    carried, rest = list(ks[:count]), list(ks[count + 1 :])
    stacked: list[list[Known]] = []
    order = range(xs.shape[0])
    for k in reversed(order) if how["reverse"] else order:
        part = Known(xs.array[k], xs.dtype, xs.error)
        found = body_known(xp, how["body"], [part, *carried, *rest])
        carried = found[:count]
        stacked.append(found[count:])
    if how["reverse"]:
        stacked.reverse()
    columns = [
        Known(np.stack([k.array for k in column]), column[0].dtype, max(k.error for k in column))
        for column in zip(*stacked, strict=True)
    ]
    return [*carried, *columns]


def _scan(xp: Any, xs: Sequence[Any], how: How) -> Any:
    count = how["carried"]
    rest = list(xs[count + 1 :])

    def body(carry: Any, part: Any) -> Any:
        found = body_traced(xp, how["body"], [part, *carry, *rest])
        return found[:count], found[count:]

    last, stacked = lax.scan(body, tuple(xs[:count]), xs[count], reverse=how["reverse"])
    return (*last, *stacked)


OPS["scan"] = Op(_scan, direct=_scan_known)


def _cond_known(xp: Any, ks: Sequence[Known], how: How) -> list[Known]:
    chosen = how["then"] if bool(ks[0].array) else how["else"]
    return [_with_branch_error(k, ks[:1]) for k in body_known(xp, chosen, ks[1:])]


def _cond(xp: Any, xs: Sequence[Any], how: How) -> Any:
    return lax.cond(
        xs[0],
        lambda *rest: body_traced(xp, how["then"], rest),
        lambda *rest: body_traced(xp, how["else"], rest),
        *xs[1:],
    )


OPS["cond"] = Op(_cond, direct=_cond_known)
