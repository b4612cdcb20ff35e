"""kernel.dot_tile: the matrix unit if available, else one register of sums at a time.

x86's AMX has eight tiles of 16 rows of 64 bytes. Four hold 32 by 32 sums, two the words of rows and
two those of columns. The shapes are configured beforehand (`ldtilecfg`), once for all full steps of
16 words and once for the tail, between which sums go through memory. Linux lets a process use tiles
after a request. The instructions are macros, which tests define in plain C beforehand.
"""

from __future__ import annotations

from stepwell.core.dot_instructions import DOT_INSTRUCTIONS
from stepwell.core.guards import no_place
from stepwell.dialects import kernel
from stepwell.dialects.kernel.dot_tiles import SIDE
from stepwell.dialects.types import called
from stepwell.lowering.emit.dots import dot
from stepwell.lowering.emit.guards import outside, refuse
from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.spelling import Spelling
from stepwell.lowering.emit.writer import Writer, emit

ROWS = COLUMNS = 2 * SIDE
"""The rows and columns of the sums in four tiles."""
MACROS = (
    "#ifndef SW_TILE_LOAD",
    "#define SW_TILE_CONFIGURE(c) "
    '__asm__ volatile("ldtilecfg %0" :: "m"(*(const char (*)[64])(c)))',
    "#define SW_TILE_LOAD(t, p, s) "
    '__asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t'
    ' :: "r"(p), "r"((long long)(s)) : "memory")',
    "#define SW_TILE_STORE(t, p, s) "
    '__asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)"'
    ' :: "r"(p), "r"((long long)(s)) : "memory")',
    "#define SW_TILE_DOT(i, z, x, w) "
    '__asm__ volatile(#i " %%tmm" #w ", %%tmm" #x ", %%tmm" #z ::: "memory")',
    '#define SW_TILE_RELEASE() __asm__ volatile("tilerelease")',
    "#endif",
)
ALLOWED = (
    "#if defined(SW_TILES_EMULATED)",
    "return 1;",
    "#elif defined(__linux__) && defined(__x86_64__)",
    "static int answer;  // 1: allowed, 2: refused",
    "if (!answer) {",
    "  long r;  // arch_prctl(ARCH_REQ_XCOMP_PERM, the tiles' data)",
    '  __asm__ volatile("syscall" : "=a"(r) : "a"(158L), "D"(0x1023L), "S"(18L)',
    '                   : "rcx", "r11", "memory");',
    "  answer = r == 0 ? 1 : 2;",
    "}",
    "return answer == 1;",
    "#else",
    "return 0;",
    "#endif",
)


@emit(kernel.DotTileOp)
def _dot_tile(w: Writer, op: kernel.DotTileOp) -> None:
    sums, x, columns = (w.buffer(buffer) for buffer in (op.sums, op.x, op.w))
    rows = op.rows.value.data
    if w.guards is not None:
        for buffer, index, count in ((op.sums, op.at, rows), (op.x, op.row, rows)):
            size = w.buffer(buffer).sizes[0]
            said = no_place(op.name, called(buffer), 0, count)
            refuse(w, op, outside(w, w[index], size, count), said, (w[index], size))
        for buffer, axis in ((op.x, 1), (op.w, 0)):
            size = w.buffer(buffer).sizes[axis]
            said = no_place(op.name, called(buffer), axis)
            test = f"({w[op.words]} < 0 || {w[op.words]} > {size})"
            refuse(w, op, test, said, (w[op.words], size))
    name = _helper(w.spelling, Kind(sums.element), op.elements, rows, int(columns.sizes[1]))
    at, row = (
        f"&{buffer.pointer}[{w[index]} * {buffer.strides[0]}]"
        for buffer, index in ((sums, op.at), (x, op.row))
    )
    strides = [buffer.strides[0] for buffer in (sums, x, columns)]
    w.line(f"{name}({at}, {row}, {columns.pointer}, {', '.join(strides)}, {w[op.words]});")


def _helper(s: Spelling, sum: Kind, elements: tuple[str, str], rows: int, columns: int) -> str:
    x, y = elements
    body = _tiles(s, elements) if (rows, columns) == (ROWS, COLUMNS) else []
    register, words = Kind(sum.element, SIDE), Kind("i32", SIDE)
    added = dot(s, register, elements, "t", s.splat(words, "x[r * xs + k]"), "v")
    body += [
        f"for (int r = 0; r < {rows}; r++) {{",
        f"  for (int c = 0; c < {columns}; c += {SIDE}) {{",
        f"    {s.type(register)} t = {s.load(register, '&z[r * zs + c]')};",
        "    for (long long k = 0; k < n; k++) {",
        f"      const {s.type(words)} v = {s.load(words, '&w[k * ws + c]')};",
        f"      t = {added};",
        "    }",
        f"    {s.store(register, '&z[r * zs + c]', 't')}",
        "  }",
        "}",
    ]
    pointers = [f"{s.type(sum)} *", "const int *", "const int *"]
    numbers = [("long long ", name) for name in ("zs", "xs", "ws", "n")]
    parameters = [*zip(pointers, "zxw", strict=True), *numbers]
    return s.helper(f"sw_dot_tile_{x}_{y}_{rows}_{columns}", None, parameters, body)


def _tiles(s: Spelling, elements: tuple[str, str]) -> list[str]:
    """Return rows that use the tile instructions, if they are available and permitted."""
    found = [r for r in DOT_INSTRUCTIONS if r.rows > 1 and (r.x, r.w) == elements]
    if not found:
        return []
    (row,) = found
    allowed = s.helper("sw_tiles_allowed", Kind("i32"), [], ALLOWED)
    sums = [(n, f"&z[{n // 2 * SIDE} * zs + {n % 2 * SIDE}], 4 * zs") for n in range(4)]
    return [
        f"#if {row.defined}",
        *MACROS,
        f"if ({allowed}()) {{",
        "  for (long long k = 0, m; k < n; k += m) {  // whole steps, then the rest",
        f"    const long long left = n - k, step = left < {SIDE} ? left : {SIDE};",
        "    m = left - left % step;",
        "    unsigned char c[64] __attribute__((aligned(64))) = {1};",
        "    for (int t = 0; t < 8; t++) {",
        f"      c[16 + 2 * t] = t == 4 || t == 5 ? 4 * step : {4 * SIDE};",
        f"      c[48 + t] = t > 5 ? step : {SIDE};",
        "    }",
        "    SW_TILE_CONFIGURE(c);",
        *(f"    SW_TILE_LOAD({n}, {place});" for n, place in sums),
        "    for (long long q = k; q < k + m; q += step) {",
        "      SW_TILE_LOAD(4, &x[q], 4 * xs);",
        "      SW_TILE_LOAD(6, &w[q * ws], 4 * ws);",
        f"      SW_TILE_DOT({row.text}, 0, 4, 6);",
        f"      SW_TILE_LOAD(7, &w[q * ws + {SIDE}], 4 * ws);",
        f"      SW_TILE_DOT({row.text}, 1, 4, 7);",
        f"      SW_TILE_LOAD(5, &x[q + {SIDE} * xs], 4 * xs);",
        f"      SW_TILE_DOT({row.text}, 2, 5, 6);",
        f"      SW_TILE_DOT({row.text}, 3, 5, 7);",
        "    }",
        *(f"    SW_TILE_STORE({n}, {place});" for n, place in sums),
        "    SW_TILE_RELEASE();",
        "  }",
        "  return;",
        "}",
        "#endif",
    ]
