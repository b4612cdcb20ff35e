"""Pages made from the code are as `make docs` would make them now."""

from pathlib import Path

from stepwell.tools.docs import pages

DOCS = Path(__file__).parents[2] / "docs"


def test_made_pages_are_fresh() -> None:
    made = pages()
    stale = [n for n, text in made.items() if (DOCS / n).read_text(encoding="utf-8") != text]
    assert stale == [], "run `make docs`"
    for folder in ("ops", "api"):
        assert {f"{folder}/{p.name}" for p in (DOCS / folder).glob("*.md")} <= made.keys()
