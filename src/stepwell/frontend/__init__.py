"""Python functions in: tracing, and the NumPy-like names it traces. Never imports xdsl itself."""
