/* Attention over rows, for CPUs, in OpenCL C 1.2. It stands behind prelude_cl.h, lanes.cl and a text that reads rows,
 * plain_rows.cl or form_rows.cl, and is compiled for each combination of
 *
 *   ROW_F32, ROW_F16 or ROW_BF16   how keys and values are stored, or as what they are read if they have a form
 *   K_DIM, V_DIM                   their widths
 *   QUERY_HEADS                    query heads of a group, which shares a kv head
 *   QUERIES                        queries that a work-item takes together
 *   SCALE                          the factor of queries; it has log2(e) in it, because weights are powers of 2
 *   LANES                          floats of a vector: 16 where a processor has such registers, else 8
 *   PAGES, or not                  how rows lie: in pages, else in runs
 *
 * One work-item takes QUERIES queries of all heads of a group, and a run of rows of their kv head. It walks the rows
 * that all these queries see in position order, BLOCK at a time: first the scores of the block, then their weights
 * below the running maximum m, then the weighted values. So every row is read once for the whole group, in the order
 * of memory. The few rows at the ends that only some of the queries see follow one by one. The result is m, the sum l
 * of the weights 2^(score - m), and the sum a of the weighted values. Work-items share nothing: if runs are split,
 * `join` combines their m, l and a in a launch of its own.
 */

/* A step takes STEP rows and TOGETHER heads: their scores fill the lanes of one vector, with a register for each
 * sum. Further passes over the block, which the cache then holds, take the other heads. Heads of zeros fill up the
 * last pass. */
#define ASKED (QUERY_HEADS * QUERIES)
#define PASSES ((ASKED + LANES / 2 - 1) / (LANES / 2))
#define TOGETHER ((ASKED + PASSES - 1) / PASSES)
#define HEADS (PASSES * TOGETHER)
#define STEP (LANES / (TOGETHER <= 2 ? TOGETHER : TOGETHER <= 4 ? 4 : 8))

/* Rows are fetched into the second level of cache this many bytes before they are needed, line by line in the order
 * of memory: steps read several rows side by side, which no hardware predicts. */
#define AHEAD 8192
#define CACHE_LINE 64
#define ROWS_AHEAD(wide) (AHEAD / ((wide) * (int)sizeof(row_t)) + 1)
#define FETCHES(wide, dim) ((STEP * (wide) * (int)sizeof(row_t) + CACHE_LINE * LINES(dim) - 1) / (CACHE_LINE * LINES(dim)))
#ifdef POCL_DEVICE_ADDRESS_BITS
#define FETCH(p) __builtin_prefetch(p, 0, 2) /* PoCL's own prefetch does nothing */
#else
#define FETCH(p) prefetch(p, CACHE_LINE)
#endif

typedef struct __attribute__((aligned(64))) {
  float q[HEADS][LINES(K_DIM) * LANES], a[HEADS][LINES(V_DIM) * LANES], s[HEADS][BLOCK], m[HEADS], l[HEADS];
  SCALES
} State;

/* Part j of what a step has fetched; `ahead` is null where the run of rows ends before. */
INLINE void fetch(GLOBAL const row_t *ahead, const int j, const int count) {
  GLOBAL const uchar *from = (GLOBAL const uchar *)ahead + j * count * CACHE_LINE;
#pragma unroll
  for (int i = 0; i < count; ++i)
    if (ahead) FETCH(from + i * CACHE_LINE);
}

/* Sums the lanes of LANES vectors at once: each level halves the number of vectors. The sum of vector AT(n) comes out
 * in lane n. */
