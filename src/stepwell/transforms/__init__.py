"""Rewrites within one floor: a folder for each floor; those of every floor are in this folder.

`passes` has the base class of passes, `rewriting` drives patterns.
"""
