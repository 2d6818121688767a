// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton symbolize`: functions and lines for a log that was kept.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};

use super::DONE;
use crate::output::output;
use crate::paths::default_image;
use crate::symbols::Symbols;

pub(super) fn run(log: Option<&Path>, image: Option<&Path>) -> Result<u8> {
    let symbols = Symbols::load(&default_image(image)?)?;
    let mut reader: Box<dyn BufRead> = match log {
        None => Box::new(io::stdin().lock()),
        Some(path) => {
            let file =
                File::open(path).with_context(|| format!("{} cannot be read; correct the path", path.display()))?;
            Box::new(BufReader::new(file))
        }
    };
    let mut out = output();
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes)? > 0 {
        let line = String::from_utf8_lossy(&bytes);
        writeln!(out, "{}", symbols.annotate(line.trim_end_matches(['\n', '\r'])))?;
        bytes.clear();
    }
    Ok(DONE)
}
