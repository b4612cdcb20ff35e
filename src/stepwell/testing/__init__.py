"""What tests of a compiler need, for packages outside as for ours: `pip install stepwell[testing]`.

`lit` runs lit's files inside pytest, `op_rows` compares an op's row with the reference on every
floor and target, `random_programs` draws well-typed programs of `nd`, and `user_programs` those
that users write. Each imports what it needs when it is imported itself.
"""
