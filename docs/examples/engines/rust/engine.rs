//! A KV cache in Rust, its wire and its log: growing caches and rings, at level storage, with std alone.
//!
//!     rustc -O engine.rs
//!     kvconform run -- ./engine                               # judged over the wire
//!     ./engine --log log.jsonl && kvconform check log.jsonl   # judged by what it logged of itself
//!
//! The first part is the cache: put your own in its place, and keep the others.
//! KV_SLIP=wrap in the environment plants a bug: a chunk takes the rows of a wrapped ring in slot order.

use std::io::{self, BufRead, Read, Write};

// ---- the cache ----------------------------------------------------------------------------------------------

/// A refusal: the clause of the spec that allows it. Nothing has changed.
type Refused = &'static str;

/// Rows in slots; a row is the bytes of its keys and then of its values, over all heads.
struct Cache {
    width: usize, // bytes of a row
    step: usize,
    window: Option<usize>, // of a ring
    slots: Vec<u8>,
    offset: usize, // tokens appended and not rolled back: the next position
    index: usize,  // of a ring: the slot behind the newest row
    written: bool, // whether anything was written since it was opened or freed
}

impl Cache {
    fn new(width: usize, step: usize, window: Option<usize>) -> Cache {
        Cache { width, step, window, slots: vec![], offset: 0, index: 0, written: false }
    }

    fn capacity(&self) -> usize {
        self.slots.len() / self.width
    }

    /// Rows that can be read; slots behind them hold dead rows or none.
    fn held(&self) -> usize {
        self.offset.min(self.capacity())
    }

    fn row(&self, slot: usize) -> &[u8] {
        &self.slots[slot * self.width..][..self.width]
    }

    /// Make new storage that begins with the rows of these slots.
    fn rebuild(&mut self, capacity: usize, kept: &[usize]) {
        let mut slots: Vec<u8> = kept.iter().flat_map(|&slot| self.row(slot).to_vec()).collect();
        slots.resize(capacity * self.width, 0);
        self.slots = slots;
    }

    fn write(&mut self, slot: usize, rows: &[u8]) {
        self.slots[slot * self.width..][..rows.len()].copy_from_slice(rows);
    }

    fn append(&mut self, rows: &[u8]) {
        let n = rows.len() / self.width;
        match (self.window, n) {
            (_, 0) => return,
            (None, _) => self.append_growing(n, rows),
            (Some(window), 1) => self.append_one(window, rows),
            (Some(window), _) => self.append_chunk(window, n, rows),
        }
        self.offset += n;
        self.written = true;
    }

    fn append_growing(&mut self, n: usize, rows: &[u8]) {
        if self.offset + n > self.capacity() {
            let kept = if self.offset % self.step == 0 { self.capacity() } else { self.offset };
            let live: Vec<usize> = (0..self.offset).collect();
            self.rebuild(kept + n.div_ceil(self.step) * self.step, &live);
        }
        self.write(self.offset, rows);
    }

    /// One row takes the slot of the oldest, once there are as many as the window.
    fn append_one(&mut self, window: usize, row: &[u8]) {
        let capacity = self.capacity();
        if self.offset >= capacity && capacity < window {
            let live: Vec<usize> = (0..self.offset).collect();
            self.rebuild(capacity + self.step.min(window - self.offset), &live);
        }
        if capacity > window {
            let newest: Vec<usize> = (capacity - window..capacity).collect(); // the last chunk left more
            self.rebuild(window, &newest);
            self.index = window;
        }
        self.index %= window;
        self.write(self.index, row);
        self.index += 1;
    }

    /// A chunk goes behind the newest W-1 rows, oldest first, so that its first query finds its whole window.
    fn append_chunk(&mut self, window: usize, n: usize, rows: &[u8]) {
        let live = if slip("wrap") { self.history() } else { self.oldest_first() };
        let kept = &live[live.len().saturating_sub(window - 1)..];
        self.rebuild(kept.len() + n, kept);
        self.write(kept.len(), rows);
        self.index = kept.len() + n;
    }

    /// The slots of all rows that can be read, in the order of their positions.
    fn oldest_first(&self) -> Vec<usize> {
        let oldest = if self.window.is_some_and(|window| self.offset > window) { self.index } else { 0 };
        (0..self.held()).map(|i| (oldest + i) % self.held()).collect()
    }

    /// The slots of the rows that the queries of the last append attend to.
    fn history(&self) -> Vec<usize> {
        (0..self.held()).collect()
    }

    fn state(&self) -> Option<Vec<usize>> {
        self.written.then(|| self.history())
    }

