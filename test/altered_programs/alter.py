"""Alter one thing in an op: a type, an operand, a property, an argument of a block."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    BFloat16Type,
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FunctionType,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    TensorType,
    UnregisteredOp,
    VectorType,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

SCALARS: Sequence[Attribute] = (
    *(f16, f32, f64, BFloat16Type()),
    *(i1, i8, i32, i64, IndexType()),
)
SHAPED = (TensorType, MemRefType, VectorType)
MAKE = UnregisteredOp.with_name("test.make")


def made(kind: Attribute) -> Operation:
    """Return an op that nobody knows, which makes a value."""
    return MAKE.create(result_types=[kind], attributes={"op_name__": _named()})


def _named() -> Attribute:
    from xdsl.dialects.builtin import StringAttr

    return StringAttr("test.make")


def alone(op: Operation) -> Block:
    """Return a block in which ``op`` stands alone: what it uses is made by ops nobody knows."""
    inside = {result for each in op.walk() for result in each.results}
    inside |= {a for each in op.walk() for r in each.regions for b in r.blocks for a in b.args}
    block, known = Block(), dict[SSAValue, SSAValue]()
    for each in op.walk():
        for value in each.operands:
            if value not in inside and value not in known:
                block.add_op(new := made(value.type))
                known[value] = new.results[0]
    block.add_op(op.clone(known))
    return block


def program(block: Block, symbols: Sequence[Operation]) -> str:
    """Return the text of a module whose only function has this body."""
    if not isinstance(block.last_op, func.ReturnOp):
        block.add_op(func.ReturnOp())
    function = func.FuncOp("main", ((), block.last_op.operand_types), Region(block))  # pyright: ignore
    module = ModuleOp([*(each.clone() for each in symbols), function])
    out = io.StringIO()
    Printer(out, print_generic_format=True).print_op(module)
    return out.getvalue() + "\n"


def altered(block: Block, random: Random) -> bool:
    """Alter one thing in the last op of a block; False where that came to nothing."""
    subject = block.last_op
    assert subject is not None
    op = random.choice(list(subject.walk()))
    ways: list[Callable[[], bool]] = [lambda: _properties(op, random)] * 3
    if op.operands:
        ways += [lambda: _operand(block, op, random)] * 3 + [lambda: _count(op, random)]
    if op.results:
        ways += [lambda: _result(op, random)] * 2
    if any(b.args for r in op.regions for b in r.blocks):
        ways += [lambda: _argument(op, random)]
    try:
        return random.choice(ways)()
    except (VerifyException, ValueError):  # such an attribute cannot be made
        return False


def _operand(block: Block, op: Operation, random: Random) -> bool:
    """Give an op an operand of another type; of all that are one value where it is one."""
    k = random.randrange(len(op.operands))
    old = op.operands[k]
    new = made(another_type(old.type, random))
    assert block.first_op is not None
    block.insert_op_before(new, block.first_op)
    for number, value in enumerate(op.operands):
        if number == k or (value is old and random.random() < 0.5):
            op.operands[number] = new.results[0]
    if op.results and random.random() < 0.3 and op.results[0].type == old.type:
        _retype(op, 0, new.results[0].type)
    return True


def _retype(op: Operation, number: int, kind: Attribute) -> None:
    result = op.results[number]
    result._type = kind  # pyright: ignore


def _result(op: Operation, random: Random) -> bool:
    """Say that an op gives something of another type; who used it uses the old."""
    number = random.randrange(len(op.results))
    _retype(op, number, another_type(op.results[number].type, random))
    return True


def _argument(op: Operation, random: Random) -> bool:
    blocks = [b for r in op.regions for b in r.blocks if b.args]
    argument = random.choice(list(random.choice(blocks).args))
    argument._type = another_type(argument.type, random)  # pyright: ignore
    return True


def _count(op: Operation, random: Random) -> bool:
    """Leave off an operand, or have one twice; sizes of segments follow half of the time."""
    k = random.randrange(len(op.operands))
    operands = list(op.operands)
    change = random.choice((-1, 1))
    operands[k : k + 1] = [] if change < 0 else [operands[k]] * 2
    op.operands = operands
    segments = op.properties.get("operandSegmentSizes")
    if isinstance(segments, DenseArrayBase) and random.random() < 0.7:
        sizes, before = list(segments.get_values()), 0
        for number, size in enumerate(sizes):
            before += int(size)
            if k < before:
                sizes[number] = int(size) + change
                break
        op.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)
    return True


def _properties(op: Operation, random: Random) -> bool:
    names = [n for n in op.properties if n not in ("sym_name", "callee", "sym_visibility")]
    if not names:
        return False
    name = random.choice(names)
    old = op.properties[name]
    if random.random() < 0.1 and name != "operandSegmentSizes":
        del op.properties[name]
        return True
    new = another(old, random)
    op.properties[name] = new
    return new != old


def _number(old: int, random: Random) -> int:
    return random.choice(
        (old + 1, old - 1, 0, 1, 2, 3, -1, 7, 64, 2**31, DYNAMIC_INDEX, old * 2, 2**62)
    )


def another(old: Attribute, random: Random) -> Attribute:
    """Return an attribute like ``old`` but in one thing."""
    match old:
        case IntegerAttr() if old.type == i1:
            return BoolAttr.from_bool(not old.value.data)
        case IntegerAttr():
            if random.random() < 0.2:
                return IntegerAttr(old.value.data, random.choice((i32, i64, IndexType(), i8)))
            return _integer(old, random)
        case DenseArrayBase():
            values = [int(v) for v in cast(Any, old).get_values()]
            _list(values, random, lambda v: _number(v, random), 0)
            width: Any = old.elt_type
            most = 2 ** (31 if width == i32 else 63) - 1
            return DenseArrayBase.from_list(width, [max(-most - 1, min(v, most)) for v in values])
        case ArrayAttr():
            each = list(old.data)
            _list(each, random, lambda v: another(v, random), IntegerAttr(0, i64))
            return ArrayAttr(each)
        case AffineMapAttr():
            return AffineMapAttr(_map(old.data, random))
        case DenseIntOrFPElementsAttr():
            kind: Any = another_type(old.type, random)
            return DenseIntOrFPElementsAttr(kind, old.data)
        case FunctionType():
            inputs, outputs = list(old.inputs.data), list(old.outputs.data)
            _list(random.choice((inputs, outputs)), random, lambda t: another_type(t, random), i32)
            return FunctionType.from_lists(inputs, outputs)
        case _:
            return old


def _integer(old: IntegerAttr[Any], random: Random) -> Attribute:
    return IntegerAttr(_number(old.value.data, random), old.type)


def _list(each: list[Any], random: Random, change: Callable[[Any], Any], first: Any) -> None:
    """Alter one of a list, leave it off, or have it twice."""
    if not each:
        each.append(first)
        return
    k = random.randrange(len(each))
    way = random.random()
    if way < 0.15:
        del each[k]
    elif way < 0.3:
        each.insert(k, each[k])
    elif way < 0.4:
        other = random.randrange(len(each))
        each[k], each[other] = each[other], each[k]
    else:
        each[k] = change(each[k])


def _map(old: AffineMap, random: Random) -> AffineMap:
    results = list(old.results)
    dims = old.num_dims
    way = random.random()
    if way < 0.15:
        dims += random.choice((1, -1 if dims else 1))
    elif way < 0.25:
        return AffineMap(dims, old.num_symbols + 1, tuple(results))
    else:
        d = AffineExpr.dimension(random.randrange(max(dims, 1)))
        choices = (d, d + 1, d * 2, AffineExpr.constant(0), d - 1, d * -1 + 3, d // 2)
        _list(results, random, lambda _: random.choice(choices), d)
    used = [e.position for r in results for e in r.dfs() if isinstance(e, AffineDimExpr)]
    return AffineMap(max([dims, *(p + 1 for p in used)]), old.num_symbols, tuple(results))


def another_type(old: Attribute, random: Random) -> Attribute:
    """Return a type like ``old`` but in one thing."""
    if not isinstance(old, SHAPED):
        if random.random() < 0.25:
            return random.choice(SHAPED)(old, [4])
        if isinstance(old, IntegerType) and random.random() < 0.1:
            return IntegerType(random.choice((3, 17, 128, 2**24 + 5)))
        return random.choice(SCALARS)
    shape, element = list(old.get_shape()), old.element_type
    way = random.random()
    if way < 0.2:
        element = random.choice(SCALARS)
    elif way < 0.3:
        return random.choice(SHAPED)(element, [max(n, 1) for n in shape])
    elif way < 0.35:
        return element
    elif isinstance(old, MemRefType) and way < 0.55:
        return MemRefType(element, shape, _layout(old, random))
    elif isinstance(old, VectorType):
        _list(shape, random, lambda n: random.choice((n + 1, max(n - 1, 1), 2 * n, 1)), 4)
    else:
        sizes = (1, 0, 7, DYNAMIC_INDEX, DYNAMIC_INDEX)
        _list(shape, random, lambda n: random.choice((n + 1 if n > 0 else 3, *sizes)), 4)
    if isinstance(old, MemRefType) and not isinstance(old.layout, NoneAttr):
        return MemRefType(element, shape, old.layout)
    return type(old)(element, shape)


def _layout(old: MemRefType[Any], random: Random) -> Any:
    if isinstance(old.layout, StridedLayoutAttr) and random.random() < 0.6:
        strides = [each.data if isinstance(each, IntAttr) else None for each in old.layout.strides]
        offset = old.layout.offset.data if isinstance(old.layout.offset, IntAttr) else None
        if random.random() < 0.4:
            return StridedLayoutAttr(strides, random.choice((None, 0, 3, 10)))
        _list(strides, random, lambda _: random.choice((None, 0, 1, 2, 3, 8, 4)), 1)
        return StridedLayoutAttr(strides, offset)
    if random.random() < 0.3:
        return NoneAttr()
    rank = old.get_num_dims()
    return StridedLayoutAttr([random.choice((None, 1, 8)) for _ in range(rank)], None)


def subjects(module: ModuleOp) -> Iterator[Operation]:
    """Yield what is altered: every op of the functions' bodies, and every op beside them."""
    for function in module.ops:
        if isinstance(function, func.FuncOp) and function.body.blocks:
            yield from (op for op in function.body.block.ops if op.name != "builtin.unregistered")
        else:
            yield function
