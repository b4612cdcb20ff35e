"""Check bufferize by comparing runs of a host function on tensors and on buffers.

The interpreter runs both functions on the same arguments, without their kernels. A launch hashes
its inputs and draws its results from the hash, so each definition of each tensor has elements of
its own, whatever the kernel computes. A launch on buffers whose hash no launch on tensors had has
read overwritten or undefined memory. One run takes one path through loops and branches, determined
by the random numbers; so there are a few runs, with different arguments. STEPWELL_VERIFY=1 runs
this check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    DenseArrayBase,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation
from xdsl.traits import SymbolTable

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects import kernel
from stepwell.dialects.calling import RESOURCE, call, random_inputs
from stepwell.dialects.interpreter import Exhausted, Interpreter, Value
from stepwell.dialects.readings import Array
from stepwell.dialects.types import dtype
from stepwell.dialects.upstream.scalar import element_of
from stepwell.lowering.bufferize.kernel_summary import KernelSummary
from stepwell.transforms.passes import fail

LIKELY = (0.95, 0.75, 0.4)
"""The probability that a boolean is true, for each run: loops iterate, branches vary."""
FUEL = 4000
"""Limit of one run on tensors, in host ops evaluated: it ends endless loops."""
LARGEST = 1 << 18
"""Limit on the tensors of a checked function, in elements: larger ones would take too long."""
SIZE = 6
"""The size of each `?` of an argument in the first run; each further run adds one."""


@dataclass
class _Host(Interpreter):
    """Interprets host functions; launches return numbers drawn from a hash of their inputs."""

    summary: Callable[[str], KernelSummary] = field(kw_only=True)
    known: set[bytes] | None = field(default=None, kw_only=True)
    """The hashes of inputs that launches may have; None on the run that collects them."""
    garbage: int = field(default=0, kw_only=True)
    """The value of undefined elements."""
    likely: float = field(default=0.5, kw_only=True)
    """The probability that a boolean is true."""
    given: set[bytes] = field(default_factory=set[bytes], init=False)

    def evaluate(self, op: Operation, operands: Sequence[Value]) -> tuple[Value, ...]:
        """Evaluate one op; a launch does not run its kernel."""
        if isinstance(op, kernel.LaunchOp):
            return self._launch(op, operands)
        if isinstance(op, kernel.CheckOp):  # the run continues: only what the guard reads counts
            digest = blake2b(repr(op.guard).encode(), digest_size=16)
            digest.update(repr([int(v) for v in operands]).encode())
            self._read(op, digest.digest())
            return ()
        if isinstance(op, kernel.CallbackOp):
            return self._callback(op, operands)
        found = super().evaluate(op, operands)
        if isinstance(op, tensor.EmptyOp):
            return (np.full_like(found[0], self.garbage),)
        return found

    def _launch(self, op: kernel.LaunchOp, operands: Sequence[Value]) -> tuple[Value, ...]:
        name = op.callee.string_value()
        summary = self.summary(name)
        inputs, results = len(summary.reads_input), len(summary.reads_destination)
        matters = [*summary.reads_input, *summary.reads_destination]
        digest = blake2b(summary.function.sym_name.data.encode(), digest_size=16)
        operands, all_types = _in_rows(op, operands, summary)
        for value, type, read in zip(operands, all_types, matters, strict=False):
            digest.update(str(np.shape(value)).encode())
            if read:
                digest.update(_bits(value, type).tobytes())
        self._read(op, digest.digest())
        outs = operands[inputs : inputs + results]
        types = all_types[inputs : inputs + results]
        seed = int.from_bytes(digest.digest(), "little")
        made = [
            _random_elements(seed + k, np.shape(o), t, self.likely)
            for k, (o, t) in enumerate(zip(outs, types, strict=True))
        ]
        if op.results:
            return tuple(_as_tensor(x, t) for x, t in zip(made, types, strict=True))
        self._check_apart(op, operands, inputs, matters)
        for out, bits in zip(outs, made, strict=True):
            out[...] = bits.view(out.dtype).reshape(out.shape)
        for scratch in operands[inputs + results :]:
            scratch[...] = 1
        return ()

    def _callback(self, op: kernel.CallbackOp, operands: Sequence[Value]) -> tuple[Value, ...]:
        """Evaluate a callback: its results are drawn from a hash of its inputs."""
        digest = blake2b(op.function.data.encode(), digest_size=16)
        for value, v in zip(operands, op.inputs, strict=False):
            digest.update(_bits(value, v.type).tobytes())
        self._read(op, digest.digest())
        seed = int.from_bytes(digest.digest(), "little")
        types = [v.type for v in (*op.outputs, *op.results_)]
        made = [
            _random_elements(seed + k, t.get_shape(), t, self.likely)
            for k, t in enumerate(types)
            if isinstance(t, TensorType | MemRefType)
        ]
        for out, bits in zip(operands[len(op.inputs) :], made, strict=False):
            out[...] = bits.view(out.dtype).reshape(out.shape)
        if op.outputs:
            return ()
        return tuple(_as_tensor(x, t) for x, t in zip(made, types, strict=True))

    def _read(self, op: Operation, digest: bytes) -> None:
        """Record the hash of an op's inputs; fail if no op on tensors had it."""
        self.given.add(digest)
        if self.known is not None and digest not in self.known:
            fail(op, f"compiler bug: after bufferize {op.name} reads what was overwritten")

    def _check_apart(
        self, op: kernel.LaunchOp, operands: Sequence[Value], inputs: int, matters: Sequence[bool]
    ) -> None:
        """Fail if a destination of a launch aliases an operand and the kernel does not allow it."""
        callee = SymbolTable.lookup_symbol(self.module, op.callee)
        allowed = callee.attributes.get("kernel.in_place") if callee is not None else None
        pairs: set[tuple[int, ...]] = set()
        if isinstance(allowed, ArrayAttr):
            pairs = {tuple(p.get_values()) for p in allowed if isinstance(p, DenseArrayBase)}
        for j in range(inputs, len(operands)):
            for i in [*(i for i in range(inputs) if matters[i]), *range(inputs, j)]:
                x, y = operands[i], operands[j]
                if not isinstance(x, np.ndarray) or not np.shares_memory(x, y):
                    continue
                same = x.ctypes.data == y.ctypes.data and x.strides == y.strides
                if (i, j) not in pairs or not same:
                    fail(op, f"compiler bug: this launch writes operand {j} over operand {i}")