    /// The slots that can be read without an append: all; of a ring the newest W-1, where that is a row at all.
    fn view(&self) -> Option<Vec<usize>> {
        let Some(window) = self.window else { return self.state() };
        let live = self.oldest_first();
        let newest = live[live.len().saturating_sub(window - 1)..].to_vec();
        (!newest.is_empty()).then_some(newest)
    }

    fn can_rewind(&self, to: i64) -> Result<(), Refused> {
        if to < 0 || to > self.offset as i64 {
            return Err("CACHE-7");
        }
        let overwritten = self.window.is_some_and(|window| self.offset > window);
        if overwritten && to < self.offset as i64 {
            Err("RING-10")
        } else {
            Ok(())
        }
    }

    fn rewind(&mut self, to: i64) -> Result<(), Refused> {
        self.can_rewind(to)?;
        if (to as usize) < self.offset {
            (self.offset, self.index) = (to as usize, to as usize);
        }
        Ok(())
    }

    fn free(&mut self) {
        *self = Cache::new(self.width, self.step, self.window);
    }
}

fn slip(name: &str) -> bool {
    std::env::var("KV_SLIP").is_ok_and(|planted| planted == name)
}

// ---- an operation, and what can be seen after it ------------------------------------------------------------

/// Rows by the slots they are in; None where there are no such rows at all, which is something else than zero rows.
type Shown = (&'static str, Option<Vec<usize>>);

struct Seen {
    result: Result<&'static str, Refused>, // ok, unsupported, absent; or refused, with the clause
    can: Option<bool>,                     // whether a rewind would be accepted
    shown: Vec<Shown>,
}

fn perform(cache: &mut Cache, op: &str, to: i64, rows: &[u8]) -> Seen {
    let mut seen = Seen { result: Ok("ok"), can: None, shown: vec![] };
    match op {
        "append" => {
            cache.append(rows);
            seen.shown.push(("history", Some(cache.history())));
        }
        "view" => seen.shown.push(("view", cache.view())),
        "ask" => seen.can = Some(cache.can_rewind(to).is_ok()),
        "rewind" => {
            seen.can = Some(cache.can_rewind(to).is_ok());
            seen.result = cache.rewind(to).map(|()| "ok");
        }
        "free" => cache.free(),
        "scribble" => {} // the caller's affair
        _ => seen.result = Ok("unsupported"),
    }
    seen
}

fn result(seen: &Seen) -> String {
    match seen.result {
        Ok(result) => format!(r#""result": "{result}""#),
        Err(clause) => format!(r#""result": "refused", "clause": "{clause}""#),
    }
}

fn values(cache: &Cache, seen: &Seen) -> String {
    let (offset, held, capacity) = (cache.offset, cache.held(), cache.capacity());
    let can = seen.can.map_or(String::new(), |can| format!(r#", "can": {can}"#));
    format!(r#""offset": {offset}, "retained": {held}, "buffered": {held}, "capacity": {capacity}{can}"#)
}

// ---- the log: what was done and what was seen, rows named by a digest of their bytes ------------------------

/// The names of rows: FNV-1a. Any name will do that is the same for the same bytes, and another for others.
fn names<'a>(rows: impl Iterator<Item = &'a [u8]>) -> String {
    let add = |hash: u64, &byte: &u8| (hash ^ byte as u64).wrapping_mul(0x100000001b3);
    let digests: Vec<String> =
        rows.map(|row| format!("\"{:016x}\"", row.iter().fold(0xcbf29ce484222325, add))).collect();
    format!(r#"{{"rows": [{}]}}"#, digests.join(", "))
}

/// Do an operation and tell it as a line of the log: with its argument, the rows given, and all that is seen then.
fn logged(cache: &mut Cache, op: &str, number: i64, rows: &[u8]) -> String {
    let argument = match op {
        "append" => format!(r#", "n": {number}}}, "given": {{"rows": {}}}"#, names(rows.chunks(cache.width))),
        "ask" | "rewind" => format!(r#", "to": {number}}}"#),
        _ => "}".to_string(),
    };
    let seen = perform(cache, op, number, rows);
    let mut see = format!("{}, {}", result(&seen), values(cache, &seen));
    for (name, slots) in [&seen.shown[..], &[("state", cache.state())]].concat() {
        let rows = slots.map(|slots| names(slots.iter().map(|&slot| cache.row(slot))));
        see += &format!(r#", "{name}": {}"#, rows.unwrap_or("null".to_string()));
    }
    format!(r#"{{"op": {{"op": "{op}"{argument}, "see": {{{see}}}}}"#)
}

/// A short life of a ring: it wraps, takes chunks, refuses a rewind, is freed and rewound.
const LIFE: &str =
    "append 3, append 1, append 1, view, append 2, append 1, append 3, ask 5, rewind 5, free, append 2, \
                    rewind 1, append 1, view";

fn write_log(file: &str) -> io::Result<()> {
    let mut log = io::BufWriter::new(std::fs::File::create(file)?);
    let config = r#""batch": 1, "kv_heads": 2, "k_dim": 8, "v_dim": 6, "dtype": "f16", "step": 2, "window": 4"#;
    writeln!(log, r#"{{"kvtrace": 2, "kind": "ring", "config": {{{config}}}, "adapter": {}}}"#, described())?;
    let (mut cache, mut noise) = (Cache::new(2 * (8 + 6) * 2, 2, Some(4)), 1u64);
    for step in LIFE.split(", ") {
        let (op, number) = step.split_once(' ').unwrap_or((step, "0"));
        let number: i64 = number.parse().unwrap_or(0);
        let mut rows = vec![0; if op == "append" { number as usize * cache.width } else { 0 }];
        for byte in &mut rows {
            noise = noise.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *byte = (noise >> 56) as u8;
        }
        writeln!(log, "{}", logged(&mut cache, op, number, &rows))?;
    }
    Ok(())
}

// ---- JSON, as much as questions need: values are looked up in the text --------------------------------------

/// The items of a list, or the fields of an object.
fn items(json: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut escaped, mut start, mut found) = (0, false, false, 1, vec![]);
    for (i, c) in json.char_indices() {
        match c {
            '"' if !escaped => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        if !quoted && (depth == 0 || (depth == 1 && c == ',')) && i > start {
            found.push(json[start..i].trim());
            start = i + 1;
        }
    }
    found
}

/// The value of a field, as it is written but for its quotes; empty where there is none.
fn get<'a>(object: &'a str, key: &str) -> &'a str {
    let value = |field: &'a str| field.strip_prefix(&format!("\"{key}\""))?.trim_start().strip_prefix(':');
    items(object).into_iter().find_map(value).map_or("", |value| value.trim().trim_matches('"'))
}

fn number(object: &str, key: &str) -> i64 {
    get(object, key).parse().unwrap_or(0)
}

// ---- the wire: a question is a line of JSON and the bytes of its tensors, and so is an answer ---------------

struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// A cache, and the shape of its rows on the wire: [batch, kv_heads, n, dim].
struct Opened {
    cache: Cache,
    dtype: String,
    batch: usize,
    kv_heads: usize,
    dim: [usize; 2],
}

/// The caches A to Z, and what is to be observed of them.
struct Wire {
    caches: Vec<Option<Opened>>,
    observe: String,
}

fn bytes_of(dtype: &str) -> usize {
    match dtype {
        "f32" => 4,
        "bool" => 1,
        _ => 2,
    }
}

/// Open a cache of a question's kind and config.
fn open(question: &str) -> Result<Option<Opened>, Refused> {
    let (ring, config) = (get(question, "kind") == "ring", get(question, "config"));
    if !ring && get(question, "kind") != "growing" {
        return Ok(None);
    }
    let sizes = ["batch", "kv_heads", "k_dim", "v_dim", "step"].map(|name| number(config, name));
    let (dtype, window) = (get(config, "dtype"), get(config, "window").parse::<i64>().ok());
    let right = sizes.iter().all(|&n| n > 0) && ["f32", "f16", "bf16"].contains(&dtype);
    if !right || window.is_some() != ring || window.is_some_and(|window| window < 1) {
        return Err("CACHE-3");
    }
    let [batch, kv_heads, k_dim, v_dim, step] = sizes.map(|n| n as usize);
    let width = batch * kv_heads * (k_dim + v_dim) * bytes_of(dtype);
    let cache = Cache::new(width, step, window.map(|window| window as usize));
    Ok(Some(Opened { cache, dtype: dtype.to_string(), batch, kv_heads, dim: [k_dim, v_dim] }))
}

impl Opened {
    fn heads(&self) -> usize {
        self.batch * self.kv_heads
    }

    fn part_bytes(&self, part: usize) -> usize {
        self.dim[part] * bytes_of(&self.dtype)
    }

    /// Rows, one behind the other, from tensors of keys and values; refused where these are of another geometry.
    fn rows(&self, tensors: &[Tensor]) -> Result<Vec<u8>, Refused> {
        let n = tensors[0].shape[2];
        let shape = |part: usize| [self.batch, self.kv_heads, n, self.dim[part]];
        if n > 0 && (0..2).any(|part| tensors[part].shape != shape(part) || tensors[part].dtype != self.dtype) {
            return Err("CACHE-2");
        }
        let mut rows = vec![];
        for (i, part) in (0..n).flat_map(|i| [(i, 0), (i, 1)]) {
            let width = self.part_bytes(part);
            (0..self.heads()).for_each(|h| rows.extend(&tensors[part].bytes[(h * n + i) * width..][..width]));
        }
        Ok(rows)
    }

    /// The bytes of a tensor of the keys (0) or the values (1) in these slots.
    fn tensor(&self, slots: &[usize], part: usize) -> Vec<u8> {
        let (width, begin) = (self.part_bytes(part), part * self.heads() * self.part_bytes(0));
        let mut bytes = vec![];
        for h in 0..self.heads() {
            slots.iter().for_each(|&slot| bytes.extend(&self.cache.row(slot)[begin + h * width..][..width]));
        }
        bytes
    }
}

impl Wire {
    fn perform(&mut self, question: &str, place: usize, tensors: &[Tensor]) -> Seen {
        let (op, unseen) = (get(question, "op"), |result| Seen { result, can: None, shown: vec![] });
        if op == "begin" {
            self.caches.fill_with(|| None);
            self.observe = get(question, "observe").to_string();
        }
        let resident = number(question, "resident") != 0;
        match (&mut self.caches[place], op) {
            (place, "begin" | "open") => match open(question) {
                Ok(None) => unseen(Ok("unsupported")),
                Err(clause) => unseen(Err(clause)),
                opened => {
                    *place = opened.unwrap_or(None);
                    unseen(Ok("ok"))
                }
            },
            (None, _) => unseen(Ok("absent")),
            (Some(_), "append") if resident => unseen(Ok("unsupported")),
            (Some(opened), "append") => match opened.rows(tensors) {
                Ok(rows) => perform(&mut opened.cache, op, 0, &rows),
                Err(clause) => unseen(Err(clause)),
            },
            (Some(opened), _) => perform(&mut opened.cache, op, number(question, "to"), &[]),
        }
    }

    /// The header of an answer, and the bytes of its tensors.
    fn answer(&mut self, question: &str, tensors: &[Tensor]) -> (String, Vec<u8>) {
        let place = get(question, "cache").bytes().next().map_or(0, |letter| (letter - b'A') as usize);
        let seen = self.perform(question, place, tensors);
        let head = format!(r#"{{"id": {}, {}"#, get(question, "id"), result(&seen));
        let Some(opened) = &self.caches[place] else { return (head + "}", vec![]) };
        let (mut listed, mut bytes) = (vec![], vec![]);
        for (name, slots) in [&seen.shown[..], &[("state", opened.cache.state())]].concat() {
            for (part, letter) in ["k", "v"].iter().enumerate() {
                if name != "view" && !self.observe.contains(name) {
                    continue;
                } else if let Some(slots) = &slots {
                    let shape = [opened.batch, opened.kv_heads, slots.len(), opened.dim[part]];
                    listed.push(format!(r#"["{name}.{letter}", "{}", {shape:?}]"#, opened.dtype));
                    bytes.extend(opened.tensor(slots, part));
                } else {
                    listed.push(format!(r#"["{name}.{letter}", null, []]"#));
                }
            }
        }
        let (values, tensors) = (values(&opened.cache, &seen), listed.join(", "));
        (format!(r#"{head}, "values": {{{values}}}, "tensors": [{tensors}]}}"#), bytes)
    }
}

fn described() -> String {
    let claim = r#"{"level": "storage", "grows": "step"}"#;
    format!(r#"{{"name": "example-rust", "chapters": {{"growing": {claim}, "ring": {claim}}}}}"#)
}

fn serve() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut wire = Wire { caches: (0..26).map(|_| None).collect(), observe: String::new() };
    let mut question = String::new();
    while input.read_line(&mut question)? > 0 {
        let mut tensors = vec![];
        for listed in items(get(&question, "tensors")) {
            let listed = items(listed); // ["keys", "f16", [1, 2, 3, 8]]
            let (dtype, shape) = (listed[1].trim_matches('"').to_string(), items(listed[2]));
            let shape: Vec<usize> = shape.iter().map(|n| n.parse().unwrap_or(0)).collect();
            let mut bytes = vec![0; shape.iter().product::<usize>() * bytes_of(&dtype)];
            input.read_exact(&mut bytes)?;
            tensors.push(Tensor { dtype, shape, bytes });
        }
        let (head, bytes) = match get(&question, "op") {
            "describe" => {
                let id = get(&question, "id");
                (format!(r#"{{"id": {id}, "result": "ok", "describe": {}}}"#, described()), vec![])
            }
            _ => wire.answer(&question, &tensors),
        };
        output.write_all(&[head.as_bytes(), b"\n", &bytes].concat())?;
        output.flush()?;
        question.clear();
    }
    Ok(())
}

fn main() -> io::Result<()> {
    match std::env::args().collect::<Vec<_>>().as_slice() {
        [_, flag, file] if flag == "--log" => write_log(file),
        _ => serve(),
    }
}
