// SPDX-License-Identifier: MIT OR Apache-2.0
//! From addresses in the host's log to functions and lines.
//!
//! The host prints a backtrace as bare addresses, `  #3 0xffffffff80012345`: it carries no symbols. The tool has the
//! image with its line tables, and adds what it finds there.

use std::fmt::Write as _;
use std::path::Path;

use addr2line::Loader;
use anyhow::{Result, anyhow};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use rustc_demangle::demangle;

/// An image's symbols.
pub struct Symbols {
    loader: Loader,
    build: Option<[u8; 20]>,
}

impl Symbols {
    /// Reads the symbols of the image at `path`: where `baton.elf` is without any, `baton.debug.elf` beside it has
    /// them.
    pub fn load(path: &Path) -> Result<Self> {
        let beside = path.with_extension("debug.elf");
        let path = if beside.is_file() { &beside } else { path };
        let explain = |error| anyhow!("the symbols of {} cannot be read: {error}; name an ELF image", path.display());
        Ok(Self { loader: Loader::new(path).map_err(explain)?, build: build_of(path) })
    }

    /// Returns the linker's build ID of the image, if its symbols have one.
    pub fn build_id(&self) -> Option<&[u8; 20]> {
        self.build.as_ref()
    }

    /// Returns the functions at an address, the innermost first; the address where none is known.
    pub fn functions(&self, address: u64) -> Vec<String> {
        let mut names = Vec::new();
        let mut frames = self.loader.find_frames(address).ok();
        while let Some(Ok(Some(frame))) = frames.as_mut().map(|frames| frames.next()) {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            names.extend(name.map(|name| format!("{:#}", demangle(&name))));
        }
        // The outermost is a function with a symbol, which states in which module it is.
        let outermost = names.pop();
        let symbol = self.loader.find_symbol(address).map(|name| format!("{:#}", demangle(name)));
        names.push(symbol.or(outermost).unwrap_or_else(|| format!("{address:#x}")));
        names
    }

    /// Returns the line as it is, and behind a backtrace's address the functions (innermost first) with file and line.
    pub fn annotate(&self, line: &str) -> String {
        let Some((index, address)) = backtrace_entry(line) else { return line.to_owned() };
        // All but the innermost address are return addresses: the call stands before them.
        let address = if index == 0 { address } else { address.saturating_sub(1) };
        format!("{line}{}", self.describe(address))
    }

    fn describe(&self, address: u64) -> String {
        let mut text = String::new();
        let mut frames = self.loader.find_frames(address).ok();
        while let Some(Ok(Some(frame))) = frames.as_mut().map(|frames| frames.next()) {
            let inner = if text.is_empty() { " " } else { ", inlined into " };
            let function = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let function = function.as_deref().or_else(|| self.loader.find_symbol(address)).unwrap_or("?");
            let function = format!("{:#}", demangle(function));
            let _ = write!(text, "{inner}{function}");
            if let Some(location) = frame.location {
                let (file, line) = (location.file.unwrap_or("?"), location.line.unwrap_or_default());
                let _ = write!(text, " at {file}:{line}");
            }
        }
        if text.is_empty() {
            text = self.loader.find_symbol(address).map(|name| format!(" {:#}", demangle(name))).unwrap_or_default();
        }
        text
    }
}

/// Returns the linker's build ID, where the image's symbols have one: behind the head and the owner of its note.
fn build_of(path: &Path) -> Option<[u8; 20]> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let note = file.symbol_by_name("__build_note")?.address();
    let data = file.sections().find_map(|section| section.data_range(note, 36).ok()?)?;
    data.get(16..36)?.try_into().ok()
}

/// Returns the number and the address of a backtrace's line, whatever stands before them.
fn backtrace_entry(line: &str) -> Option<(u32, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).find_map(|pair| {
        let index = pair[0].strip_prefix('#')?.parse().ok()?;
        let address = u64::from_str_radix(pair[1].strip_prefix("0x")?, 16).ok()?;
        Some((index, address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_backtraces_lines_are_understood() {
        assert_eq!(backtrace_entry("  #3 0xffffffff80012345"), Some((3, 0xffff_ffff_8001_2345)));
        assert_eq!(backtrace_entry("[ 0.5] error: #0 0x10"), Some((0, 0x10)));
        for line in ["", "rip 0x10", "#PF 0x10", "#3", "#3 10", "#3 0xzz"] {
            assert_eq!(backtrace_entry(line), None, "{line}");
        }
    }

    #[test]
    fn an_address_of_this_program_is_found() {
        let program = std::env::current_exe().expect("known");
        let symbols = Symbols::load(&program).expect("symbols");
        let bytes = std::fs::read(&program).expect("readable");
        // The ELF header's entry point: `_start`, wherever the linker put it.
        let entry = u64::from_le_bytes(bytes[24..32].try_into().expect("eight bytes"));
        let line = format!("  #0 {entry:#x}");
        let annotated = symbols.annotate(&line);
        assert!(annotated.starts_with(&line) && annotated.contains("start"), "{annotated}");
        assert_eq!(symbols.annotate("no backtrace"), "no backtrace");
    }

    #[test]
    fn a_file_without_symbols_is_named() {
        let error = Symbols::load(Path::new("/nowhere")).err().expect("not there").to_string();
        assert!(error.contains("/nowhere"), "{error}");
    }
}
