"""Where passes of other packages stand in the pipeline."""

from __future__ import annotations

import pytest

from stepwell.core.diagnostics import CompileError
from stepwell.core.placement import Placement, parse_placement
from stepwell.driver.pipeline import Stage
from stepwell.driver.placing import place

STAGES = (
    Stage("nd", "inline,cse,decompose", frozenset()),
    Stage("structured", "lower{a=1,2 b},cse,fuse", frozenset()),
    Stage("loops", "to-loops", frozenset()),
)


def placed(*texts: str) -> dict[str, str]:
    stages = place(STAGES, [parse_placement(text) for text in texts])
    return {stage.name: stage.passes for stage in stages}


@pytest.mark.parametrize(
    "texts, stage, passes",
    [
        (["x@before:lower"], "structured", "x,lower{a=1,2 b},cse,fuse"),
        (["x{n=3}@after:lower"], "structured", "lower{a=1,2 b},x{n=3},cse,fuse"),
        (["x@after:structured/cse"], "structured", "lower{a=1,2 b},cse,x,fuse"),
        (["x@after:nd"], "nd", "inline,cse,decompose,x"),
        (["x@before:structured"], "structured", "x,lower{a=1,2 b},cse,fuse"),
        (["x@before:loops", "y@before:loops"], "loops", "x,y,to-loops"),
        (["x@after:inline", "y@after:inline"], "nd", "inline,x,y,cse,decompose"),
        (["y@after:x", "x@before:decompose"], "nd", "inline,cse,x,y,decompose"),
        (["x@before:fuse,after:y", "y@before:fuse"], "structured", "lower{a=1,2 b},cse,y,x,fuse"),
        (["x@before:fuse", "y@before:fuse,before:x"], "structured", "lower{a=1,2 b},cse,y,x,fuse"),
        (["x@before:fuse,after:gone?"], "structured", "lower{a=1,2 b},cse,x,fuse"),
        ([], "nd", "inline,cse,decompose"),
    ],
)
def test_a_pass_stands_where_it_says(texts: list[str], stage: str, passes: str) -> None:
    assert placed(*texts)[stage] == passes


def test_packages_stand_in_the_order_of_their_names() -> None:
    both = [parse_placement("y@before:fuse", "beta"), parse_placement("x@before:fuse", "acme")]
    for order in (both, both[::-1]):
        assert place(STAGES, order)[1].passes == "lower{a=1,2 b},cse,x,y,fuse"


@pytest.mark.parametrize(
    "texts, message, help",
    [
        (["x"], "'x' does not say which pass stands where", "PASS@before:ANCHOR"),
        (["x@beside:fuse"], "'x@beside:fuse' does not say", "PASS@before:ANCHOR"),
        (["x@before:fuse,sooner:cse"], "does not say which pass", "PASS@before:ANCHOR"),
        (["x@after:y?"], "cannot be optional", "name a pass of the pipeline first"),
        (["x@before:fuze"], "stands beside 'fuze', which is not there", "did you mean 'fuse'?"),
        (["x@before:cse"], "cse stands in the pipeline 2 times", "nd/cse, structured/cse"),
        (["x@before:fuse,after:gone"], "gone is not there", "after:gone? where it may be absent"),
        (["x@before:y", "y@before:x"], "stand before each other in a circle", "drop one"),
        (["x@before:inline,after:fuse"], "cannot stand after fuse", "the pipeline would be x,"),
    ],
)
def test_what_cannot_be_placed_is_refused(texts: list[str], message: str, help: str) -> None:
    with pytest.raises(CompileError) as caught:
        placed(*texts)
    assert message in caught.value.diagnostic.message
    assert help in caught.value.diagnostic.help


def test_a_placement_prints_as_it_is_read() -> None:
    text = "x{n=3 m}@before:structured/cse,after:y?"
    read = parse_placement(text)
    assert isinstance(read, Placement) and str(read) == text
