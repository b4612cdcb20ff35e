"""What xDSL's own dialects lack for us: reference rules, memory effects, syntax.

Importing this package patches the upstream ops once; each patch has a test.
"""
