"""Random programs of sizes known only at run time, each with a reference of its own in NumPy.

The reference knows nothing of the compiler: it computes op by op and wants of sizes what the docs
of the ops say, in branches not taken too. A program and the interpreter must refuse a call exactly
where it does, and return its numbers elsewhere.
"""
