"""OpenCL programs: devices (`device`), builds (`building`) and calls by a host schedule (`calls`).

pyopencl is imported when the first program is loaded, not before.
"""

from stepwell.runtime.opencl.calls import OpenCLProgram

__all__ = ["OpenCLProgram"]
