"""Turn masks into loop bounds.

Before:  scf.for %i = %c0 to %c9 iter_args(%acc = %zero) {
           %c = arith.cmpi slt, %i, %n
           %v = arith.select %c, %x, %zero
           %s = arith.addf %acc, %v
           scf.yield %s }
After:   %m = arith.minsi %c9, %n
         scf.for %i = %c0 to %m iter_args(%acc = %zero) {
           %s = arith.addf %acc, %x
           scf.yield %s }

An iteration in which a comparison of the counter with an invariant number is false, and which
then yields its arguments unchanged, need not run. Windows with dynamic bounds are such masks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import FloatAttr, IndexType, i1
from xdsl.ir import Block, Operation, OpResult, SSAValue

from stepwell.dialects.upstream.effects import touches_nothing
from stepwell.transforms.structured.scalar_loops.bounds import number_of, of_type
from stepwell.transforms.structured.scalar_loops.code import Code
from stepwell.transforms.structured.scalar_loops.flow import is_outside

Tests = dict[SSAValue, None]
"""Conditions that must all hold for an iteration to have an effect."""
Limits = tuple[SSAValue, SSAValue]

INDEX = IndexType()


def narrowed(code: Code, block: Block, limits: Limits) -> Limits:
    """Return the bounds between which a unit-step loop has an effect; unmask its body.

    block : the finished body; its arguments are the index and the carried values
    """
    last = block.last_op
    assert last is not None
    tests = _common(
        _needed(value, argument)
        for argument, value in zip(block.args[1:], last.operands, strict=True)
    )
    low, high = limits
    held: list[SSAValue] = []
    for test in tests:
        found = _limit(code, block, test)
        if found is None:
            continue
        least, most = found
        low = low if least is None else code.number(arith.MaxSIOp(low, least))
        high = high if most is None else code.number(arith.MinSIOp(high, most))
        held.append(test)
    if held:
        _unmask(block, held)
    return low, high


def _common(each: Iterable[Tests]) -> Tests:
    found: Tests | None = None
    for tests in each:
        found = tests if found is None else {t: None for t in found if t in tests}
    return found or {}


def _needed(value: SSAValue, given: SSAValue) -> Tests:
    """Return the conditions implied by ``value`` differing from ``given``."""
    match value.owner:
        case tensor.InsertOp(scalar=scalar, dest=dest) as store if dest is given:
            return _changed(scalar, store)
        case arith.SelectOp(cond=condition, lhs=changed, rhs=kept) if kept is given:
            return {**_conjuncts(condition), **_needed(changed, given)}
        case scf.ForOp() as loop:
            assert isinstance(value, OpResult)
            if loop.iter_args[value.index] is not given:
                return {}
            body = loop.body.block
            last = body.last_op
            assert last is not None
            return _needed(last.operands[value.index], body.args[value.index + 1])
        case scf.IfOp() as branch:
            assert isinstance(value, OpResult)
            new, old = (region.block.last_op for region in branch.regions)
            assert new is not None and old is not None
            if old.operands[value.index] is not given:
                return {}
            return {**_implied(branch.cond), **_needed(new.operands[value.index], given)}
        case Operation() as op if (neutral := _neutral(op)) is not None and given in op.operands:
            other = op.operands[1 if op.operands[0] is given else 0]
            return _counted(other, neutral)
        case _:
            return {}


def _implied(condition: SSAValue) -> Tests:
    """Return the comparisons without which ``condition`` is false."""
    return {v: None for v in _comparisons(condition, {}) if _without(v, condition) == 0}


def _comparisons(value: SSAValue, seen: Tests) -> Tests:
    """Return the comparisons that a number is computed by."""
    if value in seen or not isinstance(op := value.owner, (arith.CmpiOp, *_COMPUTED)):
        return seen
    seen = {**seen, value: None} if isinstance(op, arith.CmpiOp) else seen
    for operand in op.operands:
        seen = _comparisons(operand, seen)
    return seen


_COMPUTED = (arith.AndIOp, arith.SelectOp, arith.AddiOp, arith.IndexCastOp)


def _without(test: SSAValue, value: SSAValue) -> int | None:
    """Return what an integer is where the comparison ``test`` is false; None if unknown."""
    if value is test:
        return 0
    if (known := number_of(value)) is not None:
        return abs(known) if value.type == i1 else known
    match value.owner:
        case arith.AndIOp(lhs=a, rhs=b) if value.type == i1:
            sides = [_without(test, a), _without(test, b)]
            return 0 if 0 in sides else (1 if None not in sides else None)
        case arith.SelectOp(cond=condition, lhs=a, rhs=b):
            holds = _without(test, condition)
            return None if holds is None else _without(test, a if holds else b)
        case arith.IndexCastOp(input=inner):
            return _without(test, inner)
        case arith.AddiOp(lhs=a, rhs=b):
            x, y = _without(test, a), _without(test, b)
            held = of_type(value.type)
            total = None if x is None or y is None else x + y
            inside = total is not None and held is not None and held[0] <= total <= held[1]
            return total if inside else None
        case arith.CmpiOp(lhs=a, rhs=b) as compared:
            x, y = _without(test, a), _without(test, b)
            return None if x is None or y is None else int(_compare(compared, x, y))
        case _:
            return None


def _compare(op: arith.CmpiOp, x: int, y: int) -> bool:
    predicate = op.predicate.value.data
    if predicate > 5:  # unsigned, where negative numbers are the greatest
        x, y = (-x, -y) if (x < 0) != (y < 0) else (x, y)
    return (x == y, x != y, x < y, x <= y, x > y, x >= y)[
        predicate - 4 if predicate > 5 else predicate
    ]


def _changed(scalar: SSAValue, store: tensor.InsertOp) -> Tests:
    """Return the conditions implied by a store changing its element."""
    match scalar.owner:
        case arith.SelectOp(cond=condition, lhs=new, rhs=old) if _reads(old, store):
            return {**_conjuncts(condition), **_changed(new, store)}
        case _:
            return {}


def _reads(value: SSAValue, store: tensor.InsertOp) -> bool:
    """Whether ``value`` is the element that the store overwrites."""
    match value.owner:
        case tensor.ExtractOp(tensor=array, indices=at):
            return array is store.dest and list(at) == list(store.indices)
        case _:
            return False


def _counted(value: SSAValue, neutral: float) -> Tests:
    """Return the conditions implied by ``value`` differing from ``neutral``."""
    match value.owner:
        case arith.SelectOp(cond=condition, lhs=new, rhs=other) if _constant(other) == neutral:
            return {**_conjuncts(condition), **_counted(new, neutral)}
        case Operation() as op if neutral == 0 and isinstance(op, _KEEPING_ZERO):
            return _counted(op.operands[0], neutral)
        case arith.MulfOp(lhs=a, rhs=b) if neutral == 0:  # 0 * b may be a NaN
            return _common([_counted(a, neutral), _counted(b, neutral)])
        case arith.MuliOp(lhs=a, rhs=b) if neutral == 0:
            return {**_counted(a, neutral), **_counted(b, neutral)}
        case arith.AndIOp() if neutral == 0 and value.type == i1:
            return _conjuncts(value)
        case arith.CmpiOp() if neutral == 0:
            return {value: None}
        case _:
            return {}


_KEEPING_ZERO = (arith.NegfOp, arith.ExtFOp, arith.TruncFOp, arith.ExtSIOp, arith.ExtUIOp)


def _conjuncts(condition: SSAValue) -> Tests:
    """Return the comparisons whose conjunction ``condition`` is."""
    match condition.owner:
        case arith.AndIOp(lhs=a, rhs=b):
            return {**_conjuncts(a), **_conjuncts(b)}
        case arith.CmpiOp():
            return {condition: None}
        case _:
            return {}


def _neutral(op: Operation) -> float | None:
    """Return the neutral element of a reduction's ``op``."""
    match op:
        case arith.AddfOp() | arith.AddiOp() | arith.OrIOp() | arith.XOrIOp():
            return 0
        case arith.MulfOp() | arith.MuliOp():
            return 1
        case arith.MaximumfOp() | arith.MaxnumfOp():
            return -inf
        case arith.MinimumfOp() | arith.MinnumfOp():
            return inf
        case arith.MaxSIOp() | arith.MinSIOp() if held := of_type(op.results[0].type):
            return held[0] if isinstance(op, arith.MaxSIOp) else held[1]
        case arith.MaxUIOp():
            return 0
        case arith.AndIOp():
            return 1 if op.result.type == i1 else None
        case _:
            return None


