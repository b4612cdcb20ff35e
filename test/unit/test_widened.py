"""Vector forms of arith ops round-trip and verify."""

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.upstream import widened

LANES = """builtin.module {
  func.func @lanes(%x: vector<4xf32>, %n: vector<4xi32>, %c: i1) -> vector<4xf32> {
    %m = arith.cmpf olt, %x, %x : vector<4xf32>
    %k = arith.cmpi eq, %n, %n : vector<4xi32>
    %s = arith.select %m, %x, %x : vector<4xi1>, vector<4xf32>
    %t = arith.select %c, %s, %x : vector<4xf32>
    %u = arith.fptosi %t : vector<4xf32> to vector<4xi32>
    %v = arith.extsi %u : vector<4xi32> to vector<4xi64>
    %w = arith.index_cast %v : vector<4xi64> to vector<4xindex>
    %y = arith.trunci %v : vector<4xi64> to vector<4xi8>
    %z = arith.uitofp %k : vector<4xi1> to vector<4xf32>
    func.return %z : vector<4xf32>
  }
}"""


def _parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Func, Arith):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def test_vectors_round_trip() -> None:
    assert widened
    module = _parse(LANES)
    module.verify()
    assert str(module) == LANES


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%r = arith.extui %n : vector<4xi32> to vector<2xi64>", "of other shape"),
        ("%r = arith.select %k, %c, %c : vector<4xi1>, i1", "cannot choose between i1"),
        ("%r = arith.trunci %n : vector<4xi32> to vector<4xi64>", "must be smaller"),
    ],
)
def test_mismatched_vectors_are_refused(line: str, message: str) -> None:
    module = _parse(
        "func.func @f(%n: vector<4xi32>, %c: i1) {"
        f"%k = arith.cmpi eq, %n, %n : vector<4xi32> {line} func.return }}"
    )
    with pytest.raises(VerifyException, match=message):
        module.verify()
