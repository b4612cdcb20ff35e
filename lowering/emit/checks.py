"""Checks of sizes in C, with arithmetic that detects overflow.

int32_t stepwell_main_checks(const int64_t *dims) {
  int64_t t0;
  if (__builtin_mul_overflow(dims[0], 4, &t0)) return 1;
  if (!(t0 <= 64)) return 1;
  return 0;
}
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.core.checks import Check
from stepwell.core.host_schedule import Tree

_CHECKED = {"+": "add", "-": "sub", "*": "mul"}
_COMPARE = {
    **{sign: f"{{0}} {sign} {{1}}" for sign in ("==", "!=", "<", "<=", ">", ">=", "&", "|", "^")},
    **{f"u{sign}": f"(uint64_t){{0}} {sign} (uint64_t){{1}}" for sign in ("<", "<=", ">", ">=")},
    "min": "{0} < {1} ? {0} : {1}",
    "max": "{0} > {1} ? {0} : {1}",
    "umin": "(uint64_t){0} < (uint64_t){1} ? {0} : {1}",
    "umax": "(uint64_t){0} > (uint64_t){1} ? {0} : {1}",
    "u/": "{1} == 0 ? 0 : (int64_t)((uint64_t){0} / (uint64_t){1})",
    "u%": "{1} == 0 ? 0 : (int64_t)((uint64_t){0} % (uint64_t){1})",
    "%": "{1} == 0 || {1} == -1 ? 0 : {0} % {1}",
    "select": "{0} ? {1} : {2}",
    "not": "!{0}",
}
_DIVIDE = {
    "/": "{1} == 0 ? 0 : {0} / {1}",
    "floor/": "{1} == 0 ? 0 : {0} / {1} - ({0} % {1} != 0 && ({0} < 0) != ({1} < 0))",
    "ceil/": "{1} == 0 ? 0 : {0} / {1} + ({0} % {1} != 0 && ({0} < 0) == ({1} < 0))",
}
LEAST = "(-9223372036854775807 - 1)"


def checks_text(name: str, checks: Sequence[Check], comment: str) -> str:
    """Return the function ``NAME_checks``: 0, or the number of the first check that fails."""
    writer = _Checks(comment)
    for number, check in enumerate(checks, 1):
        writer.number = number
        writer.write(f"if (!({writer.value(check.holds)})) return {number};")
    head = f"int32_t {name}_checks(const int64_t *dims) {{"
    text = [*writer.rows, f"  return 0;{comment}", "}"]
    unused = [] if any("dims" in row for row in text) else [f"  (void)dims;{comment}"]
    return "\n".join([head, *unused, *text])


class _Checks:
    """Writes trees as values, each once."""

    def __init__(self, comment: str) -> None:
        self.comment = comment
        """The comment at the end of every statement: its source lines."""
        self.rows: list[str] = []
        self.number = 0
        """The number of the check being written."""
        self._known: dict[str, str] = {}

    def write(self, statement: str) -> None:
        """Append a statement."""
        self.rows.append(f"  {statement}{self.comment}")

    def value(self, tree: Tree) -> str:
        """Return a C variable or literal with the value of ``tree``."""
        if isinstance(tree, str):
            return f"dims[{int(tree[1:])}]"
        if not isinstance(tree, list | tuple):
            return self._literal(int(tree))
        if (key := repr(tree)) not in self._known:
            operator, *operands = tree
            self._known[key] = self._applied(operator, [self.value(each) for each in operands])
        return self._known[key]

    def _literal(self, number: int) -> str:
        if not -(1 << 63) <= number < 1 << 63:
            self.write(f"return {self.number};")
            return "0"
        return LEAST if number == -(1 << 63) else str(number)

    def _applied(self, operator: str, operands: list[str]) -> str:
        name = f"t{len(self._known)}"
        if (kind := _CHECKED.get(operator)) is not None:
            a, b = operands
            self.write(f"int64_t {name};")
            overflows = f"__builtin_{kind}_overflow({a}, (int64_t){b}, &{name})"
            self.write(f"if ({overflows}) return {self.number};")
            return name
        if operator == "wrap":
            shift = 64 - int(operands[1])
            bits = f"(int64_t)((uint64_t){operands[0]} << {shift})"
            self.write(f"const int64_t {name} = {bits} >> {shift};")
            return name
        if (form := _DIVIDE.get(operator)) is not None:
            a, b = operands
            self.write(f"if ({a} == {LEAST} && {b} == -1) return {self.number};")
        else:
            form = _COMPARE[operator]
        self.write(f"const int64_t {name} = {form.format(*operands)};")
        return name
