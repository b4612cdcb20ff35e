"""Rewrites of kernels and hosts on buffers: memory, and launches side by side."""
