"""The page of results: one table for each number of threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from measuring import Outcome, best, geometric_mean, spell_seconds

LEGEND = """\
A time is the median of a call over the rounds; the peers were asked in turn, round after round,
each process stopped while another ran. *ratio* is ours to the fastest peer that gave the right
result: below 1 we are faster. *limit* is the fraction that we reach of the machine's peak
(multiply-adds or bandwidth, whichever binds); it is left out where the overhead of a call
dominates. *compile* is our first call, nothing cached. `~` means noisy (threads waited for a
processor, or the rounds differ by over 10 %), `!` that other programs took the processors: worth
nothing. "Constant weights" are compiled into the program; elsewhere they are arguments like any
other."""


@dataclass(frozen=True)
class Line:
    """One workload: what each peer did, ours among them, and the least time possible."""

    workload: str
    outcomes: Mapping[str, Outcome]
    least: float = 0.0
    """Seconds at the machine's limit; 0 where there is none."""


def page(
    lines: Mapping[int, Sequence[Line]],
    ours: Sequence[str],
    about: str,
    limits: Sequence[str],
    versions: Mapping[str, str],
) -> str:
    """Return the page as Markdown; ``ours`` are the peers compared with the others."""
    text = ["# Benchmarks", "", about, "", LEGEND, ""]
    text += ["Limits of the machine:", "", *(f"* {limit}" for limit in limits), ""]
    text += [f"Peers: {', '.join(f'{k} {v}' for k, v in versions.items())}.", ""]
    for threads, found in lines.items():
        text += [f"## {_count(threads)}", "", *_comparison(found, ours), ""]
        text += [*_everybody(found, ours), ""]
        text += problems(found)
    return "\n".join(text).rstrip() + "\n"


def _comparison(lines: Sequence[Line], ours: Sequence[str]) -> Iterator[str]:
    yield "| workload | ours | best peer | its time | ratio | limit | compile |"
    yield "|---|---:|---|---:|---:|---:|---:|"
    ratios: dict[str, list[float]] = {name: [] for name in ours}
    for line in lines:
        peer = best(o for name, o in line.outcomes.items() if name not in ours)
        for name in ours:
            outcome = line.outcomes.get(name)
            if outcome is None or outcome.problem == "unsupported: no weights":
                continue
            if outcome.counts and peer is not None:
                ratios[name].append(outcome.seconds / peer.seconds)
            yield _row(_title(line.workload, name), outcome, peer, line.least)
    for name, found in ratios.items():
        if found:
            title = _title(f"geometric mean of {len(found)}", name)
            yield f"| {title} | | | | {geometric_mean(found):.2f} | | |"


def _title(workload: str, name: str) -> str:
    return f"{workload}, constant weights" if name.endswith("-constants") else workload


def _row(title: str, outcome: Outcome, peer: Outcome | None, least: float) -> str:
    cells = [title, shown(outcome)]
    cells += [peer.peer, shown(peer)] if peer else ["", ""]
    both = outcome.counts and peer is not None
    cells.append(f"{outcome.seconds / peer.seconds:.2f}" if both and peer else "")
    cells.append(f"{least / outcome.seconds:.2f}" if outcome.counts and least else "")
    cells.append(f"{outcome.compile:.2f} s" if outcome.batches else "")
    return f"| {' | '.join(cells)} |"


def shown(outcome: Outcome | None) -> str:
    """Return a time with its mark, or one word for why there is none."""
    if outcome is None:
        return ""
    if outcome.problem:
        return outcome.problem.partition(":")[0]
    if not outcome.correct:
        return "WRONG"
    return spell_seconds(outcome.seconds) + outcome.mark


def _everybody(lines: Sequence[Line], ours: Sequence[str]) -> Iterator[str]:
    names = list(dict.fromkeys(n for line in lines for n in line.outcomes if n not in ours))
    if not names:
        return
    yield f"| workload | {' | '.join(names)} |"
    yield f"|---|{'---:|' * len(names)}"
    for line in lines:
        yield f"| {line.workload} | {' | '.join(shown(line.outcomes.get(n)) for n in names)} |"


def problems(lines: Sequence[Any]) -> list[str]:
    """Say what did not run, each reason once with the workloads it kept from running."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for name, outcome in line.outcomes.items():
            said = outcome.problem or (
                "" if outcome.correct else f"wrong: error {outcome.error:.1e}"
            )
            if said and said != "unsupported: no weights":
                found.setdefault((name, said), []).append(line.workload)
    if not found:
        return []
    said = [f"* {name}: {', '.join(w)}: {why}" for (name, why), w in found.items()]
    return ["Not run, or with wrong results:", "", *said, ""]


def _count(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"
