"""Install peers, each in a virtual environment of its own: `make bench-peers [PEERS=...]`.

Without names the usual ones; "all", or names of environments, for others. What is there already
with the same packages is left alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

from peers import PACKAGES, USUAL, state


def install(name: str) -> bool:
    """Make the environment of that name; return whether it is there now."""
    packages = PACKAGES[name]
    folder = state() / "environments" / name
    note = folder / "packages.txt"
    if note.exists() and note.read_text().split() == list(packages):
        print(f"{name}: there already")
        return True
    venv.create(folder, with_pip=True, clear=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{name}: failed: {_last(done.stderr)}")
        return False
    note.write_text("\n".join(packages) + "\n")
    print(f"{name}: installed in {folder}, {_megabytes(folder)} MB")
    return True


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]


def _megabytes(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) >> 20


def main(arguments: list[str]) -> int:
    """Install what is named; return 0 where all of it is there."""
    parser = argparse.ArgumentParser("install.py", description=(__doc__ or "").split("\n")[0])
    usual = f"an environment, or all (default: {', '.join(USUAL)}; there is {', '.join(PACKAGES)})"
    parser.add_argument("names", nargs="*", metavar="NAME", help=usual)
    names = parser.parse_args(arguments).names
    wanted = list(PACKAGES) if names == ["all"] else names or list(USUAL)
    if unknown := [n for n in wanted if n not in PACKAGES]:
        print(f"no such environment: {', '.join(unknown)}; there is {', '.join(PACKAGES)}")
        return 1
    return 0 if all([install(name) for name in wanted]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
