"""Faster versions of the hottest methods of xDSL's IR: a compiler mostly creates and reads ops.

Each replacement has the effect of the original method (`test_xdsl_patches.py` compares them) and
calls the original in rare cases.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    IntegerType,
    MemRefType,
    TensorType,
    i32,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import (
    Attribute,
    Block,
    BlockOps,
    Operation,
    OpResult,
    Region,
    SSAValue,
    core,
)
from xdsl.ir.core import BlockArgument, IRWithName, IRWithUses, SSAValues, Use
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    OpDef,
    OptionalDef,
    ParsePropInAttrDict,
    VariadicDef,
    operations,
)
from xdsl.irdl.operations import VariadicAttrAccessor, VarIRConstruct
from xdsl.traits import OpTrait

from stepwell.dialects.upstream.xdsl_attribute_patches import ATTRIBUTES, HASHES, ints


class Plain(ABCMeta):
    """The metaclass of IR classes: `isinstance` checks base classes, not the ABC registry."""

    __instancecheck__ = type.__instancecheck__


_new = object.__new__


def _plain(kind: Any) -> None:
    """Make ``kind`` and its subclasses plain; later subclasses inherit the metaclass."""
    if type(kind) is ABCMeta:
        kind.__class__ = Plain
    for each in type.__subclasses__(kind):
        _plain(each)


def _used(operation: Operation, values: SSAValues[Any]) -> tuple[Use, ...]:
    """Create the uses of operands; the class has the defaults of their links."""
    uses: list[Any] = []
    for index, value in enumerate(values):
        use: Any = _new(Use)
        use._operation = operation
        use._index = index
        first: Any = value.first_use
        if first is not None:
            use._next_use = first
            first._prev_use = use
        value.first_use = use
        uses.append(use)
    return tuple(uses)


def _made(operation: Operation, kinds: Sequence[Attribute]) -> SSAValues[Any]:
    """Create the results of an op; the class has the defaults of their names and uses."""
    results: list[Any] = []
    for index, kind in enumerate(kinds):
        result: Any = _new(OpResult)
        result._type = kind
        result.op = operation
        result.index = index
        results.append(result)
    return SSAValues(results)


def _operation(
    self: Any,
    *,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = {},
    attributes: Mapping[str, Attribute] = {},
    location: Any = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> None:
    """Create an op; the class has the empty defaults of operands and successors."""
    if operands:
        self._operands = SSAValues(operands)
        self._operand_uses = _used(self, self._operands)
    self.results = _made(self, result_types)
    self.properties = dict(properties)
    self.attributes = dict(attributes)
    self.location = UNKNOWN_LOC if location is None else location
    if successors:
        self.successors = successors
    self.regions = ()
    for region in regions:
        self.add_region(region)
    self.__post_init__()


_xdsl_post_init = Operation.__post_init__


@cache
def _defaults(kind: type[IRDLOperation]) -> tuple[Any, Any]:
    """Return the default properties and attributes of ops."""
    definition = kind.get_irdl_definition()
    tables: tuple[Mapping[str, Any], ...] = (definition.properties, definition.attributes)
    properties, attributes = (
        tuple(
            (name, each.default_value)
            for name, each in table.items()
            if not isinstance(each, OptionalDef) and each.default_value is not None
        )
        for table in tables
    )
    return properties, attributes


def _completed(self: IRDLOperation) -> None:
    """Add missing defaults to an op."""
    properties, attributes = _defaults(type(self))
    for name, value in properties:
        self.properties.setdefault(name, value)
    for name, value in attributes:
        self.attributes.setdefault(name, value)
    if (after := Operation.__post_init__) is not _xdsl_post_init:  # implicit builders replace it
        after(self)


class _Form(NamedTuple):
    """The arguments of a class's constructor: for each place, whether it takes several values."""

    operands: tuple[bool, ...]
    results: tuple[bool, ...]
    regions: tuple[bool, ...]
    sized: bool
    """Whether the op stores the number of operands of each place."""


@cache
def _form(kind: type[IRDLOperation]) -> _Form | None:
    """Return the form of a class; None if xDSL must create its ops."""
    definition: OpDef = kind.get_irdl_definition()
    if definition.successors:
        return None
    sized = False
    for option in definition.options:
        if type(option) is AttrSizedOperandSegments and option.as_property:
            sized = True
        elif type(option) is not ParsePropInAttrDict:
            return None
    lists: tuple[Any, ...] = (definition.operands, definition.results, definition.regions)
    many = [tuple(_several(each) for _, each in defs) for defs in lists]
    return _Form(many[0], many[1], many[2], sized)


def _several(definition: Any) -> bool:
    return isinstance(definition, VariadicDef) and not isinstance(definition, OptionalDef)


@cache
def _counts(kind: type[IRDLOperation]) -> tuple[int, int] | None:
    """Return the numbers of operands and results if each place takes one; None with regions."""
    form = _form(kind)
    if form is None or form.sized or form.regions or any((*form.operands, *form.results)):
        return None
    return len(form.operands), len(form.results)


