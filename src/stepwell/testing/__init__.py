"""Tools for testing a compiler, for other packages and ours: `pip install stepwell[testing]`.

`lit` and `in_pytest` run lit's files, `op_rows` compares an op with its reference on every floor
and target, `random_programs` draws well-typed programs of `nd`, `user_programs` draws programs as
users write them, `assert_same` compares results. Each module imports its requirements itself.
"""

from stepwell.testing.comparing import assert_same

__all__ = ["assert_same"]
