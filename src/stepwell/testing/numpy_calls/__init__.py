"""Random calls of NumPy's functions, operators, methods and indices, with NumPy as the oracle.

`python -m stepwell.testing.numpy_calls --calls 1000 --seed 1`. A call is a line of Python over
arrays. Many are traced into one program, so that one compilation checks all of them.
"""
