"""Compare derivatives with finite differences, and forward mode with reverse mode.

`check` takes the text of a module: a row of an op, a random program or a whole model. `python -m
stepwell.testing.gradients` differentiates a given number of random programs.
"""
