"""State that persists between calls: variables, and donated arguments."""
