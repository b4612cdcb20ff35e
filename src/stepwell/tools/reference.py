"""The pages of the API reference, `docs/api`: every public name, from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

import stepwell as sw
import stepwell.numpy as snp
from stepwell.frontend.facade import NAMES, Ufunc
from stepwell.frontend.functions import Function
from stepwell.frontend.table import FUNCTIONS
from stepwell.tools.api_examples import ARRAYS, arrays, computed, example

OF_JITTED = ("trace", "explain", "profile", "cache_info", "clear_cache")
"""The methods of jitted functions that are meant for users."""


def reference() -> dict[str, str]:
    """Return the text of every page by its path below `docs/`."""
    modules = {name: getattr(sw, name) for name in dir(sw)}
    modules = {k: m for k, m in modules.items() if isinstance(m, ModuleType) and k != "numpy"}
    own = _page("stepwell", sw, [n for n in sw.__all__ if n not in modules])
    jitted = "\n".join(_entry("Function", Function)).rstrip()
    pages = {"api/stepwell.md": f"{own}\n# What `sw.jit` gives\n\n{jitted}\n"}
    modules["nn.initializers"] = sw.nn.initializers
    for name, module in modules.items():
        pages[f"api/{name}.md"] = _page(f"stepwell.{name}", module, _public(module))
    pages["api/numpy.md"] = _numpy()
    rows = [f"* [`stepwell.{p[4:-3]}`]({p[4:]})" for p in sorted(pages) if p != "api/stepwell.md"]
    index = ["# API reference", "", "* [`stepwell`](stepwell.md), `import stepwell as sw`", *rows]
    index += ["", "What a jitted function may be: [plain Python](../python.md)."]
    return {**pages, "api/README.md": "\n".join(index) + "\n"}


def _public(module: ModuleType) -> list[str]:
    """Return the public names of a module: its `__all__`, or the names defined in it."""
    if (listed := getattr(module, "__all__", None)) is not None:
        return list(listed)
    return [
        n
        for n, value in vars(module).items()
        if not n.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def _page(title: str, module: Any, names: list[str]) -> str:
    rows = [f"# `{title}`", "", _doc(module), ""]
    for name in names:
        rows += _entry(name, getattr(module, name))
    return "\n".join(rows).rstrip() + "\n"


def _entry(name: str, value: Any) -> Iterator[str]:
    """Yield the lines about a function or a class and its members."""
    if not callable(value):
        yield from (f"## `{name}`", "", f"`{value!r}`", "")
        return
    yield from (f"## `{name}{_signature(value)}`", "", _doc(value), "")
    if not inspect.isclass(value) or issubclass(value, BaseException):
        return
    members = {n: vars(value)[n] for n in OF_JITTED} if value is Function else _members(value)
    for own, member in members.items():
        if own.startswith("_") or not (doc := inspect.getdoc(member)):
            continue
        if isinstance(member, property):
            yield from (f"### `{name}.{own}`", "", _as_markdown(doc), "")
        elif inspect.isfunction(member):
            yield from (f"### `{name}.{own}{_signature(member)}`", "", _as_markdown(doc), "")


def _members(of: type) -> dict[str, Any]:
    """Return the members of a class, then those of its bases that have no entry of their own."""
    found: dict[str, Any] = {}
    for base in of.__mro__:
        if base.__module__.startswith("stepwell") and base is not Function:
            known = {**found, **({} if base is of else vars(Function))}
            found |= {name: member for name, member in vars(base).items() if name not in known}
    return found


def _signature(value: Any) -> str:
    """Return a call signature without the types that add nothing."""
    try:
        known = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    bare = [p.replace(annotation=p.empty) for p in known.parameters.values() if p.name != "self"]
    text = str(known.replace(parameters=bare, return_annotation=known.empty))
    return re.sub(r"<(?:class|function) '?(?:\w+\.)*(\w+)'?[^>]*>", r"\1", text)


def _doc(value: Any) -> str:
    return _as_markdown(inspect.getdoc(value) or "")


def _as_markdown(doc: str) -> str:
    """Return a docstring as Markdown; indented parts and examples are unchanged."""
    parts: list[str] = []
    for block in doc.split("\n\n"):
        literal = re.search(r"^ |^>>>|^\w[\w*, ]* : ", block, re.MULTILINE)
        parts.append(f"```text\n{block}\n```" if literal else re.sub("``", "`", block))
    return "\n\n".join(parts)


def _numpy() -> str:
    rows = ["# `stepwell.numpy`", "", _doc(snp), ""]
    rows += ["Examples use these arrays; what they give is NumPy's own answer, and the same under"]
    rows += ["`sw.jit`.", "", "```python"]
    rows += [f"{name} = {text}" for name, text in ARRAYS.items()]
    rows += ["```", "", "## Functions", "", "| name | meaning | example |", "|---|---|---|"]
    known = arrays()
    plain: list[str] = []
    for name in snp.__all__:
        if name in NAMES or not callable(getattr(snp, name)):
            plain.append(f"`{name}`")
        else:
            rows.append(_row(name, known))
    rows += ["", "## Constants, dtypes, and what is asked of them", "", ", ".join(plain)]
    return "\n".join(rows) + "\n"


def _row(name: str, known: dict[str, Any]) -> str:
    function = getattr(snp, name)
    if isinstance(function, Ufunc):
        about = f"NumPy's ufunc of {function.nin} operand{'s' if function.nin > 1 else ''}"
        about += ", with `out`, `where`, `dtype`, `.reduce`, `.accumulate`, `.outer`, `.at`"
        about = about if function.nin == 2 else about.partition(", `.reduce`")[0]
        called = name
    else:
        about = _as_markdown((inspect.getdoc(function) or "").partition("\n\n")[0])
        called = f"{name}{_signature(FUNCTIONS[function.__name__])}"
    shown = ""
    if text := example(name):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            shown = f"`{text}` is {_result(computed(text, known))}"
    return "| " + " | ".join(_cell(each) for each in (f"`{called}`", about, shown)) + " |"


def _result(value: Any) -> str:
    """Return a result as text in one line."""
    if isinstance(value, tuple | list):
        return ", ".join(_result(each) for each in value)
    if isinstance(value, np.ndarray | np.generic):
        if getattr(value, "ndim", 0) == 0:
            return f"`{value.item()!r}`, {value.dtype}"
        with np.printoptions(precision=6, suppress=True):
            listed = np.array2string(np.asarray(value), separator=", ", max_line_width=10**6)
        return f"`{listed}`".replace("\n", "") + f", {value.dtype}"
    return f"`{value!r}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
