"""Units of work for a device, and the host schedule that launches them."""

from xdsl.ir import Dialect

from stepwell.dialects.kernel import interpretation
from stepwell.dialects.kernel.callback import CallbackOp
from stepwell.dialects.kernel.check import CheckOp
from stepwell.dialects.kernel.concurrent import ConcurrentOp
from stepwell.dialects.kernel.dot_tiles import DotTileOp, ReleaseTilesOp
from stepwell.dialects.kernel.dots import SUMS, DotOp
from stepwell.dialects.kernel.grain import GrainOp
from stepwell.dialects.kernel.levels import ScheduleAttr
from stepwell.dialects.kernel.lookup import LookupOp
from stepwell.dialects.kernel.ops import FuncOp, LaunchOp, ReturnOp
from stepwell.dialects.kernel.prefetch import PrefetchOp
from stepwell.dialects.kernel.stack import StackOp
from stepwell.dialects.kernel.versions import VersionAttr

KERNEL = Dialect(
    "kernel",
    [
        *(FuncOp, LaunchOp, ConcurrentOp, ReturnOp, StackOp),
        *(PrefetchOp, GrainOp, LookupOp, DotOp, DotTileOp, ReleaseTilesOp),
        *(CheckOp, CallbackOp),
    ],
    [ScheduleAttr, VersionAttr],
)

__all__ = [
    "KERNEL",
    "SUMS",
    "CallbackOp",
    "CheckOp",
    "ConcurrentOp",
    "DotOp",
    "DotTileOp",
    "FuncOp",
    "GrainOp",
    "LaunchOp",
    "LookupOp",
    "PrefetchOp",
    "ReleaseTilesOp",
    "ReturnOp",
    "ScheduleAttr",
    "StackOp",
    "VersionAttr",
    "interpretation",
]
