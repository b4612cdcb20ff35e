"""Place all temporaries of a host function in one arena, by their live ranges.

Before:  func.func @main(%x: ..., %y: memref<64xf32> {kernel.role = "output"}) {
           %t = memref.alloc() : memref<64xf32>
After:   func.func @main(%x: ..., %y: ..., %arena: memref<?xi8> {kernel.role = "arena"})
             attributes {kernel.arena_bytes = 256} {
           %t = memref.view %arena[%c0][] : memref<?xi8> to memref<64xf32>
         func.func @main.arena() -> index

Afterwards no `memref.alloc` is left on the host; `@main.arena` computes the arena's bytes from the
`?` of the inputs. A destination takes the memory of an input that dies at its launch where the
kernel's `kernel.in_place` allows it, even if the destination is an output of the function.

Buffers of known size are packed by best fit, in the best of several orders. A buffer of dynamic
size gets a slot above them. Buffers whose live ranges do not overlap share a slot: preferably one
of provably equal size, then one that is provably large enough, then any, which makes the slot as
large as the largest of its buffers at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    i8,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from stepwell.analysis.sizes import Size, Sizes, SizeWriter, product
from stepwell.dialects import kernel
from stepwell.dialects.types import dtype, locate
from stepwell.transforms.buffers.plan_memory.checking import PlanCheck
from stepwell.transforms.buffers.plan_memory.lifetimes import Lifetime, Lifetimes
from stepwell.transforms.buffers.plan_memory.offsets import (
    ALIGNMENT,
    Reservation,
    aligned,
    lower_bound,
    pack,
)
from stepwell.transforms.passes import Pass, fail, remark
from stepwell.transforms.verifying import checks_buffers


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Place the temporaries of each host function in one arena.

    Before:  %t = memref.alloc() : memref<64xf32>
    After:   %t = memref.view %arena[%c0][] : memref<?xi8> to memref<64xf32>

    Afterwards no alloc is left on the host, and `@main.arena` computes the size of the arena.
    """

    name = "plan-memory"
    one_block = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plan every host function of the module."""
        kernels = {k.sym_name.data: k for k in op.ops if isinstance(k, kernel.FuncOp)}
        for function in list(op.ops):
            if isinstance(function, func.FuncOp) and _roles(function):
                if "arena" in _roles(function):
                    fail(function, "this function has an arena already")
                _Plan(function, kernels).write()


def _roles(function: func.FuncOp) -> list[str]:
    """Return the role of each argument, [] if the function is no host function."""
    if function.arg_attrs is None or not function.body.blocks:
        return []
    roles = [a.data.get("kernel.role") for a in function.arg_attrs]
    return [r.data if isinstance(r, StringAttr) else "" for r in roles] if any(roles) else []


@dataclass
class Slot:
    """Memory for buffers whose size is only known at run time."""

    sizes: list[Size]
    """The slot is as large as the largest of these."""
    lives: list[Lifetime] = field(default_factory=list[Lifetime])


class _Plan:
    def __init__(self, function: func.FuncOp, kernels: Mapping[str, kernel.FuncOp]) -> None:
        self.function = function
        self.block = function.body.block
        roles = _roles(function)
        self.outputs = outputs = [
            a for a, r in zip(self.block.args, roles, strict=True) if r == "output"
        ]
        inputs = [a for a, r in zip(self.block.args, roles, strict=True) if r != "output"]
        self.sizes = Sizes(inputs)
        self.lifetimes = Lifetimes(self.block, outputs, kernels)
        self.static: list[Reservation] = []
        self.slots: list[Slot] = []
        self.entry: list[Operation] = []
        """Ops to insert at the beginning of the function."""
        self.offsets: dict[Lifetime, int] = {}
        self.slot_of: dict[Lifetime, int] = {}
        for life in self.lifetimes.temporaries:
            bytes = self._bytes(life)
            if (number := bytes.number) is not None:
                self.static.append(Reservation(life, aligned(number)))
            else:
                self._into_slot(life, bytes)
        offsets, self.bytes = pack(self.static)
        self.offsets.update(zip((b.life for b in self.static), offsets, strict=True))

    def _bytes(self, life: Lifetime) -> Size:
        type = life.value.type
        assert isinstance(type, MemRefType)
        return product(self.sizes.shape(life.value)) * Size.of(_element_bytes(type.element_type))

    def _into_slot(self, life: Lifetime, bytes: Size) -> None:
        free = [
            n for n, s in enumerate(self.slots) if not any(other.meets(life) for other in s.lives)
        ]
        larger = self.sizes.never_negative
        wishes: tuple[Callable[[Slot], bool], ...] = (
            lambda s: bytes in s.sizes,
            lambda s: any(larger(n - bytes) for n in s.sizes),
            lambda s: any(larger(bytes - n) for n in s.sizes),
            lambda s: True,
        )
        chosen = next((n for wish in wishes for n in free if wish(self.slots[n])), None)
        if chosen is None:
            chosen = len(self.slots)
            self.slots.append(Slot([]))
        slot = self.slots[chosen]
        if not any(larger(n - bytes) for n in slot.sizes):
            slot.sizes = [n for n in slot.sizes if not larger(bytes - n)]
            slot.sizes.append(bytes)
        slot.lives.append(life)
        self.slot_of[life] = chosen

    # -- writing

    def write(self) -> None:
        """Replace the temporaries by views of the arena, and add the function for its size."""
        if checks_buffers():
            PlanCheck(self._overlap, self.lifetimes.kernels).run(self.block, self.outputs)
        bound = lower_bound(self.static)
        if self.static:
            remark(
                self.function,
                f"temporaries take {self.bytes} bytes; {bound} are in use at once",
            )
        arena = self.block.insert_arg(MemRefType(i8, [DYNAMIC_INDEX]), len(self.block.args))
        arena.name_hint = "arena"
        self._declare()
        ends = _Offsets(self, self._append, self._dim)
        for life in self.lifetimes.known.values():
            owner = life.value.owner
            if isinstance(owner, memref.AllocOp):
                self._replace(owner, life.root(), arena, ends)
        first = self.block.first_op
        assert first is not None
        self.block.insert_ops_before(self.entry, first)
        self._tell_size()

    def _overlap(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether two temporaries or outputs have memory in common."""
        one, other = (self.lifetimes.known[value].root() for value in (a, b))
        if one is other or one not in self.offsets or other not in self.offsets:
            slots = self.slot_of.get(one), self.slot_of.get(other)
            return one is other or (slots[0] is not None and slots[0] == slots[1])
        ends = [self.offsets[each] + (self._bytes(each).number or 0) for each in (one, other)]
        return self.offsets[one] < ends[1] and self.offsets[other] < ends[0]

    def _declare(self) -> None:
        function = self.function
        assert function.arg_attrs is not None
        role = DictionaryAttr({"kernel.role": StringAttr("arena")})
        function.properties["arg_attrs"] = ArrayAttr([*function.arg_attrs.data, role])
        function.properties["function_type"] = FunctionType.from_lists(
            list(self.block.arg_types), []
        )
        if not self.slots:
            function.attributes["kernel.arena_bytes"] = IntegerAttr(self.bytes, i64)

    def _append(self, op: Operation) -> None:
        op.location = self.function.location
        self.entry.append(op)

    def _dim(self, write: SizeWriter, number: int) -> SSAValue:
        argument, axis = self.sizes.dims[number]
        op = memref.DimOp(self.block.args[argument], write(Size.of(axis)))
        write.append(op)
        return op.result

    def _replace(self, op: memref.AllocOp, root: Lifetime, arena: SSAValue, ends: _Offsets) -> None:
        if isinstance(root.value.owner, Block):
            value = root.value
        else:
            offset = ends.of(root)
            view = memref.ViewOp(arena, offset, op.dynamic_sizes, op.memref.type)
            view.location = op.location
            view.result.name_hint = op.memref.name_hint
            block = op.parent_block()
            assert block is not None
            block.insert_op_before(view, op)
            value = view.result
        op.memref.replace_all_uses_with(value)
        op.detach()
        op.erase()

    def _tell_size(self) -> None:
        block = Block(arg_types=[IndexType()] * len(self.sizes.dims))
        for number, argument in enumerate(block.args):
            argument.name_hint = f"d{number}"
        ends = _Offsets(self, block.add_op, lambda write, number: block.args[number])
        block.add_op(func.ReturnOp(ends.end(len(self.slots))))
        name = f"{self.function.sym_name.data}.arena"
        index = IndexType()
        type = FunctionType.from_lists([index] * len(block.args), [index])
        size_function = func.FuncOp(name, type, Region(block))
        locate(size_function, self.function.location)
        around = self.function.parent_block()
        assert around is not None
        around.insert_op_after(size_function, self.function)


