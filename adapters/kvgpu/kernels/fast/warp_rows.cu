/* Finds the rows that a block reads, and those that its columns see. For `attend_warps.cu`, `prefill_warps.cu` and
 * `wide_warps.cu`, which explain the macros; behind prelude_cuda.h and warp_cuda.h.
 */
#define TILE 16
#define LANES 32
#ifndef BLOCK_COLUMNS
#define BLOCK_COLUMNS (WARPS * COLUMNS) /* of a block whose warps have columns of their own */
#endif
#define EIGHTS ((COLUMNS + 7) / 8)
#define WIDER (K_DIM > V_DIM ? K_DIM : V_DIM)
#ifdef ROW_F32
#define SIZE 4 /* bytes of an element of a row */
#else
#define SIZE 2
#endif
#define UNIT_BYTES (TILE * WIDER * SIZE)
#define PART (V_DIM + 2)
#define ALL 0xffffffffu
#define NOTHING __uint_as_float(0xff800000u)

/* The arguments of a kernel. They and all layouts are those of `attend_rows.cl`, with one exception: `parts` begins with
 * COUNTERS zeros, and then has one part for each split of each cell that is split: m, l and a of the columns of a block,
 * [columns, PART]. `warp_deal.cu` explains `workers`, `worth`, `starts` and `ragged`. */
#if defined(PAGES) || defined(ROWS)
#define TABLES const int *tables,
#define LYING i64 tables_at, i64 tables_stride
#define LIE(rows, entry, kv_head, end)                                                           \
  rows.table = tables + tables_at + (entry)*tables_stride, rows.slots = (int)slots, rows.apart = apart, \
  rows.base = (kv_head)*slots
#else
#define TABLES
#define LYING i64 start, i64 before, i64 then
#define LIE(rows, entry, kv_head, end)                                                    \
  rows.turn = (int)min(first + before, (i64)(end)),                                       \
  rows.base = (entry)*apart + (kv_head)*slots + start - first, rows.behind = rows.base - start + then - before
#endif
#define ARGUMENTS                                                                                                     \
  const float *queries, const char *keys, const char *values, const i64 *lengths, float *parts, float *out,           \
      const i64 *starts, TABLES i64 entries, i64 kv_heads, i64 count, i64 workers, i64 worth, i64 ragged,             \
      i64 queries_at, i64 out_at, i64 keys_at, i64 values_at, i64 slots, i64 apart, LYING, i64 first, i64 given,      \
      i64 reads, i64 lengths_at, i64 lengths_stride, i64 causal, i64 window

#define FAR (1 << 30) /* further than there are positions */

/* The place of a chunk of 16 bytes in a unit. Chunks of a row change places, so that the eight rows of a matrix, which
 * are read at once, lie in different banks. */
template <int dim> DEVICE u32 place(int row, int chunk) {
  return row * dim * SIZE + (chunk ^ (dim * SIZE % 128 == 0 ? row & 7 : row >> 1 & 3)) * 16;
}

/* The place that many pairs of chunks further on, in rows of 16 bits: `at` is that of a chunk of the first pair. */
template <int dim> DEVICE u32 further(u32 at, int pairs) {
  constexpr int near = dim % 64 == 0 ? 4 : 2; /* pairs among which chunks change places */
  return (at ^ pairs % near * 32) + pairs / near * near * 32;
}

/* Where the rows of a block lie, and which positions it reads: `low` to `high` - 1. */
struct Rows {
  const char *keys, *values;
  const int *table;
  i64 apart, base, behind;
  int slots, turn, low, high;

  /* The row of a position, counted from where keys (values) begin. */
  DEVICE_METHOD i64 row(int p) const {
#if defined(PAGES) || defined(ROWS)
    return table[(u32)p / (u32)slots] * apart + base + (u32)p % (u32)slots;
#else
    return (p < turn ? base : behind) + p;
#endif
  }
  /* Starts the copies of one tile of keys or values, by `lanes` lanes; what the block does not see becomes zeros. */
  template <int dim, int lanes> DEVICE_METHOD void fetch(const char *rows, int p, int lane, u32 to) const {
    constexpr int chunks = dim * SIZE / 16;
#ifdef PAGES
    const i64 begin = p < high && p + TILE > low ? row(p) : 0;
#endif
#pragma unroll(QUERIES > 1 ? 2 : dim > 128 || EIGHTS > 1 ? 4 : TILE)
    for (int j = 0; j < TILE * chunks / lanes; ++j) {
      const int r = (lane + j * lanes) / chunks, chunk = (lane + j * lanes) % chunks;
      const bool seen = p + r >= low && p + r < high;
#ifdef PAGES
      const i64 at = seen ? begin + r : 0;
#else
      const i64 at = seen ? row(p + r) : 0;
#endif
      copy_16(to + place<dim>(r, chunk), rows + at * (dim * SIZE) + chunk * 16, seen);
    }
  }
};

/* The columns of a warp or block, each a head of a query. Counted from head `heads` of query `asked`, column 0 is number
 * `skip`; a query has PER_PASS columns, then come those of the next. Columns that are not `real` fill up a product. */
struct Columns {
  i64 line; /* of head 0 of query 0 in queries and outputs */
  int count, heads, asked, until, skip;

  DEVICE_METHOD int query(int column) const { return asked + (skip + column) / PER_PASS; }
  DEVICE_METHOD int head(int column) const { return heads + (skip + column) % PER_PASS; }
  DEVICE_METHOD bool real(int column) const { return query(column) < until && head(column) < QUERY_HEADS; }
  DEVICE_METHOD i64 at(int column) const { return line + (i64)head(column) * count + query(column); }
};

/* The positions that query i sees: max(first, i + behind) to min(end, i + ahead) - 1. */
struct Sight {
  int first, behind, end, ahead;

  DEVICE_METHOD int from(int query) const { return max(first, query + behind); }
  DEVICE_METHOD int stop(int query) const { return min(end, query + ahead); }

  /* Hides what the columns of a lane do not see from the scores of a tile. */
  DEVICE_METHOD void hide(float (&s)[EIGHTS][4], int p, int lane, const Columns &columns) const {
#pragma unroll
    for (int i = 0; i < EIGHTS * 4; ++i) {
      const int query = columns.query(i / 4 * 8 + (lane & 3) * 2 + i % 2), at = p + i % 4 / 2 * 8 + (lane >> 2);
      if (at < from(query) || at >= stop(query)) s[i / 4][i % 4] = NOTHING;
    }
  }
  /* A bit for each position that the query sees in the tile from p on. */
  DEVICE_METHOD u32 bits(int query, int p) const {
    const int low = min(max(from(query) - p, 0), TILE), high = max(min(stop(query) - p, TILE), low);
    return (1u << high) - (1u << low);
  }
};
