"""Random programs as users write them: `sw.jit` functions of `stepwell.numpy`, `sw.nn`, `sw.lax`.

A program is a `Recipe`, a list of steps as data: it runs on NumPy, with floats in 64 bits and an
error bound of each value for other implementations (`known`), and traced. `draw` generates one from
a seed: pointwise ops, moves, reductions, products, whole idioms (momentum, caches, attention,
hashing, stencils, embedding gradients) and loops. `check` compares the results of compiled
programs; `shrink` minimizes a failing recipe. `python -m stepwell.testing.user_programs` runs a
given number, for all machines and targets, and prints those that fail, shrunk.
"""
