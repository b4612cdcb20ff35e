"""Compare what Stepwell reads and prints with what mlir-opt-22 does: ``python -m any_text.round_trips FOLDER...``.

A module that both accept, printed by Stepwell and read by mlir-opt, must be to it what it was before.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from any_text.known import is_foreign, reasons
from any_text.modes import answer
from any_text.texts import texts

MLIR = ("mlir-opt-22", "--allow-unregistered-dialect", "--mlir-print-local-scope")
FOREIGN = "in a dialect that mlir-opt has not; equal in generic form"
WRONG = ("printed", "raised", "traceback")
"""How kinds begin that are faults; `known` says what may differ."""
SECONDS = 60
"""For one module in mlir-opt."""


@dataclass(frozen=True)
class Trip:
    """What became of one text."""

    kind: str
    text: str
    want: str = ""
    got: str = ""


def ran(text: str, *options: str) -> tuple[str | None, str]:
    """Return what mlir-opt prints, None where it refuses the text, and what it says."""
    done = subprocess.run(
        [*MLIR, *options, "-"],
        input=text.encode(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    said = done.stderr.decode("utf-8", "replace")
    return (done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None), said


def mlir(text: str) -> str | None:
    """Return what mlir-opt makes of a module in generic form, None where it refuses it."""
    return ran(text, "--mlir-print-op-generic")[0]


def again(text: str) -> str | None:
    """Return as `mlir` does what mlir-opt makes of its own custom form of a module."""
    custom, _ = ran(text)
    return mlir(custom) if custom is not None else None


def trip(text: str, path: Path) -> Trip:
    """Read and print one module in both forms, and have mlir-opt read that."""
    try:
        found = answer("opt", (path, "--allow-unregistered-dialect"), text, path)
    except BaseException as error:
        return Trip(f"raised {type(error).__name__}", text)
    if "Traceback" in found.said:
        return Trip("traceback", text, got=found.said)
    want = mlir(text)
    if found.code or want is None:
        who = ("both" if want is None else "we") if found.code else "mlir-opt"
        return Trip(f"refused by {who}", text, got=found.said)
    generic = answer(
        "opt", (path, "--allow-unregistered-dialect", "--print-op-generic"), text, path
    )
    ends = [
        compared(form, text, want, p)
        for form, p in (("custom", found.out), ("generic", generic.out))
    ]
    return max(ends, key=lambda end: ("printed" in end.kind, end.kind))


def compared(form: str, text: str, want: str, printed: str) -> Trip:
    """Compare what mlir-opt reads of one form with the module it is the form of."""
    got, said = ran(printed, "--mlir-print-op-generic")
    if got is None:
        if form == "custom" and is_foreign(said):
            return Trip(FOREIGN, text)
        return Trip(f"printed in {form} form as mlir-opt refuses it", text, want, printed + said)
    if got == want:
        return Trip("equal", text)
    if (found := reasons(want, got)) is not None:
        return Trip(f"equal but for {', '.join(found)}", text)
    if (one := again(text)) is not None and one == again(printed):
        return Trip("equal as mlir-opt reads its own custom form", text)
    return Trip(f"printed in {form} form as something else", text, want, got)


def trips(known: Iterable[str]) -> Iterator[Trip]:
    """Try all texts."""
    with tempfile.TemporaryDirectory() as folder:
        for text in known:
            yield trip(text, Path(folder, "text.mlir"))


def main() -> int:
    """Try all texts; print the figures, keep what differs."""
    parser = argparse.ArgumentParser("round_trips", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="more .mlir files than our own")
    parser.add_argument("--keep", type=Path, help="a folder for what differs")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    for number, each in enumerate(trips(texts(options.folders))):
        kinds[each.kind] += 1
        if options.keep and each.kind.startswith(WRONG):
            options.keep.mkdir(parents=True, exist_ok=True)
            body = f"// {each.kind}\n{each.text}\n// want\n{each.want}\n// got\n{each.got}\n"
            file = options.keep / f"{each.kind.split()[0]}-{number}.mlir"
            file.write_text(body, encoding="utf-8", errors="replace")
    for kind, count in sorted(kinds.items(), key=lambda item: -item[1]):
        print(f"{count:>6} {kind}")
    return int(any(kind.startswith(WRONG) for kind in kinds))


if __name__ == "__main__":
    sys.exit(main())
