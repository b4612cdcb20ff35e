"""The host schedule of targets without host code: a list of steps that the runtime executes.

A schedule consists of plain lists and dictionaries, as in JSON. Numbers are `trees`: an integer,
float or boolean; the name of a variable, as text; or ``[operator, tree, ...]``.

A program's variables are ``d0, d1, ...``, every `?` of its inputs in order, and those its steps
set. Buffers are ``input0, input1, ...``, ``constant0, ...``, ``output0, ...``, ``arena``, and those
its steps allocate or bind. A location is a buffer with a tree for the byte offset.

    {"do": "sizes", "sizes": [tree, ...]}                 every ? of the outputs, in order
    {"do": "arena", "bytes": tree}                        how large the arena must be
    {"do": "allocate", "buffer": name, "bytes": tree}     scratch memory, until the call ends
    {"do": "zero", "buffer": name, "bytes": tree}         that many bytes from its beginning
    {"do": "require", "holds": tree, "number": n, "values": [tree, ...]}    else guard n ends it
    {"do": "callback", "function": name, "number": n, "inputs": [array, ...], "outputs": [...]}
    {"do": "constant", "buffer": name, "bytes": hexadecimal}    memory with these bytes
    {"do": "bind", "names": [...], "places": [[buffer, tree], ...]}    parts as buffers, all at once
    {"do": "set", "names": [...], "values": [tree, ...]}  all at once
    {"do": "launch", "kernel": name, "of": n, "items": tree, "lanes": n, "arguments": [...]}
    {"do": "copy", "source": [buffer, tree], "target": [buffer, tree], "bytes": tree}
    {"do": "read", "name": name, "source": [buffer, tree], "dtype": dtype}
    {"do": "write", "target": [buffer, tree], "value": tree, "dtype": dtype}
    {"do": "for", "name": name, "from": tree, "to": tree, "step": tree, "body": [step, ...]}
    {"do": "while", "test": [step, ...], "condition": tree, "body": [step, ...]}
    {"do": "if", "condition": tree, "then": [step, ...], "else": [step, ...]}

``sizes`` and ``arena`` come first, before any buffer exists, and only they may be evaluated then.
A launch runs ``items`` work items in one dimension, none if that is not positive; if ``lanes`` is
not 0, each item is a group of that many work items. ``of`` is the number of the kernel in the
signature that it belongs to, or null for a copy between strided arrays. Its arguments are in the
kernel's order: ``{"buffer": name, "skip": tree}`` is two, the buffer and its byte offset as a long;
``{"value": tree, "dtype": dtype}`` is a scalar (i1 is passed as i32).
A callback calls a Python function of the process that runs the program; if it raises, guard n ends
the call. An array is ``{"place": [buffer, tree], "sizes": [tree, ...], "strides": [tree, ...],
"dtype": dtype}``, with strides in elements, none negative.
Of f16 and bf16 the host reads, writes and passes the bits, as i16; trees convert them to numbers.
Steps run in order, each after the effects of the earlier ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Tree: TypeAlias = Any
"""A number, the name of a variable, or ``[operator, tree, ...]``."""
Step: TypeAlias = dict[str, Any]


def _divide(a: Any, b: Any) -> Any:
    """Divide, rounding toward zero; division by zero gives 0, as in C."""
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _unsigned(a: int) -> int:
    """Return the bits of a signed number of up to 64 bits as an unsigned one."""
    return a & (1 << 64) - 1


def _signed(a: int) -> int:
    return a - (1 << 64) if a >> 63 else a


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": lambda a, b: a - _divide(a, b) * b if b else 0,
    "floor/": lambda a, b: a // b if b else 0,
    "ceil/": lambda a, b: -(-a // b) if b else 0,
    "min": min,
    "max": max,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "u/": lambda a, b: _signed(_unsigned(a) // _unsigned(b)) if b else 0,
    "u%": lambda a, b: _signed(_unsigned(a) % _unsigned(b)) if b else 0,
    "umin": lambda a, b: min(a, b, key=_unsigned),
    "umax": lambda a, b: max(a, b, key=_unsigned),
    "u<": lambda a, b: _unsigned(a) < _unsigned(b),
    "u<=": lambda a, b: _unsigned(a) <= _unsigned(b),
    "u>": lambda a, b: _unsigned(a) > _unsigned(b),
    "u>=": lambda a, b: _unsigned(a) >= _unsigned(b),
    "select": lambda c, a, b: a if c else b,
    "not": lambda a: not a,
    "f16": lambda bits: struct.unpack("<e", struct.pack("<h", bits))[0],
    "bf16": lambda bits: struct.unpack("<f", struct.pack("<xxh", bits))[0],
    "wrap": lambda a, bits: (a + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1),
    "f64": lambda bits: struct.unpack("<d", struct.pack("<q", bits))[0],
}
"""The operators of a tree; ``/`` and ``%`` truncate, ``wrap`` sign-extends the low bits, ``f16``,
``bf16`` and ``f64`` convert bits to a number, the last for numbers that JSON cannot spell.

Operators beginning with u take the bits of signed 64-bit numbers as unsigned ones."""

_ONE = dict.fromkeys(("not", "f16", "bf16", "f64"), 1)
ARITY: dict[str, int] = {**dict.fromkeys(OPERATORS, 2), **_ONE, "select": 3}
"""The number of operands of each operator."""


def evaluate(tree: Tree, variables: Mapping[str, Any]) -> Any:
    """Return the value of a tree.

    >>> evaluate(["+", ["*", "d0", 4], 64], {"d0": 3})
    76
    """
    if isinstance(tree, str):
        return variables[tree]
    if isinstance(tree, list | tuple):
        operator, *operands = tree
        return OPERATORS[operator](*(evaluate(each, variables) for each in operands))
    return tree


def in_call(tree: Tree | None, sizes: Sequence[int]) -> int | None:
    """Return the value of a tree in a call whose arguments' `?` are ``sizes``; None for None.

    >>> in_call(["*", 8, "d1"], [3, 5])
    40
    """
    if tree is None:
        return None
    return int(evaluate(tree, {f"d{k}": n for k, n in enumerate(sizes)}))
