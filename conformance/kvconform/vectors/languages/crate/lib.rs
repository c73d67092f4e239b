//! kvconform: frozen traces of KV caches, and a reader that replays them. No dependencies.
//!
//! @SAID@.
//!
//! Implement [`Cache`] for your cache, and give [`check`] what opens it: it says of each trace that went otherwise what
//! was expected. A row is a number: append rows whose keys and values you make from these numbers, and answer which
//! numbers a query sees. Written by `kvconform vectors crate`. CC0.

use std::panic::{catch_unwind, AssertUnwindSafe};

mod traces;

/// An operation was refused.
#[derive(Debug)]
pub struct Refused;

pub trait Cache {
    /// `false` for a cache that has no rewind: traces that need it are left out.
    const REWINDS: bool = true;
    /// `false` for a cache that has no reset.
    const RESETS: bool = true;

    fn append(&mut self, rows: &[i64]) -> Result<(), Refused>;
    /// The offset can be negative; it is then refused.
    fn rewind(&mut self, offset: i64) -> Result<(), Refused>;
    fn reset(&mut self) -> Result<(), Refused>;
    /// Rows appended since the last reset, less those rewound.
    fn offset(&self) -> i64;
    /// The rows that a query of the last append sees, in any order.
    fn sees(&self, query: usize) -> Vec<i64>;
}

#[derive(Debug, Clone, Copy)]
pub enum Op {
    Append(&'static [i64]),
    Rewind(i64),
    Reset,
}

/// An operation, and what must be seen after it.
#[derive(Debug)]
pub struct Step {
    pub op: Op,
    pub refused: bool,
    pub offset: i64,
    /// The rows that each query of an append sees.
    pub sees: &'static [&'static [i64]],
}

#[derive(Debug)]
pub struct Trace {
    /// Id and trace.
    pub words: &'static str,
    /// `None` where the cache keeps every row.
    pub window: Option<usize>,
    pub steps: &'static [Step],
}

#[derive(Debug)]
pub struct Outcome {
    pub judged: usize,
    pub all: usize,
    pub wrong: Vec<String>,
}

pub fn traces() -> &'static [Trace] {
    traces::TRACES
}

/// Replay all that the cache claims. A trace in which it panics went otherwise.
pub fn check<C: Cache>(open: impl Fn(Option<usize>) -> C) -> Outcome {
    let claimed: Vec<&Trace> = traces().iter().filter(|trace| claims::<C>(trace)).collect();
    let guarded = |trace: &Trace| {
        catch_unwind(AssertUnwindSafe(|| replay(&open, trace)))
            .unwrap_or_else(|_| Some(format!("{}\n  the cache panicked", trace.words)))
    };
    let wrong = claimed.iter().filter_map(|trace| guarded(trace)).collect();
    Outcome { judged: claimed.len(), all: traces().len(), wrong }
}

/// Replay one trace; give what went otherwise.
pub fn replay<C: Cache>(open: impl Fn(Option<usize>) -> C, trace: &Trace) -> Option<String> {
    let mut cache = open(trace.window);
    let mut said = trace.steps.iter().enumerate().filter_map(|(i, step)| Some((i + 1, perform(&mut cache, step)?)));
    said.next().map(|(number, what)| format!("{}\n  step {number}: {what}", trace.words))
}

fn claims<C: Cache>(trace: &Trace) -> bool {
    trace.steps.iter().all(|step| match step.op {
        Op::Append(_) => true,
        Op::Rewind(_) => C::REWINDS,
        Op::Reset => C::RESETS,
    })
}

fn perform<C: Cache>(cache: &mut C, step: &Step) -> Option<String> {
    let done = match step.op {
        Op::Append(rows) => cache.append(rows),
        Op::Rewind(offset) => cache.rewind(offset),
        Op::Reset => cache.reset(),
    };
    match (done.is_err(), step.refused) {
        (true, false) => return Some("refused, expected to be done".into()),
        (false, true) => return Some("done, expected to be refused".into()),
        _ if cache.offset() == step.offset => {}
        _ => return Some(format!("offset {}, expected {}", cache.offset(), step.offset)),
    }
    step.sees.iter().enumerate().find_map(|(query, expected)| otherwise(&cache.sees(query), query, expected))
}

fn otherwise(found: &[i64], query: usize, expected: &[i64]) -> Option<String> {
    let (mut left, mut right) = (found.to_vec(), expected.to_vec());
    left.sort_unstable();
    right.sort_unstable();
    (left != right).then(|| format!("query {query} sees rows {found:?}; expected {expected:?}"))
}
