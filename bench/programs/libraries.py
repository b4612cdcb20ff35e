"""What the other forms of the programs are written with, where it is installed."""

from __future__ import annotations

from typing import Any

try:
    from numba import prange
except ImportError:
    prange: Any = range

try:
    import jax
    from jax import lax
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)
except ImportError:
    jax = jnp = lax = None

__all__ = ["jax", "jnp", "lax", "prange"]
