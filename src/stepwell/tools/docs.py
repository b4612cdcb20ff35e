"""Generate the pages of `docs/` about ops, passes and the pipeline, for `make docs`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from pathlib import Path

from xdsl.irdl import IRDLOperation

from stepwell.core.placement import elements, name_of
from stepwell.dialects.kernel import KERNEL
from stepwell.dialects.upstream.changes import CHANGES
from stepwell.driver.pipeline import STAGES
from stepwell.driver.registry import OURS, Registry, registry
from stepwell.tools import names
from stepwell.tools.catalogue import (
    READINGS,
    constraints,
    families,
    own_constraints,
    signature,
    state,
    summary,
)
from stepwell.tools.opt.listing import show_pass
from stepwell.tools.reference import reference
from stepwell.transforms.passes import Pass

MADE = "<!-- made by `make docs` from the code; do not edit -->\n\n"


def pages() -> dict[str, str]:
    """Return the text of every generated page by its path below `docs/`."""
    known = registry()
    created = {"passes.md": _passes(known)}
    ours = {n: ops for n, ops in families(known).items() if n not in known.dialects}
    for name, ops in ours.items():
        created[f"ops/{name}.md"] = _family(name, ops)
    created["ops/kernel.md"] = _kernel()
    created["ops/README.md"] = _index(ours)
    created["pipeline.md"] = _pipeline(known)
    created["names.md"] = MADE + names.page()
    created["upstream.md"] = _changes()
    created |= {name: MADE + text for name, text in reference().items()}
    return created


def _changes() -> str:
    """Return the page of all our changes to xDSL's classes."""
    rows = [
        MADE + "# Changes to xDSL's own classes\n",
        "Importing `stepwell.dialects.upstream` changes these classes of xDSL 0.74.0 for all",
        "of the process. Programs that xDSL takes mean what they meant: its own lit files end as",
        "without them (`python -m any_text.xdsl_suite`, in the slow lane).",
        "`test_upstream_changes.py` fails where a change is not listed, or is needed no more.\n",
    ]
    for change in CHANGES:
        rows.append(f"## `{change.file}.py`: {change.what}\n")
        rows.append(f"* Why: {change.why}")
        rows.append(f"* Until this fails with xDSL alone: `{change.still}`")
        rows.append("* Members: " + ", ".join(f"`{member}`" for member in change.members) + "\n")
    return "\n".join(rows)


def _kernel() -> str:
    """Return the page of the dialect of kernels: its ops and its attributes."""
    rows = [MADE + "# The ops and attributes of `kernel`\n", "`dialects/kernel/`\n"]
    for op in KERNEL.operations:
        assert issubclass(op, IRDLOperation)
        rows += [f"## `{op.name}`\n", f"    {signature(op)}\n", f"{inspect.getdoc(op) or ''}\n"]
    for attribute in KERNEL.attributes:
        rows += [f"## `#{attribute.name}`\n", f"{inspect.getdoc(attribute) or ''}\n"]
    return "\n".join(rows)


def _pipeline(known: Registry) -> str:
    """Return the page of all stages, their passes in order, and the dialects left after each."""
    rows = [MADE + "# The pipeline\n", "`src/stepwell/driver/pipeline.py`\n"]
    for number, stage in enumerate(STAGES, 1):
        left = ", ".join(f"`{name}`" for name in sorted(stage.leaves))
        rows += [f"## {number}. {stage.name}\n", f"Dialects that are left: {left}\n"]
        rows += ["| pass | what it does | results |", "|---|---|---|"]
        for name in map(name_of, elements(stage.passes)):
            created = known.passes[name]()
            numerics = created.numerics if issubclass(created, Pass) else ""
            rows += [f"| [`{name}`](passes.md#{name}) | {_cell(summary(created))} | {numerics} |"]
        rows += [""]
    return "\n".join(rows)


def _index(ours: dict[str, list[type[IRDLOperation]]]) -> str:
    rows = [
        MADE + "# The ops of `nd`\n",
        "Those of [`kernel`](kernel.md) have a page of their own.\n",
    ]
    for name, ops in ours.items():
        rows += [f"## [{_title(name)}]({name}.md)\n", "| op | meaning |", "|---|---|"]
        rows += [f"| `{op.name}` | {_cell(summary(op))} |" for op in ops]
        rows += [""]
    return "\n".join(rows)


def _title(name: str) -> str:
    return name.replace("_", " ")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _family(name: str, ops: Sequence[type[IRDLOperation]]) -> str:
    rows = [MADE + f"# {_title(name)}\n", f"`dialects/nd/{name}.py`\n"]
    for op in ops:
        rows += [f"## `{op.name}`\n", f"    {signature(op)}\n", f"{inspect.getdoc(op) or ''}\n"]
        own = list(own_constraints(op))
        inherited = [c for c in constraints(op) if c not in own]
        rows += [f"* ({label}) {text}" for label, text in inherited]
        rows += [""] if inherited else []
        rows += ["| " + " | ".join(table.reading for table in READINGS) + " |"]
        rows += ["|" + "---|" * len(READINGS)]
        rows += ["| " + " | ".join(_cell(state(table, op)) for table in READINGS) + " |", ""]
    return "\n".join(rows)


def _passes(known: Registry) -> str:
    rows = [MADE + "# The passes of Stepwell\n"]
    rows += ["`stepwell-opt --list-passes` lists those of xDSL and of plug-ins too.\n"]
    for (kind, name), owner in known.owner.items():
        if kind == "pass" and owner == OURS:
            text = show_pass(name, known).partition("\n\n")[2]
            rows += [f"## `{name}`\n", "```text", text, "```", ""]
    return "\n".join(rows)


def main(folder: Path) -> int:
    """Write the pages below ``folder``; remove those of families that no longer exist."""
    created = pages()
    for old in (*(folder / "ops").glob("*.md"), *(folder / "api").glob("*.md")):
        if f"{old.parent.name}/{old.name}" not in created:
            old.unlink()
    for name, text in created.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs")))
