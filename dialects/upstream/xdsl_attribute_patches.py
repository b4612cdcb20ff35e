"""Faster creation and verification of attributes, and access to their sizes (`xdsl_patches`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    ArrayOfConstraint,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    TensorType,
    VectorType,
    i32,
    i64,
)
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.ir.affine import AffineMap
from xdsl.irdl import AnyAttr, AnyOf, BaseAttr, RangeOf, TypeVarConstraint


def _kinds(constraint: Any) -> tuple[type, ...] | None:
    """Return the classes an attribute may have; None if the constraint checks more."""
    match constraint:
        case AnyAttr():
            return (Attribute,)
        case BaseAttr():
            return (constraint.attr,)
        case TypeVarConstraint():
            return _kinds(constraint.base_constraint)
        case AnyOf():
            each = [_kinds(one) for one in constraint.attr_constrs]
            return None if None in each else tuple(kind for kinds in each for kind in kinds or ())
        case _:
            return None


@cache
def _checks(kind: type[ParametrizedAttribute]) -> tuple[tuple[str, Any, Any], ...] | None:
    """Return for each parameter its classes, and those of its elements if it is an array."""
    checks: list[tuple[str, Any, Any]] = []
    for name, parameter in kind.get_irdl_definition().parameters:
        constraint: Any = parameter.constr
        inside = None
        kinds = _kinds(constraint)
        if type(constraint) is ArrayOfConstraint:
            range: Any = constraint.elem_range_constraint
            if type(range) is RangeOf and (inside := _kinds(range.constr)) is not None:
                kinds = (ArrayAttr,)
        if kinds is None:
            return None
        checks.append((name, kinds, inside))
    return tuple(checks)


def _fits(self: ParametrizedAttribute) -> bool:
    """Whether the classes of the parameters prove that they are valid."""
    kind = type(self)
    checks = _checks(kind)
    if checks is None:
        return False
    for name, kinds, inside in checks:
        value = getattr(self, name)
        if not isinstance(value, kinds):
            return False
        if inside is not None:
            for each in value.data:
                if not isinstance(each, inside):
                    return False
    return True


def _verified(self: ParametrizedAttribute) -> None:
    """Verify the parameters; xDSL's definition reports errors."""
    if not _fits(self):
        type(self).get_irdl_definition().verify(self)
    self.verify()


@cache
def _names(kind: type[ParametrizedAttribute]) -> tuple[str, ...] | None:
    """Return the names of the parameters; None if one has a converter."""
    parameters = kind.get_irdl_definition().parameters
    if any(each.converter is not None for _, each in parameters):
        return None
    return tuple(name for name, _ in parameters)


_xdsl_parametrized = ParametrizedAttribute.__init__


def _parametrized(self: ParametrizedAttribute, *parameters: Any) -> None:
    """Set the parameters of the immutable attribute."""
    names = _names(type(self))
    if names is None or len(names) != len(parameters):
        _xdsl_parametrized(self, *parameters)
    else:
        fields: Any = self.__dict__
        fields.update(zip(names, parameters, strict=True))
        self.__post_init__()


@cache
def _is_free(kind: type[Attribute]) -> bool:
    """Whether an attribute has no verifiers."""
    base: Any = Attribute
    plain = kind._verify is base._verify and kind.verify is base.verify  # pyright: ignore
    return plain and issubclass(kind, Data)


def _post_init(self: Attribute) -> None:
    if _is_free(type(self)):
        return
    self._verify()  # pyright: ignore[reportPrivateUsage]
    if not isinstance(self, _ATTRIBUTES):
        raise TypeError("Attributes should only be Data or ParametrizedAttribute")


_NONE = NoneAttr()
_xdsl_memref = MemRefType.__init__


def _memref(
    self: Any, element_type: Any, shape: Any, layout: Any = _NONE, memory_space: Any = _NONE
) -> None:
    """Create a buffer type; a tuple or list of sizes needs no test for attributes."""
    if (sizes := _known_sizes(shape)) is None:
        _xdsl_memref(self, element_type, shape, layout, memory_space)
    else:
        ParametrizedAttribute.__init__(self, sizes, element_type, layout, memory_space)


_xdsl_tensor = TensorType.__init__


def _tensor(self: Any, element_type: Any, shape: Any, encoding: Any = _NONE) -> None:
    """Create a tensor type."""
    if (sizes := _known_sizes(shape)) is None:
        _xdsl_tensor(self, element_type, shape, encoding)
    else:
        ParametrizedAttribute.__init__(self, sizes, element_type, encoding)


def _known_sizes(shape: Any) -> Attribute | None:
    """Return a list of sizes as an attribute; None if it is not one for certain."""
    if type(shape) is not tuple and type(shape) is not list:
        return None
    for n in shape:
        if type(n) is not int:
            return None
    return _sizes_of(tuple(shape))


@lru_cache(maxsize=4096)
def _sizes_of(shape: tuple[int, ...]) -> Attribute:
    return ArrayAttr([IntAttr(n) for n in shape])


_xdsl_from_list = DenseArrayBase.from_list


def _from_list(data_type: Any, data: Any) -> Any:
    """Return numbers as an attribute, cached for integers."""
    if data_type is not i64 and data_type is not i32:
        return _xdsl_from_list(data_type, data)
    numbers = tuple(data)
    for n in numbers:
        if type(n) is not int:
            return _xdsl_from_list(data_type, numbers)
    return _longs(numbers) if data_type is i64 else ints(numbers)


@lru_cache(maxsize=4096)
def _longs(numbers: tuple[int, ...]) -> Attribute:
    return _xdsl_from_list(i64, numbers)


@lru_cache(maxsize=4096)
def ints(numbers: tuple[int, ...]) -> Attribute:
    """Return 32-bit numbers as an attribute."""
    return _xdsl_from_list(i32, numbers)


def _shape(self: Any) -> tuple[int, ...]:
    """Return the sizes of a type, cached since types are immutable."""
    known: tuple[int, ...] | None = self.__dict__.get("_sizes")
    if known is None:
        known = self.__dict__["_sizes"] = tuple([n.data for n in self.shape.data])
    return known


def _hashed_once(kind: Any) -> Any:
    """Return a hash function that caches the hash in the immutable object, as for a nested key."""
    compute = kind.__hash__

    def hashed(self: Any) -> int:
        known: Any = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = compute(self)
        return known

    return hashed


_HASHED_ONCE: tuple[Any, ...] = (
    AffineMap,
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FastMathFlagsAttr,
    FileLineColLoc,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    IteratorTypeAttr,
    MemRefType,
    TensorType,
    VectorType,
)
"""The classes whose hash calls Python for each of their members, and that are keys often."""

_ATTRIBUTES = (Data, ParametrizedAttribute)

ATTRIBUTES: Mapping[Any, Mapping[str, Any]] = {
    Attribute: {"__post_init__": _post_init},
    MemRefType: {"__init__": _memref, "get_shape": _shape},
    DenseArrayBase: {"from_list": staticmethod(_from_list)},
    TensorType: {"__init__": _tensor, "get_shape": _shape},
    ParametrizedAttribute: {"__init__": _parametrized, "_verify": _verified},
}
"""The replacements of class members."""

HASHES: Mapping[Any, Any] = {kind: _hashed_once(kind) for kind in _HASHED_ONCE}