INLINE FLOATS halves(FLOATS a, FLOATS b) { return (FLOATS)(a.lo, b.lo) + (FLOATS)(a.hi, b.hi); }
#if LANES == 16
#define AT(n) ((n) % 4 * 4 + (n) / 4)
INLINE FLOATS quarters(const FLOATS *x) {
  const FLOATS a = halves(x[0], x[1]), b = halves(x[2], x[3]);
  return (FLOATS)(a.s012389ab, b.s012389ab) + (FLOATS)(a.s4567cdef, b.s4567cdef);
}
INLINE FLOATS pairs(const FLOATS *x) {
  const FLOATS a = quarters(x), b = quarters(x + 4);
  return (FLOATS)(a.s01, b.s01, a.s45, b.s45, a.s89, b.s89, a.scd, b.scd) +
         (FLOATS)(a.s23, b.s23, a.s67, b.s67, a.sab, b.sab, a.sef, b.sef);
}
INLINE FLOATS sums(const FLOATS *x) {
  const FLOATS a = pairs(x), b = pairs(x + 8);
  return (FLOATS)(a.s02, b.s02, a.s46, b.s46, a.s8a, b.s8a, a.sce, b.sce) +
         (FLOATS)(a.s13, b.s13, a.s57, b.s57, a.s9b, b.s9b, a.sdf, b.sdf);
}
#define EIGHT(x, of) of((x).lo, (x).hi)
#else
#define AT(n) ((n) % 2 + (n) / 2 % 2 * 4 + (n) / 4 * 2)
INLINE FLOATS pairs(const FLOATS *x) {
  const FLOATS a = halves(x[0], x[1]), b = halves(x[2], x[3]);
  return (FLOATS)(a.s0145, b.s0145) + (FLOATS)(a.s2367, b.s2367);
}
INLINE FLOATS sums(const FLOATS *x) {
  const FLOATS a = pairs(x), b = pairs(x + 4);
  return (FLOATS)(a.s02, b.s02, a.s46, b.s46) + (FLOATS)(a.s13, b.s13, a.s57, b.s57);
}
#define EIGHT(x, of) (x)
#endif
#define ADDED(a, b) ((a) + (b))
INLINE float sum(FLOATS x) {
  const float8 y = EIGHT(x, ADDED);
  const float4 z = y.lo + y.hi;
  return (z.x + z.y) + (z.z + z.w);
}
INLINE float most(FLOATS x) {
  const float8 y = EIGHT(x, LARGER);
  const float4 z = LARGER(y.lo, y.hi);
  const float2 w = LARGER(z.lo, z.hi);
  return LARGER(w.x, w.y);
}

/* 2^x for x <= 0: 0 below -125, NaN for NaN; else the series ln(2)^i / i! over x minus its nearest whole number. Adding
 * 1.5 * 2^23 rounds to that number and leaves it in the lowest bits, from where it is added to the exponent. */
INLINE FLOATS power(FLOATS x) {
  const FLOATS near = LARGER(x, (FLOATS)-125.0f), shifted = near + 12582912.0f, rest = near - (shifted - 12582912.0f);
  FLOATS p = 1.5403530393381610e-4f;
  p = p * rest + 1.3333558146428443e-3f;
  p = p * rest + 9.6181291076284770e-3f;
  p = p * rest + 5.5504108664821580e-2f;
  p = p * rest + 2.4022650695910072e-1f;
  p = p * rest + 6.9314718055994531e-1f;
  p = p * rest + 1.0f;
  const FLOATS found = AS_FLOATS(AS_INTS(p) + (AS_INTS(shifted) << 23));
  return x != x ? x : x < -125.0f ? (FLOATS)0.0f : found;
}

/* The scores of rows t to t + STEP - 1 of a block, for the heads of the pass that begins at head h. */
INLINE void score(State *of, const int h, const int t, GLOBAL const row_t *keys, GLOBAL const row_t *ahead) {
  FLOATS x[LANES], k[STEP];
  float y[LANES];
#pragma unroll
  for (int i = 0; i < LANES; ++i) x[i] = 0.0f;
  for (int j = 0; j < LINES(K_DIM); ++j) {
    fetch(ahead, j, FETCHES(K_ROW, K_DIM));
#pragma unroll
    for (int r = 0; r < STEP; ++r) k[r] = KEY(of, keys + r * K_ROW, j);
#pragma unroll
    for (int g = 0; g < TOGETHER; ++g) {
      const FLOATS q = LOADED(j, of->q[h + g]);
#pragma unroll
      for (int r = 0; r < STEP; ++r) x[AT(g * STEP + r)] += q * k[r];
    }
  }
  STORE(sums(x), 0, y);
#pragma unroll
  for (int g = 0; g < TOGETHER; ++g)
#pragma unroll
    for (int r = 0; r < STEP; ++r) of->s[h + g][t + r] = y[g * STEP + r];
}

