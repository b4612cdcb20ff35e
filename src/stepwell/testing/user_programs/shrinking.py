"""Minimize a failing recipe: fewer results, steps replaced by arguments, smaller bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from stepwell.testing.user_programs.known import Known
from stepwell.testing.user_programs.recipe import (
    Leaf,
    Recipe,
    Step,
    apply_known,
    operand,
    values_of,
    widened,
)
from stepwell.testing.user_programs.spaces import Plain

Fails = Callable[[Recipe], bool]


def shrink(recipe: Recipe, seed: int, fails: Fails, budget: int = 200) -> Recipe:
    """Return a smaller recipe for which ``fails`` still holds, after at most ``budget`` tries."""
    tried = 0
    progress = True
    while progress and tried < budget:
        progress = False
        for smaller in _smaller(recipe, seed):
            tried += 1
            if tried > budget:
                break
            if fails(smaller):
                recipe, progress = smaller, True
                break
    return recipe


def _smaller(recipe: Recipe, seed: int) -> Iterator[Recipe]:
    """Yield simpler recipes, the most promising first."""
    for result in recipe.results:
        if len(recipe.results) > 1:
            yield pruned(replace(recipe, results=(result,)))
    if len(recipe.results) > 1:
        for k in range(len(recipe.results)):
            left = recipe.results[:k] + recipe.results[k + 1 :]
            yield pruned(replace(recipe, results=left))
    values = _values(recipe, seed)
    starts = _starts(values)
    for n in reversed(range(len(recipe.steps))):
        cut = cut_at(recipe, n, starts, values)
        if cut is not None:
            yield pruned(cut)
    for n, step in enumerate(recipe.steps):
        for how in _simpler_bodies(step):
            steps = (*recipe.steps[:n], replace(step, how=how), *recipe.steps[n + 1 :])
            yield replace(recipe, steps=steps)


def _values(recipe: Recipe, seed: int) -> list[list[Known]]:
    leaves = [
        Known(widened(values_of(leaf, seed + k), leaf.dtype), leaf.dtype)
        for k, leaf in enumerate(recipe.leaves)
    ]
    found: list[list[Known]] = []
    flat: list[Known] = []
    for step in recipe.steps:
        given = [operand(n, leaves, flat) for n in step.operands]
        found.append(apply_known(Plain(), step, given))
        flat.extend(found[-1])
    return found


def _starts(values: list[list[Known]]) -> list[int]:
    return [sum(len(each) for each in values[:n]) for n in range(len(values))]


def cut_at(recipe: Recipe, n: int, starts: list[int], values: list[list[Known]]) -> Recipe | None:
    """Return the recipe with the results of step ``n`` as arguments; None if one is a result."""
    gone = range(starts[n], starts[n] + len(values[n]))
    if any(r in gone for r in recipe.results):
        return None
    leaves, new = list(recipe.leaves), dict[int, int]()
    for v, known in zip(gone, values[n], strict=True):
        leaves.append(Leaf(known.dtype, known.shape, "fixed", fixed=known.array.tolist()))
        new[v] = -len(leaves)

    def moved(v: int) -> int:
        return new[v] if v in new else v - len(gone) if v >= gone.stop else v

    steps = [
        replace(step, operands=tuple(moved(v) for v in step.operands))
        for k, step in enumerate(recipe.steps)
        if k != n
    ]
    return Recipe(tuple(leaves), tuple(steps), tuple(moved(r) for r in recipe.results))


def pruned(recipe: Recipe) -> Recipe:
    """Return the recipe without dead steps and leaves."""
    counts = [_count(step) for step in recipe.steps]
    starts = [sum(counts[:k]) for k in range(len(counts))]
    needed = set(recipe.results)
    kept: list[int] = []
    for k in reversed(range(len(recipe.steps))):
        if any(v in needed for v in range(starts[k], starts[k] + counts[k])):
            kept.append(k)
            needed.update(recipe.steps[k].operands)
    kept.reverse()
    names: dict[int, int] = {}
    for k in kept:
        for v in range(starts[k], starts[k] + counts[k]):
            names[v] = len([n for n in names if n >= 0])
    leaves = [k for k in range(len(recipe.leaves)) if -1 - k in needed]
    names |= {-1 - k: -1 - at for at, k in enumerate(leaves)}
    steps = [
        replace(recipe.steps[k], operands=tuple(names[v] for v in recipe.steps[k].operands))
        for k in kept
    ]
    results = tuple(names[r] for r in recipe.results)
    return Recipe(tuple(recipe.leaves[k] for k in leaves), tuple(steps), results)


def _count(step: Step) -> int:
    """Return the number of results of a step."""
    body = step.how.get("body", step.how.get("then"))
    return len(body.results) if body is not None else 1


def _simpler_bodies(step: Step) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments of a step with a body of fewer steps."""
    for name, body in step.how.items():
        if isinstance(body, Recipe):
            for k in range(len(body.steps)):
                if all(_count(s) == 1 for s in body.steps) and k not in body.results:
                    for n in body.steps[k].operands:
                        yield {**step.how, name: _bypassed(body, k, n)}
    if (times := step.how.get("times")) and times > 1:
        yield {**step.how, "times": times - 1}


def _bypassed(body: Recipe, k: int, by: int) -> Recipe:
    """Return the body without step ``k``, whose users get its operand ``by`` instead."""

    def moved(v: int) -> int:
        v = by if v == k else v
        return v - 1 if v > k else v

    steps = [
        replace(s, operands=tuple(moved(v) for v in s.operands))
        for n, s in enumerate(body.steps)
        if n != k
    ]
    return Recipe((), tuple(steps), tuple(moved(r) for r in body.results))


def text_of(recipe: Recipe) -> str:
    """Return a recipe as text, to read and to copy into a test."""
    lines = [f"-{k + 1}: {_short(leaf)}" for k, leaf in enumerate(recipe.leaves)]
    at = 0
    for step in recipe.steps:
        lines.append(f"{at}: {_step(step)}")
        at += _count(step)
    return "\n".join([*lines, f"results {list(recipe.results)}"])


def _short(leaf: Leaf) -> str:
    closed = " closed" if leaf.closed else ""
    fixed = str(leaf.fixed) if leaf.kind == "fixed" and len(str(leaf.fixed)) < 200 else ""
    return f"{leaf.dtype}{list(leaf.shape)} {leaf.kind}{closed} {leaf.low}:{leaf.high} {fixed}"


def _step(step: Step) -> str:
    how = {k: v for k, v in step.how.items() if not isinstance(v, Recipe)}
    lines = [f"{step.op} {list(step.operands)} {how or ''}"]
    for name, body in step.how.items():
        if isinstance(body, Recipe):
            lines += [f"    {name}:"]
            lines += [f"      {line}" for line in text_of(body).splitlines()]
    return "\n".join(lines)
