"""The exported function of a program with guards: it checks its arguments and zeroes memory.

struct sw_fault fault = {0};
if (...) sw_fault(&fault, 1048579, sizes[0], 0);
if (!fault.number) {
  __builtin_memset(buffers[1], 0, ...);
  func_main(&fault, buffers[0], buffers[1]);
}
sw_noted = fault;
return fault.number;
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os.path import basename

from stepwell.core.dtypes import DTYPES
from stepwell.core.escape import quoted
from stepwell.core.guards import FIRST, LONGEST_AXIS, Guard
from stepwell.core.shapes import DYNAMIC
from stepwell.lowering.emit.arguments import Entry
from stepwell.lowering.emit.guard_numbers import Guards
from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.unit import Unit

FAULT_COMMENT = (
    "/* Returns what the last call in this thread wanted to touch that is not there, for an error",
    f" * from {FIRST} on, and its numbers: the place and the size; NULL after any other call. */",
)


def guarded_call(entry: Entry, guards: Guards | None, call: str, comment: str) -> Iterator[str]:
    """Yield the rows that check sizes, zero memory and call the program.

    guards : None for a program with only the user's checks
    """
    yield f"  struct sw_fault fault = {{0, {{0, 0}}}};{comment}"
    if guards is None:
        yield f"  {call}{comment}"
        yield f"  sw_noted = fault;{comment}"
        yield f"  return fault.number;{comment}"
        return
    name, found = entry.signature.symbol, list(_tests(entry, guards))
    needs_arena = bool(entry.of_role("arena"))
    if needs_arena:
        yield f"  const int64_t arena_bytes = {name}_arena(dims);{comment}"
    for test, number, value in found:
        yield f"  if ({test}) sw_fault(&fault, {number}, {value}, 0);{comment}"
    yield f"  if (!fault.number) {{{comment}"
    for buffer, bytes in _memory(entry):
        yield f"    __builtin_memset({buffer}, 0, {bytes});{comment}"
    yield f"    {call}{comment}"
    yield "  }"
    yield f"  sw_noted = fault;{comment}"
    yield f"  return fault.number;{comment}"


def _tests(entry: Entry, guards: Guards) -> Iterator[tuple[str, int, str]]:
    """Yield the conditions for invalid sizes, the guard's number, and the value to report."""
    unknown = 0
    for k, a in enumerate(entry.of_role("output")):
        factors: list[str] = []
        for axis, n in enumerate(a.shape):
            if n != DYNAMIC:
                continue
            size = f"sizes[{unknown}]"
            unknown += 1
            said = (f"result {k} would have size ", f" along axis {axis}")
            number = guards.number(entry.op, said)
            yield f"(uint64_t){size} > {LONGEST_AXIS}", number, size
            factors.append(size)
        if len(factors) > 1 or (factors and len(a.shape) > 1):
            number = guards.number(entry.op, (f"result {k} has more bytes than any memory",))
            product = " * ".join(f"(double){size}" for size in factors)
            known = _static_product(a.shape) * DTYPES[a.dtype].bytes
            yield f"{product} * {known}.0 > {LONGEST_AXIS}.0", number, "0"
    for a in entry.of_role("arena"):
        least = a.shape[0] if a.shape[0] != DYNAMIC else 0
        number = guards.number(entry.op, ("the arena would have ", f" bytes, not {least} or more"))
        yield f"arena_bytes < {least} || arena_bytes > {LONGEST_AXIS}", number, "arena_bytes"


def _static_product(shape: Sequence[int]) -> int:
    result = 1
    for n in shape:
        result *= n if n != DYNAMIC else 1
    return result


def _memory(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the memory of the caller that the program writes, and its size in bytes."""
    sizes = 0
    for k, a in enumerate(entry.of_role("input", "constant", "output")):
        if a.role != "output":
            continue
        bytes = str(_static_product(a.shape) * DTYPES[a.dtype].bytes)
        for n in a.shape:
            if n == DYNAMIC:
                bytes += f" * sizes[{sizes}]"
                sizes += 1
        yield f"buffers[{k}]", bytes
    if entry.of_role("arena"):
        yield "arena", "arena_bytes"


def noted_text(found: Sequence[Entry], unit: Unit) -> str:
    """Return the functions that describe the failed guard to a caller, for every entry."""
    assert unit.faults is not None
    unit.spelling.fault(FIRST, "0", "0")  # for its declarations
    unit.spelling.type(Kind("u64"))
    texts = [f"  {_literal(guard)}," for guard in unit.faults.found] or ["  0,"]
    rows = [
        "static _Thread_local struct sw_fault sw_noted;",
        "",
        "static const char *const sw_guards[] = {",
        *texts,
        "};",
    ]
    for entry in found:
        rows += [
            "",
            f"const char *{entry.signature.symbol}_fault(int64_t *values) {{",
            "  values[0] = sw_noted.values[0];",
            "  values[1] = sw_noted.values[1];",
            f"  return sw_noted.number < {FIRST} ? (const char *)0 "
            f": sw_guards[sw_noted.number - {FIRST}];",
            "}",
        ]
        if "sw_host" in unit.spelling.prelude.functions:
            rows += [
                "",
                f"void {entry.signature.symbol}_host(int32_t (*host)("
                "const char *, void *const *, const int64_t *)) {",
                "  sw_host = host;",
                "}",
            ]
    return "\n".join(rows)


def _literal(guard: Guard) -> str:
    """Return the description of a guard as a C string literal."""
    said = replace(guard, at=basename(guard.at))
    return '"' + _UNSAFE.sub(lambda letter: f"\\{ord(letter[0]):03o}", quoted(str(said), 400)) + '"'


_UNSAFE = re.compile(r'["?\\]')
"""Characters that `quoted` leaves, but a C string literal must not contain."""
