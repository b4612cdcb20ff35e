"""Donated arguments: match them to results that take their memory, or say why not (note 060).

Each argument is matched to the result computed from it by the fewest elementwise ops. So parameters
and moments keep their memory for any order of a function's results. An argument from which no
result is computed is matched to the first unmatched result of its dtype and shape, as in JAX.
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
"""The most elementwise ops between an argument and a result that count as computed from it."""

_LINE = re.compile(
    r'^ *(?P<results>%.*?) = "nd\.(?P<op>\w+)"\((?P<operands>[^()]*)\)(?! *\().*?'
    r" : \((?P<types>.*)\) -> (?P<type>tensor<[^>]*>)"
)
_MIXING = re.compile(r"matmul|dot|conv|einsum|sort|cumul|scan|solve|cholesky|transpose|permute")
"""Ops that are not elementwise though their result may have an operand's type."""


def donated_names(
    options: dict[str, Any], names: Sequence[str], static: Collection[str]
) -> frozenset[str]:
    """Remove the donated arguments from the options of `jit` and return their names.

    names : the names of all arguments
    raises ValueError : a donated name is not an argument, or it is static
    """
    names_given, numbers = options.pop("donate_argnames", ()), options.pop("donate_argnums", ())
    found = {names_given} if isinstance(names_given, str) else set(names_given)
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
    """Return the effects of a function with its donated arguments matched to results.

    heads : the arguments at the function's entry
    given : the numbers of the donated arguments
    lines : the text of the function
    """
    given = [i for i in given if i not in effects.written]
    left = list(range(len(results) - len(effects.written)))
    pairs: dict[int, int] = {}
    ways = [*_distances(heads, results, given, left, lines)] if given else []
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


def _distances(
    heads: Sequence[Tensor],
    results: Sequence[Tensor],
    given: Sequence[int],
    left: Sequence[int],
    lines: Sequence[str],
) -> Iterator[tuple[int, int, int]]:
    """Yield the number of ops between a donated argument and a result, and the two's numbers."""
    created = _elementwise_users(lines)
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
            for following in created.get(name, ()) if seen[name] < FURTHEST else ():
                if following not in seen:
                    seen[following] = seen[name] + 1
                    rest.append(following)


def _elementwise_users(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return the values that elementwise ops compute from each value, by name."""
    created: dict[str, list[str]] = {}
    for line in lines:
        found = _LINE.match(line)
        if found is None or _MIXING.search(found["op"]):
            continue
        types = re.findall(r"tensor<[^>]*>", found["types"])
        for operand, type in zip(found["operands"].split(", "), types, strict=False):
            if type == found["type"]:
                created.setdefault(operand, []).append(found["results"])
    return created


def warn_of_copies(
    effects: Effects, leaves: Sequence[Any], results: Sequence[Any], program: Any
) -> Sequence[Any]:
    """Warn, once for each program, of donated arguments whose memory was not used, with the reason.

    leaves : the arguments
    results : the results of the program; they are returned
    """
    late = _copied(program) if effects.donated and not effects.warned else frozenset[int]()
    for k, i in effects.donated:
        name = effects.names[i]
        why = "" if results[k] is leaves[i] else _reason(effects, leaves, i)
        if not why and k in late:
            why = "is still read when the result that takes its memory is made, which is copied"
        if why and (name, why) not in effects.warned:
            LOG.warning("the donated argument '%s' %s", name, why)
        effects.warned.add((name, why))
    return results


def _reason(effects: Effects, leaves: Sequence[Any], number: int) -> str:
    """Return the reason why the memory of a passed array cannot be used; empty if it can."""
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
    """Return the results that a C program computes in other memory and copies to their place."""
    if not program.native:
        return frozenset()
    source = program.source  # megabytes: `find` is a hundred times faster than a regex
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
