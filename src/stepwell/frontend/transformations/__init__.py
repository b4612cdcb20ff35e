"""Transformations of functions: derivatives, as ops that are written while a function is traced."""
