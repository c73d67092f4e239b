/* A decode step of one layer, for every sequence of a batch: turns the key and the queries of the new position, appends
 * key and value, and adds 1 to the length. A text of its own, behind prelude_cuda.h, casts.inc, strict.inc, and
 * rope.inc, whose kernel is a function here: a warp calls it for a kv head and the queries of the heads that share it.
 *
 * Rows come as [sequences, kv_heads], queries as [sequences, kv_heads, group]. The length of sequence s is number
 * lengths_at + s * lengths_stride of `lengths`. It is the new position, and chooses the line of `angles`, [positions,
 * dims / 2, 2]; the device reads it, so captured work stays valid. Position p goes to slot p % slots of page
 * tables[s * wide + p / slots]; pages begin `page` rows apart. If that slot is the first of a page, the sequence begins
 * page following[s], and writes its number to the table. A length below 0 means that there is no sequence: nothing is
 * done. One block does all heads of a sequence, because no other may read the length while it changes. Places are in
 * elements; positions are below 2^32.
 */
extern "C" __global__ void STEP_TURNED(const ELEMENT *keys, const ELEMENT *values, const u32 *queries, u32 *turned,
                                       const float *angles, ELEMENT *to_k, ELEMENT *to_v, i64 *lengths, int *tables,
                                       const int *following, i64 sequences, i64 kv_heads, i64 group, i64 width_k,
                                       i64 width_v, i64 dims, i64 step, i64 apart, i64 keys_at, i64 values_at,
                                       i64 to_keys, i64 to_values, i64 queries_at, i64 slots, i64 page, i64 wide,
                                       i64 lengths_at, i64 lengths_stride) {
  for (i64 s = blockIdx.y; s < sequences; s += gridDim.y) {
    i64 *length = lengths + lengths_at + s * lengths_stride;
    const i64 at = *length;
    if (at < 0) continue;
    const u32 entry = (u32)at / (u32)slots, slot = (u32)at - entry * (u32)slots;
    int *its = tables + s * wide + entry;
    const int begun = slot ? *its : following[s];
    for (i64 head = threadIdx.y; head < kv_heads; head += blockDim.y) {
      const i64 row = s * kv_heads + head, to = begun * page + head * slots + slot, first_query = row * group * width_k;
      ROPE(keys, to_k + to_keys + to * width_k, queries, turned + first_query, angles + at * dims, 2, 1, group, 1,
           width_k, dims, step, apart, 0, keys_at + row * width_k, queries_at + first_query);
      for (i64 j = threadIdx.x; j < width_v; j += blockDim.x)
        to_v[to_values + to * width_v + j] = values[values_at + row * width_v + j];
    }
    __syncthreads(); /* by now everyone has read the length */
    if (threadIdx.x == 0 && threadIdx.y == 0) {
      *length = at + 1;
      if (slot == 0) *its = begun;
    }
  }
}
