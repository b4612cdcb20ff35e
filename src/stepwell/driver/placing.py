"""Insert the passes of packages and callers into the pipeline, in the order they declare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean
from stepwell.core.placement import Placement, Relation, elements, name_of
from stepwell.driver.pipeline import Stage


def place(stages: Sequence[Stage], placements: Sequence[Placement]) -> tuple[Stage, ...]:
    """Return ``stages`` with every placed pass in its stage.

    Passes on the same side of the same anchor are ordered by their declared relations, then by
    package and position in the list. Raises `CompileError` where an anchor is missing or ambiguous,
    or the relations contradict each other.
    """
    if not placements:
        return tuple(stages)
    line = _Line.of(stages)
    waiting = sorted(placements, key=lambda p: p.owner)
    while waiting:
        ready = next((p for p in waiting if line.holds(p, waiting)), None)
        if ready is None:
            line.complain(waiting)
        line.insert(ready)
        waiting.remove(ready)
    line.check()
    return line.stages(stages)


@dataclass
class _Slot:
    stage: str
    element: str
    placed: Placement | None = None

    @property
    def name(self) -> str:
        return name_of(self.element)


@dataclass
class _Line:
    """The pipeline as a flat list of passes, into which others are inserted."""

    slots: list[_Slot]
    names: tuple[str, ...]
    """The names of the stages, in order."""

    @classmethod
    def of(cls, stages: Sequence[Stage]) -> _Line:
        slots = [_Slot(s.name, e) for s in stages for e in elements(s.passes)]
        return cls(slots, tuple(s.name for s in stages))

    def _find(self, anchor: str) -> list[int]:
        """Return the positions of the passes that ``anchor`` may name."""
        stage, _, name = anchor.rpartition("/")
        return [
            k
            for k, slot in enumerate(self.slots)
            if slot.name == name and (not stage or slot.stage == stage)
        ]

    def holds(self, placement: Placement, waiting: Sequence[Placement]) -> bool:
        """Whether all passes that must precede ``placement`` have been inserted."""
        first, *further = placement.relations
        to_come = {p.name for p in waiting if p is not placement}
        if first.anchor in to_come:
            return False
        ours = {first.anchor, *(r.anchor for r in further if r.side == "after")}
        declared = {
            p.name
            for p in waiting
            if p is not placement
            and any(r.side == "before" and r.anchor == placement.name for r in p.relations[1:])
        }
        return not (to_come & ours) and not declared

    def insert(self, placement: Placement) -> None:
        """Insert a pass beside its anchor, behind earlier ones with the same relation."""
        first = placement.relations[0]
        if first.anchor in self.names:
            at, stage = self._edge(first), first.anchor
        else:
            at, stage = self._beside(placement, first)
        self.slots.insert(at, _Slot(stage, placement.element, placement))

    def _edge(self, relation: Relation) -> int:
        """Return the position at the beginning or end of a stage."""
        place = self.names.index(relation.anchor)
        if relation.side == "after":
            return sum(self.names.index(s.stage) <= place for s in self.slots)
        at = sum(self.names.index(s.stage) < place for s in self.slots)
        while at < len(self.slots) and self._same(at, relation):
            at += 1
        return at

    def _beside(self, placement: Placement, relation: Relation) -> tuple[int, str]:
        found = self._find(relation.anchor)
        if not found:
            known = [*self.names, *(s.name for s in self.slots)]
            help = did_you_mean(relation.anchor, known) or "stepwell passes --pipeline lists them"
            message = f"'{placement}' stands beside '{relation.anchor}', which is not there"
            raise _error(message, help)
        if len(found) > 1:
            stages = [f"{self.slots[k].stage}/{self.slots[k].name}" for k in found]
            message = f"'{placement}': {relation.anchor} stands in the pipeline {len(found)} times"
            raise _error(message, f"say which: {', '.join(dict.fromkeys(stages))}")
        at = found[0]
        if relation.side == "after":
            at += 1
            while at < len(self.slots) and self._same(at, relation):
                at += 1
        return at, self.slots[found[0]].stage

    def _same(self, at: int, relation: Relation) -> bool:
        """Whether the pass at ``at`` was placed by an equal relation."""
        placed = self.slots[at].placed
        return placed is not None and placed.relations[0] == relation

    def check(self) -> None:
        """Fail where a further relation is violated."""
        for at, slot in enumerate(self.slots):
            for relation in slot.placed.relations[1:] if slot.placed else ():
                found = self._positions(relation)
                if not found and not relation.optional:
                    help = f"write {relation}? where it may be absent"
                    raise _error(f"'{slot.placed}': {relation.anchor} is not there", help)
                if any((k < at) != (relation.side == "after") for k in found):
                    message = f"'{slot.placed}' cannot stand {relation.side} {relation.anchor}"
                    raise _error(message, f"the pipeline would be {', '.join(self._names())}")

    def _positions(self, relation: Relation) -> list[int]:
        if relation.anchor in self.names:
            return [k for k, s in enumerate(self.slots) if s.stage == relation.anchor]
        return self._find(relation.anchor)

    def _names(self) -> list[str]:
        return [slot.name for slot in self.slots]

    def complain(self, waiting: Sequence[Placement]) -> NoReturn:
        """Fail because the waiting placements depend on each other in a cycle."""
        listed = ", ".join(f"'{p}'" for p in waiting)
        raise _error(f"passes stand before each other in a circle: {listed}", "drop one relation")

    def stages(self, stages: Sequence[Stage]) -> tuple[Stage, ...]:
        """Return the stages with their new lists of passes."""
        return tuple(
            replace(
                stage,
                passes=",".join(s.element for s in self.slots if s.stage == stage.name),
            )
            for stage in stages
        )


def _error(message: str, help: str) -> CompileError:
    return CompileError(Diagnostic("error", message, help=help))
