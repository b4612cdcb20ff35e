"""Public functions: the arguments and results of a program, and its exported functions.

For a public `func.func @NAME` on buffers, with roles on its arguments and `@NAME.shapes` and
`@NAME.arena` beside it, C gets `stepwell_NAME`, `stepwell_NAME_shapes` and `stepwell_NAME_arena`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from os.path import basename
from typing import Any

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, MemRefType, ModuleOp, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation

from stepwell.core.dtypes import DTYPES
from stepwell.core.escape import mangled, quoted
from stepwell.core.guards import Guard
from stepwell.core.shapes import DYNAMIC
from stepwell.core.signature import Constant, Signature, Tensor, constant_offsets
from stepwell.core.signature import Kernel as KernelOfSignature
from stepwell.dialects import kernel
from stepwell.dialects.calling import INTO
from stepwell.dialects.checks import read_checks, read_served
from stepwell.dialects.types import places
from stepwell.lowering.emit.arguments import ROLES, Argument, Entry
from stepwell.lowering.emit.boundary import check_arenas, check_argument, check_beside
from stepwell.lowering.emit.checks import checks_text
from stepwell.lowering.emit.guard_numbers import Guards
from stepwell.lowering.emit.guarded_entry import FAULT_COMMENT, guarded_call
from stepwell.lowering.emit.kinds import BITS, element_name
from stepwell.lowering.emit.unit import Unit
from stepwell.transforms.passes import fail


def entries(module: ModuleOp, target: str = "c") -> list[Entry]:
    """Return every public function of the module, in order."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
    kernels = tuple(
        KernelOfSignature(op.sym_name.data, tuple(_lines(op)))
        for op in module.ops
        if isinstance(op, kernel.FuncOp)
    )
    found: list[Entry] = []
    for name, op in functions.items():
        beside = name.endswith((".shapes", ".arena")) and name.rpartition(".")[0] in functions
        if beside or (op.sym_visibility is not None and op.sym_visibility.data == "private"):
            continue
        arguments = tuple(_arguments(op))
        shapes, arena = functions.get(f"{name}.shapes"), functions.get(f"{name}.arena")
        _check_beside(op, arguments, shapes, arena)
        signature = _signature(op, arguments, arena, kernels, target)
        if signature.sized_by_program and shapes is None:
            fail(op, f"@{name} has a result of unknown size but no @{name}.shapes is beside it")
        found.append(Entry(op, arguments, shapes, arena, signature))
    if not found:
        fail(module, "no public function to export", help="make one func.func public")
    found = _rename_results_to_constants(found)
    makers = {entry.name: replace(entry.signature, kernels=()) for entry in found}
    return [
        replace(entry, signature=replace(entry.signature, maker=makers[name]))
        if (name := f"{entry.name}.constants") in makers
        else entry
        for entry in found
    ]


def _check_beside(
    op: func.FuncOp,
    arguments: Sequence[Argument],
    shapes: func.FuncOp | None,
    arena: func.FuncOp | None,
) -> None:
    """Fail if the functions of sizes do not belong to ``op``, or its arena is invalid."""
    unknown = {
        role: sum(a.shape.count(DYNAMIC) for a in arguments if a.role == role) for role in ROLES
    }
    check_beside(op, shapes, unknown["input"], unknown["output"])
    check_beside(op, arena, unknown["input"], 1)
    types = [op.args[a.number].type for a in arguments if a.role == "arena"]
    check_arenas(op, [type for type in types if isinstance(type, MemRefType)])


def guarded(signature: Signature, guards: tuple[Guard, ...]) -> Signature:
    """Return the signature of a program that ends early if one of ``guards`` fails."""
    maker = signature.maker
    return replace(signature, guards=guards, maker=maker and replace(maker, guards=guards))


def _rename_results_to_constants(found: Sequence[Entry]) -> list[Entry]:
    """Rename the results of the function that computes constants to the constants."""
    names = {
        (f"{entry.name}.constants", a.created): a.title
        for entry in found
        for a in entry.arguments
        if a.created is not None
    }
    named: list[Entry] = []
    for entry in found:
        first = len(entry.of_role("input", "constant"))
        arguments = tuple(
            replace(a, name=names.get((entry.name, a.number - first), a.name))
            if a.role == "output"
            else a
            for a in entry.arguments
        )
        results = tuple(Tensor(a.name, a.dtype, a.shape) for a in arguments if a.role == "output")
        signature = replace(entry.signature, results=results)
        named.append(replace(entry, arguments=arguments, signature=signature))
    return named


