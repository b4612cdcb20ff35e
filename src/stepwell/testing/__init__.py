"""What tests of a compiler need, for packages outside as for ours: `pip install stepwell[testing]`.

`lit` and `in_pytest` run lit's files, `op_rows` compares an op with its reference on every floor
and target, `random_programs` draws well-typed programs of `nd`, `user_programs` those that users
write, `assert_same` compares results. Each imports what it needs when it is imported itself.
"""

from stepwell.testing.same import assert_same

__all__ = ["assert_same"]
