"""Analyses of a program, kernel or op: read by rewrites and lowerings, they change nothing."""