_VALUES = frozenset({OpResult, BlockArgument})
_LISTS = frozenset({list, tuple, SSAValues})


def _flat(given: Sequence[Any], places: tuple[bool, ...], values: bool, sizes: list[int]) -> Any:
    """Return arguments as one list and record the length of each place; None if unsure."""
    if len(given) != len(places):
        return None
    flat: list[Any] = []
    for each, several in zip(given, places, strict=True):
        kind = type(each)
        if kind in _LISTS:
            if not several or (values and any(type(v) not in _VALUES for v in each)):
                return None
            flat += each
            sizes.append(len(each))
        elif kind in _VALUES if values else isinstance(each, Attribute | Region):
            flat.append(each)
            sizes.append(1)
        else:
            return None
    return flat


_xdsl_init = IRDLOperation.__init__


def _irdl_operation(
    self: IRDLOperation,
    *,
    operands: Any = None,
    result_types: Any = None,
    properties: Mapping[str, Attribute | None] | None = None,
    attributes: Mapping[str, Attribute | None] | None = None,
    successors: Any = None,
    regions: Any = None,
) -> None:
    """Create an op from arguments of the usual forms."""
    counts = _counts(type(self))
    if counts is not None and not (successors or regions or attributes):
        values, kinds = operands or (), result_types or ()
        if (
            counts == (len(values), len(kinds))
            and all([type(v) in _VALUES for v in values])
            and all([isinstance(kind, Attribute) for kind in kinds])
        ):
            owned = {k: v for k, v in properties.items() if v is not None} if properties else {}
            _operation(self, operands=values, result_types=kinds, properties=owned)
            return
    form = _form(type(self))
    sizes: list[int] = []
    if form is not None and not successors:
        values = _flat(operands or (), form.operands, True, sizes)
        kinds = _flat(result_types or (), form.results, False, [])
        inside = _flat(regions or (), form.regions, False, [])
        if values is not None and kinds is not None and inside is not None:
            owned = {k: v for k, v in properties.items() if v is not None} if properties else {}
            more = {k: v for k, v in attributes.items() if v is not None} if attributes else {}
            if form.sized:
                owned[AttrSizedOperandSegments.attribute_name] = ints(tuple(sizes))
            _operation(
                self,
                operands=values,
                result_types=kinds,
                properties=owned,
                attributes=more,
                regions=inside,
            )
            return
    _xdsl_init(
        self,
        operands=operands,
        result_types=result_types,
        properties=properties,
        attributes=attributes,
        successors=successors,
        regions=regions,
    )


