"""Donated arguments: which result takes the memory of which, and why one cannot (note 060).

Each goes to the result that is made of it, with the fewest ops element by element in between. So
parameters and moments stay what they are in whatever order a function returns them. What nothing is
made of goes to the first result of its dtype and shape that is left, as in JAX.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stepwell.frontend.effects import Effects
from stepwell.frontend.tensor import Tensor
from stepwell.runtime.device_arrays import DeviceArray

LOG = logging.getLogger("stepwell")

FURTHEST = 64
"""Ops element by element between an argument and a result that is still said to be made of it."""

_LINE = re.compile(
    r'^ *(?P<results>%.*?) = "nd\.(?P<op>\w+)"\((?P<operands>[^()]*)\)(?! *\().*?'
    r" : \((?P<types>.*)\) -> (?P<type>tensor<[^>]*>)"
)
_MIXING = re.compile(r"matmul|dot|conv|einsum|sort|cumul|scan|solve|cholesky|transpose|permute")
"""Ops whose result may have the type of an operand, and is not made element by element."""


def donated_names(
    options: dict[str, Any], names: Sequence[str], static: Collection[str]
) -> frozenset[str]:
    """Take the names of donated arguments out of the options of `jit`.

    names : of all arguments
    raises ValueError : one of them is no argument, or a static one
    """
    told, numbers = options.pop("donate_argnames", ()), options.pop("donate_argnums", ())
    found = {told} if isinstance(told, str) else set(told)
    found |= {names[i] for i in ((numbers,) if isinstance(numbers, int) else numbers)}
    if unknown := sorted(found.difference(names)):
        raise ValueError(f"the function has no argument {', '.join(unknown)} to donate")
    if both := sorted(found.intersection(static)):
        raise ValueError(f"{', '.join(both)}: a static argument is no data to donate")
    return frozenset(found)


def donations(
    effects: Effects,
    heads: Sequence[Tensor],
    results: Sequence[Tensor],
    given: Sequence[int],
    lines: Sequence[str],
) -> Effects:
    """Return the effects of a function to which arguments are donated besides.

    heads : the arguments as the function begins
    given : the numbers of those that are donated
    lines : the text of the function
    """
    given = [i for i in given if i not in effects.written]
    left = list(range(len(results) - len(effects.written)))
    pairs: dict[int, int] = {}
    ways = [*_ways(heads, results, given, left, lines)] if given else []
    for _, i, k in sorted(ways):
        if i not in pairs and k in left:
            left.remove(k)
            pairs[i] = k
    for i in given:
        like = (k for k in left if _type(results[k]) == _type(heads[i]))
        if i in pairs:
            continue
        if (found := next(like, None)) is None:
            LOG.warning(
                "the donated argument '%s' is used by no result: none has its dtype and shape%s",
                effects.names[i],
                " that no other argument goes to" if any(_alike(heads[i], results)) else "",
            )
        else:
            left.remove(found)
            pairs[i] = found
    return replace(effects, donated=tuple((k, i) for i, k in sorted(pairs.items())))


def _type(value: Tensor) -> Any:
    return value.kind, value.shape


def _alike(head: Tensor, results: Sequence[Tensor]) -> Iterator[bool]:
    return (_type(result) == _type(head) for result in results)


def _ways(
    heads: Sequence[Tensor],
    results: Sequence[Tensor],
    given: Sequence[int],
    left: Sequence[int],
    lines: Sequence[str],
) -> Iterator[tuple[int, int, int]]:
    """Yield how many ops lie between a donated argument and a result that is made of it."""
    made = _made_of(lines)
    wanted: dict[str, list[int]] = {}
    for k in left:
        wanted.setdefault(results[k].name, []).append(k)
    for i in given:
        seen, rest = {str(heads[i].name): 0}, deque([str(heads[i].name)])
        while rest:
            name = rest.popleft()
            for k in wanted.get(name, ()):
                if _type(results[k]) == _type(heads[i]):
                    yield seen[name], i, k
            for following in made.get(name, ()) if seen[name] < FURTHEST else ():
                if following not in seen:
                    seen[following] = seen[name] + 1
                    rest.append(following)


def _made_of(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return what is made element by element of each value, by name."""
    made: dict[str, list[str]] = {}
    for line in lines:
        found = _LINE.match(line)
        if found is None or _MIXING.search(found["op"]):
            continue
        types = re.findall(r"tensor<[^>]*>", found["types"])
        for operand, type in zip(found["operands"].split(", "), types, strict=False):
            if type == found["type"]:
                made.setdefault(operand, []).append(found["results"])
    return made


def told(
    effects: Effects, leaves: Sequence[Any], results: Sequence[Any], program: Any
) -> Sequence[Any]:
    """Say, once for each program, which donated arguments were left as they are, and why.

    leaves : the arguments
    results : what the program gave; they are returned
    """
    late = _copied(program) if effects.donated and not effects.told else frozenset[int]()
    for k, i in effects.donated:
        name = effects.names[i]
        why = "" if results[k] is leaves[i] else _reason(effects, leaves, i)
        if not why and k in late:
            why = "is still read when the result that takes its memory is made, which is copied"
        if why and (name, why) not in effects.told:
            LOG.warning("the donated argument '%s' %s", name, why)
        effects.told.add((name, why))
    return results


def _reason(effects: Effects, leaves: Sequence[Any], number: int) -> str:
    """Return why an array that was passed cannot be worked in."""
    array = leaves[number]
    kept = ", so it is left as it is, and the result is a new array"
    if type(array) is DeviceArray:
        twice = sum(leaf is array for leaf in leaves) > 1
        return f"is passed twice{kept}" if twice else ""
    if not array.flags.writeable:
        return f"is read-only{kept}"
    if not array.flags.c_contiguous or not array.flags.aligned or not array.dtype.isnative:
        return f"is not contiguous, aligned and of native byte order{kept}"
    for other, leaf in enumerate(leaves):
        if type(leaf) is DeviceArray:
            continue
        if other != number and np.may_share_memory(array, leaf):
            same = leaf is array
            how = "is passed twice, as" if same else "lies partly in the same memory as"
            return f"{how} '{effects.names[other]}'{' too' if same else ''}{kept}"
    return ""


_BUFFERS = re.compile(r"\bfunc_(\w+)\((?:rt, )?(buffers\[0\][^;]*?)\);")


def _copied(program: Any) -> frozenset[int]:
    """Return the results of a program of C into which it copies what it made elsewhere."""
    if not program.native:
        return frozenset()
    source = program.source  # megabytes of it, through which `find` is a hundred times as quick
    line = source.rfind("\n", 0, max(source.find("buffers[0]"), 0)) + 1
    if (call := _BUFFERS.search(source, line)) is None:
        return frozenset()
    function = re.compile(rf"\bfunc_{call[1]}\((.*?)\) {{\n(.*?)\n}}\n", re.DOTALL)
    head = function.search(source, max(source.find(f"func_{call[1]}("), 0))
    if head is None:
        return frozenset()
    names = [re.split(r"[ *]+", each)[-1] for each in head[1].split(",")]
    signature = program.signature
    first = len(signature.arguments) + len(signature.constants)
    names = [n for n in names if n != "rt"][first : first + len(signature.results)]
    copied = set(re.findall(r"^  __builtin_memcpy\((\w+),", head[2], re.MULTILINE))
    return frozenset(k for k, name in enumerate(names) if name in copied)
