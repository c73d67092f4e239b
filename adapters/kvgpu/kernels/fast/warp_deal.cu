/* Deals the positions of all entries out to blocks, by lengths that the device reads, and joins the parts of a cell.
 * For `attend_warps.cu`, `prefill_warps.cu` and `wide_warps.cu`, behind warp_rows.cu.
 *
 * A cell is one run of queries of one kv head of one entry (and one pass of its heads). Cells of long entries are split
 * into pieces of `each` tiles. Pieces are as short as possible, but have at least `worth` tiles, and there are at most
 * max(workers, cells + workers / 2) of them. So a launch has room for all pieces, whatever the lengths are when it runs.
 * At most `workers` pieces are of cells that are split. Without workers no cell is split.
 */
#ifdef PREFILL
#define RUNS(count) (((count)*QUERY_HEADS + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS)
#else
#define RUNS(count) (((count) + QUERIES - 1) / QUERIES * PASSES)
#endif

/* The entries of a launch: sequences, layers, or both. Queries are [entries, heads, count, K_DIM]. With `starts` they are
 * [heads, count, K_DIM], and those of entry e are number starts[e] to starts[e + 1] - 1. */
struct Entries {
  const i64 *lengths, *starts;
  i64 stride;
  int given, count, kv_heads, first, window, causal;

  DEVICE_METHOD int end(int entry) const { return (int)(lengths ? lengths[entry * stride] : given); }
  DEVICE_METHOD int asked(int entry) const { return starts ? (int)(starts[entry + 1] - starts[entry]) : count; }
  DEVICE_METHOD int cells(int entry) const { return kv_heads * RUNS(asked(entry)); }
  DEVICE_METHOD i64 line(int entry, int kv_head) const {
    const i64 heads = (i64)kv_head * QUERY_HEADS * count;
    return starts ? heads + starts[entry] : (i64)entry * kv_heads * QUERY_HEADS * count + heads;
  }
  DEVICE_METHOD Sight sight(int entry) const {
    const int stop = end(entry), behind = stop - asked(entry) + 1;
    return {first, window ? max(behind - window, -FAR) : -FAR, stop, causal ? behind : FAR};
  }
  /* The tiles that the queries of an entry see. */
  DEVICE_METHOD int tiles(int entry) const {
    const Sight all = sight(entry);
    return max((all.stop(asked(entry) - 1) + TILE - 1) / TILE - all.from(0) / TILE, 0);
  }
  DEVICE_METHOD int splits(int entry, int each) const { return max((tiles(entry) + each - 1) / each, 1); }
};
#define ENTRIES                                                                                     \
  {reads ? lengths + lengths_at : nullptr, ragged ? starts : nullptr, lengths_stride, (int)given,   \
   (int)count, (int)kv_heads, (int)first, (int)min(window, (i64)FAR), (int)causal}

/* A piece: number `split` of the `splits` of cell `cell` of an entry. The parts of the cell begin at number `slot` of the
 * parts of all cells that are split. If `splits` is 0, there is no piece. */
struct Piece {
  int entry, cell, split, splits;
  u32 slot;
};

DEVICE i64 sum_of_lanes(i64 x) {
#pragma unroll
  for (int flip = 1; flip < LANES; flip *= 2) x += __shfl_xor_sync(ALL, x, flip);
  return x;
}

/* Counts the pieces, if none has more tiles than `each`. */
DEVICE i64 pieces_of(const Entries &of, int entries, int each, int lane) {
  i64 pieces = 0;
#pragma unroll 1
  for (int e = lane; e < entries; e += LANES) pieces += (i64)of.cells(e) * of.splits(e, each);
  return sum_of_lanes(pieces);
}

/* Chooses the most tiles of a piece. `enough` tiles are certain to fit, even if the last piece of each cell is not full.
 * Fewer are tried, beginning with the number by which full pieces would take all room, and the first that fits is taken.
 */
DEVICE int tiles_each(const Entries &of, int entries, int workers, int worth, int lane) {
  i64 tiles = 0, cells = 0;
#pragma unroll 1
  for (int e = lane; e < entries; e += LANES) cells += of.cells(e), tiles += (i64)of.cells(e) * of.tiles(e);
  tiles = sum_of_lanes(tiles), cells = sum_of_lanes(cells);
  const i64 room = max((i64)workers, cells + workers / 2);
  i64 few = max((tiles + room - 1) / room, (i64)worth), enough = (tiles + room - cells - 1) / (room - cells);
#pragma unroll 1
  for (int tries = 5; tries && few < enough; --tries) {
    if (pieces_of(of, entries, (int)few, lane) <= room) enough = few;
    else few = (few + enough + 1) / 2;
  }
  return (int)min(max(enough, (i64)worth), (i64)FAR);
}

