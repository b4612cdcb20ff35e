"""What every other part may import: diagnostics, rule tables, dtypes, shapes. No xdsl."""