@lru_cache(maxsize=1024)
def _unpacked(numbers: bytes) -> tuple[int, ...]:
    return i32.unpack(numbers, len(numbers) // 4)


@lru_cache(maxsize=1024)
def _slice(numbers: bytes, place: int) -> slice:
    """Return where the operands of a place are among all operands."""
    sizes = _unpacked(numbers)
    start = sum(sizes[:place])
    return slice(start, start + sizes[place])


def _sizes(segments: Any) -> tuple[int, ...]:
    """Return the number of operands of each place."""
    kind = segments.elt_type
    return _unpacked(segments.data.data) if kind is i32 else segments.get_values()


_item = tuple.__getitem__
_OPERAND = VarIRConstruct.OPERAND


def _parts(op: Any, construct: VarIRConstruct) -> Any:
    """Return the operands, results, regions or successors of an op."""
    if construct is VarIRConstruct.OPERAND:
        return op._operands
    if construct is VarIRConstruct.RESULT:
        return op.results
    if construct is VarIRConstruct.REGION:
        return op.regions
    return op.successors


def _read(self: Any, obj: Any, objtype: Any = None) -> Any:
    return self.index(_parts(obj, self.construct))


def _read_single(self: Any, obj: Any, objtype: Any = None) -> Any:
    if self.construct is _OPERAND:
        return _item(obj._operands, self.idx)
    parts = _parts(obj, self.construct)
    return _item(parts, self.idx) if isinstance(parts, tuple) else parts[self.idx]  # successors


def _read_sized(self: Any, obj: Any, objtype: Any = None) -> Any:
    option = self.option
    if self.construct is _OPERAND and type(self) is VariadicAttrAccessor and option.as_property:
        segments = obj.properties[option.attribute_name]
        if segments.elt_type is i32:
            return SSAValues(_item(obj._operands, _slice(segments.data.data, self.idx)))
    segments = option.container(obj)[option.attribute_name]
    return self.index(_sizes(segments), _parts(obj, self.construct))


def _value(self: Any, idx: Any) -> Any:
    """Return a value, or a slice as a sequence of the same class."""
    found = _item(self, idx)
    return SSAValues(found) if type(idx) is slice else found


def _ops(self: BlockOps) -> Iterator[Operation]:
    """Iterate over the ops; the current one may be detached."""
    op: Any = self.block.first_op
    while op is not None:
        following = op._next_op
        yield op
        op = following


def _count(self: BlockOps) -> int:
    """Return the number of ops, which `list` calls too."""
    count = 0
    op: Any = self.block.first_op
    while op is not None:
        count += 1
        op = op._next_op
    return count


def _attach(self: Block, operation: Operation) -> None:
    """Attach an op; only an op with regions can be an ancestor of this block."""
    if operation.parent:
        raise ValueError("Can't add to a block an operation already attached to a block.")
    if operation.regions and operation.is_ancestor(self):
        raise ValueError("Can't add an operation to a block contained in the operation.")
    operation.parent = self


_SHAPED = (TensorType, MemRefType)
_NUMBERS = (AnyFloat, IntegerType)


def _fill_region(cls: Any, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
    """Create the body of a linalg.fill, without an implicit builder."""
    kinds: list[Any] = [value.type for value in (*inputs, *outputs)]
    kinds = [k.get_element_type() if isinstance(k, _SHAPED) else k for k in kinds]
    if not all([isinstance(k, _NUMBERS) for k in kinds]):
        kinds = cls.body_arg_types((*inputs, *outputs))  # reports the error
    block = Block(arg_types=kinds)
    block.add_op(linalg.YieldOp(block.args[0]))
    return Region(block)


def _replace_all(self: Any, value: Any) -> None:
    """Replace a value in all its uses, which keep their order."""
    if value is self:
        return
    use: Any = self.first_use
    while use is not None:
        following = use._next_use
        operands = [*use._operation._operands]
        operands[use._index] = value
        use._operation._operands = SSAValues(operands)
        first: Any = value.first_use
        use._next_use, use._prev_use = first, None
        if first is not None:
            first._prev_use = use
        value.first_use = use
        use = following
    self.first_use = None
    if value.name_hint is None:
        value.name_hint = self.name_hint


_TRAITS: dict[tuple[type[Operation], Any], tuple[frozenset[OpTrait], Any]] = {}
"""The trait that was found for a class and a wanted trait, and the traits it was found among: a new
set replaces those of a class when one is added."""
MOST_TRAITS = 8192
"""The most traits that are cached: ten for each class of ops."""


def _trait(cls: type[Operation], trait: Any) -> Any:
    """Return the trait of a class, or the one that equals ``trait``; None if there is none."""
    traits = cls.traits.traits
    known = _TRAITS.get((cls, trait))
    if known is not None and known[0] is traits:
        return known[1]
    if isinstance(trait, type):
        found = next((each for each in traits if isinstance(each, trait)), None)
    else:
        found = next((each for each in traits if each == trait), None)
    if len(_TRAITS) >= MOST_TRAITS:
        _TRAITS.clear()
    _TRAITS[cls, trait] = traits, found
    return found


def _has_trait(cls: type[Operation], trait: Any, *, value_if_unregistered: bool = True) -> bool:
    return _trait(cls, trait) is not None


_valid_name = IRWithName.extract_valid_name.__func__


_READ: tuple[tuple[type[Any], str, str], ...] = (
    (Operation, "next_op", "_next_op"),
    (Operation, "prev_op", "_prev_op"),
    (SSAValue, "type", "_type"),
    (OpResult, "owner", "op"),
    (BlockArgument, "owner", "block"),
    (IRWithName, "name_hint", "_name"),
    (Block, "args", "_args"),
    (Block, "first_op", "_first_op"),
    (Block, "last_op", "_last_op"),
    (Use, "operation", "_operation"),
    (Use, "index", "_index"),
)
"""Properties that return one member: an `attrgetter` does so without a call of Python."""


def _patch() -> None:
    """Install the replacements."""
    node = core._IRNode  # pyright: ignore[reportPrivateUsage]
    for root in (Attribute, IRWithUses, IRWithName, node):
        _plain(root)
    same: dict[str, Any] = {"__hash__": object.__hash__, "__eq__": object.__eq__}
    changes: dict[Any, Mapping[str, Any]] = {
        Operation: {
            "__init__": _operation,
            "get_trait": classmethod(_trait),
            "has_trait": classmethod(_has_trait),
        },
        IRDLOperation: {"__init__": _irdl_operation, "__post_init__": _completed, **same},
        operations.BaseAccessor: {"__get__": _read},
        operations.BeforeVariadicSingleAccessor: {"__get__": _read_single},
        operations.BaseAttrAccessor: {"__get__": _read_sized},
        SSAValue: {"replace_all_uses_with": _replace_all, **same},
        node: same,
        SSAValues: {"__getitem__": _value},
        BlockOps: {"__iter__": _ops, "__len__": _count},
        Block: {"_attach_op": _attach},
        linalg.FillOp: {"get_hidden_region": classmethod(_fill_region)},
        IRWithName: {"extract_valid_name": classmethod(lru_cache(maxsize=4096)(_valid_name))},
        **ATTRIBUTES,
        core: {"_unknown_loc": lambda: UNKNOWN_LOC},
    }
    for owner, members in changes.items():
        for name, member in members.items():
            setattr(owner, name, member)
    for owner, hashed in HASHES.items():
        owner.__hash__ = hashed
    for owner, name, member in _READ:
        old = vars(owner)[name]
        setattr(owner, name, property(attrgetter(member), old.fset, doc=old.__doc__))


_patch()
