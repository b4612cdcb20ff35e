"""Lists of levels at random, for kernels of every kind: drawn near to what a machine would choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import lcm
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.levels import (
    KernelLevels,
    Lanes,
    check_levels,
    kernel_levels,
    loop_ops,
    rebuilt,
)
from stepwell.analysis.levels.building import (
    Inner,
    around,
    block,
    in_parts,
    in_threads,
    inner_of,
    nest,
    strip,
)
from stepwell.analysis.levels.symmetry import is_symmetric
from stepwell.dialects import kernel
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.kernel.levels import KINDS, TAILS, Action, Level, Levels, Schedule
from stepwell.dialects.parsing import parse_module
from stepwell.driver.pass_pipeline import parse
from stepwell.driver.registry import registry
from stepwell.transforms.kernels.schedule import Schedule as SchedulePass

T = TypeVar("T")
Choose = Callable[[list[T]], T]
"""Draws one of several; the first is the simplest."""
PRODUCT = """
  %y = nd.matmul %a, %b : (tensor<{m}x{k}x{e}>, tensor<{k}x{n}x{e}>) -> tensor<{m}x{n}x{e}>
  %z = nd.relu %y : tensor<{m}x{n}x{e}>
  func.return %z : tensor<{m}x{n}x{e}>"""
BYTES = """
  %y = nd.matmul %a, %b {dtype = i32} : (tensor<7x20xi8>, tensor<20x19xi8>) -> tensor<7x19xi32>
  func.return %y : tensor<7x19xi32>"""
TURNED = """
  %y = nd.dot_general %a, %b contract [1] x [1] : (tensor<6x40xf32>, tensor<5x40xf32>) -> tensor<6x5xf32>
  func.return %y : tensor<6x5xf32>"""
SQUARE = """
  %y = nd.dot_general %a, %a contract [0] x [0] : (tensor<11x37xf32>, tensor<11x37xf32>) -> tensor<37x37xf32>
  %z = nd.relu %y : tensor<37x37xf32>
  func.return %z : tensor<37x37xf32>"""
SOFTMAX = """
  %y = nd.softmax %a {axis = 1} : tensor<9x21xf32>
  func.return %y : tensor<9x21xf32>"""
COLUMNS = """
  %y = nd.reduce_sum %a {axes = [0]} : tensor<37x19xf32> -> tensor<19xf32>
  func.return %y : tensor<19xf32>"""
TOTAL = """
  %y = nd.reduce_max %a {axes = [0, 1]} : tensor<37x19xf32> -> tensor<f32>
  func.return %y : tensor<f32>"""
TRANSPOSE = """
  %y = nd.transpose %a {permutation = [1, 0]} : tensor<23x18xf32> -> tensor<18x23xf32>
  func.return %y : tensor<18x23xf32>"""
CHAIN = """
  %y = nd.add %a, %b : tensor<3x5x17xf32>
  %z = nd.tanh %y : tensor<3x5x17xf32>
  %s = nd.reduce_sum %z {axes = [2]} : tensor<3x5x17xf32> -> tensor<3x5xf32>
  func.return %s : tensor<3x5xf32>"""
CONVOLUTION = """
  %y = nd.convolution %a, %b {low = [1, 1], high = [1, 1]} : (tensor<1x4x6x7xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x7xf32>
  func.return %y : tensor<1x8x6x7xf32>"""
DEPTHWISE = """
  %y = nd.convolution %a, %b {groups = 8, low = [1, 1], high = [1, 1]} : (tensor<1x8x5x9xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x5x9xf32>
  func.return %y : tensor<1x8x5x9xf32>"""
ATTENTION = """
  %s = nd.matmul %a, %b : (tensor<7x6xf32>, tensor<6x19xf32>) -> tensor<7x19xf32>
  %p = nd.softmax %s {axis = 1} : tensor<7x19xf32>
  %y = nd.matmul %p, %c : (tensor<7x19xf32>, tensor<19x18xf32>) -> tensor<7x18xf32>
  func.return %y : tensor<7x18xf32>"""
RUNNING = """
  %y = nd.cumulative_sum %a {axis = 1} : tensor<9x13xf32>
  func.return %y : tensor<9x13xf32>"""
KERNELS: dict[str, tuple[list[str], str, str]] = {
    "product": (["7x20xf32", "20x19xf32"], "7x19xf32", PRODUCT.format(m=7, k=20, n=19, e="f32")),
    "even": (["12x16xf32", "16x32xf32"], "12x32xf32", PRODUCT.format(m=12, k=16, n=32, e="f32")),
    "unknown": (["?x16xf32", "16x32xf32"], "?x32xf32", PRODUCT.format(m="?", k=16, n=32, e="f32")),
    "row": (["1x16xf32", "16x70xf32"], "1x70xf32", PRODUCT.format(m=1, k=16, n=70, e="f32")),
    "half": (["7x20xf16", "20x19xf16"], "7x19xf16", PRODUCT.format(m=7, k=20, n=19, e="f16")),
    "bytes": (["7x20xi8", "20x19xi8"], "7x19xi32", BYTES),
    "turned": (["6x40xf32", "5x40xf32"], "6x5xf32", TURNED),
    "square": (["11x37xf32"], "37x37xf32", SQUARE),
    "softmax": (["9x21xf32"], "9x21xf32", SOFTMAX),
    "columns": (["37x19xf32"], "19xf32", COLUMNS),
    "total": (["37x19xf32"], "f32", TOTAL),
    "transpose": (["23x18xf32"], "18x23xf32", TRANSPOSE),
    "chain": (["3x5x17xf32", "3x5x17xf32"], "3x5xf32", CHAIN),
    "convolution": (["1x4x6x7xf32", "8x4x3x3xf32"], "1x8x6x7xf32", CONVOLUTION),
    "depthwise": (["1x8x5x9xf32", "8x1x3x3xf32"], "1x8x5x9xf32", DEPTHWISE),
    "attention": (["7x6xf32", "6x19xf32", "19x18xf32"], "7x18xf32", ATTENTION),
    "running": (["9x13xf32"], "9x13xf32", RUNNING),
}
OUTLINED = "through(structured),outline-kernels,split-groups,collapse-loops"
LOOPS = "bufferize,linalg-to-loops"
MACHINES = [
    SchedulePass("threads=2,l2=0"),
    SchedulePass("threads=2,l2=256,l1=64,l3=8K"),
    SchedulePass("vector_bits=256,l2=1024,l1=256,l3=32K,threads=4,cores=4"),
    SchedulePass("threads=2,l2=512,l1=1024,l3=512,versions=0"),
]
SIZES = [1, 2, 3, 4, 5, 6, 8, 12, 16, 19, 24, 32, 64]
PACKED = ["", "first", "double_buffered", "dot", "biased_dot"]
ACTIONS = [
    *(Action("pack", n, how) for n in (0, 1) for how in PACKED),
    *(
        Action("prefetch"),
        Action("prefetch", 3),
        Action("grain", 3),
        Action("pipeline", 4),
        Action("mirror"),
    ),
]


@dataclass(frozen=True)
class Subject:
    """A program of kernels, its arguments and what it gives."""

    module: ModuleOp
    arrays: list[NDArray[Any]]
    want: list[NDArray[Any]]

    @property
    def kernels(self) -> list[kernel.FuncOp]:
        """The kernels that have loops."""
        found = (op for op in self.module.ops if isinstance(op, kernel.FuncOp))
        return [function for function in found if loop_ops(function)]


@cache
def subject(name: str) -> Subject:
    """Return the program ``name`` with its kernels outlined."""
    inputs, output, body = KERNELS[name]
    arguments = ", ".join(f"%{c}: tensor<{t}>" for c, t in zip("abc", inputs, strict=False))
    text = f"func.func @main({arguments}) -> tensor<{output}> {{{body}\n}}"
    context = registry().context()
    module = parse_module(context, text, name)
    _run(context, module, OUTLINED)
    random = np.random.default_rng(1)
    arrays = [_array(random, each) for each in inputs]
    return Subject(module, arrays, _called(module, arrays, output))


def _array(random: np.random.Generator, kind: str) -> NDArray[Any]:
    *sizes, element = kind.replace("?", "5").split("x")
    shape = tuple(map(int, sizes))
    if element.startswith("i"):
        return random.integers(-128, 128, shape).astype(f"int{element[1:]}")
    return random.integers(-4, 5, shape).astype(f"float{element[1:]}")


def _run(context: Context, module: ModuleOp, pipeline: str) -> None:
    for step in parse(pipeline, registry().passes):
        step.run(context, module)


def _called(module: ModuleOp, arrays: list[NDArray[Any]], output: str) -> list[NDArray[Any]]:
    """Return what a program of tensors gives, or leaves in its last argument."""
    results = Interpreter(module).call("main", [a.copy() for a in arrays])
    return [np.asarray(each) for each in results]


def near(function: kernel.FuncOp, choose: Choose[Any]) -> Schedule:
    """Return levels near those that a machine would choose; VerifyException where there are none."""
    copy = function.clone()
    machine: SchedulePass = choose(MACHINES)
    machine.apply(Context(), ModuleOp([copy]))
    levels = kernel_levels(copy)
    for _ in range(choose([0, 1, 2, 3, 4])):
        levels = KernelLevels(function, _changed(KernelLevels(function, levels.schedule), choose))
    schedule = levels.schedule
    if levels.in_steps and choose([False, True]):
        schedule = _in_any_order(schedule, levels.shared, choose)
    for _ in range(choose([0, 0, 1, 2, 3])):
        schedule = _edited(schedule, choose)
    return schedule


def _changed(old: KernelLevels, choose: Choose[Any]) -> Schedule:
    """Return the levels of a kernel that differ in one fact."""
    shared, ops, lanes = old.shared, old.ops, list(old.lanes)
    steps = [old.step(k) for k in range(shared)]
    match choose(["lanes", "tile", "steps", "band", "sum", "split", "ahead", "tail"]):
        case "lanes":
            width, many = choose([1, 2, 4, 8]), choose([1, 2, 3, 4])
            number = choose(list(range(len(ops))))
            axis = choose([-1, *range(len(old.loops[number]))])
            new = Lanes(axis, width, many) if axis >= 0 else Lanes()
            lanes = [new if n == number or 0 <= axis < shared else x for n, x in enumerate(lanes)]
            if 0 <= axis < shared:
                steps[axis] = width * many
            return rebuilt(old, lanes=lanes, steps=steps)
        case "tile" if shared >= 2:
            vectors = choose([1, 2, 3]) * (lanes[0].width if old.axis == shared - 1 else 1)
            return rebuilt(old, steps=[*steps[:-2], choose([1, 2, 3, 4, 6]), vectors])
        case "band" if shared:
            return rebuilt(old, steps=[*steps[:-1], choose([1, 2, 3, 5])])
        case "steps":
            count, run = choose(list(range(shared + 1))), choose([0, 0, 2, 5])
            last = max(map(len, old.loops))
            unroll = choose([old.unroll, range(shared, last), [last - 1], ()])
            inner = replace(inner_of(old), unroll=unroll)
            return nest(ops, inner, in_threads(steps[:count], choose([1, 5, 0]), run))
        case "sum" if shared >= 2:
            return _summed_otherwise(old, choose)
        case "split":
            parts, rows = choose([0, 2, 3, 7]), choose([1, 3, 8]) if shared else 0
            if not parts or any(x.axis < 0 for x in lanes) or all(map(all, old.loops)):
                return nest(ops, inner_of(old))
            return in_parts(ops, shared, lanes, parts, rows, choose([0, 1]))
        case "tail":
            return _ended_otherwise(old, choose)
        case _:
            return rebuilt(old, prefetch=choose([0, 1, 2, 7]))


def _summed_otherwise(old: KernelLevels, choose: Choose[Any]) -> Schedule:
    """Return levels of a block or a strip with the same tile."""
    steps = [old.step(k) for k in range(old.shared)]
    tile, split = (steps[-2], steps[-1]), _split(old, choose([2, 4, 5, 8, 16, 40, 1]), choose)
    inner = Inner(steps, [Lanes(old.shared - 1, each.width) for each in old.lanes])
    if choose([True, False]):
        rows, columns = tile[0] * choose([1, 2, 3]), tile[1] * choose([1, 2])
        mirror = is_symmetric(old.ops, old.shared) and choose([True, False])
        sizes = [*[1] * (old.shared - 2), lcm(rows, columns) if mirror else rows, columns]
        return around(old.ops, inner, block(sizes, tile, split, mirror=mirror))
    return around(old.ops, inner, strip(old.shared, choose([8, 12, 64]), tile, split))


def _split(old: KernelLevels, deep: int, choose: Choose[Any]) -> Level:
    """Return a level of the last loop of a sum, with actions at random."""
    loops = next((each for each in old.loops if not all(each)), [False])
    depth = max(k for k, parallel in enumerate(loops) if not parallel)
    actions = [Action("pack", choose([0, 1]), choose(PACKED))]
    actions += [Action("pack", choose([0, 1])), Action("prefetch")]
    return Level("for", depth, deep, actions=tuple(a for a in actions if choose([True, False])))


def _ended_otherwise(old: KernelLevels, choose: Choose[Any]) -> Schedule:
    """Return levels in which a shared loop, or the loops in vectors, end in another way."""
    tail, loop = choose(list(TAILS)), choose(list(range(max(old.shared, 1))))
    if choose([False, True]):
        lanes = [x._replace(tail=tail) if x.axis >= 0 else x for x in old.lanes]
        return rebuilt(old, tails={}, lanes=lanes)
    return rebuilt(old, tails={loop: tail})


def _in_any_order(schedule: Schedule, shared: int, choose: Choose[Any]) -> Schedule:
    """Return the levels of a sum in steps with those around a tile in another order.

    A loop of several levels keeps them in the order of their steps.
    """
    levels = schedule.levels
    walked = [level.loop < shared and level.kind in ("parallel", "for") for level in levels]
    end = max((n for n, each in enumerate(walked, 1) if each), default=0)
    if not end:
        return schedule
    around, inside = [replace(x, kind="for", actions=()) for x in levels[:end]], levels[end:]
    if choose([False, True]):
        level = choose(around)
        around.append(replace(level, step=level.step * choose([2, 3])))
    mixed: list[Level] = []
    while around:
        mixed.append(around.pop(choose(list(range(len(around))))))
    for loop in {level.loop for level in mixed}:
        places = [n for n, level in enumerate(mixed) if level.loop == loop]
        ordered = sorted((mixed[n] for n in places), key=lambda level: -level.step)
        for n, level in zip(places, ordered, strict=True):
            mixed[n] = level
    for n in (0, 1):
        if choose([False, True]):
            at = choose(list(range(len(mixed))))
            mixed[at] = mixed[at].doing(Action("pack", n))
    return Schedule((*mixed, *inside), schedule.ops)


def _edited(schedule: Schedule, choose: Choose[Any]) -> Schedule:
    """Return a schedule in which one level is another one, more, or none."""
    lists: dict[int, Levels] = {-1: schedule.levels, **schedule.ops}
    number = choose(list(lists))
    levels = list(lists[number])
    at = choose(list(range(len(levels) + 1)))
    level = Level(choose(list(KINDS)), choose([0, 1, 2, 3]), choose(SIZES))
    way = choose(["step", "drop", "add", "action", "kind", "tail", "move"])
    if at == len(levels) or way == "add":
        levels.insert(at, level)
    elif way == "drop":
        levels.pop(at)
    elif way == "move":
        levels.insert(choose(list(range(len(levels)))), levels.pop(at))
    elif way == "step":
        levels[at] = replace(levels[at], step=level.step)
    elif way == "kind":
        levels[at] = replace(levels[at], kind=level.kind)
    elif way == "tail":
        levels[at] = replace(levels[at], tail=choose(list(TAILS)))
    else:
        levels[at] = levels[at].doing(choose(ACTIONS))
    lists[number] = tuple(levels)
    return Schedule(lists.pop(-1), lists)


def tried(name: str, choose: Choose[Any]) -> str | None:
    """Draw levels for a kernel of a program and compare what it gives; None where refused.

    AssertionError where levels are accepted but the loops are not made, or compute something else.
    """
    module = subject(name).module.clone()
    function = choose(Subject(module, [], []).kernels)
    try:
        schedule = near(function, choose)
        attribute = kernel.ScheduleAttr(schedule)
        if schedule.has_groups:
            return None
        check_levels(function, schedule)
    except VerifyException:
        return None
    compare(name, module, function, attribute)
    return str(schedule)


def compare(
    name: str, module: ModuleOp, function: kernel.FuncOp, attribute: kernel.ScheduleAttr
) -> None:
    """Run a program, one kernel of which has these levels; AssertionError if it is not right."""
    found, text = subject(name), str(attribute.data)
    for each in Subject(module, [], []).kernels:
        if each is not function:
            MACHINES[0].apply(Context(), ModuleOp([copy := each.clone()]))
            each.attributes = copy.attributes
    function.attributes["kernel.schedule"] = attribute
    outputs = [np.zeros_like(each) for each in found.want]
    try:
        _run(registry().context(), module, LOOPS)
        module.verify()
        Interpreter(module).call("main", [*(a.copy() for a in found.arrays), *outputs])
    except Exception as error:
        raise AssertionError(f"{name}: {text} is accepted, but {error}") from error
    for got, want in zip(outputs, found.want, strict=True):
        loose = 2e-2 if "f16" in KERNELS[name][1] else 2e-5
        np.testing.assert_allclose(got, want, rtol=loose, atol=loose, err_msg=f"{name}: {text}")
