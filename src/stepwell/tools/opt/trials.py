"""Inputs for the trials of a function: sizes for its `?`, and numbers at which rewrites go wrong.

Independent sizes are different, some beyond 64. There are trials with random numbers, numbers with
ties, zeros, one special value among random ones (many would hide each other in a sum), and numbers
near constants that the program compares with. In further trials every pair of special values occurs
at the same place of two arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    ShapedType,
    StringAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute

from stepwell.analysis.equal_sizes import equal_sizes
from stepwell.core.checks import Check, first_failure
from stepwell.core.diagnostics import CompileError
from stepwell.core.dtypes import DType
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.calling import RESOURCE, ROLE, attributes_of
from stepwell.dialects.checks import read_checks, read_served
from stepwell.dialects.nd.contraction import ConvolutionOp
from stepwell.dialects.nd.syntax import axes
from stepwell.dialects.readings import Array
from stepwell.dialects.sizing import sizing_of
from stepwell.dialects.types import dtype
from stepwell.dialects.upstream.memory import to_memory
from stepwell.dialects.upstream.scalar import element_of, numpy_type

MILD = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5, 0.5)
"""Special values whose sums and products keep their class (NaN, infinity) in any order."""
ELEMENTS = 1500
"""The approximate number of special values for each argument, which bounds the trials."""
MAX_TRIALS = 50
OWN = 8
"""The number of trials with constants of the program."""
LONGER = 64
"""The number of iterations that the sizes of some trials exceed."""


@dataclass(frozen=True)
class Inputs:
    """Arguments of one call."""

    what: str
    values: Sequence[Array]
    huge: bool = False
    """Whether numbers are so large or small that the order of operations matters much."""
    rank: int = 0
    """The number of earlier inputs for the same sizes: later ones are dropped first."""


@dataclass(frozen=True)
class _Argument:
    kind: DType | None
    """None for an index."""
    shape: tuple[int, ...]
    type: Attribute


def trials(module: ModuleOp, function: func.FuncOp) -> Iterator[Inputs]:
    """Yield arguments for a function; `TypeError` where an argument is no array."""
    finite = any(isinstance(op, ConvolutionOp) and _has_holes(op) for op in module.walk())
    for inputs in _random_inputs(module, function):
        yield replace(inputs, values=list(map(_finite, inputs.values))) if finite else inputs


def _has_holes(op: ConvolutionOp) -> bool:
    """Whether a convolution is dilated: the result of its zeros with NaN is unspecified."""
    return max(axes(op.lhs_dilation), default=1) > 1


def _finite(values: Array) -> Array:
    if np.isfinite(values).all():
        return values
    return np.where(np.isfinite(values), values, np.ones_like(values))


def _random_inputs(module: ModuleOp, function: func.FuncOp) -> Iterator[Inputs]:
    arguments = _arguments(function)
    unknown = [n for a in arguments for n in a.shape if n == DYNAMIC]
    own = _program_constants(module)
    if not unknown:
        created = _numbers([a.shape for a in arguments], arguments, own, "")
        yield from (replace(inputs, rank=rank) for rank, inputs in enumerate(created))
        return
    for number, sizes in enumerate(_sizes(module, function, len(unknown))):
        rest = iter(sizes)
        shapes = [tuple(next(rest) if n == DYNAMIC else n for n in a.shape) for a in arguments]
        what = f", ? = {', '.join(map(str, sizes))}"
        created = _numbers(shapes, arguments, own, what)
        small = 0 < max(sizes) <= LONGER
        for rank, inputs in enumerate(created):
            if rank and (not small or rank > (12 if number < 3 else 2)):
                break
            yield replace(inputs, rank=rank)


def _program_constants(module: ModuleOp) -> list[float]:
    """Return the constants of a program except 0 and 1, near which comparisons may change."""
    found: dict[float, None] = {}
    for op in module.walk():
        value = {**op.properties, **op.attributes}.get("value")
        if isinstance(value, IntegerAttr | FloatAttr):
            number = value.value.data
        elif isinstance(value, DenseIntOrFPElementsAttr) and value.is_splat():
            number = next(iter(value.get_values()))
        else:
            continue
        if math.isfinite(number) and number not in (0, 1, -1):
            found[number] = None
        if len(found) >= OWN:
            break
    return list(found)


def _arguments(function: func.FuncOp) -> list[_Argument]:
    found: list[_Argument] = []
    for number, argument in enumerate(function.args):
        noted = attributes_of(function, number)
        role = noted.get(ROLE, StringAttr("input"))
        if RESOURCE in noted or role != StringAttr("input"):
            continue
        type = argument.type
        shape = type.get_shape() if isinstance(type, ShapedType) else ()
        if isinstance(type, IndexType):
            found.append(_Argument(None, (), type))
            continue
        if isinstance(type, ShapedType) and not isinstance(
            type, TensorType | MemRefType | VectorType
        ):
            raise TypeError(f"it takes an argument of type {type}")
        found.append(_Argument(dtype(element_of(type)), tuple(shape), type))
    return found


def _sizes(module: ModuleOp, function: func.FuncOp, count: int) -> Iterator[tuple[int, ...]]:
    """Yield values of each `?`: equal and different, zero, one, few, more than 64."""
    random = np.random.default_rng(count)
    checks, groups = _constraints(module, function, count)
    roots = sorted(set(groups))

    def spread(sizes: dict[int, int]) -> tuple[int, ...]:
        return tuple(sizes[root] for root in groups)

    def apart() -> dict[int, int]:
        return {root: int(random.choice((1, 2, 3, 5, 7))) for root in roots}

    wanted = [{root: n for root in roots} for n in (7, 1, 0, 33)]
    wanted[1:1] = [apart(), apart()]
    for root in roots[:4]:
        wanted.append(apart() | {root: LONGER + int(random.integers(1, 64))})
        if len(roots) > 1:
            wanted.append(apart() | {root: 0})
    seen: set[tuple[int, ...]] = set()
    for sizes in wanted:
        for attempt in range(20):
            found = spread(sizes)
            if not first_failure(checks, found):
                if found not in seen:
                    seen.add(found)
                    yield found
                break
            sizes = apart() if attempt % 2 else {root: int(random.integers(0, 9)) for root in roots}
    if not seen:
        yield spread({root: 7 for root in roots})


def _constraints(
    module: ModuleOp, function: func.FuncOp, count: int
) -> tuple[Sequence[Check], list[int]]:
    """Return the constraints on the `?`, and for each the first one that it must equal."""
    served = [Check(each, ("not served",)) for each in read_served(function)]
    checks: Sequence[Check] = (*read_checks(function), *served)
    equal: list[tuple[int, int]] = []
    with suppress(CompileError, AssertionError, KeyError, ValueError):
        sizing = sizing_of(function)
        checks = (*checks, *(sizing.finished() if sizing is not None else ()))
    with suppress(AssertionError, KeyError, ValueError):
        found = equal_sizes(module, function.sym_name.data)
        equal += [(group[0], other) for group in found.groups for other in group[1:]]
        fixed = [Check(["==", f"d{n}", size], ("",)) for n, size in found.fixed]
        checks = (*checks, *fixed)
    for check in checks:
        match check.holds:
            case ["==", str(a), str(b)]:
                equal.append((int(a[1:]), int(b[1:])))
            case _:
                pass
    groups = list(range(count))
    for a, b in equal:
        low, high = sorted((groups[a], groups[b]))
        groups = [low if g == high else g for g in groups]
    return checks, groups


def _numbers(
    shapes: Sequence[tuple[int, ...]],
    arguments: Sequence[_Argument],
    own: Sequence[float],
    sizes: str,
) -> Iterator[Inputs]:
    """Yield numbers for arguments of these shapes."""
    random = np.random.default_rng([len(shapes), *(n for shape in shapes for n in shape)])
    draw = _Draw(random, [a.kind for a in arguments], shapes)
    yield Inputs(f"random inputs{sizes}", draw.all(draw.normal))
    yield Inputs(f"boundary inputs{sizes}", draw.pairs(0, huge=False))
    yield Inputs(f"boundary inputs{sizes}", draw.pairs(0, huge=True), huge=True)
    yield Inputs(f"small whole inputs{sizes}", draw.all(draw.ties))
    yield Inputs(f"zeros{sizes}", draw.all(lambda _, kind, shape: np.zeros(shape)))
    yield Inputs(f"negative zeros{sizes}", draw.all(lambda _, kind, shape: -np.zeros(shape)))
    for _ in range(4):
        yield Inputs(f"inputs with a special value{sizes}", draw.all(draw.here_and_there))
    huge = any(abs(n) > 1e3 or 0 < abs(n) < 1e-3 for n in own if n % 1)
    for trial in range(min(OWN, 3 * len(own))):
        values = draw.all(draw.own(own, trial))
        yield Inputs(f"numbers of the program{sizes}", values, huge)
    elements = max([1, *(int(np.prod(shape)) for shape in shapes)])
    for trial in range(1, max(2, min(MAX_TRIALS, ELEMENTS // elements // 2))):
        yield Inputs(f"boundary inputs{sizes}", draw.pairs(trial, huge=False))
        yield Inputs(f"boundary inputs{sizes}", draw.pairs(trial, huge=True), huge=True)
    yield Inputs(f"random inputs{sizes}", draw.all(draw.normal))


@dataclass(frozen=True)
class _Draw:
    """Draws arguments by dtypes (None for an index) and shapes."""

    random: np.random.Generator
    kinds: Sequence[DType | None]
    shapes: Sequence[tuple[int, ...]]

    def all(self, how: Callable[[int, DType, tuple[int, ...]], Any]) -> list[Array]:
        """Return all arguments, each from ``how(number, dtype, shape)``."""
        given = enumerate(zip(self.kinds, self.shapes, strict=True))
        return [self._one(how, number, kind, shape) for number, (kind, shape) in given]

    def _one(self, how: Any, number: int, kind: DType | None, shape: tuple[int, ...]) -> Array:
        if kind is None:
            return np.asarray(self.random.integers(0, 4), np.int64)
        values = np.asarray(how(number, kind, shape)).astype(kind.numpy)
        return np.asarray(kind.round(values)).reshape(shape)

    def normal(self, number: int, kind: DType, shape: tuple[int, ...]) -> Any:
        """Draw floats around 1, integers below 100."""
        if kind.kind == "float":
            return self.random.standard_normal(shape)
        return self.random.integers(0, 2 if kind.kind == "bool" else 100, shape)

    def ties(self, number: int, kind: DType, shape: tuple[int, ...]) -> Any:
        """Draw integers so small that most occur twice."""
        low = 0 if kind.kind in ("bool", "unsigned") else -2
        return self.random.integers(low, 2 if kind.kind == "bool" else 3, shape)

    def here_and_there(self, number: int, kind: DType, shape: tuple[int, ...]) -> Any:
        """Draw as `normal` does, with one special value."""
        values = np.array(self.normal(number, kind, shape)).astype(kind.numpy)
        if values.size:
            special = self.random.choice(_special(kind, huge=False))
            values.reshape(-1)[self.random.integers(values.size)] = special
        return values

    def own(self, numbers: Sequence[float], trial: int) -> Callable[..., Any]:
        """Return a function that draws constants of the program, their neighbours, and others."""

        def about(number: int, kind: DType, shape: tuple[int, ...]) -> Any:
            if kind.kind == "bool":
                return self.normal(number, kind, shape)
            if kind.kind == "float":
                exact = [kind.round(np.array(n)) for n in numbers]
                values = [v for n in exact for v in (n, np.nextafter(n, n.dtype.type(np.inf)), -n)]
            else:
                limits = np.iinfo(kind.numpy)
                near = [n + k for n in map(int, numbers) for k in (0, 1, -1)]
                values = [n for n in near if limits.min <= n <= limits.max] or [0]
            places = np.arange(int(np.prod(shape))) * (2 * number + 1) + trial
            drawn = np.array(values, kind.numpy)[places % len(values)].reshape(shape)
            if drawn.size > 1:
                drawn.reshape(-1)[1::2] = np.ravel(self.normal(number, kind, shape))[1::2]
            return drawn

        return about

    def pairs(self, trial: int, huge: bool) -> list[Array]:
        """Return special values only; after some trials each pair of them has met."""

        def special(number: int, kind: DType, shape: tuple[int, ...]) -> Any:
            values, size = _special(kind, huge), int(np.prod(shape))
            if number >= 2:
                return self.random.choice(values, shape)
            places = np.arange(size) + trial * max(size, 1)
            return values[places // (len(values) if number else 1) % len(values)].reshape(shape)

        return self.all(special)


def _special(kind: DType, huge: bool) -> Array:
    """Return values at which rewrites go wrong."""
    if kind.kind == "bool":
        return np.array([False, True])
    if kind.kind == "float":
        values = kind.round(np.array(MILD).astype(kind.numpy))
        if not huge:
            return values
        limits = np.finfo(kind.numpy)
        most = 3.3895313892515355e38 if kind.name == "bf16" else limits.max
        least = np.nextafter(np.zeros((), kind.numpy), np.ones((), kind.numpy))
        few = [most, -most, limits.tiny, least, np.nextafter(kind.numpy.type(0.5), 0)]
        return kind.round(np.array([*values, *few], kind.numpy))
    limits = np.iinfo(kind.numpy)
    few = [n for n in (-3, -1, 0, 1, 2, 7) if n >= limits.min]
    return np.array([*few, limits.max, limits.min, limits.max - 1, limits.min + 1], kind.numpy)


def as_given(inputs: Inputs, function: func.FuncOp) -> list[Array]:
    """Return copies of the arguments in the function's current types, which may be signless.

    Buffers of the caller have their layout in memory.
    """
    arguments = _arguments(function)
    plain = not any(ROLE in attributes_of(function, n) for n in range(len(function.args)))
    given: list[Array] = []
    for value, argument in zip(inputs.values, arguments, strict=True):
        array = np.array(value, order="C")
        if argument.kind is not None:
            wanted = numpy_type(element_of(argument.type))
            unsigned = array.dtype.kind == "u" and wanted.kind == "i"
            array = array.view(wanted) if unsigned else array
        if plain and isinstance(argument.type, MemRefType):
            array = np.array(to_memory(array, argument.type), order="C")
        is_array = isinstance(argument.type, ShapedType)
        given.append(array if is_array else array[()])
    return given
