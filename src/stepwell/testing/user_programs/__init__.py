"""Random programs as users write them: `sw.jit` functions of `stepwell.numpy`, `sw.nn`, `sw.lax`.

A program is a `Recipe`, a list of steps that are data: it runs on NumPy, where floats are 64 bits
wide and every value carries a bound of how far an implementation may be off (`known`), and traced.
`draw` writes one from a seed: pointwise ops, moves, reductions, products, whole idioms (momentum,
caches, attention, hashing, stencils, embedding gradients) and loops. `check` compares what compiled
programs return; `shrink` makes a failing recipe small. `python -m stepwell.testing.user_programs`
runs as many as it is told, for all machines and targets, and prints those that fail, shrunk.
"""
