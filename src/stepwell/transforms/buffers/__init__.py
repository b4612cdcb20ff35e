"""Rewrites of kernels and host code on buffers: memory planning, concurrent launches."""
