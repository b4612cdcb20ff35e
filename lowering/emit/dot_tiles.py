"""kernel.dot_tile: the matrix unit if available, else one register of sums at a time.

x86's AMX has eight tiles of 16 rows of 64 bytes. Four hold 32 by 32 sums, two the words of rows and
two those of columns. To configure their shapes (`ldtilecfg`) takes as long as ten products of
tiles. So this is done only where shapes change: for the last rows, and for a tail of fewer than 16
words, before which sums are stored to memory. Linux lets a process use tiles after a request. The
instructions are macros, which tests define in plain C beforehand.
"""

from __future__ import annotations

from stepwell.core.dot_instructions import BITS, DOT_INSTRUCTIONS, WORD
from stepwell.core.guards import no_place
from stepwell.dialects import kernel
from stepwell.dialects.kernel.dot_tiles import SIDE
from stepwell.dialects.types import called
from stepwell.lowering.emit.buffers import Buffer, times
from stepwell.lowering.emit.dots import dot
from stepwell.lowering.emit.guards import refuse
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
    '#define SW_TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t ::: "memory")',
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
    if w.guards is not None:
        _check(w, op, (sums, x, columns))
    name = _helper(w.spelling, Kind(sums.element), op.elements, int(columns.sizes[1]))
    at, row = (
        f"&{w.element_at(buffer, indices)}"
        for buffer, indices in ((op.sums, op.at), (op.x, op.row))
    )
    bytes = BITS[op.elements[0]] // 8 if op.in_place else WORD // 8
    strides = times(sums.strides[-2], "4"), times(x.strides[-2], str(bytes)), columns.strides[0]
    sizes = w[op.words], w[op.count], "1" if op.from_zero is not None else "0"
    shapes = w.buffer(op.shapes).pointer
    pointers = f"{at}, (const char *){row}, {columns.pointer}"
    w.line(f"{name}({pointers}, {', '.join((*strides, *sizes))}, {shapes});")


