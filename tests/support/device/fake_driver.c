/* NVIDIA's driver, as far as tensor maps go: refuses what "CUDA Driver API, Tensor Map Object Management" says it refuses
 * of cuTensorMapEncodeTiled, and writes what it was told in the encoding of the emulation (`runtimes/tensor_map.py`). */
#include <stdint.h>

enum { INVALID_VALUE = 1, UINT16 = 1, TYPES = 16, MOST_RANK = 5, MOST_BOX = 256, MOST_STEP = 8 };

static const uint32_t sizes[TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0, 0, 0}; /* none: types of less than a byte */
static const uint32_t swizzles[4] = {0, 32, 64, 128};

__attribute__((visibility("default"))) int cuTensorMapEncodeTiled(
    uint64_t *map, int type, uint32_t rank, void *address, const uint64_t *dims, const uint64_t *strides,
    const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
  if ((uintptr_t)map % 64 || type < 0 || type >= TYPES || !sizes[type]) return INVALID_VALUE;
  if (rank < 1 || rank > MOST_RANK || (uintptr_t)address % 16) return INVALID_VALUE;
  if (interleave != 0 || swizzle < 0 || swizzle > 3) return INVALID_VALUE; /* others have limits that are not here */
  if (promotion < 0 || promotion > 3 || fill < 0 || fill > (type >= 6)) return INVALID_VALUE;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] < 1 || dims[i] > 1ull << 32) return INVALID_VALUE;
    if (box[i] < 1 || box[i] > MOST_BOX || steps[i] < 1 || steps[i] > MOST_STEP) return INVALID_VALUE;
  }
  uint64_t least = dims[0] * sizes[type];
  for (uint32_t i = 0; i + 1 < rank; ++i) {
    if (strides[i] % 16 || strides[i] >= 1ull << 40 || strides[i] < least) return INVALID_VALUE;
    least = strides[i] * dims[i + 1];
  }
  if (box[0] * sizes[type] % 16) return INVALID_VALUE;
  if (swizzle && box[0] * sizes[type] > swizzles[swizzle]) return INVALID_VALUE;
  if (type != UINT16 || rank != 2 || steps[0] != 1 || steps[1] != 1 || fill) return INVALID_VALUE; /* what kernels need */
  const uint64_t told[] = {0x6B7674656E736F72, (uintptr_t)address, dims[0], dims[1], strides[0], box[0], box[1],
                           swizzles[swizzle]};
  for (int i = 0; i < 16; ++i) map[i] = i < 8 ? told[i] : 0;
  return 0;
}
