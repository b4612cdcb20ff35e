"""Rewrites of graphs, whose ops are of `nd`."""
