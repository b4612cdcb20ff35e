"""The objects that users hold: compiled programs, and modules in files."""
