"""Name a kernel after its function and its ops, in the usual terms."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math, tensor
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from stepwell.analysis.structured import (
    CASTS,
    Index,
    combiner,
    contracts_in_groups,
    in_panels,
    indices,
    is_parallel,
    plain,
)
from stepwell.dialects.kernel.sharing import is_border

LONGEST = 4
"""The most words in a name, besides the function's."""

_REDUCTIONS: dict[type[Operation], str] = {
    arith.AddfOp: "sum",
    arith.AddiOp: "sum",
    arith.MulfOp: "prod",
    arith.MuliOp: "prod",
    arith.MaximumfOp: "max",
    arith.MaxnumfOp: "max",
    arith.MaxSIOp: "max",
    arith.MaxUIOp: "max",
    arith.MinimumfOp: "min",
    arith.MinnumfOp: "min",
    arith.MinSIOp: "min",
    arith.MinUIOp: "min",
    arith.AndIOp: "all",
    arith.OrIOp: "any",
    arith.XOrIOp: "xor",
}
_WORDS: dict[type[Operation], str] = {
    arith.SelectOp: "select",
    arith.NegfOp: "neg",
    arith.ShLIOp: "shift",
    arith.ShRSIOp: "shift",
    arith.ShRUIOp: "shift",
    arith.IndexCastOp: "iota",
    math.PowFOp: "pow",
    math.FPowIOp: "pow",
    tensor.ExtractOp: "gather",
}
_ORDERS: dict[type[Operation], list[str]] = {
    arith.CmpfOp: CMPF_COMPARISON_OPERATIONS,
    arith.CmpiOp: CMPI_COMPARISON_OPERATIONS,
}
_SILENT: tuple[type[Operation], ...] = (
    *CASTS,
    arith.TruncIOp,
    arith.ConstantOp,
    arith.BitcastOp,
    linalg.IndexOp,
    linalg.YieldOp,
)


def kernel_name(function: str, ops: Sequence[Operation]) -> str:
    """Return a name for the kernel of ``ops``, cut from ``function``; not yet unique."""
    words = [word for op in ops for word in _words(op)]
    said = _usual_name(words) or _without_repeats(words)
    return "_".join((function.replace(".", "_"), *said[:LONGEST]))


def _usual_name(words: list[str]) -> list[str]:
    """Return the usual name of this combination of words, if there is one."""
    if "sqrt" in words or "rsqrt" in words:
        if words.count("sum") == 2 and "matmul" not in words:
            return ["layer_norm"]
    elif {"max", "exp", "sum"} <= set(words):
        before = words[: words.index("max")]
        rest = ["log_softmax"] if "log" in words else ["softmax"]
        return [*_without_repeats(before), *rest]
    return []


def _without_repeats(words: list[str]) -> list[str]:
    return list(dict.fromkeys(words))


def _is_plain(index: Index) -> bool:
    """Whether every axis is indexed by a single loop, or the operand is packed into panels."""
    loops = [plain(expr) for expr in index]
    return None not in loops or any(
        in_panels(index, d) for expr in index[-1:] for d in expr.used_dims()
    )


def _words(op: Operation) -> list[str]:
    if not isinstance(op, linalg.GenericOp):
        return ["fill"] if isinstance(op, linalg.FillOp | tensor.SplatOp) else ["scatter"]
    if is_border(op):
        return []
    if all(is_parallel(op)):
        return _elementwise(op) or ["copy"]
    before = _elementwise(op)
    if contracts_in_groups(op):
        simple = all(_is_plain(index) for index in indices(op)[: len(op.inputs)])
        return ["matmul" if simple else "conv"]
    found = [combiner(op, k) for k in range(len(op.outputs))]
    if None not in found:
        words = [_REDUCTIONS[each] for each in found if each is not None]
        return [*(w for w in before[:-1] if w not in words), *words]
    return ["cumulative" if _is_cumulative(op) else _searched(op)]


def _searched(op: linalg.GenericOp) -> str:
    """Name a reduction that compares: argmax or argmin."""
    for inner in op.body.block.ops:
        if isinstance(inner, arith.CmpfOp | arith.CmpiOp):
            predicate = _ORDERS[type(inner)][inner.predicate.value.data]
            return "argmax" if "gt" in predicate else "argmin"
    return "reduce"


def _is_cumulative(op: linalg.GenericOp) -> bool:
    parallel = is_parallel(op)
    return any(
        not parallel[d]
        for index in indices(op)[len(op.inputs) :]
        for expr in index
        for d in expr.used_dims()
    )


def _elementwise(op: linalg.GenericOp) -> list[str]:
    words: list[str] = []
    for inner in op.body.block.ops:
        if type(inner) in _SILENT:
            continue
        word = _WORDS.get(type(inner)) or _word_of(inner)
        if word not in words:
            words.append(word)
    return words


def _word_of(op: Operation) -> str:
    if isinstance(op, arith.MaximumfOp | arith.MaxSIOp) and any(
        isinstance(v.owner, arith.ConstantOp) and _is_zero(v.owner) for v in op.operands
    ):
        return "relu"
    word = op.name.split(".")[1]
    for ending in ("imumf", "numf"):
        word = word.removesuffix(ending)
    return word[:-1] if len(word) > 3 and word[-1] in "fi" and op.name.startswith("arith") else word


def _is_zero(op: arith.ConstantOp) -> bool:
    value = op.value
    return isinstance(value, IntegerAttr | FloatAttr) and value.value.data == 0
