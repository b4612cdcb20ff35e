"""A 16-bit cyclic redundancy check, bit by bit."""

import numpy as np

from programs.libraries import lax


def crc16(data, poly):
    crc = 0xFFFF
    for i in range(data.shape[0]):
        cur_byte = 0xFF & int(data[i])
        for _ in range(8):
            if (crc & 0x0001) ^ (cur_byte & 0x0001):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            cur_byte >>= 1
    crc = ~crc & 0xFFFF
    crc = (crc << 8) | ((crc >> 8) & 0xFF)
    return crc & 0xFFFF


def inputs(tiny):
    n = 20 if tiny else 20000
    return np.random.default_rng(0).integers(0, 256, n, dtype=np.uint8), 0x8408


def port(data, poly):
    def byte(i, crc):
        def bit(_, state):
            crc, cur = state
            odd = ((crc & 1) ^ (cur & 1)) == 1
            return lax.select(odd, (crc >> 1) ^ poly, crc >> 1), cur >> 1

        return lax.fori_loop(0, 8, bit, (crc, data[i].astype(int)))[0]

    crc = ~lax.fori_loop(0, data.shape[0], byte, 0xFFFF) & 0xFFFF
    return ((crc << 8) | ((crc >> 8) & 0xFF)) & 0xFFFF
