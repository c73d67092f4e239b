/* A KV cache in C11 and its wire: growing caches and rings, at level storage, with libc alone.

       cc -std=c11 -O2 -o engine engine.c
       kvconform run -- ./engine

   The first half is the cache: put your own in its place. The second half is the wire: keep it.
   KV_SLIP=window in the environment plants a bug: a chunk finds one old row too many in a ring. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the cache ------------------------------------------------------------------------------------------- */

enum { KEYS, VALUES };

static const char *const DTYPES[] = {"f32", "f16", "bf16"};
static const long BYTES[] = {4, 2, 2}; /* of an element; rows are only moved, so their size is all that matters */

typedef struct {
    bool ring;
    long batch, kv_heads, dim[2], step, window; /* rows are [batch, kv_heads, n, dim[part]]; window: of rings */
    int dtype;
} Config;

typedef struct {
    Config config;
    char *slots[2]; /* keys and values, [batch, kv_heads, capacity, dim] */
    long capacity;  /* slots allocated */
    long offset;    /* tokens appended and not rolled back: the next position */
    long index;     /* of a ring: the slot behind the newest row */
    bool written;   /* whether anything was written since it was opened or freed */
} Cache;

static bool slip(const char *name) {
    const char *planted = getenv("KV_SLIP");
    return planted && !strcmp(planted, name);
}

static long smaller(long a, long b) { return a < b ? a : b; }
static long held(const Cache *c) { return smaller(c->offset, c->capacity); }
static long heads(const Cache *c) { return c->config.batch * c->config.kv_heads; }
static long row_bytes(const Cache *c, int part) { return c->config.dim[part] * BYTES[c->config.dtype]; }

static char *row_at(const Cache *c, int part, long head, long slot) {
    return c->slots[part] + (head * c->capacity + slot) * row_bytes(c, part);
}

/* Make new storage of `capacity` slots; it begins with the n rows from slot `first` on, around the ring's end. */
static void rebuild(Cache *c, long capacity, long first, long n) {
    for (int part = KEYS; part <= VALUES; part++) {
        long width = row_bytes(c, part);
        char *made = malloc(heads(c) * capacity * width);
        for (long h = 0; h < heads(c); h++)
            for (long i = 0; i < n; i++)
                memcpy(made + (h * capacity + i) * width, row_at(c, part, h, (first + i) % held(c)), width);
        free(c->slots[part]);
        c->slots[part] = made;
    }
    c->capacity = capacity;
}

/* Write n rows, [batch, kv_heads, n, dim], to the slots from `slot` on. */
static void write_rows(Cache *c, long slot, long n, char *const rows[2]) {
    for (int part = KEYS; part <= VALUES; part++)
        for (long h = 0; h < heads(c); h++)
            memcpy(row_at(c, part, h, slot), rows[part] + h * n * row_bytes(c, part), n * row_bytes(c, part));
}

static void append_growing(Cache *c, long n, char *const rows[2]) {
    long step = c->config.step;
    if (c->offset + n > c->capacity) {
        long kept = c->offset % step ? c->offset : c->capacity;
        rebuild(c, kept + (n + step - 1) / step * step, 0, c->offset);
    }
    write_rows(c, c->offset, n, rows);
}

/* One row takes the slot of the oldest, once there are as many as the window. */
static void append_one(Cache *c, char *const rows[2]) {
    long window = c->config.window;
    if (c->offset >= c->capacity && c->capacity < window)
        rebuild(c, c->capacity + smaller(c->config.step, window - c->offset), 0, c->offset);
    if (c->capacity > window) { /* the last chunk left more than the window: keep the newest */
        rebuild(c, window, c->capacity - window, window);
        c->index = window;
    }
    if (c->index == window) c->index = 0;
    write_rows(c, c->index++, 1, rows);
}

/* A chunk goes behind the newest W-1 rows, oldest first, so that its first query finds its whole window. */
static void append_chunk(Cache *c, long n, char *const rows[2]) {
    bool wrapped = c->offset > c->config.window;
    long live = wrapped ? c->capacity : c->offset, oldest = wrapped ? c->index : 0;
    long kept = smaller(live, c->config.window - 1 + slip("window"));
    rebuild(c, kept + n, oldest + live - kept, kept);
    write_rows(c, kept, n, rows);
    c->index = kept + n;
}