def _constant(value: SSAValue) -> float | None:
    match value.owner:
        case arith.ConstantOp(value=FloatAttr(value=number)):
            return number.data
        case _:
            number = number_of(value)
            return abs(number) if number is not None and value.type == i1 else number


def _limit(
    code: Code, block: Block, test: SSAValue
) -> tuple[SSAValue | None, SSAValue | None] | None:
    """Return the lower and upper limit of the index within which a comparison of it holds."""
    compared = test.owner
    assert isinstance(compared, arith.CmpiOp)
    predicate, bounds, index = compared.predicate.value.data, code.bounds, block.args[0]
    (a, more), (b, less) = bounds.sum_of(compared.lhs), bounds.sum_of(compared.rhs)
    if b is index and a is not index:
        turned = _TURNED.get(predicate)
        return None if turned is None else _between(code, block, turned, compared.lhs, less)
    if a is not index or b is index or predicate not in _TURNED:
        return None
    return _between(code, block, predicate, compared.rhs, more)


_EQ, _SLT, _SLE, _SGT, _SGE = 0, 2, 3, 4, 5
_TURNED = {_EQ: _EQ, _SLT: _SGT, _SLE: _SGE, _SGT: _SLT, _SGE: _SLE}


def _between(
    code: Code, block: Block, predicate: int, number: SSAValue, more: int
) -> tuple[SSAValue | None, SSAValue | None] | None:
    """Return the limits of an index for which ``index + more`` compares with ``number``."""
    held = code.bounds.of(number)
    if held is None or not _is_small(held[0]) or not _is_small(held[1]) or not _is_small(more):
        return None
    fixed = _hoisted(code, block, number)
    if fixed is None:
        return None
    at = (
        fixed if isinstance(fixed.type, IndexType) else code.number(arith.IndexCastOp(fixed, INDEX))
    )
    code.bounds.note(at, held)

    def past(by: int) -> SSAValue:
        return code.add(at, code.index(by - more))

    match predicate:
        case 2:
            return None, past(0)
        case 3:
            return None, past(1)
        case 4:
            return past(1), None
        case 5:
            return past(0), None
        case _:
            return past(0), past(1)


