"""Rewrites of loops."""