def _lines(op: Operation) -> Iterator[str]:
    """Yield every source line of a kernel, once, in order.

    Locations of its ops are left out: a constant in it may be shared with other kernels.
    """
    found = {(quoted(basename(place.file)), place.line) for place in places(op.location)}
    yield from (f"{file}:{line}" for file, line in sorted(found))


def _arguments(op: func.FuncOp) -> Iterator[Argument]:
    attributes = op.arg_attrs.data if op.arg_attrs else (DictionaryAttr({}),) * len(op.args)
    order, seen = 0, Counter[str]()
    for number, (argument, each) in enumerate(zip(op.args, attributes, strict=True)):
        role = _text(each.data.get("kernel.role")) or "input"
        if role not in ROLES or ROLES.index(role) < order:
            fail(op, f"argument {number} has the role {role!r} out of order ({', '.join(ROLES)})")
        order = ROLES.index(role)
        found = _argument(op, number, argument, role, each.data)
        yield found if found.name else replace(found, name=f"{role}{seen[role]}")
        seen[role] += 1


def _argument(
    op: func.FuncOp, number: int, argument: BlockArgument, role: str, attributes: Any
) -> Argument:
    type = argument.type
    if not isinstance(type, MemRefType) or (element := element_name(type.element_type)) is None:
        fail(op, f"argument {number} of @{op.sym_name.data} must be a memref, got {type}")
    shape = tuple(DYNAMIC if n < 0 else n for n in type.get_shape())
    name = _text(attributes.get("nd.name")) or argument.name_hint or ""
    dtype = _text(attributes.get("nd.dtype")) or element
    if dtype not in DTYPES:
        fail(op, f"argument {number} of @{op.sym_name.data} cannot have elements of type {dtype}")
    check_argument(op, number, type, dtype)
    resource = attributes.get("nd.resource")
    parameters = [_text(p) for p in getattr(resource, "parameters", ())]
    key, sha = parameters if len(parameters) == 2 else ("", "")
    sha = sha or _text(attributes.get("nd.sha256"))
    created, into = attributes.get("kernel.computed_constant"), attributes.get(INTO)
    return Argument(
        *(number, role, name, dtype, shape, _text(resource) or key, sha),
        *(n.value.data if isinstance(n, IntegerAttr) else None for n in (created, into)),
    )


def _text(attribute: Attribute | None) -> str:
    return attribute.data if isinstance(attribute, StringAttr) else ""


def _signature(
    op: func.FuncOp,
    arguments: Sequence[Argument],
    arena: func.FuncOp | None,
    kernels: tuple[KernelOfSignature, ...],
    target: str,
) -> Signature:
    def tensors(role: str) -> tuple[Tensor, ...]:
        return tuple(Tensor(a.name, a.dtype, a.shape) for a in arguments if a.role == role)

    constants = (a for a in arguments if a.role == "constant")
    loops = any(isinstance(each, scf.ForOp | scf.WhileOp) for each in op.walk())
    return Signature(
        entry=op.sym_name.data,
        arguments=tensors("input"),
        results=tensors("output"),
        constants=tuple(
            Constant(a.title, a.dtype, a.shape, a.sha256, a.created) for a in constants
        ),
        arena=_arena_bytes(arguments, arena),
        kernels=kernels,
        checks=read_checks(op),
        served=read_served(op),
        into=tuple(_into(op, arguments)),
        loops=loops,
        target=target,
    )


def _into(op: func.FuncOp, arguments: Sequence[Argument]) -> Iterator[tuple[int, int]]:
    """Yield results that may share the array of an argument, with the argument's number."""
    results = [a for a in arguments if a.role == "output"]
    for number, result in enumerate(results):
        if result.into is None:
            continue
        given = arguments[result.into] if 0 <= result.into < len(arguments) else None
        fits = given is not None and (given.role, given.dtype, given.shape) == (
            *("input", result.dtype),
            result.shape,
        )
        if not fits or sum(r.into == result.into for r in results) > 1:
            fail(op, f"result {number}: {INTO} names no argument of its own and of its type")
        yield number, result.into


