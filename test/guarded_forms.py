"""Each form of touching memory: its text, a number %i that fits and others, what is said of these."""

from __future__ import annotations

X = "memref<?xf32>"
FORMS = {
    "load": (
        f"%v = memref.load %x[%i] : {X}\nmemref.store %v, %y[%c0] : memref<4xf32>",
        (7, 8, -1, 1 << 62, -(1 << 63)),
        "memref.load: axis 0 of %x has no place 8, its size is 8",
    ),
    "store": (
        "memref.store %f, %y[%i] : memref<4xf32>",
        (3, 4, -1),
        "memref.store: axis 0 of %y has no place 4, its size is 4",
    ),
    "subview": (
        f"%v = memref.subview %x[%i] [2] [2] : {X} to memref<2xf32, strided<[2], offset: ?>>",
        (5, 6, -1, (1 << 63) - 1),
        "memref.subview: the part from 6 on is not within axis 0 of %x, of size 8",
    ),
    "subview of a size": (
        f"%v = memref.subview %x[%c2] [%i] [1] : {X} to memref<?xf32, strided<[1], offset: ?>>",
        (6, 7, -1, (1 << 63) - 1),
        "memref.subview: the part from 2 on",
    ),
    "subview with steps": (
        f"%v = memref.subview %x[%c1] [%c3] [%i] : {X} to memref<?xf32, strided<[?], offset: ?>>",
        (3, 4, 0, -1, -(1 << 63)),
        "memref.subview: the part from 1 on",
    ),
    "reinterpret_cast": (
        f"%v = memref.reinterpret_cast %x to offset: [0], sizes: [2, 2], strides: [%i, 1] : {X} "
        "to memref<2x2xf32, strided<[?, 1]>>",
        (6, 7, -1, 1 << 62),
        "memref.reinterpret_cast: elements from 0 on do not all lie within %x",
    ),
    "reinterpret_cast of sizes": (
        f"%v = memref.reinterpret_cast %x to offset: [%i], sizes: [%i], strides: [1] : {X} "
        "to memref<?xf32, strided<[1], offset: ?>>",
        (4, 5, -1, 1 << 60),
        "memref.reinterpret_cast: elements from 5 on do not all lie within %x",
    ),
    "cast": (
        f"%p = memref.subview %x[0] [%i] [1] : {X} to memref<?xf32, strided<[1]>>\n"
        "%v = memref.cast %p : memref<?xf32, strided<[1]>> to memref<4xf32, strided<[1]>>",
        (4, 3, 5),
        "memref.cast: axis 0 of %p has size 3, not 4",
    ),
    "expand_shape": (
        f"%v = memref.expand_shape %x [[0, 1]] output_shape [%i, 2] : {X} into memref<?x2xf32>",
        (4, 3, 5, -4, 1 << 62),
        "memref.expand_shape: axis 0 of %x has size 8, not 6",
    ),
    "copy": (
        f"%p = memref.subview %x[0] [%i] [1] : {X} to memref<?xf32, strided<[1]>>\n"
        "%q = memref.subview %y[0] [%c4] [1] : memref<4xf32> to memref<?xf32, strided<[1]>>\n"
        "memref.copy %p, %q : memref<?xf32, strided<[1]>> to memref<?xf32, strided<[1]>>",
        (4, 3, 5),
        "memref.copy: a size of 3 meets one of 4",
    ),
    "loop": (
        "scf.for %k = %c0 to %c4 step %i {\nmemref.store %f, %y[%k] : memref<4xf32>\n}",
        (2, 0, -1, 1 << 62),
        "scf.for: it goes on by 0",
    ),
    "bounds of a loop": (
        "scf.for %k = %i to %c4 step %c1 {\nmemref.store %f, %y[%k] : memref<4xf32>\n}",
        (2, -(1 << 63), -1),
        "scf.for: a bound of -9223372036854775808 is too far away",
    ),
}

