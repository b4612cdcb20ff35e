"""Rewrites that stay on one floor: a folder for each floor, and here those of every floor.

`passes` is what every pass is built on, `rewriting` drives patterns.
"""
