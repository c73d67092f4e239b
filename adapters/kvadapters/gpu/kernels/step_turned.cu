/* A decode step of one layer, for every sequence of a batch: the key and the queries of its position are turned, key
 * and value are appended, and the length grows by 1. A text of its own, behind prelude_cuda.h, casts.inc,
 * strict.inc, and rope.inc, whose kernel is here a function: a warp calls it for a kv head and the queries of the heads
 * that share it.
 *
 * Rows come as [sequences, kv_heads], queries as [sequences, kv_heads, group], and lie in groups of kv_heads * slots
 * rows. The length of sequence s is number lengths_at + s * lengths_stride, and so is the line of the table,
 * [positions, dims / 2, 2], that turns: captured work stays valid. A block does all heads of a sequence, because nobody
 * else may read the length while it changes. Places are in elements.
 */
extern "C" __global__ void STEP_TURNED(const ELEMENT *keys, const ELEMENT *values, const u32 *queries, u32 *turned,
                                       const float *table, ELEMENT *to_k, ELEMENT *to_v, i64 *lengths, i64 sequences,
                                       i64 kv_heads, i64 group, i64 width_k, i64 width_v, i64 dims, i64 step,
                                       i64 apart, i64 keys_at, i64 values_at, i64 queries_at, i64 to_keys,
                                       i64 to_values, i64 slots, i64 lengths_at, i64 lengths_stride) {
  for (i64 s = blockIdx.y; s < sequences; s += gridDim.y) {
    i64 *length = lengths + lengths_at + s * lengths_stride;
    const i64 at = *length;
    for (i64 head = threadIdx.y; head < kv_heads; head += blockDim.y) {
      const i64 row = s * kv_heads + head, slot = row * slots + at, first_query = row * group * width_k;
      ROPE(keys, to_k + to_keys + slot * width_k, queries, turned + first_query, table + at * dims, 2, 1, group, 1,
           width_k, dims, step, apart, keys_at + row * width_k, queries_at + first_query);
      for (i64 j = threadIdx.x; j < width_v; j += blockDim.x)
        to_v[to_values + slot * width_v + j] = values[values_at + row * width_v + j];
    }
    __syncthreads(); /* by now everyone has read the length */
    if (threadIdx.x == 0 && threadIdx.y == 0) *length = at + 1;
  }
}