static void cache_append(Cache *c, long n, char *const rows[2]) {
    if (n == 0) return;
    if (!c->config.ring) append_growing(c, n, rows);
    else if (n == 1) append_one(c, rows);
    else append_chunk(c, n, rows);
    c->offset += n;
    c->written = true;
}

static bool cache_can_rewind(const Cache *c, long to) {
    bool overwritten = c->config.ring && c->offset > c->config.window;
    return to == c->offset || (0 <= to && to < c->offset && !overwritten);
}

static void cache_rewind(Cache *c, long to) {
    if (to < c->offset) c->offset = c->index = to;
}

static void cache_free(Cache *c) {
    for (int part = KEYS; part <= VALUES; part++) free(c->slots[part]);
    *c = (Cache){.config = c->config};
}

/* Count the rows that can be read without an append: all; of a ring the newest W-1, from slot *first on. */
static long cache_view(const Cache *c, long *first) {
    long n = c->config.ring ? smaller(c->config.window - 1, held(c)) : held(c);
    *first = c->config.ring ? c->index - n + held(c) : 0;
    return n;
}

/* ---- JSON, as much as questions need: values are looked up in the text ----------------------------------- */

static const char *blank(const char *p) { return p + strspn(p, " \t\r\n"); }

static const char *skip_text(const char *p) {
    for (p++; *p && *p != '"'; p++) p += *p == '\\' && p[1];
    return *p ? p + 1 : p;
}

/* Give the end of the value that begins at p. */
static const char *skip(const char *p) {
    int depth = 0;
    if (*p == '"') return skip_text(p);
    if (*p != '[' && *p != '{') return p + strcspn(p, ",:]} \t\r\n");
    do {
        depth += (*p == '[' || *p == '{') - (*p == ']' || *p == '}');
        p = *p == '"' ? skip_text(p) : p + 1;
    } while (*p && depth);
    return p;
}

/* Give the first item of a list, or the first key of an object; NULL where it is empty. */
static const char *first_item(const char *p) {
    p = blank(p + 1);
    return *p == ']' || *p == '}' ? NULL : p;
}

/* Give the item behind the value at p; NULL where that was the last. */
static const char *next_item(const char *p) {
    p = blank(skip(p));
    return *p == ',' ? blank(p + 1) : NULL;
}

static const char *item(const char *list, int i) {
    const char *p = first_item(list);
    while (p && i--) p = next_item(p);
    return p;
}

static bool is(const char *p, const char *text) {
    return p && *p == '"' && !strncmp(p + 1, text, strlen(text)) && p[1 + strlen(text)] == '"';
}

/* Give the value of a key; NULL where the object lacks it. */
static const char *get(const char *object, const char *key) {
    for (const char *p = object ? first_item(object) : NULL; p;) {
        const char *value = blank(blank(skip(p)) + 1);
        if (is(p, key)) return value;
        p = next_item(value);
    }
    return NULL;
}

static long number(const char *p) { return p ? strtol(p, NULL, 10) : 0; }

/* ---- the wire: a question is a line of JSON and the bytes of its tensors, and so is an answer ------------ */

typedef struct {
    int dtype;
    long shape[8], axes;
    char *bytes;
} Tensor;

typedef struct {
    const char *name;
    bool none;     /* there are no such rows at all, which is something else than zero rows */
    long first, n; /* n rows from slot `first` on, around the end of the ring */
} Shown;

typedef struct {
    const char *result;
    const char *clause; /* of a refusal: the clause that allows it */
    const Cache *cache; /* the cache to look at; NULL where there is none */
    int can;            /* whether a rewind would be accepted; -1 where nobody asked */
    Shown shown[2];
    int count;
} Answer;

static Cache *opened[26]; /* A to Z */
static bool shows_state, shows_history;

