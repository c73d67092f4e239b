//! A ring in Rust, judged by kvconform's crate:
//!
//! ```text
//! python3 -m kvconform vectors crate --out kvconform-vectors && cargo test
//! ```
//!
//! With `cargo test --features bug` its rewind leaves the write cursor behind.

pub struct Ring {
    slots: Vec<i64>,
    window: Option<usize>,
    offset: usize,
    cursor: usize,
    fresh: usize,
}

#[derive(Debug)]
pub struct NoSuchOffset;

impl Ring {
    /// `None`: it keeps every row.
    pub fn new(window: Option<usize>) -> Self {
        Ring { slots: vec![], window, offset: 0, cursor: 0, fresh: 0 }
    }

    pub fn append(&mut self, rows: &[i64]) {
        self.slots.truncate(self.cursor);
        self.slots.extend(rows);
        self.cursor += rows.len();
        self.offset += rows.len();
        self.fresh = rows.len();
    }

    pub fn rewind(&mut self, offset: i64) -> Result<(), NoSuchOffset> {
        let to = usize::try_from(offset).map_err(|_| NoSuchOffset)?;
        let wrapped = matches!(self.window, Some(window) if self.offset > window);
        if to > self.offset || (wrapped && to < self.offset) {
            return Err(NoSuchOffset);
        }
        self.offset = to;
        if cfg!(not(feature = "bug")) {
            self.cursor = to;
        }
        Ok(())
    }

    pub fn reset(&mut self) {
        self.offset = 0;
        self.cursor = 0;
    }

    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The rows that a query of the last append sees.
    pub fn sees(&self, query: usize) -> &[i64] {
        let end = self.offset - self.fresh + query + 1;
        &self.slots[self.window.map_or(0, |window| end.saturating_sub(window))..end]
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use kvconform_vectors::{check, Cache, Refused};

    impl Cache for Ring {
        fn append(&mut self, rows: &[i64]) -> Result<(), Refused> {
            Ring::append(self, rows);
            Ok(())
        }
        fn rewind(&mut self, offset: i64) -> Result<(), Refused> {
            Ring::rewind(self, offset).map_err(|_| Refused)
        }
        fn reset(&mut self) -> Result<(), Refused> {
            Ring::reset(self);
            Ok(())
        }
        fn offset(&self) -> i64 {
            Ring::offset(self) as i64
        }
        fn sees(&self, query: usize) -> Vec<i64> {
            Ring::sees(self, query).to_vec()
        }
    }

    #[test]
    fn the_ring_does_what_every_trace_says() {
        let found = check(Ring::new);
        println!("{} traces of {} judged, {} went otherwise", found.judged, found.all, found.wrong.len());
        assert!(found.judged > 0 && found.wrong.is_empty(), "{}", found.wrong.join("\n"));
    }
}
