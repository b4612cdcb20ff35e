"""Derivatives compared with differences, and forward mode with reverse mode.

`check` takes the text of a module: rows of ops, random programs and whole models alike. `python -m
stepwell.testing.gradients` differentiates random programs for as long as it is told to.
"""
