// SPDX-License-Identifier: MIT OR Apache-2.0
//! The audit log: a line of JSON when an order is asked for, and one with its answer. An order that cannot be written
//! down is not carried out.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::access::{Over, Peer, Role};
use crate::clock;

#[cfg(test)]
mod tests;

/// The audit log.
pub struct Audit(Mutex<Log>);

struct Log {
    file: Box<dyn Write + Send>,
    last: u64,
}

/// An order, as it is written down.
#[derive(Clone, Debug, Serialize)]
pub struct Order<'o> {
    /// The host.
    pub host: &'o str,
    /// The name of the order: `guest-stop`, …
    pub request: &'o str,
    /// The guest, CPU or function; empty for the host.
    pub subject: &'o str,
}

#[derive(Serialize)]
struct Asked<'o> {
    time: String,
    order: u64,
    who: &'o str,
    over: Over,
    role: Option<Role>,
    #[serde(flatten)]
    asked: &'o Order<'o>,
}

#[derive(Serialize)]
struct Answered<'o> {
    time: String,
    order: u64,
    result: &'o str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'o str,
}

impl Audit {
    /// Appends to a file, or writes to standard error.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::over(io::stderr())) };
        let file = File::options().append(true).create(true).open(path);
        Ok(Self::over(file.with_context(|| format!("the audit log {} cannot be opened", path.display()))?))
    }

    /// Writes to this.
    pub fn over(file: impl Write + Send + 'static) -> Self {
        Self(Mutex::new(Log { file: Box::new(file), last: 0 }))
    }

    /// Writes down that a client asks for this; returns the order's number.
    ///
    /// # Errors
    /// It could not be written: do not carry the order out.
    pub fn asked(&self, peer: &Peer, asked: &Order<'_>) -> io::Result<u64> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let order = log.last + 1;
        let Peer { who, role, over } = peer;
        log.write(&Asked { time: clock::text(clock::now_ms()), order, who, over: *over, role: *role, asked })?;
        log.last = order;
        Ok(order)
    }

    /// Writes down how the order ended.
    pub fn answered(&self, order: u64, result: &str, message: &str) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answered = Answered { time: clock::text(clock::now_ms()), order, result, message };
        if let Err(error) = log.write(&answered) {
            eprintln!("baton serve: the answer to order {order} ({result}) is not in the audit log: {error}");
        }
    }
}

impl Log {
    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        // In one piece, so that two services that share a file do not mix their lines.
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)?;
        self.file.flush()
    }
}