def _arena_bytes(arguments: Sequence[Argument], arena: func.FuncOp | None) -> int | None:
    """Return the size of the arena if it is static: 0 if there is none."""
    given = next((a for a in arguments if a.role == "arena"), None)
    if given is None:
        return 0
    if arena is None:
        known = DYNAMIC not in given.shape
        return prod(given.shape) * (BITS[given.dtype] // 8) if known else None
    (size,) = arena.body.block.last_op.operands  # pyright: ignore
    value = size.owner.value if isinstance(size.owner, arith.ConstantOp) else None
    return value.value.data if isinstance(value, IntegerAttr) else None


# exported C functions


def exported(
    entry: Entry,
    written: Callable[[Operation, str], Any],
    note: str,
    unit: Unit | None = None,
) -> Iterator[str]:
    """Return the exported functions of one entry.

    written : writes a function and returns how to call it
    unit : has the guards and checks of the program, if any
    """
    name = entry.signature.symbol
    comment = f"  // {note}" if note else ""
    dims = {
        (a.number, axis): k
        for k, (a, axis) in enumerate(
            (a, axis) for a in entry.of_role("input") for axis, n in enumerate(a.shape) if n < 0
        )
    }
    sizes = {
        (a.number, axis): k
        for k, (a, axis) in enumerate(
            (a, axis) for a in entry.of_role("output") for axis, n in enumerate(a.shape) if n < 0
        )
    }
    if tested := entry.signature.tested:
        yield checks_text(name, tested, comment)
    if entry.shapes is not None and sizes:
        yield _shapes(name, written(entry.shapes, entry.shapes.sym_name.data), comment)
    yield _arena(name, entry, written, comment)
    yield _main(name, entry, written(entry.op, entry.name), (dims, sizes), comment, unit)


def _shapes(name: str, function: Any, comment: str) -> str:
    given = ", ".join(f"dims[{p.operand}]" for p in function.parameters)
    rows = [f"void {name}_shapes(const int64_t *dims, int64_t *sizes) {{"]
    if not function.parameters:
        rows.append(f"  (void)dims;{comment}")
    if len(function.results) == 1:
        rows.append(f"  sizes[0] = {function.name}({given});{comment}")
    else:
        rows.append(f"  const {function.result_type} r = {function.name}({given});{comment}")
        rows += [f"  sizes[{k}] = r.r{k};{comment}" for k in range(len(function.results))]
    return "\n".join([*rows, "}"])


def _arena(name: str, entry: Entry, written: Callable[..., Any], comment: str) -> str:
    head = f"int64_t {name}_arena(const int64_t *dims) {{"
    known = entry.signature.arena
    if known is not None:
        rows = [f"  (void)dims;{comment}", f"  return {known};{comment}"]
    elif entry.arena is None:
        fail(entry.op, f"the arena has no size known now and no @{entry.name}.arena is beside it")
    else:
        function = written(entry.arena, entry.arena.sym_name.data)
        given = ", ".join(f"dims[{p.operand}]" for p in function.parameters)
        rows = [f"  return {function.name}({given});{comment}"]
    return "\n".join([head, *rows, "}"])


def _main(
    name: str,
    entry: Entry,
    function: Any,
    places: tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]],
    comment: str,
    unit: Unit | None,
) -> str:
    guards = unit.guards if unit is not None else None
    faults = unit.faults if unit is not None else None
    _check_unwritten(entry, function)
    _, sizes = places
    text = ", ".join(_given(name, entry, function, places))
    rows = [
        f"int32_t {name}(const struct sw_runtime *rt, void *const *buffers, const int64_t *dims,",
        f"{' ' * (len(name) + 9)}char *arena) {{",
    ]
    if "sizes[" in text or (guards is not None and sizes):
        rows += [
            f"  int64_t sizes[{len(sizes)}];{comment}",
            f"  {name}_shapes(dims, sizes);{comment}",
        ]
    if entry.signature.tested:
        rows.append(f"  const int32_t failed = {name}_checks(dims);{comment}")
        rows.append(f"  if (failed) return failed;{comment}")
    call = f"{function.name}({text});"
    ending = [f"  {call}{comment}", f"  return 0;{comment}"]
    if faults is not None:
        ending = list(guarded_call(entry, guards, call, comment))
        text = "buffers dims arena" if guards is not None else text
    unused = [w for w in ("rt", "buffers", "dims", "arena") if w not in "".join(rows[2:]) + text]
    rows += [f"  (void){word};{comment}" for word in unused]
    rows += ending
    return "\n".join([*rows, "}"])


def _given(
    name: str,
    entry: Entry,
    function: Any,
    places: tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]],
) -> list[str]:
    """Return the arguments of the call."""
    dims, sizes = places
    buffers = {a.number: k for k, a in enumerate(entry.of_role("input", "constant", "output"))}
    given: list[str] = []
    for p in function.parameters:
        at = (p.operand, p.axis)
        if p.part == "runtime":
            given.append("rt")
        elif p.part == "fault":
            given.append("&fault")
        elif p.part == "size":
            given.append(
                f"dims[{dims[at]}]"
                if at in dims
                else f"sizes[{sizes[at]}]"
                if at in sizes
                else f"{name}_arena(dims)"
            )
        elif p.operand in buffers:
            given.append(f"buffers[{buffers[p.operand]}]")
        else:
            given.append("(void *)arena")
    return given


