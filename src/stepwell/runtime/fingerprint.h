/* fingerprint(buffer): what tells the bytes of large arrays apart, read once by all threads.

   Each run of RUN bytes is folded into eight numbers as XXH3 does it: a product of the two halves
   of each word, and the word itself added to its neighbour, so that no product of zero loses one.
   Every ROUND bytes the sums are mixed. It holds against chance, not against someone who looks
   for two arrays alike; whoever can choose the weights needs no such trick. */
#ifndef STEPWELL_FINGERPRINT_H
#define STEPWELL_FINGERPRINT_H

#include "call.h"

enum { SW_RUN = 256 << 10, SW_ROUND = 1024, SW_STRIPE = 64 };

typedef uint64_t sw_pair __attribute__((vector_size(16)));

static const uint64_t sw_secret[24] = { /* those of XXH3 */
    0xbe4ba423396cfeb8u, 0x1cad21f72c81017cu, 0xdb979083e96dd4deu, 0x1f67b3b7a4a44072u,
    0x78e5c0cc4ee679cbu, 0x2172ffcc7dd05a82u, 0x8e2443f7744608b8u, 0x4c263a81e69035e0u,
    0xcb00c391bb52283cu, 0xa32e531b8b65d088u, 0x4ef90da297486471u, 0xd8acdea946ef1938u,
    0x3f349ce33f76faa8u, 0x1d4f0bc7c7bbdcf9u, 0x3159b4cd4be0518au, 0x647378d9c97e9fc8u,
    0xc3ebd33483acc5eau, 0xeb6313faffa081c5u, 0x49daf0b751dd0d17u, 0x9e68d429265516d3u,
    0xfca1477d58be162bu, 0xce31d07ad1b8f88fu, 0x280416958f3acb45u, 0x7e404bbbcafbd7afu};

static inline sw_pair sw_halves(sw_pair k) { /* the product of each word's halves */
#if defined(__SSE2__) && !defined(__clang__) /* which gcc does not find by itself */
  typedef int quad __attribute__((vector_size(16)));
  return (sw_pair)__builtin_ia32_pmuludq128((quad)k, (quad)(k >> 32));
#else
  return (k & 0xffffffffu) * (k >> 32);
#endif
}

static void sw_fold(sw_pair sums[4], const char *p, const uint64_t *secret) {
  for (int i = 0; i < 4; i++) {
    sw_pair word, key;
    memcpy(&word, p + 16 * i, 16);
    memcpy(&key, secret + 2 * i, 16);
    sums[i] += (sw_pair){word[1], word[0]} + sw_halves(word ^ key);
  }
}

static void sw_round(sw_pair sums[4], const char *p) {
  for (int s = 0; s < SW_ROUND / SW_STRIPE; s++) sw_fold(sums, p + SW_STRIPE * s, sw_secret + s);
  for (int i = 0; i < 4; i++) {
    sw_pair key;
    memcpy(&key, sw_secret + 16 + 2 * i, 16);
    sums[i] = (sums[i] ^ sums[i] >> 47 ^ key) * 0x9E3779B1u;
  }
}

typedef struct {
  const char *data;
  int64_t bytes;
  char *sums; /* SW_STRIPE bytes for each run */
} sw_print;

static void sw_print_runs(void *ctx, int64_t begin, int64_t end) {
  sw_print *print = ctx;
  for (int64_t run = begin; run < end; run++) {
    const char *p = print->data + run * SW_RUN;
    int64_t left = print->bytes - run * SW_RUN;
    if (left > SW_RUN) left = SW_RUN;
    sw_pair sums[4];
    memcpy(sums, sw_secret, sizeof sums);
    for (; left >= SW_ROUND; left -= SW_ROUND, p += SW_ROUND) sw_round(sums, p);
    if (left) { /* zeros after the end: the number of bytes is told apart by who asks */
      char rest[SW_ROUND] = {0};
      memcpy(rest, p, (size_t)left);
      sw_round(sums, rest);
    }
    memcpy(print->sums + run * SW_STRIPE, sums, sizeof sums);
  }
}

static PyObject *fingerprint(PyObject *module, PyObject *of) {
  (void)module;
  Py_buffer buffer;
  if (PyObject_GetBuffer(of, &buffer, PyBUF_SIMPLE) < 0) return NULL;
  int64_t runs = (buffer.len + SW_RUN - 1) / SW_RUN;
  PyObject *sums = PyBytes_FromStringAndSize(NULL, runs * SW_STRIPE);
  if (sums != NULL) {
    sw_print print = {buffer.buf, buffer.len, PyBytes_AS_STRING(sums)};
    Py_BEGIN_ALLOW_THREADS
    sw_parallel(&sw_shared, sw_print_runs, &print, runs, 2);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&buffer);
  return sums;
}

#endif
