"""Random well-typed programs of `nd`, drawn by hypothesis so that a failing one is shrunk.

`strategy.programs()` is the strategy. A program is text, with possible values of its `?`;
`checking` runs one on every floor and compiled. Floats are integers as long as their magnitude is
known to stay exact, so that most results must be bit-identical in any order of summation; an
inexact value is only an operand of ops that do not magnify a difference.
"""

from stepwell.testing.requirements import need

for _module in ("hypothesis", "ml_dtypes"):
    need(_module, "random programs")
