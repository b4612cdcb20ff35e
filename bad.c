/* lambda, written by Stepwell. Trailing comments name the source lines.
 * GNU C11: cc -shared -fPIC -O2 -march=native -fno-math-errno program.c -lm */

typedef __INT64_TYPE__ int64_t;
typedef __INT8_TYPE__ int8_t;
typedef int8_t i8x16 __attribute__((vector_size(16)));
typedef int8_t i8x16_u __attribute__((vector_size(16), aligned(1), may_alias));
typedef __INT16_TYPE__ int16_t;
typedef float f32x16 __attribute__((vector_size(64)));
typedef float f32x16_u __attribute__((vector_size(64), aligned(4), may_alias));
typedef int16_t i16x16 __attribute__((vector_size(32)));
typedef int16_t i16x16_u __attribute__((vector_size(32), aligned(2), may_alias));
typedef __UINT8_TYPE__ uint8_t;
typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef uint8_t u8x16_u __attribute__((vector_size(16), aligned(1), may_alias));
typedef __UINT32_TYPE__ uint32_t;
typedef uint32_t u32x16 __attribute__((vector_size(64)));
typedef uint32_t u32x16_u __attribute__((vector_size(64), aligned(4), may_alias));
typedef __INT32_TYPE__ int32_t;
typedef int32_t i32x16 __attribute__((vector_size(64)));
typedef int32_t i32x16_u __attribute__((vector_size(64), aligned(4), may_alias));
typedef __UINT64_TYPE__ uint64_t;
typedef __UINT16_TYPE__ uint16_t;
typedef uint16_t u16x16 __attribute__((vector_size(32)));
typedef uint16_t u16x16_u __attribute__((vector_size(32), aligned(2), may_alias));

struct sw_runtime {
  void (*parallel)(const struct sw_runtime *rt,
                   void (*body)(void *context, int64_t begin, int64_t end),
                   void *context, int64_t n, int64_t grain);
  int32_t threads;
};

#if defined(__has_builtin)
#define SW_HAS(builtin) __has_builtin(builtin)
#else
#define SW_HAS(builtin) 0
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

static inline i8x16 sw_splat_i8x16(int8_t x) {
  return x - (i8x16){0};
}

static inline f32x16 sw_splat_f32x16(float x) {
  return x - (f32x16){0};
}

static inline i16x16 sw_splat_i16x16(int16_t x) {
  return x - (i16x16){0};
}

static inline u8x16 sw_held_u8x16(u8x16 x) {
#if defined(__AVX512VL__)
  __asm__("" : "+v"(x));
#elif defined(__SSE2__)
  __asm__("" : "+x"(x));
#elif defined(__aarch64__)
  __asm__("" : "+w"(x));
#endif
  return x;
}

static inline int64_t sw_divui_i64(int64_t x, int64_t y) {
  return y == 0 ? 0 : (int64_t)((uint64_t)x / (uint64_t)y);
}

static inline i32x16 sw_splat_i32x16(int32_t x) {
  return x - (i32x16){0};
}

static inline i32x16 sw_select_i32x16(i32x16 m, i32x16 x, i32x16 y) {
  return (i32x16)((m & (i32x16)x) | (~m & (i32x16)y));
}

static inline f32x16 sw_select_f32x16(i32x16 m, f32x16 x, f32x16 y) {
  return (f32x16)((m & (i32x16)x) | (~m & (i32x16)y));
}

static inline i32x16 sw_i32x16_from_f32x16(f32x16 x) {
  const i32x16 high = ((i32x16)(x >= 0x1p31f));
  const i32x16 low = ((i32x16)(x < -0x1p31f));
  const f32x16 safe = sw_select_f32x16((high | low | ((i32x16)(x != x))), sw_splat_f32x16(0), x);
  return sw_select_i32x16(high, sw_splat_i32x16(2147483647), sw_select_i32x16(low, sw_splat_i32x16((-2147483647 - 1)), __builtin_convertvector(safe, i32x16)));
}

/* kernel lambda_pack, from i16b.py:9-11 */
static void kernel_lambda_pack(const int8_t *weight, int8_t *packed) {
  for (int64_t k = 0; k < 7; k++) {  // i16b.py:9-11
    *(i8x16_u *)&packed[k * 32] = sw_splat_i8x16(0);  // i16b.py:9-11
    *(i8x16_u *)&packed[k * 32 + 16] = sw_splat_i8x16(0);  // i16b.py:9-11
    const i8x16 weight_1 = *(const i8x16_u *)&weight[k * 31];  // i16b.py:9-11
    *(i8x16_u *)&packed[k * 32] = weight_1;  // i16b.py:9-11
    for (int64_t j = 16; j < 31; j++) {  // i16b.py:9-11
      const int8_t weight_2 = weight[k * 31 + j];  // i16b.py:9-11
      packed[k * 32 + j] = weight_2;  // i16b.py:9-11
    }
  }
}

