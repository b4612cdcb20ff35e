"""Rewrites of structured ops on tensors: what is fused, how arrays are laid out."""