def _check_unwritten(entry: Entry, function: Any) -> None:
    """Fail where a constant or input of the caller may be written."""
    for p in function.parameters:
        given = next((a for a in entry.of_role("input", "constant") if a.number == p.operand), None)
        if given and p.part == "pointer" and not p.type.startswith("const "):
            message = f"%{given.name} is an {given.role} of @{entry.name}, but may be written"
            help = 'mark a written argument as a result: {kernel.role = "output"}'
            fail(entry.op, message.replace("an constant", "a constant"), help)


def header(found: Sequence[Entry], guards: Guards | None = None) -> str:
    """Return the text of a header that declares the functions that `exported` defines."""
    guard = f"STEPWELL_{mangled(found[0].name)}_H"
    rows = [
        f"#ifndef {guard}",
        f"#define {guard}",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "#ifndef STEPWELL_RUNTIME  /* the headers of several programs may be included */",
        "#define STEPWELL_RUNTIME",
        "/* What a program asks of its caller: run body over 0..n in runs of about `grain`, on as",
        " * many threads as there are; `parallel` may call body(context, 0, n) itself. Where n is",
        " * not positive it must do nothing. */",
        ABI,
        "#endif",
    ]
    makers = {entry.signature.maker.entry for entry in found if entry.signature.maker}
    for entry in found:
        rows += ["", *_declarations(entry, entry.name in makers, guards is not None)]
    rows += ["", "#ifdef __cplusplus", "}", "#endif", "", f"#endif  /* {guard} */", ""]
    return "\n".join(rows)


ABI = """struct sw_runtime {
  void (*parallel)(const struct sw_runtime *rt,
                   void (*body)(void *context, int64_t begin, int64_t end),
                   void *context, int64_t n, int64_t grain);
  int32_t threads;
};"""


def _declarations(entry: Entry, makes_constants: bool, is_guarded: bool) -> Iterator[str]:
    name, signature = entry.signature.symbol, entry.signature
    yield f"/* {signature}"
    yield " *"
    saved = iter(constant_offsets(signature.constants)[0])
    for k, a in enumerate(entry.of_role("input", "constant", "output")):
        kept = a.role == "constant" and not makes_constants
        where = f", at {next(saved)} of constants.bin" if kept else ""
        created = f", result {a.created} of {name}_constants" if a.created is not None else ""
        about = f"{quoted(a.title)}: {Tensor(a.name, a.dtype, a.shape)}{created}{where}"
        yield f" * buffers[{k}]  {a.role:<8}  {about}"
    unknown = [
        f"{quoted(a.name)}.shape[{axis}]"
        for a in entry.of_role("input")
        for axis, n in enumerate(a.shape)
        if n < 0
    ]
    for k, text in enumerate(unknown):
        yield f" * dims[{k}]     {text}"
    yield " *"
    yield " * All arrays are contiguous and row-major; no result overlaps another array."
    inputs = len(entry.of_role("input", "constant"))
    for result, argument in signature.into:
        yield f" * buffers[{inputs + result}] may be buffers[{argument}], which is then updated."
    yield f" * arena is scratch memory of {name}_arena(dims) bytes, aligned to 64."
    wanted = f"; {name}_checks says first whether the sizes fit" if signature.tested else ""
    yield f" * Returns 0, or the number of an error{wanted}. */"
    yield f"int32_t {name}(const struct sw_runtime *rt, void *const *buffers, const int64_t *dims,"
    yield f"{' ' * (len(name) + 9)}char *arena);"
    if is_guarded:
        yield from FAULT_COMMENT
        yield f"const char *{name}_fault(int64_t *values);"
    if signature.tested:
        yield "/* Returns 0, or the number, from 1, of the first check of sizes that fails. */"
        yield f"int32_t {name}_checks(const int64_t *dims);"
    if signature.sized_by_program:
        yield "/* Writes every unknown size of the results, in order. */"
        yield f"void {name}_shapes(const int64_t *dims, int64_t *sizes);"
    yield f"int64_t {name}_arena(const int64_t *dims);"
    if makes_constants:
        yield "/* It has run when a program is saved: constants.bin has what it makes. */"
    elif signature.constants:
        offsets, size = constant_offsets(signature.constants)
        yield "/* Where each constant begins in constants.bin, in order, and the bytes of that. */"
        yield f"#define {name}_OFFSETS {{{', '.join(map(str, offsets))}}}"
        yield f"#define {name}_BYTES {size}"
