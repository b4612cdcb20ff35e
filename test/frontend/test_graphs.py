"""`sw.Graph`: described once, any value computed from any others, and only what that needs."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontend.graphs import Graph


@pytest.fixture
def sums() -> tuple[Graph, Any, Any, Any]:
    with sw.Graph() as graph:
        a = graph.placeholder("a")
        b = graph.placeholder("b")
        c = graph.name("c", a + b)
    return graph, a, b, c


def test_three_and_five_are_eight(sums: tuple[Graph, Any, Any, Any]) -> None:
    graph, a, b, c = sums
    result: Any = graph.run(c, {a: 3, b: 5})
    assert float(result) == 8 and result.dtype == np.float64
    assert graph.run("c", {"a": 3, "b": 5}) == 8


def test_integers_stay_integers() -> None:
    with sw.Graph() as graph:
        a, b = (graph.placeholder(name, (), np.int64) for name in "ab")
        c = a + b
    result: Any = graph.run(c, {a: 3, b: 5})
    assert float(result) == 8 and result.dtype == np.int64


def test_what_is_not_fetched_is_not_computed_nor_asked_for() -> None:
    with sw.Graph() as graph:
        x = graph.placeholder("x", (4,), np.float32)
        y = graph.placeholder("y", (4,), np.float32)
        total = graph.name("total", np.sum(x))
        graph.name("other", np.exp(y) @ x)
    assert graph.run("total", {x: np.ones(4)}) == 4
    assert graph.run(total, {x: np.ones(4), y: np.ones(4)}) == 4
    text = graph.text(total)
    assert "nd.exp" not in text and "%y" not in text
    assert "nd.exp" in graph.text("other")


def test_any_value_can_be_given(sums: tuple[Graph, Any, Any, Any]) -> None:
    graph, a, b, c = sums
    with graph:
        d = c * c
        e = d + a
    assert graph.run(d, {c: 10}) == 100
    assert graph.run([c, e], {c: 10, a: 1}) == [10, 101]
    assert graph.run((c, d, e), {d: 1, a: 2, b: 3}) == (5, 1, 3)
    assert graph.run(a, {a: 7}) == 7


def test_one_of_several_results_of_an_op_can_be_given() -> None:
    with sw.Graph() as graph:
        x = graph.placeholder("x", (3,))
        _, (last, all_of_them) = sw.lax.scan(lambda s, v: (s + v, (s, v * 2)), 0.0, x)
        both = last + all_of_them
    assert graph.run(both, {x: [1, 2, 3]}).tolist() == [2, 5, 9]
    assert graph.run(both, {x: [1, 2, 3], last: [10, 10, 10]}).tolist() == [12, 14, 16]


def test_results_are_built_as_the_fetches_are(sums: tuple[Graph, Any, Any, Any]) -> None:
    graph, a, b, c = sums
    found = graph.run({"sum": c, "parts": [a, "b"], "none": None}, {a: 1, b: 2})
    assert found == {"sum": 3, "parts": [1, 2], "none": None}


def test_it_grows(sums: tuple[Graph, Any, Any, Any]) -> None:
    graph, a, b, c = sums
    assert graph.run(c, {a: 1, b: 2}) == 3
    with graph:
        graph.name("d", c**2)
    assert graph.run("d", {a: 1, b: 2}) == 9


def test_loops_assignments_and_jitted_functions_are_part_of_it() -> None:
    @sw.jit
    def collatz(n: Any) -> Any:
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    with sw.Graph() as graph:
        n = graph.placeholder("n", (), np.int64)
        x = graph.placeholder("x", (3,))
        steps = collatz(n)
        first = x + 0
        x[0] = 5
        after = x + 0
    assert graph.run(steps, {n: 27}) == 111
    given = np.zeros(3)
    assert graph.run([first, after], {x: given})[1].tolist() == [5, 0, 0]
    assert graph.run(first, {x: given}).tolist() == [0, 0, 0] and given.tolist() == [0, 0, 0]


def test_arrays_from_outside_are_constants() -> None:
    table = np.arange(40.0)
    with sw.Graph() as graph:
        i = graph.placeholder("i", (), np.int64)
        found = graph.name("found", table + 0 * i)
        graph.name("table", table)
    table[:] = 0
    assert graph.run(found, {i: 1})[39] == 39
    assert graph.run("table")[39] == 39


def test_each_choice_is_compiled_once(
    sums: tuple[Graph, Any, Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, a, b, c = sums
    made: list[str] = []
    real = sw.compile

    def counting(module: Any, entry: str, **options: Any) -> Any:
        made.append(module.text)
        return real(module, entry, **options)

    monkeypatch.setattr("stepwell.frontend.graphs.compile", counting)
    for k in range(3):
        assert graph.run(c, {a: k, b: 1}) == k + 1
        assert graph.run(c, {"b": 1, a: k}) == k + 1
    assert len(made) == 2  # feeds in another order


def test_threads_run_one_graph(sums: tuple[Graph, Any, Any, Any]) -> None:
    graph, a, b, c = sums
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        found[k] = float(graph.run(c, {a: k, b: 1}))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {0: 1, 1: 2, 2: 3, 3: 4}


def mistakes() -> list[tuple[str, type[Exception], str]]:
    return [
        ("g.run(c, {a: 3})", TypeError,
         "the placeholder 'b', which 'add' needs, is not given: pass its value in run(..., "
         "{'b': ...}); it was made at FILE"),
        ("g.run(b)", TypeError,
         "the placeholder 'b' is not given: pass its value in run(..., {'b': ...}); it was made at "
         "FILE"),
        ("g.run('cc', {a: 3})", LookupError, "the graph has no value 'cc'; did you mean 'c'?"),
        ("g.run('sum', {a: 3})", LookupError, "the graph has no value 'sum'; it has 'a', 'b', 'c'"),
        ("g.run(c, {'d': 3})", LookupError, "the graph has no value 'd'; it has 'a', 'b', 'c'"),
        ("g.run(c, {a: [1, 2], b: 1})", ValueError, "<traced f64[] %a> has shape [], got [2]"),
        ("g.run(c, {'a': [1, 2], b: 1})", ValueError, "'a' has shape [], got [2]"),
        ("g.run('i', {'i': 1.5})", TypeError,
         "'i' is i32; float64 is no such number: convert it before"),
        ("g.run('i', {'i': 'x'})", TypeError,
         "'i' is i32; <U1 is no such number: convert it before"),
        ("g.run(c, [a])", TypeError, "feeds are a dict of values, got list"),
        ("g.run(3)", TypeError, "a fetch is a value of the graph or its name, got 3"),
        ("g.run(c, {3: 4})", TypeError, "a feed is for a value of the graph or its name, got 3"),
        ("g.run(c, {'a': 1, a: 2, b: 3})", ValueError,
         "a value is given twice: by its name and as itself"),
        ("g.run(other, {})", ValueError,
         "<traced f64[] %a>, made at FILE, is a value of another graph"),
        ("g.placeholder('a')", ValueError, "the graph has a value 'a' already, made at FILE"),
        ("a + 1", sw.TraceError,
         "a value of 'graph' was used outside of its trace: <traced f64[] %a>, made at FILE, used "
         "at FILE; open the graph to go on describing it, 'with graph:', and call its run(...) to "
         "compute"),
    ]  # fmt: skip


@pytest.mark.parametrize("code, kind, message", mistakes())
def test_mistakes(
    sums: tuple[Graph, Any, Any, Any], code: str, kind: type[Exception], message: str
) -> None:
    graph, a, b, c = sums
    with graph:
        graph.placeholder("i", (), np.int32)
    if message.endswith("'c'"):
        message += ", 'i'"
    with sw.Graph() as another:
        other = another.placeholder("a")
    scope = {"g": graph, "a": a, "b": b, "c": c, "other": other}
    with pytest.raises(kind) as caught:
        eval(code, scope)
    said = re.sub(r"(<string>|\S+\.py):\d+", "FILE", str(caught.value.args[0]))
    assert said == message


def test_a_condition_is_refused_at_its_line() -> None:
    with sw.Graph() as graph:
        a = graph.placeholder("a")
        with pytest.raises(sw.TraceError, match=r"lax\.cond"):
            if a > 0:
                pass
