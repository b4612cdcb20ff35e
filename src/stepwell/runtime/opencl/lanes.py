"""The number of lanes of vectors in OpenCL programs: the most that a driver compiles correctly.

Drivers report the width of the device's vectors. Some compile wide ones wrongly, or crash: PoCL 3.0
with LLVM 14 ends the process at vectors of 512 bits. So a program that computes with such vectors,
and lane by lane, runs once for each driver, in a process of its own; the cache keeps its answer.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np

from stepwell.core.targets import OPENCL_LANES
from stepwell.runtime.cache import digest, disk_cache
from stepwell.runtime.opencl.device import Device, devices

LOG = logging.getLogger("stepwell")
WIDEST = 16
"""Lanes of the longest vectors of OpenCL C."""
PATIENCE = 120.0
"""Seconds for the program that tries wide vectors; it takes one on an idle processor."""
RIGHT, WRONG = "right", "wrong"
PROBE = """\
#pragma OPENCL FP_CONTRACT OFF
typedef float16 float16_at __attribute__((aligned(4)));
typedef union { float16 v; float s[16]; } floats;
typedef union { int16 v; int s[16]; } ints;
typedef union { long16 v; long s[16]; } longs;
typedef union { uchar16 v; uchar s[16]; } bytes;
typedef union { ushort16 v; ushort s[16]; } shorts;

float sum(float16 x) {
  const float8 a = x.lo + x.hi;
  const float4 b = a.lo + a.hi;
  return b.x + b.z + (b.y + b.w);
}

float scalar_sum(const float *x) {
  float a[8];
  for (int k = 0; k < 8; k++) a[k] = x[k] + x[k + 8];
  for (int k = 0; k < 4; k++) a[k] += a[k + 4];
  return a[0] + a[2] + (a[1] + a[3]);
}

__kernel void probe(__global volatile float *p, __global volatile int *q, __global int *wrong) {
  floats x, y, z, w, r; ints n, m, c; longs l; bytes t; shorts h;
  for (int k = 0; k < 16; k++) {
    x.s[k] = p[k]; y.s[k] = p[k + 16]; n.s[k] = q[k]; m.s[k] = q[k + 16];
  }
  float16 total = (float16)(0.0f);
  for (int i = 0; i < q[32]; i++) {
    const float16 a = *(__global const float16_at *)(p + i), b = total * 0.5f;
    total = a > b ? a : b;
  }
  z.v = x.v * y.v - x.v / y.v;
  w.v = (x.v < y.v) | ~(x.v == x.v) ? z.v : as_float16(as_int16(x.v) & 0x7fffffff);
  c.v = (n.v * m.v + (n.v >> 3)) ^ as_int16(as_uint16(m.v) << 5);
  l.v = convert_long16(n.v) * convert_long16(m.v) + ((convert_long16(n.v) << 33) >> 7);
  t.v = convert_uchar16(as_ushort16(convert_short16(n.v > m.v))) & (uchar)1;
  h.v = convert_ushort16(as_uint16(x.v) >> 16);
  r.v = convert_float16(c.v & 0xffff) + (float16)(y.v.hi, x.v.lo) + y.v.s1032547698badcfe;
  *(__global float16_at *)(p + 33) = r.v;
  int bad = 0;
  for (int k = 0; k < 16; k++) {
    const volatile float a = p[k], b = p[k + 16];
    const volatile int i = q[k], j = q[k + 16];
    const float ab = a * b, quotient = a / b, f = ab - quotient;
    const int d = (i * j + (i >> 3)) ^ (int)((uint)j << 5);
    float best = 0.0f;
    for (int e = 0; e < q[32]; e++) {
      const float next = p[k + e], before = best * 0.5f;
      best = next > before ? next : before;
    }
    bad |= as_int(z.s[k]) != as_int(f) && !(f != f && z.s[k] != z.s[k]) ? 1 : 0;
    bad |= as_int(w.s[k]) != as_int(a < b || a != a ? z.s[k] : fabs(a)) ? 2 : 0;
    bad |= c.s[k] != d ? 4 : 0;
    bad |= l.s[k] != (long)i * j + (((long)i << 33) >> 7) ? 8 : 0;
    bad |= t.s[k] != (i > j) || h.s[k] != (ushort)(as_uint(a) >> 16) ? 16 : 0;
    const float moved = k < 8 ? y.s[k + 8] : x.s[k - 8];
    const float want = (float)(d & 0xffff) + moved + y.s[k ^ 1];
    bad |= as_int(r.s[k]) != as_int(want) || as_int(p[33 + k]) != as_int(want) ? 32 : 0;
    bad |= as_int(((const float *)&total)[k]) != as_int(best) ? 64 : 0;
    bad |= as_int(((const float *)&z)[n.s[k] & 15]) != as_int(z.s[i & 15]) ? 128 : 0;
  }
  x.v = (float16)(1.5f) + y.v;
  bad |= sum(x.v) != scalar_sum(x.s) ? 256 : 0;
  wrong[0] = bad;
}
"""


def lanes_on(device: Device) -> int:
    """Return how many lanes the vectors of programs on a CPU have at most."""
    wide = int(device.handle.native_vector_width_float) >= WIDEST
    return WIDEST if wide and not device.problem and is_right(device) else OPENCL_LANES


@cache
def is_right(device: Device) -> bool:
    """Whether wide vectors are computed right on a device; the disk cache remembers it."""
    keys = {answer: digest("lanes", PROBE, answer, device.id) for answer in (RIGHT, WRONG)}
    kept = [answer for answer, key in keys.items() if disk_cache().find("opencl", key) is not None]
    answer = kept[0] if kept else _asked(device)
    if answer and not kept:
        disk_cache().offer("opencl", keys[answer], lambda _: None, 0)
    if answer != RIGHT:
        LOG.info("%s computes wrongly with %d lanes: %d are used", device, WIDEST, OPENCL_LANES)
    return answer == RIGHT


def _asked(device: Device) -> str:
    """Run the probe in a process of its own; return "" if it does not end in time."""
    command = [sys.executable, "-m", __name__, device.name, device.title]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return WRONG if done.returncode else RIGHT


def computed(device: Device) -> int:
    """Return the kinds of operations, as bits, that the driver computes wrongly."""
    cl, context, queue = device.cl, device.context, device.queue
    rng = np.random.default_rng(0)
    p = rng.standard_normal(49).astype(np.float32)
    p[[3, 19]] = np.nan, np.inf
    q = rng.integers(-1000, 1000, 33).astype(np.int32)
    q[32] = 17
    wrong = np.full(1, -1, np.int32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(context, flags, hostbuf=each) for each in (p, q, wrong)]
    kernel: Any = cl.Kernel(device.built(cl.Program(context, PROBE)), "probe")
    kernel(queue, (1,), (1,), *buffers)
    cl.enqueue_copy(queue, wrong, buffers[2])
    return int(wrong[0])


if __name__ == "__main__":
    name, title = sys.argv[1:]
    asked = next(each for each in devices() if (each.name, each.title) == (name, title))
    sys.exit(computed(asked) != 0)