def _check(w: Writer, op: kernel.DotTileOp, buffers: tuple[Buffer, Buffer, Buffer]) -> None:
    """Refuse tiles out of bounds; clear ``shapes``, which another op may have written."""
    sums, x, columns = buffers
    count, words, rows = w[op.count], w[op.words], op.rows.value.data
    said = f"{op.name}: a tile of {rows} rows has no ", ""
    refuse(w, op, f"{count} < 0 || {count} > {rows}", said, (count,))
    size = columns.sizes[0]
    said = no_place(op.name, called(op.w), 0)
    refuse(w, op, f"{words} < 0 || {words} > {size}", said, (words, size))
    long = times(words, str(WORD // BITS[op.elements[0]])) if op.in_place else words
    for value, buffer, indices, length in (
        (op.sums, sums, op.at, columns.sizes[1]),
        (op.x, x, op.row, long),
    ):
        lengths = [*["1"] * (len(indices) - 2), count, length]
        for axis, (index, size, here) in enumerate(
            zip(map(w.__getitem__, indices), buffer.sizes, lengths, strict=True)
        ):
            said = no_place(op.name, called(value), axis)
            refuse(w, op, f"{index} < 0 || {index} > {size} - {here}", said, (index, size))
    w.line(f"{w.buffer(op.shapes).pointer}[0] = 0;")


@emit(kernel.ReleaseTilesOp)
def _release(w: Writer, op: kernel.ReleaseTilesOp) -> None:
    body = ["#if defined(__AMX_TILE__)", *MACROS, "if (*shapes) SW_TILE_RELEASE();", "#endif"]
    name = w.spelling.helper("sw_release_tiles", None, [("const int64_t *", "shapes")], body)
    w.line(f"{name}({w.buffer(op.shapes).pointer});")


def _helper(s: Spelling, sum: Kind, elements: tuple[str, str], columns: int) -> str:
    x, y = elements
    register, words = Kind(sum.element, SIDE), Kind("i32", SIDE)
    word = s.splat(words, "*(const int *)(x + r * xs + 4 * k)")
    added = dot(s, register, elements, "t", word, "v")
    body = [
        *(_tiles(s, elements) if columns == COLUMNS else []),
        "for (int r = 0; r < count; r++) {",
        f"  {s.type(sum)} *const row = ({s.type(sum)} *)((char *)z + r * zs);",
        f"  for (int c = 0; c < {columns}; c += {SIDE}) {{",
        f"    {s.type(register)} t = {s.splat(register, '0')};",
        f"    if (!zero) t = {s.load(register, '&row[c]')};",
        "    for (long long k = 0; k < n; k++) {",
        f"      const {s.type(words)} v = {s.load(words, '&w[k * ws + c]')};",
        f"      t = {added};",
        "    }",
        f"    {s.store(register, '&row[c]', 't')}",
        "  }",
        "}",
    ]
    pointers = zip((f"{s.type(sum)} *", "const char *", "const int *"), "zxw", strict=True)
    numbers = [("long long ", name) for name in ("zs", "xs", "ws", "n", "count", "zero")]
    parameters = [*pointers, *numbers, ("int64_t *", "shapes")]
    return s.helper(f"sw_dot_tile_{x}_{y}_{columns}", None, parameters, body)


def _tiles(s: Spelling, elements: tuple[str, str]) -> list[str]:
    """Return rows that use the tile instructions, if they are available and permitted.

    The numbers of words and of rows for which tiles are configured are the value of ``shapes``.
    """
    found = [r for r in DOT_INSTRUCTIONS if r.rows > 1 and (r.x, r.w) == elements]
    if not found:
        return []
    (row,) = found
    allowed = s.helper("sw_tiles_allowed", Kind("i32"), [], ALLOWED)
    sums = [(n, f"(char *)z + {n // 2 * SIDE} * zs + {n % 2 * 4 * SIDE}, zs") for n in range(4)]
    return [
        f"#if {row.defined}",
        *MACROS,
        f"if (n > 0 && count > 0 && {allowed}()) {{",
        f"  const int high = count > {SIDE};  // rows fill more than one tile",
        "  for (long long k = 0, m; k < n; k += m) {  // whole steps, then the rest",
        f"    const long long left = n - k, step = left < {SIDE} ? left : {SIDE};",
        "    m = left - left % step;",
        f"    if (*shapes != {ROWS + 1} * step + count) {{",
        "      unsigned char c[64] __attribute__((aligned(64))) = {1};",
        "      for (int t = 0; t < 8; t++) {",
        f"        const int r = t == 2 || t == 3 || t == 5 ? count - {SIDE} : count;",
        f"        c[16 + 2 * t] = t == 4 || t == 5 ? 4 * step : {4 * SIDE};",
        f"        c[48 + t] = t > 5 ? step : r > 0 && r < {SIDE} ? r : {SIDE};",
        "      }",
        "      SW_TILE_CONFIGURE(c);",
        f"      *shapes = {ROWS + 1} * step + count;",
        "    }",
        "    if (zero && !k) {",
        *(f"      SW_TILE_ZERO({n});" for n in range(4)),
        "    } else {",
        *(f"      {'if (high) ' * (n > 1)}SW_TILE_LOAD({n}, {place});" for n, place in sums),
        "    }",
        "    for (long long q = k; q < k + m; q += step) {",
        "      SW_TILE_LOAD(4, x + 4 * q, xs);",
        "      SW_TILE_LOAD(6, &w[q * ws], 4 * ws);",
        f"      SW_TILE_DOT({row.text}, 0, 4, 6);",
        f"      SW_TILE_LOAD(7, &w[q * ws + {SIDE}], 4 * ws);",
        f"      SW_TILE_DOT({row.text}, 1, 4, 7);",
        "      if (high) {",
        f"        SW_TILE_LOAD(5, x + 4 * q + {SIDE} * xs, xs);",
        f"        SW_TILE_DOT({row.text}, 2, 5, 6);",
        f"        SW_TILE_DOT({row.text}, 3, 5, 7);",
        "      }",
        "    }",
        *(f"    {'if (high) ' * (n > 1)}SW_TILE_STORE({n}, {place});" for n, place in sums),
        "  }",
        "  return;",
        "}",
        "#endif",
    ]