static int dtype_named(const char *p) {
    for (int i = 0; i < 3; i++)
        if (is(p, DTYPES[i])) return i;
    return -1;
}

static char *read_line(void) {
    size_t used = 0, room = 1 << 12;
    char *line = malloc(room);
    for (int c; (c = getchar()) != EOF && c != '\n'; line[used++] = (char)c)
        if (used + 1 == room) line = realloc(line, room *= 2);
    line[used] = 0;
    return feof(stdin) ? NULL : line;
}

/* Read a tensor that is listed as ["keys", "f16", [1, 2, 3, 8]]; a boolean has one byte. */
static Tensor read_tensor(const char *listed) {
    Tensor t = {.dtype = dtype_named(item(listed, 1))};
    size_t size = t.dtype < 0 ? 1 : BYTES[t.dtype];
    for (const char *p = first_item(item(listed, 2)); p && t.axes < 8; p = next_item(p))
        size *= t.shape[t.axes++] = number(p);
    t.bytes = malloc(size + 1);
    if (fread(t.bytes, 1, size, stdin) < size) exit(1);
    return t;
}

static bool fits(const Config *c, int part, const Tensor *t, long n) {
    const long *s = t->shape;
    return t->axes == 4 && t->dtype == c->dtype && s[0] == c->batch && s[1] == c->kv_heads && s[2] == n &&
           s[3] == c->dim[part];
}

static Answer refused(const Cache *c, const char *clause) { return (Answer){"refused", clause, c, -1}; }

/* Open a cache. Where that is refused, what was open under this name stays. */
static Answer do_open(const char *question, Cache **place) {
    const char *config = get(question, "config"), *window = get(config, "window");
    Config made = {.ring = is(get(question, "kind"), "ring"),
                   .batch = number(get(config, "batch")),
                   .kv_heads = number(get(config, "kv_heads")),
                   .dim = {number(get(config, "k_dim")), number(get(config, "v_dim"))},
                   .step = number(get(config, "step")),
                   .window = number(window),
                   .dtype = dtype_named(get(config, "dtype"))};
    bool sizes = made.batch > 0 && made.kv_heads > 0 && made.dim[KEYS] > 0 && made.dim[VALUES] > 0 && made.step > 0;
    if (!made.ring && !is(get(question, "kind"), "growing")) return (Answer){"unsupported", NULL, *place, -1};
    if (!sizes || made.dtype < 0 || (window ? made.window < 1 : made.ring))
        return refused(*place, "CACHE-3");
    if (*place) cache_free(*place);
    else *place = malloc(sizeof **place);
    **place = (Cache){.config = made};
    return (Answer){"ok", NULL, *place, -1};
}

/* Drop all caches and open A. */
static Answer do_begin(const char *question) {
    for (int i = 0; i < 26; i++) {
        if (opened[i]) cache_free(opened[i]);
        free(opened[i]);
        opened[i] = NULL;
    }
    shows_state = shows_history = false;
    for (const char *p = first_item(get(question, "observe")); p; p = next_item(p)) {
        shows_state |= is(p, "state");
        shows_history |= is(p, "history");
    }
    return do_open(question, &opened[0]);
}

static Answer do_append(Cache *c, const Tensor tensors[2]) {
    long n = tensors[KEYS].shape[2];
    for (int part = KEYS; part <= VALUES; part++)
        if (n && !fits(&c->config, part, &tensors[part], n)) return refused(c, "CACHE-2");
    cache_append(c, n, (char *[]){tensors[KEYS].bytes, tensors[VALUES].bytes});
    Answer a = {"ok", NULL, c, -1};
    if (shows_history) a.shown[a.count++] = (Shown){"history", false, 0, held(c)};
    return a;
}

static Answer do_view(const Cache *c) {
    long first, n = cache_view(c, &first);
    return (Answer){"ok", NULL, c, -1, {{"view", !c->written || (c->config.ring && !n), first, n}}, 1};
}

