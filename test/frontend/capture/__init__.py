"""Small NumPy programs as people write them, each captured, or refused with its message."""