/* The same for a single row and some of the heads. */
INLINE void score_one(State *of, const int from, const int until, const int t, GLOBAL const row_t *key) {
  for (int h = from; h < until; ++h) {
    FLOATS x = 0.0f;
    for (int j = 0; j < LINES(K_DIM); ++j) x += LOADED(j, of->q[h]) * KEY(of, key, j);
    of->s[h][t] = sum(x);
  }
}

/* Adds the values of rows t to t + STEP - 1, weighted, for the heads of a pass. */
INLINE void add(State *of, const int h, const int t, GLOBAL const row_t *values, GLOBAL const row_t *ahead) {
  float p[LANES];
  FLOATS v[STEP];
#pragma unroll
  for (int g = 0; g < TOGETHER; ++g)
#pragma unroll
    for (int r = 0; r < STEP; ++r) p[g * STEP + r] = of->s[h + g][t + r];
  for (int j = 0; j < LINES(V_DIM); ++j) {
    fetch(ahead, j, FETCHES(V_ROW, V_DIM));
#pragma unroll
    for (int r = 0; r < STEP; ++r) v[r] = VALUE(of, values + r * V_ROW, j);
#pragma unroll
    for (int g = 0; g < TOGETHER; ++g) {
      FLOATS x = LOADED(j, of->a[h + g]);
#pragma unroll
      for (int r = 0; r < STEP; ++r) x += p[g * STEP + r] * v[r];
      STORE(x, j, of->a[h + g]);
    }
  }
}

INLINE void add_one(State *of, const int from, const int until, const int t, GLOBAL const row_t *value) {
  for (int h = from; h < until; ++h)
    for (int j = 0; j < LINES(V_DIM); ++j)
      STORE(LOADED(j, of->a[h]) + of->s[h][t] * VALUE(of, value, j), j, of->a[h]);
}

/* Turns the scores of n rows into weights. If the maximum rises, the sums so far are scaled down to it. */
INLINE void weigh(State *of, const int h, const int n) {
  FLOATS most_of = -INFINITY, l = 0.0f;
  for (int t = n; t < LINES(n) * LANES; ++t) of->s[h][t] = -INFINITY;
  for (int j = 0; j < LINES(n); ++j) most_of = LARGER(LOADED(j, of->s[h]), most_of);
  const float m = LARGER(most(most_of), of->m[h]), below = m == -INFINITY ? 0.0f : m;
  if (m > of->m[h]) {
    const FLOATS less = power((FLOATS)(of->m[h] - m));
    of->l[h] *= less.x;
    for (int j = 0; j < LINES(V_DIM); ++j) STORE(LOADED(j, of->a[h]) * less, j, of->a[h]);
  }
  for (int j = 0; j < LINES(n); ++j) {
    const FLOATS p = power(LOADED(j, of->s[h]) - below);
    STORE(p, j, of->s[h]);
    l += p;
  }
  of->m[h] = m, of->l[h] += sum(l);
}

/* Scores rows t to t + n - 1 of a block, which lie side by side, and fetches up to `ready` rows from `ahead` on. */
INLINE void scores(State *of, const int t, const int n, GLOBAL const row_t *keys, GLOBAL const row_t *ahead,
                   const i64 ready) {
  for (int h = 0; h < HEADS; h += TOGETHER)
    for (int i = 0; i + STEP <= n; i += STEP)
      score(of, h, t + i, keys + i * K_ROW, h == 0 && i + STEP <= ready ? ahead + i * K_ROW : 0);
  for (int i = n / STEP * STEP; i < n; ++i) score_one(of, 0, HEADS, t + i, keys + i * K_ROW);
}

INLINE void adds(State *of, const int t, const int n, GLOBAL const row_t *values, GLOBAL const row_t *ahead,
                 const i64 ready) {
  for (int h = 0; h < HEADS; h += TOGETHER)
    for (int i = 0; i + STEP <= n; i += STEP)
      add(of, h, t + i, values + i * V_ROW, h == 0 && i + STEP <= ready ? ahead + i * V_ROW : 0);
  for (int i = n / STEP * STEP; i < n; ++i) add_one(of, 0, HEADS, t + i, values + i * V_ROW);
}