class _Offsets:
    """Computes the offset of each slot: behind the packed buffers and the earlier slots."""

    def __init__(
        self,
        plan: _Plan,
        append: Callable[[Operation], None],
        dim: Callable[[SizeWriter, int], SSAValue],
    ) -> None:
        self.plan, self.append = plan, append
        self.write = SizeWriter(plan.sizes, lambda n: dim(self.write, n), append)
        self._ends: dict[int, SSAValue] = {}

    def of(self, life: Lifetime) -> SSAValue:
        """Return the offset of a buffer."""
        if (slot := self.plan.slot_of.get(life)) is not None:
            return self.end(slot)
        return self.write(Size.of(self.plan.offsets.get(life, 0)))

    def end(self, slots: int) -> SSAValue:
        """Return the offset at which the first ``slots`` slots end."""
        if slots == 0:
            return self.write(Size.of(self.plan.bytes))
        if slots not in self._ends:
            before = self.end(slots - 1)
            largest = self._largest(self.plan.slots[slots - 1].sizes)
            padded = self._put(arith.AddiOp(largest, self.write(Size.of(ALIGNMENT - 1))))
            line = self.write(Size.of(ALIGNMENT))
            lines = self._put(arith.DivUIOp(padded, line))
            bytes = self._put(arith.MuliOp(lines, line))
            self._ends[slots] = self._put(arith.AddiOp(before, bytes))
        return self._ends[slots]

    def _largest(self, sizes: Sequence[Size]) -> SSAValue:
        value = self.write(sizes[0])
        for size in sizes[1:]:
            value = self._put(arith.MaxUIOp(value, self.write(size)))
        return value

    def _put(self, op: Operation) -> SSAValue:
        self.append(op)
        return op.results[0]


def _element_bytes(type: Attribute) -> int:
    return 8 if isinstance(type, IndexType) else dtype(type).bytes
