/* A ring in C, and in C++ too, judged by kvconform's header: `make check`, or CTest.
 * With -DBUG its rewind leaves the write cursor behind. */
#include <stdlib.h>

#include "kvconform_vectors.h"

enum { MOST = 4096 };

typedef struct {
    int slots[MOST], window, offset, cursor, new_rows;
} ring;

static void *ring_open(int window) {
    ring *r = (ring *)calloc(1, sizeof *r);
    r->window = window;
    return r;
}

static int ring_append(void *cache, const int *rows, int n) {
    ring *r = (ring *)cache;
    if (n < 0 || r->cursor + n > MOST) return 1;
    for (int i = 0; i < n; i++) r->slots[r->cursor++] = rows[i];
    r->offset += n;
    r->new_rows = n;
    return 0;
}

static int ring_rewind(void *cache, int offset) {
    ring *r = (ring *)cache;
    if (offset < 0 || offset > r->offset) return 1;
    if (r->window && r->offset > r->window && offset < r->offset) return 1;
    r->offset = offset;
#ifndef BUG
    r->cursor = offset;
#endif
    return 0;
}

static int ring_reset(void *cache) {
    ring *r = (ring *)cache;
    r->offset = r->cursor = 0;
    return 0;
}

static int ring_offset(void *cache) { return ((ring *)cache)->offset; }

static int ring_sees(void *cache, int query, int *rows) {
    ring *r = (ring *)cache;
    int last = r->offset - r->new_rows + query, first = r->window && last >= r->window ? last - r->window + 1 : 0, n = 0;
    for (int at = first; at <= last; at++) rows[n++] = r->slots[at];
    return n;
}

int main(void) {
    kvconform_engine engine = {ring_open, ring_append, ring_rewind, ring_reset, ring_offset, ring_sees, free};
    return kvconform_check(&engine, stdout) != 0;
}