struct kernel_lambda_matmul_body_context { const int8_t *x; const int8_t *weight_packed; int16_t *matmul; };
static void kernel_lambda_matmul_body(void *context, int64_t begin, int64_t end) {
  const struct kernel_lambda_matmul_body_context *const captured = context;  // i16b.py:9-11
  const int8_t *const x = captured->x;  // i16b.py:9-11
  const int8_t *const weight_packed = captured->weight_packed;  // i16b.py:9-11
  int16_t *const matmul = captured->matmul;  // i16b.py:9-11
  for (int64_t p = begin; p < end; p++) {  // i16b.py:9-11
    const int64_t p_1 = p * 72;  // i16b.py:9-11
    const int64_t p_2 = p_1 + 72;  // i16b.py:9-11
    const int64_t v1 = (p_2 < 64) ? p_2 : 64;  // i16b.py:9-11
    float packed[560] __attribute__((aligned(64)));  // i16b.py:9-11
    const int64_t p_3 = p_1 + 80;  // i16b.py:9-11
    const _Bool v2 = p_3 <= 64;  // i16b.py:9-11
    if (v2) {  // i16b.py:9-11
      for (int64_t k = 0; k < 7; k++) {  // i16b.py:9-11
        const i8x16 x_1 = *(const i8x16_u *)&x[k * 64 + p_1];  // i16b.py:9-11
        const i32x16 x_2 = (i32x16)__builtin_convertvector(sw_held_u8x16(((u8x16)x_1)), u32x16);  // i16b.py:9-11
        const f32x16 x_3 = __builtin_convertvector(x_2, f32x16);  // i16b.py:9-11
        const i8x16 x_4 = *(const i8x16_u *)&x[k * 64 + p_1 + 16];  // i16b.py:9-11
        const i32x16 x_5 = (i32x16)__builtin_convertvector(sw_held_u8x16(((u8x16)x_4)), u32x16);  // i16b.py:9-11
        const f32x16 x_6 = __builtin_convertvector(x_5, f32x16);  // i16b.py:9-11
        const i8x16 x_7 = *(const i8x16_u *)&x[k * 64 + p_1 + 32];  // i16b.py:9-11
        const i32x16 x_8 = (i32x16)__builtin_convertvector(sw_held_u8x16(((u8x16)x_7)), u32x16);  // i16b.py:9-11
        const f32x16 x_9 = __builtin_convertvector(x_8, f32x16);  // i16b.py:9-11
        const i8x16 x_10 = *(const i8x16_u *)&x[k * 64 + p_1 + 48];  // i16b.py:9-11
        const i32x16 x_11 = (i32x16)__builtin_convertvector(sw_held_u8x16(((u8x16)x_10)), u32x16);  // i16b.py:9-11
        const f32x16 x_12 = __builtin_convertvector(x_11, f32x16);  // i16b.py:9-11
        const i8x16 x_13 = *(const i8x16_u *)&x[k * 64 + p_1 + 64];  // i16b.py:9-11
        const i32x16 x_14 = (i32x16)__builtin_convertvector(sw_held_u8x16(((u8x16)x_13)), u32x16);  // i16b.py:9-11
        const f32x16 x_15 = __builtin_convertvector(x_14, f32x16);  // i16b.py:9-11
        *(f32x16_u *)&packed[k * 80] = x_3;  // i16b.py:9-11
        *(f32x16_u *)&packed[k * 80 + 16] = x_6;  // i16b.py:9-11
        *(f32x16_u *)&packed[k * 80 + 32] = x_9;  // i16b.py:9-11
        *(f32x16_u *)&packed[k * 80 + 48] = x_12;  // i16b.py:9-11
        *(f32x16_u *)&packed[k * 80 + 64] = x_15;  // i16b.py:9-11
      }
    } else {
      for (int64_t k_1 = 0; k_1 < 7; k_1++) {  // i16b.py:9-11
        *(f32x16_u *)&packed[k_1 * 80] = sw_splat_f32x16(0.0f);  // i16b.py:9-11
        *(f32x16_u *)&packed[k_1 * 80 + 16] = sw_splat_f32x16(0.0f);  // i16b.py:9-11
        *(f32x16_u *)&packed[k_1 * 80 + 32] = sw_splat_f32x16(0.0f);  // i16b.py:9-11
        *(f32x16_u *)&packed[k_1 * 80 + 48] = sw_splat_f32x16(0.0f);  // i16b.py:9-11
        *(f32x16_u *)&packed[k_1 * 80 + 64] = sw_splat_f32x16(0.0f);  // i16b.py:9-11
        const int64_t p_8 = p * (-72);  // i16b.py:9-11
        const int64_t p_9 = p_8 + 64;  // i16b.py:9-11
        const int64_t v3 = sw_divui_i64(p_9, 16);  // i16b.py:9-11
        const int64_t v4 = v3 * 16;  // i16b.py:9-11
        for (int64_t j = 0; j < v4; j += 16) {  // i16b.py:9-11
          const int64_t v5 = p_1 + j;  // i16b.py:9-11
          const i8x16 x_16 = *(const i8x16_u *)&x[k_1 * 64 + v5];  // i16b.py:9-11
          const i32x16 x_17 = (i32x16)__builtin_convertvector(sw_held_u8x16(((u8x16)x_16)), u32x16);  // i16b.py:9-11
          const f32x16 x_18 = __builtin_convertvector(x_17, f32x16);  // i16b.py:9-11
          *(f32x16_u *)&packed[k_1 * 80 + j] = x_18;  // i16b.py:9-11
        }
        for (int64_t j_1 = v4; j_1 < p_9; j_1++) {  // i16b.py:9-11
          const int64_t v6 = p_1 + j_1;  // i16b.py:9-11
          const int8_t x_19 = x[k_1 * 64 + v6];  // i16b.py:9-11
          const int32_t x_20 = (int32_t)((uint32_t)((uint8_t)x_19));  // i16b.py:9-11
          const float x_21 = (float)x_20;  // i16b.py:9-11
          packed[k_1 * 80 + j_1] = x_21;  // i16b.py:9-11
        }
      }
    }
    int16_t sums[384] __attribute__((aligned(64)));  // i16b.py:9-11
    const int64_t v7 = v1 - p_1;  // i16b.py:9-11
    const int64_t v8 = sw_divui_i64(v7, 12);  // i16b.py:9-11
    const int64_t v9 = v8 * 12;  // i16b.py:9-11
    const int64_t v10 = p_1 + v9;  // i16b.py:9-11
    for (int64_t i = p_1; i < v10; i += 12) {  // i16b.py:9-11
      f32x16 matmul_1 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_2 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_3 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_4 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_5 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_6 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_7 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_8 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_9 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_10 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_11 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_12 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_13 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_14 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_15 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_16 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_17 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_18 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_19 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_20 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_21 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_22 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_23 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_24 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      for (int64_t k_2 = 0; k_2 < 7; k_2++) {  // i16b.py:9-11
        const int64_t v11 = i - p_1;  // i16b.py:9-11
        const float x_22 = packed[k_2 * 80 + v11];  // i16b.py:9-11
        const i8x16 weight = *(const i8x16_u *)&weight_packed[k_2 * 32];  // i16b.py:9-11
        const i8x16 weight_1 = *(const i8x16_u *)&weight_packed[k_2 * 32 + 16];  // i16b.py:9-11
        const float x_23 = packed[k_2 * 80 + v11 + 1];  // i16b.py:9-11
        const float x_24 = packed[k_2 * 80 + v11 + 2];  // i16b.py:9-11
        const float x_25 = packed[k_2 * 80 + v11 + 3];  // i16b.py:9-11
        const float x_26 = packed[k_2 * 80 + v11 + 4];  // i16b.py:9-11
        const float x_27 = packed[k_2 * 80 + v11 + 5];  // i16b.py:9-11
        const float x_28 = packed[k_2 * 80 + v11 + 6];  // i16b.py:9-11
        const float x_29 = packed[k_2 * 80 + v11 + 7];  // i16b.py:9-11
        const float x_30 = packed[k_2 * 80 + v11 + 8];  // i16b.py:9-11
        const float x_31 = packed[k_2 * 80 + v11 + 9];  // i16b.py:9-11
        const float x_32 = packed[k_2 * 80 + v11 + 10];  // i16b.py:9-11
        const float x_33 = packed[k_2 * 80 + v11 + 11];  // i16b.py:9-11
        const i32x16 v23 = (i32x16)__builtin_convertvector(sw_held_u8x16(((u8x16)weight)), u32x16);  // i16b.py:9-11
        const f32x16 v24 = __builtin_convertvector(v23, f32x16);  // i16b.py:9-11
        const f32x16 x_34 = sw_splat_f32x16(x_22);  // i16b.py:9-11
        const f32x16 v25 = x_34 * v24;  // i16b.py:9-11
        const f32x16 v26 = matmul_1 + v25;  // i16b.py:9-11
        const i32x16 v27 = (i32x16)__builtin_convertvector(sw_held_u8x16(((u8x16)weight_1)), u32x16);  // i16b.py:9-11
        const f32x16 v28 = __builtin_convertvector(v27, f32x16);  // i16b.py:9-11
        const f32x16 v29 = x_34 * v28;  // i16b.py:9-11
        const f32x16 v30 = matmul_2 + v29;  // i16b.py:9-11
        const f32x16 x_35 = sw_splat_f32x16(x_23);  // i16b.py:9-11
        const f32x16 v31 = x_35 * v24;  // i16b.py:9-11
        const f32x16 v32 = matmul_3 + v31;  // i16b.py:9-11
        const f32x16 v33 = x_35 * v28;  // i16b.py:9-11
        const f32x16 v34 = matmul_4 + v33;  // i16b.py:9-11
        const f32x16 x_36 = sw_splat_f32x16(x_24);  // i16b.py:9-11
        const f32x16 v35 = x_36 * v24;  // i16b.py:9-11
        const f32x16 v36 = matmul_5 + v35;  // i16b.py:9-11
        const f32x16 v37 = x_36 * v28;  // i16b.py:9-11
        const f32x16 v38 = matmul_6 + v37;  // i16b.py:9-11
        const f32x16 x_37 = sw_splat_f32x16(x_25);  // i16b.py:9-11
        const f32x16 v39 = x_37 * v24;  // i16b.py:9-11
        const f32x16 v40 = matmul_7 + v39;  // i16b.py:9-11
        const f32x16 v41 = x_37 * v28;  // i16b.py:9-11
        const f32x16 v42 = matmul_8 + v41;  // i16b.py:9-11
        const f32x16 x_38 = sw_splat_f32x16(x_26);  // i16b.py:9-11
        const f32x16 v43 = x_38 * v24;  // i16b.py:9-11
        const f32x16 v44 = matmul_9 + v43;  // i16b.py:9-11
        const f32x16 v45 = x_38 * v28;  // i16b.py:9-11
        const f32x16 v46 = matmul_10 + v45;  // i16b.py:9-11
        const f32x16 x_39 = sw_splat_f32x16(x_27);  // i16b.py:9-11
        const f32x16 v47 = x_39 * v24;  // i16b.py:9-11
        const f32x16 v48 = matmul_11 + v47;  // i16b.py:9-11
        const f32x16 v49 = x_39 * v28;  // i16b.py:9-11
        const f32x16 v50 = matmul_12 + v49;  // i16b.py:9-11
        const f32x16 x_40 = sw_splat_f32x16(x_28);  // i16b.py:9-11
        const f32x16 v51 = x_40 * v24;  // i16b.py:9-11
        const f32x16 v52 = matmul_13 + v51;  // i16b.py:9-11
        const f32x16 v53 = x_40 * v28;  // i16b.py:9-11
        const f32x16 v54 = matmul_14 + v53;  // i16b.py:9-11
        const f32x16 x_41 = sw_splat_f32x16(x_29);  // i16b.py:9-11
        const f32x16 v55 = x_41 * v24;  // i16b.py:9-11
        const f32x16 v56 = matmul_15 + v55;  // i16b.py:9-11
        const f32x16 v57 = x_41 * v28;  // i16b.py:9-11
        const f32x16 v58 = matmul_16 + v57;  // i16b.py:9-11
        const f32x16 x_42 = sw_splat_f32x16(x_30);  // i16b.py:9-11
        const f32x16 v59 = x_42 * v24;  // i16b.py:9-11
        const f32x16 v60 = matmul_17 + v59;  // i16b.py:9-11
        const f32x16 v61 = x_42 * v28;  // i16b.py:9-11
        const f32x16 v62 = matmul_18 + v61;  // i16b.py:9-11
        const f32x16 x_43 = sw_splat_f32x16(x_31);  // i16b.py:9-11
        const f32x16 v63 = x_43 * v24;  // i16b.py:9-11
        const f32x16 v64 = matmul_19 + v63;  // i16b.py:9-11
        const f32x16 v65 = x_43 * v28;  // i16b.py:9-11
        const f32x16 v66 = matmul_20 + v65;  // i16b.py:9-11
        const f32x16 x_44 = sw_splat_f32x16(x_32);  // i16b.py:9-11
        const f32x16 v67 = x_44 * v24;  // i16b.py:9-11
        const f32x16 v68 = matmul_21 + v67;  // i16b.py:9-11
        const f32x16 v69 = x_44 * v28;  // i16b.py:9-11
        const f32x16 v70 = matmul_22 + v69;  // i16b.py:9-11
        const f32x16 x_45 = sw_splat_f32x16(x_33);  // i16b.py:9-11
        const f32x16 v71 = x_45 * v24;  // i16b.py:9-11
        const f32x16 v72 = matmul_23 + v71;  // i16b.py:9-11
        const f32x16 v73 = x_45 * v28;  // i16b.py:9-11
        const f32x16 v74 = matmul_24 + v73;  // i16b.py:9-11
        matmul_1 = v26;  // i16b.py:9-11
        matmul_2 = v30;  // i16b.py:9-11
        matmul_3 = v32;  // i16b.py:9-11
        matmul_4 = v34;  // i16b.py:9-11
        matmul_5 = v36;  // i16b.py:9-11
        matmul_6 = v38;  // i16b.py:9-11
        matmul_7 = v40;  // i16b.py:9-11
        matmul_8 = v42;  // i16b.py:9-11
        matmul_9 = v44;  // i16b.py:9-11
        matmul_10 = v46;  // i16b.py:9-11
        matmul_11 = v48;  // i16b.py:9-11
        matmul_12 = v50;  // i16b.py:9-11
        matmul_13 = v52;  // i16b.py:9-11
        matmul_14 = v54;  // i16b.py:9-11
        matmul_15 = v56;  // i16b.py:9-11
        matmul_16 = v58;  // i16b.py:9-11
        matmul_17 = v60;  // i16b.py:9-11
        matmul_18 = v62;  // i16b.py:9-11
        matmul_19 = v64;  // i16b.py:9-11
        matmul_20 = v66;  // i16b.py:9-11
        matmul_21 = v68;  // i16b.py:9-11
        matmul_22 = v70;  // i16b.py:9-11
        matmul_23 = v72;  // i16b.py:9-11
        matmul_24 = v74;  // i16b.py:9-11
      }
      const i32x16 v75 = sw_i32x16_from_f32x16(matmul_1);  // i16b.py:9-11
      const i16x16 v76 = __builtin_convertvector(v75, i16x16);  // i16b.py:9-11
      const i32x16 v77 = sw_i32x16_from_f32x16(matmul_2);  // i16b.py:9-11
      const i16x16 v78 = __builtin_convertvector(v77, i16x16);  // i16b.py:9-11
      const i32x16 v79 = sw_i32x16_from_f32x16(matmul_3);  // i16b.py:9-11
      const i16x16 v80 = __builtin_convertvector(v79, i16x16);  // i16b.py:9-11
      const i32x16 v81 = sw_i32x16_from_f32x16(matmul_4);  // i16b.py:9-11
      const i16x16 v82 = __builtin_convertvector(v81, i16x16);  // i16b.py:9-11
      const i32x16 v83 = sw_i32x16_from_f32x16(matmul_5);  // i16b.py:9-11
      const i16x16 v84 = __builtin_convertvector(v83, i16x16);  // i16b.py:9-11
      const i32x16 v85 = sw_i32x16_from_f32x16(matmul_6);  // i16b.py:9-11
      const i16x16 v86 = __builtin_convertvector(v85, i16x16);  // i16b.py:9-11
      const i32x16 v87 = sw_i32x16_from_f32x16(matmul_7);  // i16b.py:9-11
      const i16x16 v88 = __builtin_convertvector(v87, i16x16);  // i16b.py:9-11
      const i32x16 v89 = sw_i32x16_from_f32x16(matmul_8);  // i16b.py:9-11
      const i16x16 v90 = __builtin_convertvector(v89, i16x16);  // i16b.py:9-11
      const i32x16 v91 = sw_i32x16_from_f32x16(matmul_9);  // i16b.py:9-11
      const i16x16 v92 = __builtin_convertvector(v91, i16x16);  // i16b.py:9-11
      const i32x16 v93 = sw_i32x16_from_f32x16(matmul_10);  // i16b.py:9-11
      const i16x16 v94 = __builtin_convertvector(v93, i16x16);  // i16b.py:9-11
      const i32x16 v95 = sw_i32x16_from_f32x16(matmul_11);  // i16b.py:9-11
      const i16x16 v96 = __builtin_convertvector(v95, i16x16);  // i16b.py:9-11
      const i32x16 v97 = sw_i32x16_from_f32x16(matmul_12);  // i16b.py:9-11
      const i16x16 v98 = __builtin_convertvector(v97, i16x16);  // i16b.py:9-11
      const i32x16 v99 = sw_i32x16_from_f32x16(matmul_13);  // i16b.py:9-11
      const i16x16 v100 = __builtin_convertvector(v99, i16x16);  // i16b.py:9-11
      const i32x16 v101 = sw_i32x16_from_f32x16(matmul_14);  // i16b.py:9-11
      const i16x16 v102 = __builtin_convertvector(v101, i16x16);  // i16b.py:9-11
      const i32x16 v103 = sw_i32x16_from_f32x16(matmul_15);  // i16b.py:9-11
      const i16x16 v104 = __builtin_convertvector(v103, i16x16);  // i16b.py:9-11
      const i32x16 v105 = sw_i32x16_from_f32x16(matmul_16);  // i16b.py:9-11
      const i16x16 v106 = __builtin_convertvector(v105, i16x16);  // i16b.py:9-11
      const i32x16 v107 = sw_i32x16_from_f32x16(matmul_17);  // i16b.py:9-11
      const i16x16 v108 = __builtin_convertvector(v107, i16x16);  // i16b.py:9-11
      const i32x16 v109 = sw_i32x16_from_f32x16(matmul_18);  // i16b.py:9-11
      const i16x16 v110 = __builtin_convertvector(v109, i16x16);  // i16b.py:9-11
      const i32x16 v111 = sw_i32x16_from_f32x16(matmul_19);  // i16b.py:9-11
      const i16x16 v112 = __builtin_convertvector(v111, i16x16);  // i16b.py:9-11
      const i32x16 v113 = sw_i32x16_from_f32x16(matmul_20);  // i16b.py:9-11
      const i16x16 v114 = __builtin_convertvector(v113, i16x16);  // i16b.py:9-11
      const i32x16 v115 = sw_i32x16_from_f32x16(matmul_21);  // i16b.py:9-11
      const i16x16 v116 = __builtin_convertvector(v115, i16x16);  // i16b.py:9-11
      const i32x16 v117 = sw_i32x16_from_f32x16(matmul_22);  // i16b.py:9-11
      const i16x16 v118 = __builtin_convertvector(v117, i16x16);  // i16b.py:9-11
      const i32x16 v119 = sw_i32x16_from_f32x16(matmul_23);  // i16b.py:9-11
      const i16x16 v120 = __builtin_convertvector(v119, i16x16);  // i16b.py:9-11
      const i32x16 v121 = sw_i32x16_from_f32x16(matmul_24);  // i16b.py:9-11
      const i16x16 v122 = __builtin_convertvector(v121, i16x16);  // i16b.py:9-11
      const i16x16 v123 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v76));  // i16b.py:9-11
      const i16x16 v124 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v78));  // i16b.py:9-11
      const i16x16 v125 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v80));  // i16b.py:9-11
      const i16x16 v126 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v82));  // i16b.py:9-11
      const i16x16 v127 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v84));  // i16b.py:9-11
      const i16x16 v128 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v86));  // i16b.py:9-11
      const i16x16 v129 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v88));  // i16b.py:9-11
      const i16x16 v130 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v90));  // i16b.py:9-11
      const i16x16 v131 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v92));  // i16b.py:9-11
      const i16x16 v132 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v94));  // i16b.py:9-11
      const i16x16 v133 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v96));  // i16b.py:9-11
      const i16x16 v134 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v98));  // i16b.py:9-11
      const i16x16 v135 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v100));  // i16b.py:9-11
      const i16x16 v136 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v102));  // i16b.py:9-11
      const i16x16 v137 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v104));  // i16b.py:9-11
      const i16x16 v138 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v106));  // i16b.py:9-11
      const i16x16 v139 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v108));  // i16b.py:9-11
      const i16x16 v140 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v110));  // i16b.py:9-11
      const i16x16 v141 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v112));  // i16b.py:9-11
      const i16x16 v142 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v114));  // i16b.py:9-11
      const i16x16 v143 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v116));  // i16b.py:9-11
      const i16x16 v144 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v118));  // i16b.py:9-11
      const i16x16 v145 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v120));  // i16b.py:9-11
      const i16x16 v146 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v122));  // i16b.py:9-11
      *(i16x16_u *)&sums[0] = v123;  // i16b.py:9-11
      *(i16x16_u *)&sums[16] = v124;  // i16b.py:9-11
      *(i16x16_u *)&sums[32] = v125;  // i16b.py:9-11
      *(i16x16_u *)&sums[48] = v126;  // i16b.py:9-11
      *(i16x16_u *)&sums[64] = v127;  // i16b.py:9-11
      *(i16x16_u *)&sums[80] = v128;  // i16b.py:9-11
      *(i16x16_u *)&sums[96] = v129;  // i16b.py:9-11
      *(i16x16_u *)&sums[112] = v130;  // i16b.py:9-11
      *(i16x16_u *)&sums[128] = v131;  // i16b.py:9-11
      *(i16x16_u *)&sums[144] = v132;  // i16b.py:9-11
      *(i16x16_u *)&sums[160] = v133;  // i16b.py:9-11
      *(i16x16_u *)&sums[176] = v134;  // i16b.py:9-11
      *(i16x16_u *)&sums[192] = v135;  // i16b.py:9-11
      *(i16x16_u *)&sums[208] = v136;  // i16b.py:9-11
      *(i16x16_u *)&sums[224] = v137;  // i16b.py:9-11
      *(i16x16_u *)&sums[240] = v138;  // i16b.py:9-11
      *(i16x16_u *)&sums[256] = v139;  // i16b.py:9-11
      *(i16x16_u *)&sums[272] = v140;  // i16b.py:9-11
      *(i16x16_u *)&sums[288] = v141;  // i16b.py:9-11
      *(i16x16_u *)&sums[304] = v142;  // i16b.py:9-11
      *(i16x16_u *)&sums[320] = v143;  // i16b.py:9-11
      *(i16x16_u *)&sums[336] = v144;  // i16b.py:9-11
      *(i16x16_u *)&sums[352] = v145;  // i16b.py:9-11
      *(i16x16_u *)&sums[368] = v146;  // i16b.py:9-11
      const int64_t i_1 = i + 12;  // i16b.py:9-11
      for (int64_t i_2 = i; i_2 < i_1; i_2++) {  // i16b.py:9-11
        const int64_t v147 = i_2 - i;  // i16b.py:9-11
        const i16x16 sum = *(const i16x16_u *)&sums[v147 * 32];  // i16b.py:9-11
        *(i16x16_u *)&matmul[i_2 * 31] = sum;  // i16b.py:9-11
        for (int64_t j_2 = 16; j_2 < 31; j_2++) {  // i16b.py:9-11
          const int16_t sum_1 = sums[v147 * 32 + j_2];  // i16b.py:9-11
          matmul[i_2 * 31 + j_2] = sum_1;  // i16b.py:9-11
        }
      }
    }
    for (int64_t i_3 = v10; i_3 < v1; i_3 += 4) {  // i16b.py:9-11
      f32x16 matmul_25 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_26 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_27 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_28 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_29 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_30 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_31 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      f32x16 matmul_32 = sw_splat_f32x16(0.0f);  // i16b.py:9-11
      for (int64_t k_3 = 0; k_3 < 7; k_3++) {  // i16b.py:9-11
        const int64_t v148 = i_3 - p_1;  // i16b.py:9-11
        const float x_46 = packed[k_3 * 80 + v148];  // i16b.py:9-11
        const i8x16 weight_2 = *(const i8x16_u *)&weight_packed[k_3 * 32];  // i16b.py:9-11
        const i8x16 weight_3 = *(const i8x16_u *)&weight_packed[k_3 * 32 + 16];  // i16b.py:9-11
        const float x_47 = packed[k_3 * 80 + v148 + 1];  // i16b.py:9-11
        const float x_48 = packed[k_3 * 80 + v148 + 2];  // i16b.py:9-11
        const float x_49 = packed[k_3 * 80 + v148 + 3];  // i16b.py:9-11
        const i32x16 v152 = (i32x16)__builtin_convertvector(sw_held_u8x16(((u8x16)weight_2)), u32x16);  // i16b.py:9-11
        const f32x16 v153 = __builtin_convertvector(v152, f32x16);  // i16b.py:9-11
        const f32x16 x_50 = sw_splat_f32x16(x_46);  // i16b.py:9-11
        const f32x16 v154 = x_50 * v153;  // i16b.py:9-11
        const f32x16 v155 = matmul_25 + v154;  // i16b.py:9-11
        const i32x16 v156 = (i32x16)__builtin_convertvector(sw_held_u8x16(((u8x16)weight_3)), u32x16);  // i16b.py:9-11
        const f32x16 v157 = __builtin_convertvector(v156, f32x16);  // i16b.py:9-11
        const f32x16 v158 = x_50 * v157;  // i16b.py:9-11
        const f32x16 v159 = matmul_26 + v158;  // i16b.py:9-11
        const f32x16 x_51 = sw_splat_f32x16(x_47);  // i16b.py:9-11
        const f32x16 v160 = x_51 * v153;  // i16b.py:9-11
        const f32x16 v161 = matmul_27 + v160;  // i16b.py:9-11
        const f32x16 v162 = x_51 * v157;  // i16b.py:9-11
        const f32x16 v163 = matmul_28 + v162;  // i16b.py:9-11
        const f32x16 x_52 = sw_splat_f32x16(x_48);  // i16b.py:9-11
        const f32x16 v164 = x_52 * v153;  // i16b.py:9-11
        const f32x16 v165 = matmul_29 + v164;  // i16b.py:9-11
        const f32x16 v166 = x_52 * v157;  // i16b.py:9-11
        const f32x16 v167 = matmul_30 + v166;  // i16b.py:9-11
        const f32x16 x_53 = sw_splat_f32x16(x_49);  // i16b.py:9-11
        const f32x16 v168 = x_53 * v153;  // i16b.py:9-11
        const f32x16 v169 = matmul_31 + v168;  // i16b.py:9-11
        const f32x16 v170 = x_53 * v157;  // i16b.py:9-11
        const f32x16 v171 = matmul_32 + v170;  // i16b.py:9-11
        matmul_25 = v155;  // i16b.py:9-11
        matmul_26 = v159;  // i16b.py:9-11
        matmul_27 = v161;  // i16b.py:9-11
        matmul_28 = v163;  // i16b.py:9-11
        matmul_29 = v165;  // i16b.py:9-11
        matmul_30 = v167;  // i16b.py:9-11
        matmul_31 = v169;  // i16b.py:9-11
        matmul_32 = v171;  // i16b.py:9-11
      }
      const i32x16 v172 = sw_i32x16_from_f32x16(matmul_25);  // i16b.py:9-11
      const i16x16 v173 = __builtin_convertvector(v172, i16x16);  // i16b.py:9-11
      const i32x16 v174 = sw_i32x16_from_f32x16(matmul_26);  // i16b.py:9-11
      const i16x16 v175 = __builtin_convertvector(v174, i16x16);  // i16b.py:9-11
      const i32x16 v176 = sw_i32x16_from_f32x16(matmul_27);  // i16b.py:9-11
      const i16x16 v177 = __builtin_convertvector(v176, i16x16);  // i16b.py:9-11
      const i32x16 v178 = sw_i32x16_from_f32x16(matmul_28);  // i16b.py:9-11
      const i16x16 v179 = __builtin_convertvector(v178, i16x16);  // i16b.py:9-11
      const i32x16 v180 = sw_i32x16_from_f32x16(matmul_29);  // i16b.py:9-11
      const i16x16 v181 = __builtin_convertvector(v180, i16x16);  // i16b.py:9-11
      const i32x16 v182 = sw_i32x16_from_f32x16(matmul_30);  // i16b.py:9-11
      const i16x16 v183 = __builtin_convertvector(v182, i16x16);  // i16b.py:9-11
      const i32x16 v184 = sw_i32x16_from_f32x16(matmul_31);  // i16b.py:9-11
      const i16x16 v185 = __builtin_convertvector(v184, i16x16);  // i16b.py:9-11
      const i32x16 v186 = sw_i32x16_from_f32x16(matmul_32);  // i16b.py:9-11
      const i16x16 v187 = __builtin_convertvector(v186, i16x16);  // i16b.py:9-11
      const i16x16 v188 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v173));  // i16b.py:9-11
      const i16x16 v189 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v175));  // i16b.py:9-11
      const i16x16 v190 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v177));  // i16b.py:9-11
      const i16x16 v191 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v179));  // i16b.py:9-11
      const i16x16 v192 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v181));  // i16b.py:9-11
      const i16x16 v193 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v183));  // i16b.py:9-11
      const i16x16 v194 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v185));  // i16b.py:9-11
      const i16x16 v195 = (i16x16)(((u16x16)sw_splat_i16x16(0)) + ((u16x16)v187));  // i16b.py:9-11
      *(i16x16_u *)&sums[0] = v188;  // i16b.py:9-11
      *(i16x16_u *)&sums[16] = v189;  // i16b.py:9-11
      *(i16x16_u *)&sums[32] = v190;  // i16b.py:9-11
      *(i16x16_u *)&sums[48] = v191;  // i16b.py:9-11
      *(i16x16_u *)&sums[64] = v192;  // i16b.py:9-11
      *(i16x16_u *)&sums[80] = v193;  // i16b.py:9-11
      *(i16x16_u *)&sums[96] = v194;  // i16b.py:9-11
      *(i16x16_u *)&sums[112] = v195;  // i16b.py:9-11
      const int64_t i_4 = i_3 + 4;  // i16b.py:9-11
      for (int64_t i_5 = i_3; i_5 < i_4; i_5++) {  // i16b.py:9-11
        const int64_t v196 = i_5 - i_3;  // i16b.py:9-11
        const i16x16 sum_2 = *(const i16x16_u *)&sums[v196 * 32];  // i16b.py:9-11
        *(i16x16_u *)&matmul[i_5 * 31] = sum_2;  // i16b.py:9-11
        for (int64_t j_3 = 16; j_3 < 31; j_3++) {  // i16b.py:9-11
          const int16_t sum_3 = sums[v196 * 32 + j_3];  // i16b.py:9-11
          matmul[i_5 * 31 + j_3] = sum_3;  // i16b.py:9-11
        }
      }
    }
  }
}

