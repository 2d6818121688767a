// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small client of the service: one connection over its Unix socket, which stays open.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The longest wait for a piece of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection.
pub(super) struct Connection(BufReader<UnixStream>);

impl Connection {
    pub(super) fn open(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Asks, and returns the body of the answer, which must be a good one.
    pub(super) fn get(&mut self, path: &str) -> Result<Vec<u8>> {
        let length = self.ask(path)?.with_context(|| format!("the answer to {path} has no length"))?;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(body)
    }

    pub(super) fn json(&mut self, path: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&self.get(path)?)?)
    }

    /// Begins to listen to the service's news.
    pub(super) fn listen(&mut self) -> Result<()> {
        self.ask("/api/v1/stream").map(drop)
    }

    /// Returns the next line of news.
    pub(super) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.0.read_line(&mut line)? > 0, "the service has ended its stream");
        Ok(line)
    }

    /// Asks; returns the length of the answer's body, if it is stated.
    fn ask(&mut self, path: &str) -> Result<Option<usize>> {
        self.0.get_mut().write_all(format!("GET {path} HTTP/1.1\r\nHost: baton\r\n\r\n").as_bytes())?;
        let status = self.line()?;
        ensure!(status.starts_with("HTTP/1.1 200"), "{path}: the service answers {}", status.trim_end());
        let mut length = None;
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { return Ok(length) };
            if name == "content-length" {
                length = Some(value.parse()?);
            }
        }
    }
}
