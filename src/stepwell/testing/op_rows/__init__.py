"""Test rows of ops: a program of one op, the dtypes and sizes to run it with, and the tolerance.

`check_row` runs one on every floor and on targets; `row`, `values`, `run` and `together` are its
parts.
"""

from stepwell.testing.op_rows.checking import check_row
from stepwell.testing.op_rows.row import Case, Row

__all__ = ["Case", "Row", "check_row"]
