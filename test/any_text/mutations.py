"""Damage a text as people do and as no one would: tokens lost, doubled, exchanged, grown."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[%@#!^]?[\w.$]+|->|//[^\n]*|\s+|.', re.DOTALL)
_NUMBERS = (
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "64",
    "127",
    "1000000",
    "0x7F",
    "0xFFFFFFFFFFFFFFFFFFFF",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "1.5",
    "-0.0",
    "1e400",
    "1099511627776",
    "99999999999999999999999",
    "true",
    "?",
    "9" * 4400,
)
_TYPES = (
    "i32",
    "i1",
    "i0",
    "si8",
    "ui64",
    "i16777216",
    "f32",
    "f16",
    "bf16",
    "f8E4M3FN",
    "f128",
    "index",
    "tensor<4xf32>",
    "tensor<?xf32>",
    "tensor<*xf32>",
    "tensor<f32>",
    "tensor<0xi8>",
    "none",
    "memref<4xf32>",
    "memref<?x?xf32, strided<[?, 1], offset: ?>>",
    "vector<4xf32>",
    "()",
    "vector<[4]xf32>",
    "memref<*xf32>",
    "tuple<i32, f32>",
    "complex<f32>",
    "() -> ()",
    "tensor<1099511627776xf32>",
    "!test.none",
    "tensor<4x8xf32, 1>",
    "vector<0xf32>",
)
_ATTRIBUTES = (
    "dense<1.0> : tensor<4xf32>",
    "dense<[]> : tensor<0xi32>",
    "array<i64: 1, 2>",
    "unit",
    "[]",
    "{}",
    "@f::@g",
    "@f",
    '"text"',
    "affine_map<(d0)[s0] -> (d0 * s0)>",
    "loc(unknown)",
    "[1, 2]",
    "affine_map<(d0, d1) -> (d0 floordiv 0, d1 mod -1)>",
    "dense_resource<a> : tensor<4xf32>",
    "dense<0xFFFFFFFF> : tensor<2xf32>",
    'dense<"0x00"> : tensor<4xi8>',
    "#x.y<z>",
    "0x10 : f32",
    "sparse<0, 1> : tensor<4xi32>",
    'opaque<"a", "0x00"> : tensor<1xi8>',
    "strided<[1]>",
)
_PIECES = (
    "}",
    "{",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ":",
    ",",
    "=",
    "->",
    "%",
    "@",
    "#",
    "!",
    "^",
    '"',
)
_ODD = ("\0", "\x1b[31m", "\u2028", "é", "\\", "{-#", "#-}", "//", "\r", "\t", "'", "`", "\ufeff")


def _is_number(token: str) -> bool:
    return token[:1].isdigit()


def _is_value(token: str) -> bool:
    return token[:1] == "%"


def _is_type(token: str) -> bool:
    return re.fullmatch(r"[su]?i\d+|b?f\d+|index|tensor|memref|vector", token) is not None


def _is_op(token: str) -> bool:
    return re.fullmatch(r'"?[a-z_]\w*\.[\w.]+"?', token) is not None


def _places(tokens: Sequence[str], kind: Callable[[str], bool]) -> list[int]:
    return [k for k, token in enumerate(tokens) if kind(token)]


def _solid(tokens: Sequence[str]) -> list[int]:
    return _places(tokens, lambda token: not token.isspace())


def _exchanged(kind: Callable[[str], bool], others: Sequence[str] = ()) -> Callable[..., None]:
    """Return a mutation that puts another token of a kind, or one of ``others``, in a place."""

    def mutate(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
        if places := _places(tokens, kind):
            given = [donor[k] for k in _places(donor, kind)] + [tokens[k] for k in places]
            tokens[rng.choice(places)] = rng.choice([*others, rng.choice(given)])

    return mutate


def _drop(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    del tokens[rng.choice(_solid(tokens))]


def _double(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    at = rng.choice(_solid(tokens))
    tokens.insert(at, f"{tokens[at]} ")


def _swap(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    a, b = rng.choices(_solid(tokens), k=2)
    tokens[a], tokens[b] = tokens[b], tokens[a]


def _insert(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    kinds = (_PIECES, _PIECES, _NUMBERS, _TYPES, _ATTRIBUTES, _ODD)
    tokens.insert(rng.choice(_solid(tokens)), rng.choice(rng.choice(kinds)))


def _drop_brackets(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    """Drop what stands in a pair of brackets, half of the time with them."""
    if found := _brackets(tokens, rng):
        first, last = found
        inner = rng.random() < 0.5
        del tokens[first + inner : last + 1 - inner]


def _double_brackets(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    """Write what stands in a pair of brackets once more, or many times."""
    if found := _brackets(tokens, rng):
        first, last = found
        inside = [*tokens[first + 1 : last], rng.choice((" ", ", "))]
        tokens[first + 1 : first + 1] = inside * (1 if rng.random() < 0.9 else 40)


def _attribute(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    """Give what follows an equals sign another value."""
    if places := _places(tokens, lambda token: token == "="):
        at = rng.choice(places)
        tokens[at] = f"= {rng.choice(_ATTRIBUTES)}" + (", a = " if rng.random() < 0.5 else " ")


def _brackets(tokens: Sequence[str], rng: random.Random) -> tuple[int, int] | None:
    opened = _places(tokens, lambda token: token in "([{<")
    if not opened:
        return None
    first = rng.choice(opened)
    depth = 0
    for at in range(first, len(tokens)):
        depth += (tokens[at] in "([{<") - (tokens[at] in ")]}>")
        if not depth:
            return first, at
    return None


def _splice(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    """Put some lines of another text between two of this one."""
    lines = "".join(donor).split("\n")
    first = rng.randrange(len(lines))
    breaks = _places(tokens, lambda token: "\n" in token) or [len(tokens)]
    tokens.insert(rng.choice(breaks), "\n" + "\n".join(lines[first : first + rng.randint(1, 4)]))


def _cut(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    del tokens[rng.randrange(len(tokens)) :]


def _lines(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    """Exchange two lines: definitions come after their uses."""
    rows = "".join(tokens).split("\n")
    a, b = rng.choices(range(len(rows)), k=2)
    rows[a], rows[b] = rows[b], rows[a]
    tokens[:] = _TOKEN.findall("\n".join(rows))


def _everywhere(kind: Callable[[str], bool], others: Sequence[str]) -> Callable[..., None]:
    """Return a mutation that puts another token for one, wherever that stands: much stays valid."""

    def mutate(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
        if places := _places(tokens, kind):
            old = tokens[rng.choice(places)]
            new = rng.choice([*others, *(tokens[k] for k in places)])
            tokens[:] = [new if token == old else token for token in tokens]

    return mutate


def _some_lines(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    """Leave out a few lines, or write them once more: at once, or at the end."""
    rows = "".join(tokens).split("\n")
    first = rng.randrange(len(rows))
    few = rows[first : first + rng.randint(1, 5)]
    match rng.randrange(3):
        case 0:
            del rows[first : first + len(few)]
        case 1:
            rows[first:first] = few
        case _:
            rows += few
    tokens[:] = _TOKEN.findall("\n".join(rows))


def _both(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    """Write two texts into one, each whole: names are defined twice, aliases mean something else."""
    tokens += ["\n", *donor]


def _letters(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    """Exchange letters for any others, wherever they stand."""
    at = rng.choice(_solid(tokens))
    letters = [*tokens[at]]
    for _ in range(rng.randint(1, 3)):
        new = rng.choice((*_ODD, chr(rng.randrange(32, 127)), chr(rng.randrange(0x80, 0xD800))))
        letters[rng.randrange(len(letters))] = new
    tokens[at] = "".join(letters)


def _nested(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    """Put all of it into modules, one within the other; or nest one type, list or region in itself."""
    depth = rng.choice((1, 2, 3, 40, 2000))
    if rng.random() < 0.5:
        tokens[:] = ["module {\n"] * depth + tokens + ["\n}"] * depth
    elif found := _brackets(tokens, rng):
        first, last = found
        tokens[last : last + 1] = [tokens[last]] * depth
        tokens[first : first + 1] = [tokens[first]] * depth


def _ends_of_lines(tokens: list[str], rng: random.Random, donor: Sequence[str]) -> None:
    end = rng.choice(("\r\n", "\r", "\u2028", "\v", "\n\n", " "))
    tokens[:] = [token.replace("\n", end) for token in tokens]


_MUTATIONS: tuple[Callable[[list[str], random.Random, Sequence[str]], None], ...] = (
    _drop,
    _double,
    _swap,
    _insert,
    _drop_brackets,
    _double_brackets,
    _attribute,
    _splice,
    _cut,
    _lines,
    *(3 * (_exchanged(_is_number, _NUMBERS),)),
    *(3 * (_exchanged(_is_value),)),
    *(4 * (_exchanged(_is_type, _TYPES),)),
    *(4 * (_exchanged(_is_op),)),
    *(2 * (_attribute,)),
    *(2 * (_everywhere(_is_number, _NUMBERS[:10]),)),
    *(3 * (_everywhere(_is_type, ("f32", "f64", "i8", "i1", "index", "bf16")),)),
    *(2 * (_everywhere(_is_op, ()),)),
    _everywhere(_is_value, ()),
    *(2 * (_some_lines,)),
    _both,
    *(2 * (_letters,)),
    _nested,
    _ends_of_lines,
)


def mutated(texts: Sequence[str], rng: random.Random) -> str:
    """Return one of ``texts``, or a few functions of it, with one to three mistakes."""
    text, donor = (_TOKEN.findall(rng.choice(texts)) for _ in range(2))
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 2, 3))):
        if _solid(text):
            rng.choice(_MUTATIONS)(text, rng, donor)
    return "".join(text)
