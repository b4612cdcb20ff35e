"""OpenCL programs: a device and its builds (`device`), and calls, which walk a schedule (`calls`).

pyopencl is imported when a program is first loaded, never before.
"""

from stepwell.runtime.opencl.calls import OpenCLProgram

__all__ = ["OpenCLProgram"]
