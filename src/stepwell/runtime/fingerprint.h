/* fingerprint(buffer, key): keyed checksums of large arrays, read once by all threads.

   Each block of SW_BLOCK bytes is summed as in UMAC's NH: the two halves of each word, each plus a
   number of the key, are multiplied, and the products are added; twice, the second time with the
   key shifted by 16 bytes. Without the key, two different blocks have the same sums with
   probability at most 2^-64 (Black et al., UMAC, 1999: NH with a Toeplitz key), for any blocks. The
   caller computes a cryptographic digest of all sums and of the number of bytes. */
#ifndef STEPWELL_FINGERPRINT_H
#define STEPWELL_FINGERPRINT_H

#include "call.h"

enum {
  SW_BLOCK = 8 << 10,
  SW_STRIPE = 64,
  SW_SUMS = 16,            /* bytes of a block's two sums */
  SW_RUN = 32,             /* minimum number of blocks per thread */
  SW_KEY = SW_BLOCK + 16
};

typedef uint64_t sw_pair __attribute__((vector_size(16)));
typedef uint32_t sw_quad __attribute__((vector_size(16)));

static inline sw_pair sw_halves(sw_quad k) { /* the product of each word's halves */
  const sw_pair pair = (sw_pair)k;
#if defined(__SSE2__) && !defined(__clang__) /* gcc does not find this instruction itself */
  typedef int quad __attribute__((vector_size(16)));
  return (sw_pair)__builtin_ia32_pmuludq128((quad)pair, (quad)(pair >> 32));
#else
  return (pair & 0xffffffffu) * (pair >> 32);
#endif
}

static inline sw_quad sw_load(const char *p) {
  sw_quad word;
  memcpy(&word, p, sizeof word);
  return word;
}

static void sw_sum_block(const char *p, const char *key, char *sums) {
  sw_pair first[4] = {{0}}, second[4] = {{0}};
  for (int at = 0; at < SW_BLOCK; at += SW_STRIPE)
    for (int i = 0; i < 4; i++) {
      const sw_quad word = sw_load(p + at + 16 * i);
      first[i] += sw_halves(word + sw_load(key + at + 16 * i));
      second[i] += sw_halves(word + sw_load(key + at + 16 * i + 16));
    }
  const sw_pair a = first[0] + first[1] + first[2] + first[3];
  const sw_pair b = second[0] + second[1] + second[2] + second[3];
  const uint64_t both[2] = {a[0] + a[1], b[0] + b[1]};
  memcpy(sums, both, sizeof both);
}

typedef struct {
  const char *data, *key;
  int64_t bytes;
  char *sums;
} sw_fingerprinted;

static void sw_fingerprint_blocks(void *ctx, int64_t begin, int64_t end) {
  sw_fingerprinted *given = ctx;
  for (int64_t block = begin; block < end; block++) {
    const char *p = given->data + block * SW_BLOCK;
    const int64_t left = given->bytes - block * SW_BLOCK;
    char rest[SW_BLOCK];
    if (left < SW_BLOCK) { /* padded with zeros: the caller's digest includes the number of bytes */
      memset(rest, 0, sizeof rest);
      memcpy(rest, p, (size_t)left);
      p = rest;
    }
    sw_sum_block(p, given->key, given->sums + block * SW_SUMS);
  }
}

static PyObject *fingerprint(PyObject *module, PyObject *args) {
  (void)module;
  Py_buffer buffer, key;
  if (!PyArg_ParseTuple(args, "y*y*", &buffer, &key)) return NULL;
  PyObject *sums = NULL;
  if (key.len != SW_KEY) {
    PyErr_Format(PyExc_ValueError, "a key has %d bytes", (int)SW_KEY);
  } else {
    int64_t blocks = (buffer.len + SW_BLOCK - 1) / SW_BLOCK;
    sums = PyBytes_FromStringAndSize(NULL, blocks * SW_SUMS);
    if (sums != NULL) {
      sw_fingerprinted given = {buffer.buf, key.buf, buffer.len, PyBytes_AS_STRING(sums)};
      Py_BEGIN_ALLOW_THREADS
      sw_parallel(&sw_shared, sw_fingerprint_blocks, &given, blocks, 2 * SW_RUN);
      Py_END_ALLOW_THREADS
    }
  }
  PyBuffer_Release(&buffer);
  PyBuffer_Release(&key);
  return sums;
}

#endif
