"""Rewrites that stay on one level, and what every pass is built on."""
