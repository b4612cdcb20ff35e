"""What users hold: compiled programs, and modules in files."""
