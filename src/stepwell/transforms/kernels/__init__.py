"""Rewrites of kernels on tensors: their loops, schedules and operands."""
