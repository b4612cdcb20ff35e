"""Random well-typed programs of `nd`, drawn by hypothesis so that a failing one is shrunk.

`strategy.programs()` is the strategy. A program is text, with the sizes its `?` may have;
`checking` runs one on every floor and compiled. Floats are whole numbers as long as their
magnitude is known to stay exact, so that most results must agree bit by bit whatever the order of
a sum; once a value is inexact it feeds only ops that do not magnify a difference.
"""

from stepwell.testing.needs import need

for _module in ("hypothesis", "ml_dtypes"):
    need(_module, "random programs")
