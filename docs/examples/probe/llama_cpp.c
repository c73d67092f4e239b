/* Asks llama.cpp with a probe: the logits of all tokens, as float32, on standard output. See docs/probe.md.
 *
 *   cc -O1 -o ask llama_cpp.c -I llama.cpp/include -I llama.cpp/ggml/include -L LIB -lllama -lggml -lggml-base
 *   BACKENDS=LIB ./ask probe/model.gguf f16 13 0 1 2 3 ...
 *
 * The arguments are the model, the form of the rows (f32, f16, q8_0 or q4_0), tokens a decode, and the tokens.
 */
#include "ggml-backend.h"
#include "llama.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void errors_alone(enum ggml_log_level level, const char *text, void *nothing) {
    (void)nothing;
    if (level >= GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

static enum ggml_type form(const char *name) {
    const enum ggml_type known[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0};
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, ggml_type_name(known[i])))
            return known[i];
    fprintf(stderr, "no form of rows %s\n", name);
    exit(2);
}

int main(int count, char **given) {
    if (count < 5) {
        fprintf(stderr, "usage: %s MODEL ROWS CHUNK TOKEN...\n", given[0]);
        return 2;
    }
    const int chunk = atoi(given[3]), tokens = count - 4;
    llama_log_set(errors_alone, NULL);
    if (getenv("BACKENDS"))
        ggml_backend_load_all_from_path(getenv("BACKENDS"));
    struct llama_model *model = llama_model_load_from_file(given[1], llama_model_default_params());
    if (!model || chunk < 1)
        return 1;
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = 512;
    params.n_threads = params.n_threads_batch = 1;
    params.type_k = params.type_v = form(given[2]);
    struct llama_context *context = llama_init_from_model(model, params);
    if (!context)
        return 1;
    const int ids = llama_vocab_n_tokens(llama_model_get_vocab(model));
    for (int begin = 0; begin < tokens; begin += chunk) {
        const int n = tokens - begin < chunk ? tokens - begin : chunk;
        struct llama_batch batch = llama_batch_init(n, 0, 1);
        batch.n_tokens = n;
        for (int i = 0; i < n; i++) {
            batch.token[i] = atoi(given[4 + begin + i]);
            batch.pos[i] = begin + i;
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = 1;
        }
        if (llama_decode(context, batch))
            return 1;
        for (int i = 0; i < n; i++)
            fwrite(llama_get_logits_ith(context, i), sizeof(float), ids, stdout);
        llama_batch_free(batch);
    }
    return 0;
}
