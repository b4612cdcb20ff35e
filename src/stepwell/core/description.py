"""Write and read `program.json`; reading refuses every description that no program could have.

Each field has a reader (`core.schema`); constraints between fields are checked below. A new field
of a signature needs one line in a table here and, if it refers to others, one more check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import prod
from typing import Any, TypeAlias, cast

from stepwell.core.checks import Check
from stepwell.core.dtypes import DTYPES
from stepwell.core.guards import RAISED, VALUES, Guard
from stepwell.core.hashing import sha256
from stepwell.core.host_checking import check_schedule, check_tree
from stepwell.core.schema import (
    LARGEST,
    Reader,
    choice,
    fields,
    flag,
    listed,
    maybe,
    parsed,
    text,
    whole,
    wrong,
)
from stepwell.core.shapes import DYNAMIC, Shape
from stepwell.core.signature import Constant, Kernel, Signature, Tensor

FORMAT = 5
"""The format version, raised when older runtimes and newer emitters are incompatible."""
OWN = "program.json"
"""The key of the description's own digest in a saved program.json."""
MOST_AXES = 64
"""The maximum rank: that of NumPy."""

Digests: TypeAlias = Mapping[str, str]
"""The digests of a saved program's files, by name."""


def written(signature: Signature, digests: Digests | None = None) -> str:
    """Return the text of `program.json`.

    digests : those of the files of a saved program, to be stored in the text
    """
    found: dict[str, Any] = {"format": FORMAT, **_plain(asdict(signature))}
    if digests is not None:
        found["digests"] = {**digests, OWN: _digest(found)}
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def read(text: str) -> tuple[Signature, Digests | None]:
    """Parse the text of `written` and its digests, if any; ValueError for any other text."""
    try:
        return _read(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _read(text: str) -> tuple[Signature, Digests | None]:
    found = parsed(text)
    number = found.get("format")
    if number != FORMAT or type(number) is not int:
        said = f"it has format {number}" if type(number) is int else "it states no format"
        raise ValueError(f"{said}, this version of Stepwell reads {FORMAT}")
    digests = found.pop("digests", None)
    if digests is not None:
        digests = _read_digests(digests)
        if digests.pop(OWN, "") != _digest(found):
            raise ValueError("it was changed after it was saved: its digest is another")
    del found["format"]
    signature = _signature(_FIELDS(found, ""))
    _check_whole(signature)
    return signature, digests


def _digest(found: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the JSON value, independent of its layout."""
    return sha256(json.dumps(found, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _read_digests(found: Any) -> dict[str, str]:
    if type(found) is not dict:
        raise wrong("digests", "an object", found)
    digest = text(200)
    return {name: digest(each, "digests") for name, each in cast(dict[str, Any], found).items()}


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """Write every `?` of a signature's shapes as null, in place."""
    for tensor in (*found["arguments"], *found["results"], *found["constants"]):
        tensor["shape"] = [None if n == DYNAMIC else n for n in tensor["shape"]]
    for guard in found["guards"]:
        if not guard["kind"]:
            del guard["kind"]  # guards of addresses have no kind
    if not found["served"]:
        del found["served"]  # of saved programs, which serve all calls
    if found["maker"]:
        _plain(found["maker"])
    return found


# reading each field


def _shape(value: Any, place: str) -> Shape:
    sizes = listed(maybe(whole()), most=MOST_AXES)(value, place)
    return tuple(DYNAMIC if n is None else n for n in sizes)


def _line(value: Any, place: str) -> str:
    found = text()(value, place)
    if _LINE.fullmatch(found) is None:
        raise wrong(place, "a file and a line", value)
    return found


def _tree(value: Any, place: str) -> Any:
    """Read a tree; its variables are checked after all of them are known."""
    return _in_tuples(value)


def _in_tuples(value: Any, left: int = 1000) -> Any:
    if not left:
        raise ValueError("it is nested too deeply")
    if type(value) is not list:
        return value
    return tuple(_in_tuples(each, left - 1) for each in cast(list[Any], value))


def _any(value: Any, place: str) -> Any:
    return value


_LINE = re.compile(r".*:[0-9]{1,18}", re.DOTALL)
_TENSOR: dict[str, Reader[Any]] = {"name": text(), "dtype": choice(*DTYPES), "shape": _shape}
_CONSTANT = {**_TENSOR, "sha256": text(64), "made": maybe(whole())}
_KERNEL: dict[str, Reader[Any]] = {
    "name": text(),
    "lines": listed(_line),
    "flops": _tree,
    "bytes": _tree,
    "bits": whole(1, 1024),
}
_CHECK: dict[str, Reader[Any]] = {
    "holds": _tree,
    "words": listed(text(), least=1),
    "values": listed(_tree),
    "at": text(),
}
_GUARD: dict[str, Reader[Any]] = {
    "words": listed(text(), least=1, most=VALUES + 1),
    "at": text(),
    "kind": choice("", *RAISED),
}


def _guard(value: Any, place: str) -> Any:
    """Read a guard, whose kind may be missing."""
    if type(value) is dict and "kind" not in value:
        value = {**cast(dict[str, Any], value), "kind": ""}
    return fields(_GUARD)(value, place)


def _with_served(read: Reader[dict[str, Any]]) -> Reader[dict[str, Any]]:
    """Return a reader of signatures, whose conditions on served sizes may be missing."""

    def read_served(value: Any, place: str) -> dict[str, Any]:
        if type(value) is dict and "served" not in value:
            value = {**cast(dict[str, Any], value), "served": []}
        return read(value, place)

    return read_served


_ONE: dict[str, Reader[Any]] = {
    "entry": text(),
    "arguments": listed(fields(_TENSOR)),
    "results": listed(fields(_TENSOR)),
    "constants": listed(fields(_CONSTANT)),
    "arena": maybe(whole()),
    "kernels": listed(fields(_KERNEL)),
    "equal": listed(listed(whole(), least=2)),
    "fixed": listed(listed(whole(), 2, 2)),
    "checks": listed(fields(_CHECK)),
    "served": listed(_tree),
    "into": listed(listed(whole(), 2, 2)),
    "loops": flag,
    "target": text(100),
    "machine": text(),
    "host": listed(_any, most=1 << 24),
    "guards": listed(_guard, most=1 << 20),
    "maker": maybe(_any),
}
_MAKER = _with_served(fields({**_ONE, "maker": lambda value, place: _nothing(value, place)}))
_FIELDS = _with_served(fields({**_ONE, "maker": maybe(_MAKER)}))


def _nothing(value: Any, place: str) -> None:
    if value is not None:
        raise wrong(place, "null", value)


def _signature(found: dict[str, Any]) -> Signature:
    created: dict[str, Any] = {
        "arguments": tuple(Tensor(**each) for each in found["arguments"]),
        "results": tuple(Tensor(**each) for each in found["results"]),
        "constants": tuple(Constant(**each) for each in found["constants"]),
        "kernels": tuple(Kernel(**each) for each in found["kernels"]),
        "checks": tuple(Check(**each) for each in found["checks"]),
        "guards": tuple(Guard(**each) for each in found["guards"]),
        "maker": _signature(found["maker"]) if found["maker"] else None,
    }
    return Signature(**found | created)


# constraints between fields


def _check_whole(signature: Signature, place: str = "") -> None:
    """Check the constraints between fields."""
    for name in ("arguments", "results", "constants"):
        for number, tensor in enumerate(getattr(signature, name)):
            _check_bytes(tensor, f"{place}{name}[{number}]")
    count = signature.dynamic
    numbers = [n for group in signature.equal for n in group] + [n for n, _ in signature.fixed]
    if beyond := [n for n in numbers if n >= count]:
        raise ValueError(f"{place}equal or fixed names size {beyond[0]} of {count} unknown ones")
    _check_into(signature, place)
    _check_trees(signature, [f"d{k}" for k in range(count)], place)
    _check_constants(signature, place)
    if signature.host or signature.target == "opencl":
        kinds = ("arguments", "input"), ("constants", "constant"), ("results", "output")
        buffers = [(name, len(getattr(signature, each))) for each, name in kinds]
        unknown = sum(result.shape.count(DYNAMIC) for result in signature.results)
        guards, kernels = len(signature.guards), len(signature.kernels)
        check_schedule(signature.host, count, unknown, buffers, guards, kernels)


def _check_into(signature: Signature, place: str) -> None:
    """Check that results that reuse the memory of arguments have the arguments' types."""
    for result, argument in signature.into:
        if result >= len(signature.results) or argument >= len(signature.arguments):
            raise ValueError(f"{place}into names a result or argument that is not there")
        created, given = signature.results[result], signature.arguments[argument]
        if (created.dtype, created.shape) != (given.dtype, given.shape):
            raise ValueError(f"{place}into: result {result} has another type than its argument")
    for numbers in zip(*signature.into, strict=True):
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"{place}into names a result or argument twice")


def _check_bytes(tensor: Tensor, place: str) -> None:
    known = [n for n in tensor.shape if n != DYNAMIC and n > 0]
    if prod(known) * DTYPES[tensor.dtype].bytes > LARGEST:
        raise ValueError(f"{place} is larger than any memory: {tensor}")


def _check_trees(signature: Signature, known: Sequence[str], place: str) -> None:
    for number, kernel in enumerate(signature.kernels):
        for name in ("flops", "bytes"):
            if (tree := getattr(kernel, name)) is not None:
                check_tree(tree, known, f"{place}kernels[{number}].{name}")
    for number, tree in enumerate(signature.served):
        check_tree(tree, known, f"{place}served[{number}]")
    for number, check in enumerate(signature.checks):
        at = f"{place}checks[{number}]"
        check_tree(check.holds, known, f"{at}.holds")
        for tree in check.values:
            check_tree(tree, known, f"{at}.values")
        if len(check.words) != len(check.values) + 1:
            raise ValueError(f"{at} must have a text more than values")


def _check_constants(signature: Signature, place: str) -> None:
    """Check that weights have static sizes, and that load-time constants have a maker."""
    maker = signature.maker
    if maker is not None:
        _check_whole(maker, "maker.")
        if maker.arguments or maker.sized_by_program:
            raise ValueError("maker must take nothing but weights, all of its sizes known")
        if any(c.made is not None for c in maker.constants):
            raise ValueError("maker must be given all of its weights")
    results = maker.results if maker is not None else ()
    for number, constant in enumerate(signature.constants):
        at = f"{place}constants[{number}]"
        if DYNAMIC in constant.shape:
            raise ValueError(f"{at} must have known sizes")
        if constant.made is None:
            continue
        if constant.made >= len(results):
            raise ValueError(f"{at} is result {constant.made} of a maker with {len(results)}")
        result = results[constant.made]
        if (result.dtype, result.shape) != (constant.dtype, constant.shape):
            raise ValueError(f"{at} is {constant}, the maker's result {result}")