KERNELS = {
    "vector.load": (
        "%v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>\n"
        "vector.store %v, %y[%c0] : memref<4xf32>, vector<4xf32>",
        (4, 5, -1, (1 << 63) - 1),
        "vector.load: axis 0 of %x has no places 5 and the 3 after it, its size is 8",
    ),
    "vector.store": (
        "%v = vector.load %x[%c0] : memref<?xf32>, vector<4xf32>\n"
        "vector.store %v, %y[%i] : memref<4xf32>, vector<4xf32>",
        (0, 1, -1),
        "vector.store: axis 0 of %y has no places 1 and the 3 after it, its size is 4",
    ),
    "past the caches": (
        "%v = vector.load %x[%c0] : memref<?xf32>, vector<2xf32>\n"
        "vector.store %v, %y[%i] {nontemporal = true} : memref<4xf32>, vector<2xf32>",
        (1, 3, -1),
        "vector.store: axis 0 of %y has no places 3 and the 1 after it",
    ),
    "masked": (
        "%m = vector.create_mask %i : vector<8xi1>\n"
        "%o = arith.constant dense<0.0> : vector<8xf32>\n"
        "%v = vector.maskedload %x[%c1], %m, %o : memref<?xf32>, vector<8xi1>, vector<8xf32> "
        "into vector<8xf32>\n"
        "%k = vector.extract %v[0] : f32 from vector<8xf32>\n"
        "memref.store %k, %y[%c0] : memref<4xf32>",
        (7, 8, 100),
        "vector.maskedload: axis 0 of %x has no places 1 and the 7 after it",
    ),
    "masked store": (
        "%m = vector.create_mask %i : vector<8xi1>\n"
        "%o = arith.constant dense<2.0> : vector<8xf32>\n"
        "vector.maskedstore %y[%c2], %m, %o : memref<4xf32>, vector<8xi1>, vector<8xf32>",
        (2, 3),
        "vector.maskedstore: axis 0 of %y has no places 2 and the 7 after it",
    ),
    "lane": (
        "%v = vector.load %x[%c0] : memref<?xf32>, vector<4xf32>\n"
        "%w = vector.insert %f, %v [%i] : f32 into vector<4xf32>\n"
        "%k = vector.extract %w[%i] : f32 from vector<4xf32>\n"
        "memref.store %k, %y[%c0] : memref<4xf32>",
        (3, 4, -1, 1 << 40),
        "vector.insert: the vector has no lane 4, it has 4",
    ),
    "in parallel": (
        "scf.parallel (%k) = (%c0) to (%c4) step (%c1) {\n"
        "%m = arith.addi %k, %i : index\n"
        "%v = memref.load %x[%m] : memref<?xf32>\n"
        "memref.store %v, %y[%k] : memref<4xf32>\nscf.reduce\n}",
        (4, 5, -1),  # one iteration alone is refused: threads may come to others in any order
        "memref.load: axis 0 of %x has no place 8, its size is 8",
    ),
    "collapse_shape": (
        "%p = memref.reinterpret_cast %x to offset: [0], sizes: [2, 2], strides: [%i, 1] : "
        "memref<?xf32> to memref<2x2xf32, strided<[?, 1]>>\n"
        "%q = memref.collapse_shape %p [[0, 1]] : memref<2x2xf32, strided<[?, 1]>> "
        "into memref<4xf32, strided<[1]>>\n"
        "%v = memref.load %q[%c3] : memref<4xf32, strided<[1]>>\n"
        "memref.store %v, %y[%c0] : memref<4xf32>",
        (2, 1, 3),
        "memref.collapse_shape: axis 0 of %p has stride 1, not 2",
    ),
    "bytes": (
        "%p = memref.view %b[%i][] : memref<64xi8> to memref<4xf32>\n"
        "%v = memref.load %p[%c3] : memref<4xf32>\n"
        "memref.store %v, %y[%c0] : memref<4xf32>",
        (48, 49, -4, 1 << 62),
        "memref.view: bytes from 49 on do not all lie within %b, of size 64",
    ),
    "bytes that are not aligned": (
        "%p = memref.view %b[%i][] : memref<64xi8> to memref<4xf32>\n"
        "%v = memref.load %p[%c3] : memref<4xf32>\n"
        "memref.store %v, %y[%c0] : memref<4xf32>",
        (4, 5),
        "memref.view: byte 5 is no place for elements of 4 bytes",
    ),
    "scratch": (
        "%t = memref.alloca() : memref<4xf32>\n"
        "%v = memref.load %t[%i] : memref<4xf32>\n"
        "memref.store %f, %t[%c0] : memref<4xf32>\n"
        "memref.store %f, %y[%c0] : memref<4xf32>",
        (3, 4),
        "memref.load: axis 0 of %t has no place 4, its size is 4",
    ),
}
