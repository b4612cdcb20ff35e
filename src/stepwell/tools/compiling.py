"""stepwell compile: write a program's files into a folder, or print what there is to read."""

from __future__ import annotations

import argparse
from pathlib import Path

from stepwell.compiled import Compiled, compile
from stepwell.core.signature import Signature
from stepwell.modules import read_module

HEADER = """\
/* {entry}: how to call the program from C. Link program.so, or compile program.c into yours. */
#ifndef STEPWELL_{guard}_H
#define STEPWELL_{guard}_H
#include <stdint.h>

struct sw_runtime {{
  /* Runs body over 0..n in any number of pieces, in any order, at once or one by one. */
  void (*parallel)(const struct sw_runtime *rt, void (*body)(void *ctx, int64_t begin, int64_t end),
                   void *ctx, int64_t n, int64_t grain);
  int32_t threads;
}};

/* {signature}
   buffers, in this order:
{buffers}
   dims: {dims}
   arena: {arena}
   Returns 0, or the number of an error. */
int32_t stepwell_{entry}(const struct sw_runtime *rt, void *const *buffers, const int64_t *dims, char *arena);
{others}
#endif
"""  # noqa: E501


def compile_command(options: argparse.Namespace) -> int:
    """Compile a module; write the program, or print its text or a stage of it."""
    module = read_module(options.file, options.weights)
    compiled = compile(module, options.entry, target=options.target, machine=options.machine)
    if options.stage:
        print(compiled.text(options.stage), end="")
    elif options.output is None:
        print(compiled.source, end="")
    else:
        _write(compiled, Path(options.output))
    return 0


def _write(compiled: Compiled, folder: Path) -> None:
    compiled.save(folder)
    signature = compiled.signature
    (folder / "program.h").write_text(header(signature))
    print(f"{signature}")
    for file in sorted(p for p in folder.iterdir() if p.name.startswith(("program.", "constants"))):
        print(f"  {file}  {file.stat().st_size:,} bytes")
    print(f"  kernels: {', '.join(k.name for k in signature.kernels) or 'none'}")
    print(f"  arena: {_arena(signature)}")


def header(signature: Signature) -> str:
    """Return a C header for the program, which says what each buffer is."""
    arrays = [
        *(("input", a) for a in signature.arguments),
        *(("constant", c) for c in signature.constants),
        *(("output", r) for r in signature.results),
    ]
    others: list[str] = []
    name = signature.entry
    if signature.sized_by_program:
        others.append(
            "/* Writes the size of every ? of the outputs, in order. */\n"
            f"void stepwell_{name}_shapes(const int64_t *dims, int64_t *sizes);"
        )
    if signature.arena is None:
        others.append(
            "/* Returns how many bytes of arena a call needs. */\n"
            f"int64_t stepwell_{name}_arena(const int64_t *dims);"
        )
    return HEADER.format(
        entry=name,
        guard=name.upper(),
        signature=signature,
        buffers="\n".join(
            f"     {n}: {role} {a.name or n}, {a}" for n, (role, a) in enumerate(arrays)
        ),
        dims="every ? of the inputs, in order" if signature.dynamic else "not read",
        arena=f"{_arena(signature)}, aligned to 64",
        others="\n".join(others),
    )


def _arena(signature: Signature) -> str:
    if signature.arena is None:
        return "bytes depend on the sizes"
    return f"{signature.arena:,} bytes"