def _in_rows(
    op: kernel.LaunchOp, operands: Sequence[Value], summary: KernelSummary
) -> tuple[Sequence[Value], Sequence[Attribute]]:
    """Return a launch's operands and types, a stack as destination being split into its rows."""
    inputs, results = len(summary.reads_input), len(summary.reads_destination)
    types = [v.type for v in op.operands]
    if len(op.outputs) == results + (0 if op.results else len(summary.extras)):
        return operands, types
    whole, arguments = operands[inputs], summary.function.body.block.args[inputs:]
    assert isinstance(whole, np.ndarray)
    shapes = [a.type.get_shape() for a in arguments if isinstance(a.type, TensorType)]
    rows = [row[: prod(s)].reshape(s) for row, s in zip(whole, shapes, strict=True)]
    kinds = [types[inputs]] * results
    return (
        [*operands[:inputs], *rows, *operands[inputs + 1 :]],
        [*types[:inputs], *kinds, *types[inputs + 1 :]],
    )


def _bits(value: Value, type: Attribute) -> Array:
    """Return the elements in their memory representation, contiguous."""
    array = np.ascontiguousarray(value)
    if isinstance(type, TensorType) and isinstance(element_of(type), BFloat16Type):
        return (array.view(np.uint32) >> 16).astype(np.uint16)
    return array


