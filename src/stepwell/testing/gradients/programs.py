"""Random programs, differentiated and batched: all floats in f64, small sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Region
from xdsl.utils.exceptions import ParseError, VerifyException

from stepwell.core.diagnostics import CompileError
from stepwell.dialects.differences import FUEL, Array, Derived, check
from stepwell.dialects.expanding import expand
from stepwell.dialects.interpreter import Exhausted, Interpreter
from stepwell.dialects.nd.control import YieldOp
from stepwell.dialects.nd.transformations import VmapOp
from stepwell.testing.op_rows.run import parsed
from stepwell.testing.random_programs.program import Program

SIZES = (3, 2, 4)
"""The values of dynamic sizes, in turn."""
BATCH = 2
REFUSALS = re.compile(
    r"nd\.bitcast has no (gradient|derivative)|needs a window of known size|features must be known"
)
"""Errors that say that there is no derivative."""


@dataclass
class Tally:
    """The numbers of checked programs and elements."""

    programs: int = 0
    differentiated: int = 0
    elements: int = 0
    batched: int = 0
    refused: int = 0

    def __str__(self) -> str:
        return (
            f"{self.programs} programs, {self.differentiated} differentiated "
            f"({self.elements} elements compared with differences), {self.batched} batched, "
            f"{self.refused} refused"
        )


def check_program(p: Program, tally: Tally) -> None:
    """Fail unless the derivatives and a batch of a program are correct.

    A clamp of its own bound is at a kink in every element; by JAX's convention its derivative
    is 0 there.
    """
    tally.programs += 1
    text = re.sub(r"(bf16|f16|f32)(?![a-z0-9])", "f64", p.text)
    sizes = {n: SIZES[i % len(SIZES)] for i, n in enumerate(p.unknown)}
    random = np.random.default_rng(5)
    arguments = [
        np.asarray(a + random.uniform(-0.4, 0.4, np.shape(a))) if a.dtype.kind == "f" else a
        for a in (np.asarray(v) for v in p.inputs(sizes, 0))
    ]
    arguments = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arguments]
    try:
        module = parsed(text)
    except (ParseError, VerifyException, CompileError):
        return  # it depends on a narrow float: a bitcast, a number beyond its range
    try:
        derived = Derived(module)
        compared = check(derived, arguments, kinks="nd.clamp " in text)
        tally.differentiated += bool(derived.wrt and derived.of)
        tally.elements += compared.elements
        name = "main_vjp" if derived.wrt and derived.of else "main"
        _check_batch(derived, name, arguments)
        tally.batched += 1
    except CompileError as error:
        if not REFUSALS.search(str(error)):
            raise
        tally.refused += 1
    except Exhausted:
        tally.refused += 1


def _check_batch(derived: Derived, name: str, arguments: Sequence[Array]) -> None:
    """Fail unless a batch gives the results of its single examples."""
    module = derived.module
    function = next(
        op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == name
    )
    random = np.random.default_rng(9)
    outs = derived.run(arguments)
    given = [*arguments]
    if name != derived.name:
        given += [random.uniform(-1, 1, np.shape(outs[k])) for k in derived.of]
    rows = [
        [np.asarray(a + 0.01 * k) if a.dtype.kind == "f" else a for a in given]
        for k in range(BATCH)
    ]
    write_batch(module, function)
    with np.errstate(all="ignore"):
        ones = [Interpreter(module, fuel=FUEL).call(name, row) for row in rows]
        stacked = [np.stack(each) for each in zip(*rows, strict=True)]
        many = Interpreter(module, fuel=FUEL).call(f"{name}_batch", stacked)
    for number, got in enumerate(many):
        want = np.stack([np.asarray(one[number]) for one in ones])
        said = f"result {number} of a batch of @{name} differs"
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-7, err_msg=said)


def write_batch(module: ModuleOp, function: func.FuncOp) -> func.FuncOp:
    """Write a function that runs ``function`` for a batch, along axis 0 of all arguments."""
    block = function.clone().detach_region(0).detach_block(0)
    last = block.last_op
    assert last is not None
    outs = list(last.operands)
    last.detach()
    last.erase()
    block.add_op(YieldOp(outs))

    def wide(type: Attribute) -> Attribute:
        assert isinstance(type, TensorType)
        return TensorType(type.element_type, [BATCH, *type.get_shape()])

    outer = Block(arg_types=[wide(a.type) for a in block.args])
    results = [wide(v.type) for v in outs]
    n = len(outer.args)
    batch = VmapOp(outer.args, results, Region(block), [0] * n, [0] * len(outs), BATCH)
    outer.add_op(batch)
    outer.add_op(func.ReturnOp(*batch.results))
    types = ([a.type for a in outer.args], results)
    new = func.FuncOp(f"{function.sym_name.data}_batch", types, Region(outer))
    module.body.block.add_op(new)
    expand(batch)
    module.verify()
    return new