/* Loads the queries: head h is of query h / QUERY_HEADS. Beyond the `queries_here` queries heads are zeros. */
INLINE void begin(State *of, GLOBAL const float *queries, const i64 apart, const i64 queries_here) {
  for (int h = 0; h < HEADS; ++h) {
    GLOBAL const float *query = queries + h % QUERY_HEADS * apart + h / QUERY_HEADS * K_DIM;
    for (int d = 0; d < LINES(K_DIM) * LANES; ++d)
      of->q[h][d] = h / QUERY_HEADS < queries_here && d < K_DIM ? query[d] * SCALE : 0.0f;
    for (int d = 0; d < LINES(V_DIM) * LANES; ++d) of->a[h][d] = 0.0f;
    of->m[h] = -INFINITY, of->l[h] = 0.0f;
  }
}

INLINE void finish(GLOBAL float *out, const float *a, const float l) {
  for (int d = 0; d < V_DIM; ++d) out[d] = l == 0.0f ? 0.0f : a[d] / l;
}

INLINE void put(GLOBAL float *part, const float *a, const float m, const float l) {
  for (int d = 0; d < V_DIM; ++d) part[d] = a[d];
  part[V_DIM] = m, part[V_DIM + 1] = l;
}

/* Where rows lie: ROW(t) is the row of position first + t, and up to SIDE_BY_SIDE(t) they lie side by side. With a
 * page NEXT(t, far) is the same place in one of the next pages, which is at least `far` rows away. */
#ifdef PAGES
#define TABLES GLOBAL const int *tables,
#define PLACES i64 tables_at, i64 tables_stride
#define IN_PAGE(t) ((first + (t)) % slots)
#define ROW(t) ((i64)tables[tables_at + entry * tables_stride + (first + (t)) / slots] * apart + IN_PAGE(t))
#define SIDE_BY_SIDE(t) ((t) + slots - IN_PAGE(t))
#define NEXT(t, far) ((t) + ((far) + slots - 1) / slots * slots)
#else
#define TABLES
#define PLACES i64 start, i64 before, i64 then
#define ROW(t) (entry * apart + ((t) < before ? start + (t) : then + (t)-before))
#define SIDE_BY_SIDE(t) ((t) < before ? before : until)
#define NEXT(t, far) ((t) + (far))
#endif

/* Does WORK for n rows of a block from t on, one piece of adjacent rows at a time. */
#define IN_PIECES(WORK, rows, wide)                                                                    \
  for (int i = 0; i < n;) {                                                                            \
    const i64 u = t + i, end_of = min(SIDE_BY_SIDE(u), until), next = NEXT(u, ROWS_AHEAD(wide));       \
    const int m = (int)min(end_of - u, (i64)(n - i));                                                  \
    const i64 ready = next < until ? min(SIDE_BY_SIDE(next), until) - next : 0;                        \
    WORK(&of, i, m, rows + (row + ROW(u)) * (wide), ready > 0 ? rows + (row + ROW(next)) * (wide) : 0, ready); \
    i += m;                                                                                            \
  }

/* Writes outputs or, with more than one split, the parts that `join` combines: a, m and l, V_DIM + 2 numbers.
 *
 * Queries are [entries, kv_heads * QUERY_HEADS, count, K_DIM] from the element `queries_at` on; outputs and parts
 * end in V_DIM and in [splits, V_DIM + 2] instead. Rows are held of the positions `first` to end - 1, where end is
 * `given` or, with `reads`, number lengths_at + entry * lengths_stride of `lengths`. The first `before` of them lie
 * in the slots from `start` on, the others in those from `then` on; head h of entry e begins
 * e * apart + h * slots rows behind the element `keys_at` (`values_at`). With PAGES position p lies in slot p % slots
 * of a page, whose number is element tables_at + entry * tables_stride + p / slots of `tables`; head h of page g
 * begins g * apart + h * slots rows behind. The queries stand at the last `count` positions. Each sees those up to
 * its own if `causal`, else all, none of them `window` or more before its own if that is not 0; no other row is
 * read.
 */