/* kernel lambda_matmul, from i16b.py:9-11 */
static void kernel_lambda_matmul(const struct sw_runtime *rt, const int8_t *x, const int8_t *weight_packed, int16_t *matmul) {
  struct kernel_lambda_matmul_body_context captures = {x, weight_packed, matmul};  // i16b.py:9-11
  rt->parallel(rt, kernel_lambda_matmul_body, &captures, 1, 1);  // i16b.py:9-11
}

/* function lambda, from i16b.py:1 */
static void func_lambda(const struct sw_runtime *rt, const int8_t *x, const int8_t *weight_packed, int16_t *matmul) {
  kernel_lambda_matmul(rt, x, weight_packed, matmul);  // i16b.py:9-11
}

/* function lambda.constants, from i16b.py:1 */
static inline void func_lambda_constants(const int8_t *weight, int8_t *weight_packed) {
  kernel_lambda_pack(weight, weight_packed);  // i16b.py:9-11
}

int64_t stepwell_lambda_arena(const int64_t *dims) {
  (void)dims;  // i16b.py:1
  return 0;  // i16b.py:1
}

int32_t stepwell_lambda(const struct sw_runtime *rt, void *const *buffers, const int64_t *dims,
                        char *arena) {
  (void)dims;  // i16b.py:1
  (void)arena;  // i16b.py:1
  func_lambda(rt, buffers[0], buffers[1], buffers[2]);  // i16b.py:1
  return 0;  // i16b.py:1
}

int64_t stepwell_lambda_constants_arena(const int64_t *dims) {
  (void)dims;  // i16b.py:1
  return 0;  // i16b.py:1
}

int32_t stepwell_lambda_constants(const struct sw_runtime *rt, void *const *buffers, const int64_t *dims,
                                  char *arena) {
  (void)rt;  // i16b.py:1
  (void)dims;  // i16b.py:1
  (void)arena;  // i16b.py:1
  func_lambda_constants(buffers[0], buffers[1]);  // i16b.py:1
  return 0;  // i16b.py:1
}