/* Ask whether a rewind would be accepted; then rewind, unless that was all. */
static Answer do_rewind(Cache *c, long to, bool rewinds) {
    bool can = cache_can_rewind(c, to), range = 0 <= to && to <= c->offset;
    Answer a = {"ok", NULL, c, can};
    if (rewinds && !can) a = refused(c, range ? "RING-10" : "CACHE-7");
    else if (rewinds) cache_rewind(c, to);
    a.can = can;
    return a;
}

static Answer perform(const char *question, const Tensor tensors[2]) {
    const char *op = get(question, "op"), *name = get(question, "cache");
    Cache **place = &opened[name ? name[1] - 'A' : 0], *c = *place;
    if (is(op, "begin")) return do_begin(question);
    if (is(op, "open")) return do_open(question, place);
    if (!c) return (Answer){"absent", NULL, NULL, -1};
    if (is(op, "append") && !number(get(question, "resident"))) return do_append(c, tensors);
    if (is(op, "view")) return do_view(c);
    if (is(op, "ask") || is(op, "rewind")) return do_rewind(c, number(get(question, "to")), is(op, "rewind"));
    if (is(op, "free")) cache_free(c);
    else if (!is(op, "scribble")) return (Answer){"unsupported", NULL, c, -1}; /* scribble is the caller's affair */
    return (Answer){"ok", NULL, c, -1};
}

static void send_rows(const Cache *c, const Shown *s, int part) {
    for (long h = 0; !s->none && h < heads(c); h++)
        for (long i = 0; i < s->n; i++)
            fwrite(row_at(c, part, h, (s->first + i) % held(c)), row_bytes(c, part), 1, stdout);
}

/* Send the result, the lengths, and the rows that are shown: first their names and shapes, then their bytes. */
static void send_answer(long id, Answer a) {
    const Cache *c = a.cache;
    if (c && shows_state) a.shown[a.count++] = (Shown){"state", !c->written, 0, held(c)};
    printf("{\"id\": %ld, \"result\": \"%s\"", id, a.result);
    if (a.clause) printf(", \"clause\": \"%s\"", a.clause);
    if (c) printf(", \"values\": {\"offset\": %ld, \"retained\": %ld, ", c->offset, held(c));
    if (c && a.can >= 0) printf("\"can\": %s, ", a.can ? "true" : "false");
    if (c) printf("\"buffered\": %ld, \"capacity\": %ld}", held(c), c->capacity);
    for (int i = 0; i < 2 * a.count; i++) {
        const Shown *s = &a.shown[i / 2];
        printf("%s[\"%s.%c\", ", i ? ", " : ", \"tensors\": [", s->name, "kv"[i % 2]);
        if (s->none) printf("null, []]");
        else
            printf("\"%s\", [%ld, %ld, %ld, %ld]]", DTYPES[c->config.dtype], c->config.batch, c->config.kv_heads,
                   s->n, c->config.dim[i % 2]);
    }
    printf(a.count ? "]}\n" : "}\n");
    for (int i = 0; i < 2 * a.count; i++) send_rows(c, &a.shown[i / 2], i % 2);
    fflush(stdout);
}

static void describe(long id) {
    const char *claim = "{\"level\": \"storage\", \"grows\": \"step\"}";
    printf("{\"id\": %ld, \"result\": \"ok\", \"describe\": {\"name\": \"example-c\", \"chapters\": ", id);
    printf("{\"growing\": %s, \"ring\": %s}}}\n", claim, claim);
    fflush(stdout);
}

int main(void) {
    for (char *question; (question = read_line()); free(question)) {
        const char *listed = get(question, "tensors");
        Tensor tensors[2] = {0};
        for (const char *p = listed ? first_item(listed) : NULL; p; p = next_item(p)) {
            Tensor t = read_tensor(p), *kept = is(item(p, 0), "values") ? &tensors[VALUES] : &tensors[KEYS];
            free(kept->bytes);
            *kept = t;
        }
        if (is(get(question, "op"), "describe")) describe(number(get(question, "id")));
        else send_answer(number(get(question, "id")), perform(question, tensors));
        for (int part = KEYS; part <= VALUES; part++) free(tensors[part].bytes);
    }
    return 0;
}
