/* The instructions for tiles of x86 in plain C, as Intel's manual says what they do. A tile that is
   not configured for what is asked of it ends the program. */
#include <stdlib.h>
#include <string.h>

#define SW_TILES_EMULATED
#define __AMX_TILE__ 1
#define __AMX_INT8__ 1
#define __AMX_BF16__ 1

static unsigned char tile_rows[8], tile_bytes[8], tile[8][16][64];
static int tiles_configured;
extern int tile_instructions;
int tile_instructions;

static void configure(const unsigned char *c) {
  if (c[0] != 1 || c[1]) abort();
  for (int n = 2; n < 16; n++)
    if (c[n]) abort();
  for (int t = 0; t < 8; t++) {
    tile_bytes[t] = c[16 + 2 * t];
    tile_rows[t] = c[48 + t];
    if (c[17 + 2 * t] || tile_bytes[t] > 64 || tile_rows[t] > 16) abort();
  }
  memset(tile, 0, sizeof tile);
  tiles_configured = 1;
}

static void tile_load(int t, const void *p, long long stride) {
  if (!tiles_configured || !tile_rows[t]) abort();
  memset(tile[t], 0, sizeof tile[t]);
  for (int r = 0; r < tile_rows[t]; r++) memcpy(tile[t][r], (const char *)p + r * stride, tile_bytes[t]);
}

static void tile_store(int t, void *p, long long stride) {
  if (!tiles_configured || !tile_rows[t]) abort();
  for (int r = 0; r < tile_rows[t]; r++) memcpy((char *)p + r * stride, tile[t][r], tile_bytes[t]);
}

static void shapes(int z, int x, int w) {
  if (!tiles_configured || tile_rows[z] != tile_rows[x] || tile_bytes[z] != tile_bytes[w]) abort();
  if (tile_bytes[x] != 4 * tile_rows[w] || !tile_rows[w]) abort();
  tile_instructions++;
}

#define BYTES(NAME, X, W)                                                                 \
  static void NAME(int z, int x, int w) {                                                 \
    shapes(z, x, w);                                                                      \
    for (int m = 0; m < tile_rows[z]; m++)                                                \
      for (int k = 0; k < tile_rows[w]; k++)                                              \
        for (int n = 0; n < tile_bytes[z] / 4; n++) {                                     \
          unsigned sum;                                                                   \
          memcpy(&sum, &tile[z][m][4 * n], 4);                                            \
          for (int j = 0; j < 4; j++)                                                     \
            sum += (unsigned)((int)(X)tile[x][m][4 * k + j] * (int)(W)tile[w][k][4 * n + j]); \
          memcpy(&tile[z][m][4 * n], &sum, 4);                                            \
        }                                                                                 \
  }
BYTES(tdpbssd, signed char, signed char)
BYTES(tdpbsud, signed char, unsigned char)
BYTES(tdpbusd, unsigned char, signed char)
BYTES(tdpbuud, unsigned char, unsigned char)

static float half(const unsigned char *p) {
  unsigned bits = (unsigned)p[0] << 16 | (unsigned)p[1] << 24;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

static void tdpbf16ps(int z, int x, int w) {
  shapes(z, x, w);
  for (int m = 0; m < tile_rows[z]; m++)
    for (int k = 0; k < tile_rows[w]; k++)
      for (int n = 0; n < tile_bytes[z] / 4; n++) {
        float sum;
        memcpy(&sum, &tile[z][m][4 * n], 4);
        for (int j = 0; j < 2; j++)
          sum += half(&tile[x][m][4 * k + 2 * j]) * half(&tile[w][k][4 * n + 2 * j]);
        memcpy(&tile[z][m][4 * n], &sum, 4);
      }
}

#define SW_TILE_CONFIGURE(c) configure(c)
#define SW_TILE_LOAD(t, p, s) tile_load(t, p, s)
#define SW_TILE_STORE(t, p, s) tile_store(t, p, s)
#define SW_TILE_DOT(i, z, x, w) i(z, x, w)
#define SW_TILE_ZERO(t) (tiles_configured ? memset(tile[t], 0, sizeof tile[t]) : (abort(), (void *)0))
#define SW_TILE_RELEASE() (tiles_configured = 0)
