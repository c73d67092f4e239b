/* kvconform: frozen traces of KV caches, and a reader that replays them. C99 and C++11, nothing else.
 *
 * @SAID@.
 *
 * Include it in one test. Fill in kvconform_engine with your cache, and call kvconform_check: it prints each trace that
 * went otherwise, and returns how many did. A row is an int: append rows whose keys and values you make from these
 * numbers, and answer which numbers a query sees. Written by `kvconform vectors c-header`. CC0. */
#ifndef KVCONFORM_VECTORS_H
#define KVCONFORM_VECTORS_H

#include <stdio.h>

#ifndef KVCONFORM_LARGEST
#define KVCONFORM_LARGEST 1024 /* rows that a query may say it sees */
#endif

typedef struct {
    void *(*open)(int window);                         /* an empty cache; window 0: it keeps every row */
    int (*append)(void *cache, const int *rows, int n);/* 0 if it was done, another number if it was refused */
    int (*rewind)(void *cache, int offset);            /* the same; NULL if the cache has no rewind */
    int (*reset)(void *cache);                         /* the same; NULL if it has no reset */
    int (*offset)(void *cache);                        /* rows appended since the last reset, less those rewound */
    int (*sees)(void *cache, int query, int *rows);    /* rows that a query of the last append sees: how many */
    void (*close)(void *cache);                        /* may be NULL */
} kvconform_engine;

typedef struct {
    const char *words; /* id and trace */
    int window, first, steps;
} kvconform_trace;

enum { KVCONFORM_APPEND, KVCONFORM_REWIND, KVCONFORM_RESET };

#define KVCONFORM_TRACE(words, window, first, steps) {words, window, first, steps}

/* Each step: operation, argument, refused, offset; rows, that many numbers; queries; of each how many rows, these. */
@DATA@

static int kvconform_has(const int *rows, int n, int row) {
    int count = 0;
    for (int i = 0; i < n; i++) count += rows[i] == row;
    return count;
}

/* Which query goes otherwise, from 0 on; -1 if none does. */
static int kvconform_queries(const kvconform_engine *engine, void *cache, const int *at, int queries) {
    int seen[KVCONFORM_LARGEST];
    for (int query = 0; query < queries; query++) {
        int count = *at++, found = engine->sees(cache, query, seen);
        if (found != count) return query;
        for (int i = 0; i < count; i++)
            if (kvconform_has(seen, found, at[i]) != 1) return query;
        at += count;
    }
    return -1;
}

static int kvconform_do(const kvconform_engine *engine, void *cache, const int *step) {
    if (step[0] == KVCONFORM_REWIND) return engine->rewind(cache, step[1]);
    if (step[0] == KVCONFORM_RESET) return engine->reset(cache);
    return engine->append(cache, step + 5, step[1]);
}

static const int *kvconform_next(const int *step) {
    const int *at = step + 5 + step[4];
    int queries = *at++;
    for (int i = 0; i < queries; i++) at += 1 + *at;
    return at;
}

static int kvconform_claims(const kvconform_engine *engine, const kvconform_trace *trace) {
    const int *step = kvconform_numbers + trace->first;
    for (int i = 0; i < trace->steps; i++, step = kvconform_next(step))
        if ((step[0] == KVCONFORM_REWIND && !engine->rewind) || (step[0] == KVCONFORM_RESET && !engine->reset)) return 0;
    return 1;
}

/* 1 if a trace goes otherwise; what went otherwise is printed. */
static int kvconform_replay(const kvconform_engine *engine, const kvconform_trace *trace, FILE *out) {
    const int *step = kvconform_numbers + trace->first;
    void *cache = engine->open(trace->window);
    int wrong = 0;
    for (int i = 1; i <= trace->steps && !wrong; i++, step = kvconform_next(step)) {
        int refused = kvconform_do(engine, cache, step) != 0, offset = engine->offset(cache), query = -1;
        const int *queries = step + 5 + step[4];
        if (refused != step[2]) {
            fprintf(out, "%s\n  step %d: %s, expected to be %s\n", trace->words, i, refused ? "refused" : "done",
                    refused ? "done" : "refused");
            wrong = 1;
        } else if (offset != step[3]) {
            fprintf(out, "%s\n  step %d: offset %d, expected %d\n", trace->words, i, offset, step[3]);
            wrong = 1;
        } else if ((query = kvconform_queries(engine, cache, queries + 1, *queries)) >= 0) {
            fprintf(out, "%s\n  step %d: query %d sees other rows\n", trace->words, i, query);
            wrong = 1;
        }
    }
    if (engine->close) engine->close(cache);
    return wrong;
}

/* Replay all that the engine claims; return how many traces went otherwise. */
static int kvconform_check(const kvconform_engine *engine, FILE *out) {
    int all = (int)(sizeof kvconform_traces / sizeof *kvconform_traces), judged = 0, wrong = 0;
    for (int i = 0; i < all; i++) {
        if (!kvconform_claims(engine, &kvconform_traces[i])) continue;
        judged++;
        wrong += kvconform_replay(engine, &kvconform_traces[i], out);
    }
    fprintf(out, "%d traces of %d judged, %d went otherwise\n", judged, all, wrong);
    return judged ? wrong : 1;
}

#endif