def _random_elements(
    seed: int, shape: Sequence[int], type: Attribute, likely: float = 0.5
) -> Array:
    """Return random elements in their memory representation.

    likely : the probability that a boolean is true
    """
    random, kind = np.random.default_rng(seed), dtype(element_of(type))
    if kind.kind == "bool":
        return np.asarray(random.random(shape) < likely)
    if kind.name == "bf16":
        return random.integers(0, 1 << 14, shape).astype(np.uint16)
    if kind.kind == "float":
        return np.asarray(random.standard_normal(shape)).astype(kind.numpy)
    bits = min(8 * kind.bytes - 1, 30)
    return np.asarray(random.integers(-(1 << bits), 1 << bits, shape)).astype(kind.numpy)


def _as_tensor(bits: Array, type: Attribute) -> Array:
    if isinstance(element_of(type), BFloat16Type):
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits


def compare_runs(
    before: ModuleOp, after: ModuleOp, summary: Callable[[str], KernelSummary]
) -> None:
    """Fail if a launch of ``after``, on buffers, reads other elements than any on tensors.

    before : the module on tensors
    summary : returns the summary of a kernel by its name in either module
    """
    for function in before.ops:
        if isinstance(function, func.FuncOp) and _is_checked(function):
            for run in range(len(LIKELY)):
                _check(function, before, after, summary, run)


def _is_checked(function: func.FuncOp) -> bool:
    if not function.body.blocks or not function.function_type.outputs.data:
        return False
    if not all(isinstance(a.type, TensorType) for a in function.args):
        return False
    shapes = (
        r.type.get_shape()
        for op in function.walk()
        for r in op.results
        if isinstance(r.type, TensorType)
    )
    return all(prod(SIZE if n == DYNAMIC else n for n in s) <= LARGEST for s in shapes)


def _check(
    function: func.FuncOp,
    before: ModuleOp,
    after: ModuleOp,
    summary: Callable[[str], KernelSummary],
    run: int,
) -> None:
    name, random, likely = function.sym_name.data, np.random.default_rng(run), LIKELY[run]
    inputs = random_inputs(function, SIZE + run, random)
    resources = _random_weights(before, random)
    wanted: list[Any] = []
    hosts = [
        _Host(before, resources, FUEL, summary=summary, garbage=g, likely=likely) for g in (0, 1)
    ]
    with suppress(Exhausted, ValueError, IndexError):
        wanted = [call(host, name, inputs) for host in hosts]
    if not wanted or hosts[0].given != hosts[1].given or not _equal(*wanted):
        return  # it runs too long, the sizes do not fit, or it reads undefined elements
    host = _Host(after, resources, 4 * FUEL, summary=summary, known=hosts[0].given, likely=likely)
    got = call(host, name, inputs)
    if not _equal(got, wanted[0]):
        fail(
            _lookup(after, name), "compiler bug: after bufferize the function returns other tensors"
        )


def _random_weights(module: ModuleOp, random: np.random.Generator) -> dict[str, Array]:
    """Return random elements for each weight that a function takes, by name."""
    found: dict[str, Array] = {}
    for function in module.ops:
        if isinstance(function, func.FuncOp) and function.arg_attrs is not None:
            for argument, attributes in zip(function.args, function.arg_attrs, strict=True):
                name = attributes.data.get(RESOURCE)
                if isinstance(name, StringAttr) and isinstance(argument.type, TensorType):
                    bits = _random_elements(
                        int(random.integers(1 << 30)), argument.type.get_shape(), argument.type
                    )
                    found[name.data] = _as_tensor(bits, argument.type)
    return found


def _lookup(module: ModuleOp, name: str) -> Operation:
    found = SymbolTable.lookup_symbol(module, name)
    assert found is not None
    return found


def _equal(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two lists of results are bitwise equal."""
    return all(
        np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes()
        for x, y in zip(a, b, strict=True)
    )
