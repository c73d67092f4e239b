// Serves a probe by transformers.js; see ../node.py for what goes in and comes out.

import {createInterface} from "node:readline";
import {basename, dirname, join} from "node:path";
import {pathToFileURL} from "node:url";

const wanted = JSON.parse(process.argv[2]);
const home = join(process.cwd(), "node_modules", "@huggingface", "transformers", "dist", "transformers.node.mjs");
const {AutoModelForCausalLM, DynamicCache, LogitsProcessor, LogitsProcessorList, Tensor, env} =
    await import(pathToFileURL(home).href);

env.allowRemoteModels = false;
env.localModelPath = dirname(wanted.model);
const model = await AutoModelForCausalLM.from_pretrained(basename(wanted.model), {
    dtype: "fp32", device: "cpu", session_options: {intraOpNumThreads: 1, interOpNumThreads: 1}
});
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const total = {"cached tokens": 0};
let kept = [];

/** Keeps the logits of each token, and changes none. */
class Noting extends LogitsProcessor {
    rows = [];
    _call(ids, logits) {
        this.rows.push(Float64Array.from(logits.data));
        return logits;
    }
}

const row = (tokens) => new Tensor("int64", BigInt64Array.from(tokens, BigInt), [1, tokens.length]);

function alike(text, tokens) {
    const at = tokens.findIndex((token, i) => token !== text[i]);
    return Math.min(at < 0 ? tokens.length : at, tokens.length - 1, text.length);
}

/** Give a copy of the longest cache that a prompt begins with, but for the prompt's last token. */
function begun(tokens) {
    const best = kept.reduce((a, b) => alike(b.text, tokens) > alike(a.text, tokens) ? b : a, {text: [], cache: {}});
    const reused = alike(best.text, tokens);
    const cut = Object.entries(best.cache).map(([name, rows]) => [name, rows.slice(null, null, [0, reused], null)]);
    return reused ? [reused, new DynamicCache(Object.fromEntries(cut))] : [0, new DynamicCache()];
}

async function serve({id, tokens, new: count}) {
    const noting = new Noting(), processors = new LogitsProcessorList(), [reused, cache] = begun(tokens);
    processors.push(noting);
    const said = await model.generate({
        inputs: row(tokens), attention_mask: row(tokens.map(() => 1)), past_key_values: cache,
        max_new_tokens: count, do_sample: false, logits_processor: processors,
        return_dict_in_generate: true
    });
    const text = Array.from(said.sequences.data, Number), held = {...said.past_key_values};
    kept = [{text: text.slice(0, said.past_key_values.get_seq_length()), cache: held}, ...kept].slice(0, wanted.kept);
    total["cached tokens"] += reused;
    const logits = Buffer.concat(noting.rows.map((each) => Buffer.from(each.buffer)));
    say({id, tokens: text.slice(tokens.length), reused, logprobs: logits.toString("base64")});
}

const does = {
    ask: (said) => serve(said).catch((e) => say({id: said.id, failed: String(e?.stack ?? e).slice(0, 300)})),
    cancel() {},
    counts: () => say({counts: total}),
    reset() {
        kept = [];
        say({counts: total});
    }
};

for await (const line of createInterface({input: process.stdin})) {
    const said = JSON.parse(line);
    await does[said.do](said);
}
