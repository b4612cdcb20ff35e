"""What a test row of an op is, and how it is run: `row`, `values`, `run`, `together`."""
