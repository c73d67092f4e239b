// Serves a probe by node-llama-cpp; see ../node.py for what goes in and comes out.

import {createInterface} from "node:readline";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

const wanted = JSON.parse(process.argv[2]);
const home = join(process.cwd(), "node_modules", "node-llama-cpp", "dist", "index.js");
const {getLlama, InputLookupTokenPredictor} = await import(pathToFileURL(home).href);

const llama = await getLlama({
    gpu: false, build: "never", skipDownload: true, progressLogs: false, logLevel: "error", maxThreads: 1
});
const model = await llama.loadModel({modelPath: wanted.model});
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

let context, slots, waiting = [];
const total = {"cached tokens": 0, "drafts accepted": 0, "drafts rejected": 0};

/** Make a context with nothing in it. */
async function begin() {
    await context?.dispose();
    context = await model.createContext({
        contextSize: wanted.longest, sequences: wanted.sequences, batchSize: wanted.chunk, threads: 1,
        flashAttention: wanted.rows !== "F32",
        experimentalKvCacheKeyType: wanted.rows, experimentalKvCacheValueType: wanted.rows
    });
    waiting = [];
    slots = Array.from({length: wanted.sequences}, () => ({sequence: sequence(), task: null}));
}

function sequence() {
    const predictor = wanted.drafts && new InputLookupTokenPredictor({
        patternLength: {min: 2, max: 4}, predictionLength: {min: 1, max: wanted.drafts}
    });
    return context.getSequence({
        checkpoints: {interval: wanted.block}, contextShift: {size: 1},
        ...(predictor ? {tokenPredictor: predictor} : {})
    });
}

/** Give waiting requests the free sequences that begin most alike. */
function assign() {
    for (let free; waiting.length && (free = slots.filter((slot) => !slot.task)).length;) {
        const task = waiting.shift();
        const alike = (slot) => slot.sequence.compareContextTokens(task.tokens).firstDifferentIndex;
        const slot = free.reduce((best, other) => alike(other) > alike(best) ? other : best);
        slot.task = task;
        serve(slot, task).catch((e) => say({id: task.id, failed: String(e?.message ?? e)})).finally(() => {
            slot.task = null;
            assign();
        });
    }
}

async function serve(slot, task) {
    const own = slot.sequence, before = {...own.tokenPredictions}, rows = [], tokens = [];
    await own.adaptStateToTokens(task.tokens.slice(0, -1), false);
    const reused = own.nextTokenIndex;
    own.tokenPredictor?.updateInputTokens(task.tokens);  // where it looks drafts up
    const answers = own.evaluateWithMetadata(
        task.tokens.slice(reused), {probabilities: true}, {temperature: 0, yieldEogToken: true}
    );
    for await (const {token, probabilities} of answers) {
        const logprobs = new Float64Array(probabilities.size);
        for (const [id, probability] of probabilities)
            logprobs[id] = Math.log(probability);
        rows.push(Buffer.from(logprobs.buffer));
        tokens.push(token);
        if (task.gone || tokens.length === task.new)
            break;
    }
    total["cached tokens"] += reused;
    total["drafts accepted"] += own.tokenPredictions.validated - before.validated;
    total["drafts rejected"] += own.tokenPredictions.refuted - before.refuted;
    say({id: task.id, tokens, reused, logprobs: Buffer.concat(rows).toString("base64")});
}

const does = {
    ask(said) {
        waiting.push({...said, gone: false});
        assign();
    },
    cancel(said) {
        waiting = waiting.filter((task) => task.id !== said.id);
        for (const {task} of slots)
            if (task?.id === said.id)
                task.gone = true;
    },
    counts() {
        say({counts: total});
    },
    async reset() {
        await begin();
        say({counts: total});
    }
};

await begin();
for await (const line of createInterface({input: process.stdin})) {
    const said = JSON.parse(line);
    await does[said.do](said);
}
