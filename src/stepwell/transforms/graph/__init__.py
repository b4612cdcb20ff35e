"""Rewrites of graphs of `nd` ops."""