KERNEL ATTEND(GLOBAL const float *queries, GLOBAL const row_t *keys, GLOBAL const row_t *values,
              GLOBAL const i64 *lengths, GLOBAL float *parts, GLOBAL float *out, TABLES i64 entries, i64 kv_heads,
              i64 count, i64 splits, i64 queries_at, i64 out_at, i64 keys_at, i64 values_at, i64 slots, i64 apart,
              PLACES, i64 first, i64 given, i64 reads, i64 lengths_at, i64 lengths_stride,
              i64 causal, i64 window) {
  const i64 runs = (count + QUERIES - 1) / QUERIES, tasks = entries * kv_heads * runs * splits;
  keys += keys_at, values += values_at;
  for (i64 z = GROUP(0) * ITEMS(1) + ITEM(1); z < tasks; z += GROUPS(0) * ITEMS(1)) {
    const i64 split = z % splits, asked = z / splits % runs * QUERIES, line = z / splits / runs, entry = line / kv_heads;
    const i64 end = reads ? lengths[lengths_at + entry * lengths_stride] : given, position = end - count + asked;
    const int here = (int)min(count - asked, (i64)QUERIES);
#define FROM(i) ((window ? max(position + (i)-window + 1, first) : first) - first)
#define STOP(i) ((causal ? position + (i) + 1 : end) - first)
    const i64 from = FROM(here - 1), stop = max(STOP(0), from), row = line % kv_heads * slots;
    const i64 each = ((stop - from + splits - 1) / splits + LANES - 1) / LANES * LANES;
    const i64 cell = line * QUERY_HEADS * count + asked, until = min(from + (split + 1) * each, stop);
    State of;
    begin(&of, queries + queries_at + cell * K_DIM, count * K_DIM, here);
    SCALED(of, line % kv_heads);
    for (i64 t = from + split * each; t < until; t += BLOCK) {
      const int n = (int)min(until - t, (i64)BLOCK);
      IN_PIECES(scores, keys, K_ROW)
      for (int h = 0; h < HEADS; ++h) weigh(&of, h, n);
      IN_PIECES(adds, values, V_ROW)
    }
    if (split == splits - 1) {
      for (int i = 0; i < here; ++i) { /* the rows of one query that others do not see */
        const int h = i * QUERY_HEADS;
        const i64 low = FROM(i), below = max(min(from, STOP(i)), low), above = max(max(stop, low), below);
        const int n = (int)(below - low + max(STOP(i) - above, (i64)0));
#define OF_ONE(t) (row + ROW((t) < below - low ? low + (t) : above + (t) - (below - low)))
        for (int t = 0; t < n; ++t) score_one(&of, h, h + QUERY_HEADS, t, keys + OF_ONE(t) * K_ROW);
        for (int g = h; n && g < h + QUERY_HEADS; ++g) weigh(&of, g, n);
        for (int t = 0; t < n; ++t) add_one(&of, h, h + QUERY_HEADS, t, values + OF_ONE(t) * V_ROW);
      }
    }
    for (int h = 0; h < here * QUERY_HEADS; ++h) {
      const i64 mine = cell + h % QUERY_HEADS * count + h / QUERY_HEADS;
      if (splits == 1) finish(out + out_at + mine * V_DIM, of.a[h], of.l[h]);
      else put(parts + (mine * splits + split) * (V_DIM + 2), of.a[h], of.m[h], of.l[h]);
    }
  }
}

/* Combines the parts of each of `cells` queries, which lie side by side; a part that saw nothing has l = 0. */
KERNEL JOIN(GLOBAL const float *parts, GLOBAL float *out, i64 cells, i64 splits, i64 out_at) {
  for (i64 cell = GROUP(0) * ITEMS(1) + ITEM(1); cell < cells; cell += GROUPS(0) * ITEMS(1)) {
    GLOBAL const float *part = parts + cell * splits * (V_DIM + 2), *end = part + splits * (V_DIM + 2);
    float m = -INFINITY, l = 0.0f, a[V_DIM];
    for (GLOBAL const float *p = part; p < end; p += V_DIM + 2) m = LARGER(p[V_DIM], m);
    for (int d = 0; d < V_DIM; ++d) a[d] = 0.0f;
    for (GLOBAL const float *p = part; p < end; p += V_DIM + 2)
      if (p[V_DIM + 1] != 0.0f) {
        const float weight = power((FLOATS)(p[V_DIM] - m)).x;
        l += weight * p[V_DIM + 1];
        for (int d = 0; d < V_DIM; ++d) a[d] += weight * p[d];
      }
    finish(out + out_at + cell * V_DIM, a, l);
  }
}
