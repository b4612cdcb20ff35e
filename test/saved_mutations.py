"""Damage saved programs at random and load them, each in a process of its own with a time limit.

    python test/saved_mutations.py --count 2000 --seed 0

What is damaged must be refused with one clear error, or do what it did before; where the digests
are made anew after a change of the description, loading it must at least end in no other error.
Prints how often each came out; exit code 1 where something else did.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import stepwell as sw
from stepwell.testing.opencl import no_opencl

LIMIT = 60
"""Seconds that a program may take to be loaded and called."""
TEXTS = [
    """\
func.func @main(%x: tensor<?x4xf32>, %n: tensor<i32>) -> (tensor<?x4xf32>, tensor<4xf32>) {
  %w = nd.constant #nd.resource<"w"> : tensor<4x4xf32>
  %v = nd.constant #nd.resource<"v"> : tensor<4x4xf32>
  %wv = nd.matmul %w, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = nd.matmul %x, %wv : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %s = nd.reduce_sum %a {axes = [0]} : tensor<?x4xf32> -> tensor<4xf32>
  %zero = nd.constant dense<0> : tensor<i32>
  %one = nd.constant dense<1> : tensor<i32>
  %i, %r = nd.while (%i = %zero, %r = %s) : tensor<i32>, tensor<4xf32> {
    %go = nd.lt %i, %n : tensor<i32> -> tensor<i1>
    nd.condition %go
  } do (%j, %t) {
    %k = nd.add %j, %one : tensor<i32>
    %u = nd.add %t, %t : tensor<4xf32>
    nd.yield %k, %u : tensor<i32>, tensor<4xf32>
  }
  func.return %a, %r : tensor<?x4xf32>, tensor<4xf32>
}
""",
    """\
func.func @main(%x: tensor<?x4xf32>, %n: tensor<i32>) -> tensor<?x4xf32> {
  %w = nd.constant #nd.resource<"w"> : tensor<4x4xf32>
  %a = nd.matmul %x, %w : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %s = nd.softmax %a {axis = 1} : tensor<?x4xf32>
  func.return %s : tensor<?x4xf32>
}
""",
]
WEIGHTS = {name: np.arange(16, dtype=np.float32).reshape(4, 4) / 16 for name in "wv"}
ARGUMENTS = np.ones((3, 4), np.float32), np.int32(2)
NUMBERS = (0, 1, -1, 2, 3, 64, 255, 1 << 20, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 64, 1e9)


def save_all(folder: Path) -> list[Path]:
    """Save each program for each target, in a process that has no device open afterwards."""
    if os.fork() == 0:
        targets = ("c",) if no_opencl() else ("c", "opencl")
        for number, text in enumerate(TEXTS):
            for target in targets:
                made = sw.compile(text, target=target, resources=WEIGHTS)
                place = folder / f"{target}{number}"
                made.save(place)
                np.savez(folder / f"{target}{number}.npz", *results(made))
        os._exit(0)
    os.wait()
    return sorted(p for p in folder.iterdir() if p.is_dir())


def results(program: Any) -> tuple[Any, ...]:
    """Return what a program gives."""
    found = program(*ARGUMENTS)
    return found if isinstance(found, tuple) else (found,)


# what is done to a program


def damage_bytes(folder: Path, draw: random.Random, others: list[Path]) -> str:
    """Change a file: bits, bytes, its length, or take another's."""
    file = draw.choice(sorted(p for p in folder.iterdir() if p.suffix not in (".h", ".c")))
    data = bytearray(file.read_bytes())
    how = draw.choice(("bit", "bit", "byte", "cut", "insert", "remove", "zeros", "other", "none"))
    at = draw.randrange(len(data))
    match how:
        case "bit":
            data[at] ^= 1 << draw.randrange(8)
        case "byte":
            data[at] = draw.randrange(256)
        case "cut":
            del data[at:]
        case "insert":
            data[at:at] = draw.randbytes(draw.randint(1, 64))
        case "remove":
            del data[at : at + draw.randint(1, 64)]
        case "zeros":
            data[at : at + 64] = bytes(len(data[at : at + 64]))
        case "other":
            other = draw.choice(others) / file.name
            data = bytearray(other.read_bytes() if other.exists() else b"")
        case _:
            file.unlink()
            return f"no {file.name}"
    file.write_bytes(data)
    return f"{how} {file.name}"


