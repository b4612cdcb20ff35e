"""Texts in the style of public files, of every dialect that our floors use or mlir-opt and xDSL share.

Each is read and printed, and mlir-opt reads in both forms what it read in the original; or it is
refused with one message, which the text states: ``// refused at LINE:COLUMN: message``.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from any_text.known import KNOWN, reasons
from any_text.modes import COMMON, ENTRIES, fault, tried
from any_text.round_trips import MLIR, trip
from any_text.texts import chunks

CORPUS = Path(__file__).parent / "corpus"
TEXTS = [
    pytest.param(text, id=f"{file.stem}-{number}")
    for file in sorted(CORPUS.glob("*.mlir"))
    for number, text in enumerate(chunks(file))
]
_REFUSED = re.compile(r"// refused at (\d+:\d+): (.*)")
has_mlir = pytest.mark.skipif(shutil.which(MLIR[0]) is None, reason="mlir-opt-22 is not here")


def refusal(text: str) -> tuple[str, str] | None:
    """Return where and with what words a text says that it is refused."""
    found = _REFUSED.search(text)
    return (found[1], found[2]) if found else None


@pytest.mark.parametrize("text", TEXTS)
def test_read_and_printed(text: str, tmp_path: Path) -> None:
    path = tmp_path / "text.mlir"
    for mode in ("read", "generic"):
        wrong, found = tried(mode, text, path)
        assert wrong == "", f"{mode}: {found.said}{found.out}"
        if (stated := refusal(text)) is None:
            assert found.code == 0, found.said
        else:
            place, words = stated
            assert found.said.split("\n")[0] == f"{path}:{place}: error: {words}"
            assert found.said.count("error: ") == 1 and found.out == ""


@pytest.mark.sampled(8)
@has_mlir
@pytest.mark.parametrize("text", [each for each in TEXTS if refusal(str(each.values[0])) is None])
def test_mlir_reads_what_it_read(text: str, tmp_path: Path) -> None:
    found = trip(text, tmp_path / "text.mlir")
    assert found.kind.startswith("equal"), f"{found.kind}\n{found.want}\n{found.got}"


@pytest.mark.slow
@pytest.mark.parametrize("mode", [*COMMON, *ENTRIES])
@pytest.mark.parametrize("text", TEXTS)
def test_all_ways(text: str, mode: str, tmp_path: Path) -> None:
    wrong, found = tried(mode, text, tmp_path / "text.mlir")
    assert wrong == fault(found) == "", found.said


@pytest.mark.parametrize(
    ("want", "got", "found"),
    [
        ('"a.b"(%0) : (i32) -> ()', '"a.b"(%1) : (i32) -> ()', None),
        ('%0 = "arith.addf"(%1, %2)', '%0 = "arith.addf"(%2, %1)', ["order in bodies"]),
        ('%0 = "arith.subf"(%1, %2)', '%0 = "arith.subf"(%2, %1)', None),
        (
            '"x"() {m = affine_map<(d0) -> ((d0 + 1) * 2)>}',
            '"x"() {m = affine_map<(d0) -> (d0 * 2 + 2)>}',
            ["affine maps"],
        ),
        (
            '"x"() {m = affine_map<(d0) -> ((d0 + 1) * 2)>}',
            '"x"() {m = affine_map<(d0) -> (d0 * 2 + 1)>}',
            None,
        ),
        (
            '"dmp.swap"() {a = 1, b = [2, 3]} : () -> ()',
            '"dmp.swap"() <{b = [2, 3]}> {a = 1} : () -> ()',
            ["properties of xDSL's ops"],
        ),
        (
            '"dmp.swap"() {a = 1, b = [2, 3]} : () -> ()',
            '"dmp.swap"() <{b = [2, 4]}> {a = 1} : () -> ()',
            None,
        ),
        (
            '"fsm.state"() ({\n}) {a = "x"} : () -> ()',
            '"fsm.state"() <{a = "x"}> ({\n}) : () -> ()',
            ["properties of xDSL's ops"],
        ),
        ('"scf.if"() {a = 1} : () -> ()', '"scf.if"() <{a = 1}> : () -> ()', None),
        (
            '"x"() {p = #polynomial<a <b>>, q = 1}',
            '"x"() {p = #polynomial.a<b>, q = 1}',
            ["attributes of xDSL's dialects"],
        ),
        ('"x"() {p = #polynomial<a>, q = 1}', '"x"() {p = #polynomial.a, q = 2}', None),
    ],
)
def test_only_form_may_differ(want: str, got: str, found: list[str] | None) -> None:
    assert reasons(want, got) == found


def test_each_difference_has_its_reason() -> None:
    assert all(len(known.why.split()) > 5 for known in KNOWN)
