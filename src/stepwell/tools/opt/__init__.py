"""stepwell-opt: read IR, run passes, print IR."""

from stepwell.tools.opt.command import main

__all__ = ["main"]