/* Finds the piece of a block; a whole warp does it together. */
DEVICE void deal(Piece *piece, const Entries &of, int entries, int workers, int worth, u32 block, int lane) {
  const int each = workers ? tiles_each(of, entries, workers, worth, lane) : FAR;
  u32 before = 0, slots = 0;
#pragma unroll 1
  for (int from = 0; from < entries; from += LANES) {
    const int entry = from + lane, cells = entry < entries ? of.cells(entry) : 0;
    const int splits = cells ? of.splits(entry, each) : 1;
    const u32 pieces = cells * splits, parts = splits > 1 ? pieces : 0;
    u32 until = pieces, slots_until = parts;
#pragma unroll
    for (int by = 1; by < LANES; by *= 2) {
      const u32 more = __shfl_up_sync(ALL, until, by), more_slots = __shfl_up_sync(ALL, slots_until, by);
      if (lane >= by) until += more, slots_until += more_slots;
    }
    const u32 found = __ballot_sync(ALL, block < before + until);
    if (found) {
      const int it = __ffs(found) - 1, its = __shfl_sync(ALL, splits, it);
      const u32 within = block - before - __shfl_sync(ALL, until - pieces, it), cell = within / (u32)its;
      const u32 slot = slots + __shfl_sync(ALL, slots_until - parts, it) + cell * its;
      if (lane == 0) *piece = {from + it, (int)cell, (int)(within - cell * its), its, slot};
      return;
    }
    before += __shfl_sync(ALL, until, LANES - 1), slots += __shfl_sync(ALL, slots_until, LANES - 1);
  }
  if (lane == 0) *piece = {};
}

/* An output: 0 where nothing was seen. */
DEVICE float divided(float a, float l) { return l == 0.0f ? 0.0f : a / l; }

/* Splits that a join adds at once, a power of 2: up to 128 loads of a lane are under way. One split at a time took as long
 * as attention to 4,096 rows, because the join waited for the memory as often as there are splits. */
#define AT_ONCE (V_DIM <= 128 ? 32 : V_DIM <= 256 ? 16 : 8)

/* The sums of a column over splits; a lane has its share of l. */
struct Joined {
  float m = NOTHING, l = 0.0f, a[V_DIM / LANES] = {};

  /* Adds splits `from` to from + AT_ONCE - 1, as far as there are so many. Parts of one column lie `apart` numbers apart. */
  DEVICE_METHOD void add(const float *one, i64 apart, int from, int splits, int lane) {
    float its[AT_ONCE][V_DIM / LANES];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i)
#pragma unroll
      for (int j = 0; j < V_DIM / LANES; ++j)
        its[i][j] = from + i < splits ? __ldcg(one + (from + i) * apart + 2 + lane + j * LANES) : 0.0f;
    const bool own = lane < AT_ONCE && from + lane < splits;
    const float its_m = own ? __ldcg(one + (from + lane) * apart) : NOTHING;
    const float its_l = own ? __ldcg(one + (from + lane) * apart + 1) : 0.0f;
    float most = fmaxf(m, its_m);
#pragma unroll
    for (int flip = 1; flip < LANES; flip *= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, flip));
    const float scale = m == NOTHING ? 0.0f : power_of_2(m - most);
    const float weight = its_m == NOTHING ? 0.0f : power_of_2(its_m - most);
    m = most, l = l * scale + weight * its_l;
#pragma unroll
    for (int j = 0; j < V_DIM / LANES; ++j) a[j] *= scale;
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const float of_it = __shfl_sync(ALL, weight, i);
#pragma unroll
      for (int j = 0; j < V_DIM / LANES; ++j) a[j] += of_it * its[i][j];
    }
  }
};

/* Joins the splits of a cell into outputs, [.., V_DIM], for `all` columns. All blocks of the cell call it after they have
 * written their part, and the last one joins. The counter counts the calls; the last call finds splits - 1 and leaves 0,
 * so that a graph may run again. `before_me` is in shared memory. */
template <int all>
DEVICE void join(u32 *before_me, float *parts, u32 slot, int splits, const Columns &columns, float *out, int warp,
                 int lane) {
  __threadfence();
  __syncthreads();
  if (warp == 0 && lane == 0) *before_me = atomicInc((u32 *)parts + slot, (u32)splits - 1);
  __syncthreads();
  if (*before_me != (u32)splits - 1) return;
  __threadfence();
  for (int column = warp; column < all; column += WARPS) {
    const float *one = parts + COUNTERS + ((i64)slot * all + column) * PART;
    Joined sums;
#pragma unroll 1
    for (int from = 0; from < splits; from += AT_ONCE) sums.add(one, all * PART, from, splits, lane);
#pragma unroll
    for (int flip = 1; flip < LANES; flip *= 2) sums.l += __shfl_xor_sync(ALL, sums.l, flip);
    if (!columns.real(column)) continue;
    float *to = out + columns.at(column) * V_DIM + lane;
#pragma unroll
    for (int j = 0; j < V_DIM / LANES; ++j) to[j * LANES] = divided(sums.a[j], sums.l);
  }
}
