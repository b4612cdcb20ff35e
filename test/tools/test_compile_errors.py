"""sw.compile says what is wrong with a module as the tools do, with the line it is about."""

import pytest

import stepwell as sw

PROGRAM = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nd.ad %x, %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    "was, now, said",
    [
        (
            "",
            "",
            "model.mlir:2:8: error: unknown op 'nd.ad'\n"
            "    2 |   %y = nd.ad %x, %x : tensor<4xf32>\n"
            "      |        ^^^^^\n"
            "   help: did you mean 'nd.add'?",
        ),
        (
            "nd.ad",
            "nd.and",
            "model.mlir:2:3: error: 'nd.and': elements must be integer or i1, got tensor<4xf32>\n"
            "    2 |   %y = nd.and %x, %x : tensor<4xf32>\n"
            "      |   ^",
        ),
        (
            "%y = nd.ad %x, %x :",
            "%z = nd.neg %y : tensor<4xf32>\n  %y = nd.neg %x :",
            "model.mlir:2:3: error: 'nd.neg': %y is used before it is defined\n"
            "    2 |   %z = nd.neg %y : tensor<4xf32>\n"
            "      |   ^\n"
            "model.mlir:3:3: note: it is defined here\n"
            "    3 |   %y = nd.neg %x : tensor<4xf32>\n"
            "      |   ^",
        ),
    ],
)
def test_errors_show_their_line(was: str, now: str, said: str) -> None:
    with pytest.raises(sw.CompileError) as caught:
        sw.compile(PROGRAM.replace(was, now, 1) if was else PROGRAM, name="model.mlir")
    assert str(caught.value) == said
