#include "normals.h"

#include "wide.h"

static void one_by_one(const smc_stream *s, int rows, int first, int n,
                       double *z) {
  for (int k = 0; k < n; k++)
    smc_normals(s, (uint32_t)(first + k), rows, z + (size_t)rows * (size_t)k);
}

#ifdef SMC_HAS_WIDE
#include <immintrin.h>

#define WIDE_INLINE SMC_WIDE static inline __attribute__((always_inline))

/* Blocks that are made side by side, in two vectors, and their normals. */
enum { LANES = 4, BLOCKS = 2 * LANES, NORMALS = 2 * BLOCKS };

/* Four blocks, and which ones: the counters in which they differ. Numbers of 32
 * bits stand in places of 64; of a block the upper half does not count. */
typedef struct wide_block {
  __m256i v0, v1, v2, v3;
} wide_block;

typedef struct places {
  __m256i particle, index;
} places;

/* The places after these by so many blocks, of particles with n_blocks each. */
WIDE_INLINE places places_after(places at, int by, int n_blocks) {
  const __m256i in_column = _mm256_set1_epi64x(n_blocks);
  const __m256i last = _mm256_set1_epi64x(n_blocks - 1);
  at.index = _mm256_add_epi64(at.index, _mm256_set1_epi64x(by));
  for (;;) {
    __m256i beyond = _mm256_cmpgt_epi64(at.index, last); /* -1 where so */
    if (_mm256_testz_si256(beyond, beyond))
      return at;
    at.index = _mm256_sub_epi64(at.index, _mm256_and_si256(beyond, in_column));
    at.particle = _mm256_sub_epi64(at.particle, beyond);
  }
}

WIDE_INLINE wide_block counters(const smc_stream *s, places at) {
  return (wide_block){at.index, at.particle, _mm256_set1_epi64x(s->step),
                      _mm256_set1_epi64x(s->stage)};
}

/* smc_philox_round() */
WIDE_INLINE wide_block mix(wide_block b, const uint32_t key[2], uint32_t i) {
  const __m256i by0 = _mm256_set1_epi64x(SMC_PHILOX_BY0);
  const __m256i by1 = _mm256_set1_epi64x(SMC_PHILOX_BY1);
  __m256i product0 = _mm256_mul_epu32(b.v0, by0);
  __m256i product1 = _mm256_mul_epu32(b.v2, by1);
  __m256i key0 = _mm256_set1_epi64x(key[0] + i * SMC_PHILOX_KEY0);
  __m256i key1 = _mm256_set1_epi64x(key[1] + i * SMC_PHILOX_KEY1);
  __m256i mixed0 = _mm256_xor_si256(_mm256_srli_epi64(product1, 32), b.v1);
  __m256i mixed1 = _mm256_xor_si256(_mm256_srli_epi64(product0, 32), b.v3);
  return (wide_block){_mm256_xor_si256(mixed0, key0), product1,
                      _mm256_xor_si256(mixed1, key1), product0};
}

WIDE_INLINE void mix_both(wide_block *a, wide_block *b, const uint32_t key[2],
                          uint32_t i) {
  *a = mix(*a, key, i);
  *b = mix(*b, key, i);
}

WIDE_INLINE __m256i join_words(__m256i high, __m256i low) {
  return _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xAA);
}

/* smc_unit(), without a conversion: below the exponent of 1 the bits are a
 * number in [1, 2). */
WIDE_INLINE __m256d unit(__m256i bits) {
  const __m256i exponent = _mm256_set1_epi64x(0x3FF0000000000000);
  __m256i number = _mm256_or_si256(_mm256_srli_epi64(bits, 12), exponent);
  return _mm256_sub_pd(_mm256_castsi256_pd(number),
                       _mm256_set1_pd(1.0 - 0x1p-53));
}

/* What is made of blocks: the values, the bits that they come from, and a 1 in
 * `failed` for each that is not one, since the quick way of the ziggurat has
 * not led to it; and which blocks these are. */
typedef struct values {
  double z[NORMALS];
  uint64_t bits[NORMALS];
  unsigned failed;
  uint64_t particle[BLOCKS], index[BLOCKS];
} values;

WIDE_INLINE void store(uint64_t *to, __m256i x) {
  _mm256_storeu_si256((__m256i *)to, x);
}

/* The edges of the layers that these bits choose, each with the next one. They
 * are loaded as pairs: some processors gather from a table far more slowly. */
WIDE_INLINE __m256d edges(long long bits0, long long bits1) {
  __m128d pair0 = _mm_loadu_pd(smc_ziggurat_edge + (bits0 & 255));
  __m128d pair1 = _mm_loadu_pd(smc_ziggurat_edge + (bits1 & 255));
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(pair0), pair1, 1);
}