def _is_small(number: int) -> bool:
    """Whether arithmetic near a number cannot wrap around."""
    return abs(number) <= 1 << 60


def _hoisted(code: Code, block: Block, value: SSAValue) -> SSAValue | None:
    """Return a loop-invariant number, computed before the loop; None if it varies."""
    if is_outside(value, block):
        return value
    op = value.owner
    if isinstance(op, Block) or op.regions or not touches_nothing(op):
        return None
    if isinstance(op, tensor.ExtractOp | tensor.DimOp):
        return None
    given = [_hoisted(code, block, v) for v in op.operands]
    if any(v is None for v in given):
        return None
    known = {old: new for old, new in zip(op.operands, given, strict=True) if new is not None}
    return code.number(op.clone(known), value.name_hint)


def _unmask(block: Block, held: Sequence[SSAValue]) -> None:
    """Fold the conditions that hold in every iteration of a body."""
    true = {*held}
    for op in block.walk():
        match op:
            case arith.AndIOp(lhs=a, rhs=b) if a in true and b in true:
                true.add(op.result)
            case arith.AndIOp(lhs=a, rhs=b) if a in true or b in true:
                op.result.replace_all_uses_with(b if a in true else a)
            case arith.SelectOp() if op.cond in true:
                op.result.replace_all_uses_with(op.lhs)
            case _:
                pass
