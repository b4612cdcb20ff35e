"""Rewrites of structured ops on tensors: fusion, layouts, scalar loops, Winograd convolutions."""