/* smc_ziggurat_place() of four. Returns a 1 for each that has failed. */
WIDE_INLINE unsigned place(__m256i bits, double *z) {
  __m128i low = _mm256_castsi256_si128(bits);
  __m128i high = _mm256_extracti128_si256(bits, 1);
  __m256d even = edges(_mm_cvtsi128_si64(low), _mm_cvtsi128_si64(high));
  __m256d odd = edges(_mm_extract_epi64(low, 1), _mm_extract_epi64(high, 1));
  __m256d edge = _mm256_unpacklo_pd(even, odd);
  __m256d next_edge = _mm256_unpackhi_pd(even, odd);
  __m256d u = unit(bits);
  __m256d part = _mm256_sub_pd(_mm256_add_pd(u, u), _mm256_set1_pd(1.0));
  __m256d value = _mm256_mul_pd(part, edge);
  __m256d size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), value);
  _mm256_storeu_pd(z, value);
  __m256d failed = _mm256_cmp_pd(size, next_edge, _CMP_NLT_UQ);
  return (unsigned)_mm256_movemask_pd(failed);
}

/* The normals of four blocks, from number `first` on. */
WIDE_INLINE void finish(wide_block b, places at, int first, values *out) {
  __m256i even = join_words(b.v0, b.v1), odd = join_words(b.v2, b.v3);
  __m256i outer = _mm256_unpacklo_epi64(even, odd); /* blocks 0 and 2 */
  __m256i inner = _mm256_unpackhi_epi64(even, odd); /* blocks 1 and 3 */
  __m256i front = _mm256_permute2x128_si256(outer, inner, 0x20);
  __m256i back = _mm256_permute2x128_si256(outer, inner, 0x31);
  double *z = out->z + 2 * first;
  unsigned failed = place(front, z) | place(back, z + LANES) << LANES;
  out->failed |= failed << 2 * first;
  store(out->bits + 2 * first, front);
  store(out->bits + 2 * first + LANES, back);
  store(out->particle + first, at.particle);
  store(out->index + first, at.index);
}

/* The rounds are written out, as those of smc_philox() are. */
WIDE_INLINE void make(const smc_stream *s, places at, places next,
                      values *out) {
  wide_block a = counters(s, at), b = counters(s, next);
  mix_both(&a, &b, s->key, 0);
  mix_both(&a, &b, s->key, 1);
  mix_both(&a, &b, s->key, 2);
  mix_both(&a, &b, s->key, 3);
  mix_both(&a, &b, s->key, 4);
  mix_both(&a, &b, s->key, 5);
  mix_both(&a, &b, s->key, 6);
  mix_both(&a, &b, s->key, 7);
  mix_both(&a, &b, s->key, 8);
  mix_both(&a, &b, s->key, 9);
  out->failed = 0;
  finish(a, at, 0, out);
  finish(b, next, LANES, out);
}

/* The matrix that is made: n particles, from number `first` on. */
typedef struct matrix {
  const smc_stream *stream;
  int rows, first, n;
  double *z;
} matrix;

/* Value i, which has failed, the long way; unless it is beyond the matrix. */
static void mend_one(const matrix *m, const values *from, int i) {
  uint32_t particle = (uint32_t)from->particle[i / 2];
  uint32_t number = 2 * (uint32_t)from->index[i / 2] + (uint32_t)i % 2;
  int column = (int)(particle - (uint32_t)m->first);
  if (column >= m->n || number >= (uint32_t)m->rows)
    return;
  uint32_t layer = (uint32_t)from->bits[i] & 255u;
  m->z[(size_t)m->rows * (size_t)column + number] =
      smc_normal_slow(m->stream, particle, number, layer, from->z[i]);
}

static void mend(const matrix *m, int n, const values *from) {
  for (int k = 0; k < n; k++)
    for (unsigned left = from[k].failed; left; left &= left - 1)
      mend_one(m, &from[k], __builtin_ctz(left));
}

/* z: out, the normals of n blocks, of which the last one of each particle may
 * have but one to give. Returns where the next are to go. */
static double *put(const values *from, int n, int rows, double *z) {
  for (int b = 0; b < n; b++) {
    *z++ = from->z[2 * b];
    if (2 * from->index[b] + 1 < (uint64_t)rows)
      *z++ = from->z[2 * b + 1];
  }
  return z;
}

/* Values of which one has failed, in one of six makes, are kept and mended
 * together: a processor that had to know each time would have to wait for it.
 */
SMC_WIDE static void many_at_once(const matrix *m) {
  enum { MOST_KEPT = 16 };
  values kept[MOST_KEPT];
  int n_kept = 0, n_blocks = m->rows / 2 + m->rows % 2;
  places at = {_mm256_set1_epi64x(m->first), _mm256_set_epi64x(3, 2, 1, 0)};
  at = places_after(at, 0, n_blocks);
  double *z = m->z;
  for (size_t left = (size_t)n_blocks * (size_t)m->n; left > 0;) {
    int made = left < BLOCKS ? (int)left : BLOCKS;
    places next = places_after(at, LANES, n_blocks);
    make(m->stream, at, next, &kept[n_kept]);
    z = put(&kept[n_kept], made, m->rows, z);
    n_kept += kept[n_kept].failed != 0;
    if (n_kept == MOST_KEPT) {
      mend(m, n_kept, kept);
      n_kept = 0;
    }
    at = places_after(next, LANES, n_blocks);
    left -= (size_t)made;
  }
  mend(m, n_kept, kept);
}
#endif

void smc_normal_matrix(const smc_stream *s, int rows, int first, int n,
                       double *z) {
#ifdef SMC_HAS_WIDE
  if (smc_is_wide()) {
    many_at_once(&(matrix){s, rows, first, n, z});
    return;
  }
#endif
  one_by_one(s, rows, first, n, z);
}
