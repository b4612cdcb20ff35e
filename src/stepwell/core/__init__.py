"""Modules that all other parts may import: diagnostics, rule tables, dtypes, shapes. No xdsl."""
