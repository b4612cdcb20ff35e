"""Ops, a pass and a target for Stepwell, from outside its tree."""