def damage_fields(folder: Path, draw: random.Random, others: list[Path]) -> str:
    """Change one or two places of the description, the digests being made anew."""
    file = folder / "program.json"
    found = json.loads(file.read_text())
    digests = found.pop("digests")
    said = [change(found, draw) for _ in range(draw.randint(1, 2))]
    own = sha256(json.dumps(found, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    file.write_text(json.dumps(found | {"digests": digests | {file.name: own}}))
    return "; ".join(said)


def places(value: Any, path: str = "") -> list[tuple[Any, Any, str]]:
    """Return each place within ``value``: what it is in, under which key, and its path."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    found: list[tuple[Any, Any, str]] = []
    for key, each in inner:
        found.append((value, key, f"{path}/{key}"))
        found += places(each, f"{path}/{key}")
    return found


def change(found: Any, draw: random.Random) -> str:
    """Change one place of what JSON holds."""
    everywhere = places(found)
    inside, key, path = draw.choice(everywhere)
    donor, other, _ = draw.choice(everywhere)
    given = json.loads(json.dumps(donor[other]))  # no list shall be in itself
    old = inside[key]
    nested: Any = old
    for _ in range(draw.choice((2, 60, 300))):
        nested = draw.choice(([nested], ["+", nested, 1], {"x": nested}))
    new = draw.choice(
        (
            *(draw.choice(NUMBERS), draw.choice(NUMBERS), -draw.randrange(100), None, True),
            *("", "d0", "x", "\0", [], {}, [old], nested, given, given, old),
        )
    )
    if draw.random() < 0.2 and isinstance(inside, dict | list):
        del inside[key]
        return f"{path} removed"
    if draw.random() < 0.2 and isinstance(inside, list):
        inside.insert(key, given)
        return f"{path} inserted"
    inside[key] = json.loads(json.dumps(new))
    return f"{path} {str(old)[:30]} -> {str(new)[:30]}"


# what comes of it


def outcome(folder: Path, want: Path, sealed: bool) -> str:
    """Load and call a program in another process; say what came of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(LIMIT)
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
        os.write(writing, loaded(folder, want, sealed).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "too long" if number == signal.SIGALRM else f"dead of signal {number}"
    return said


def loaded(folder: Path, want: Path, sealed: bool) -> str:
    """Load and call a program; say what came of it."""
    try:
        program = sw.load(folder)
    except sw.CompileError as error:
        said = str(error)
        clear = said.startswith("error: ") and said.count("\n") == 1 and len(said) < 600
        return "refused" if clear else f"refused unclearly: {said[:300]}"
    except BaseException as error:
        return f"raw {type(error).__name__}: {str(error)[:200]}"
    if sealed:
        return "loaded"
    with np.load(want) as whole:
        same = all(
            np.array_equal(each, whole[name])
            for each, name in zip(results(program), whole.files, strict=True)
        )
    return "the same" if same else "other numbers"


def main() -> int:
    """Damage programs and count what comes of it."""
    parser = argparse.ArgumentParser(description="damage saved programs and load them")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counted: Counter[str] = Counter()
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = save_all(folder)
        for seed in range(options.seed, options.seed + options.count):
            draw = random.Random(seed)
            program = draw.choice(programs)
            copy = folder / "copy" / "program"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(program, copy)
            sealed = draw.random() < 0.5
            damage: Callable[..., str] = damage_fields if sealed else damage_bytes
            said = damage(copy, draw, programs)
            result = outcome(copy, program.with_suffix(".npz"), sealed)
            what = "fields, digests anew" if sealed else "bytes"
            if result in ("refused", "the same", "loaded"):
                counted[f"{program.name[:-1]}, {what}: {result}"] += 1
            else:
                bad += 1
                print(f"seed {seed}, {program.name}, {said}: {result}", flush=True)
    for what, count in sorted(counted.items()):
        print(f"{count:6}  {what}")
    print(f"{bad:6}  anything else")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
