"""Stepwell: a tensor compiler whose every step is text one can read, test and extend."""

__version__ = "0.1.0"
