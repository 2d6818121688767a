// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of a lab machine, line by line, each behind the name of its source:
//!
//! ```text
//! host   │ [0.012] 2 CPUs
//! debian │ Linux version 6.12
//! ```
//!
//! Guests' text is untrusted input: sequences that would move the cursor, clear the screen or answer in the operator's
//! name are removed. (`baton vm console` passes everything on, as a serial line does.)

use std::collections::BTreeMap;
use std::io::Write;

use owo_colors::{AnsiColors, OwoColorize as _};

/// The host's name on the screen.
const HOST: &str = "host";
/// The tool's own name on the screen.
const TOOL: &str = "baton";
/// Guests' colours, in turn.
const COLOURS: [AnsiColors; 5] =
    [AnsiColors::Green, AnsiColors::Cyan, AnsiColors::Magenta, AnsiColors::Yellow, AnsiColors::Blue];
/// A line of a guest that is longer is shown in pieces.
const MAX_LINE_BYTES: usize = 4096;

/// Shows lines on `out`.
pub struct Screen<W> {
    out: W,
    is_coloured: bool,
    name_width: usize,
    /// Each guest's unfinished line, and its colour.
    guests: BTreeMap<String, (Vec<u8>, AnsiColors)>,
}

impl<W: Write> Screen<W> {
    /// Returns a screen for the guests of these names.
    pub fn new<'a>(out: W, is_coloured: bool, guests: impl IntoIterator<Item = &'a str>) -> Self {
        let name_width = guests.into_iter().map(str::len).chain([HOST.len(), TOOL.len()]).max().unwrap_or_default();
        Self { out, is_coloured, name_width, guests: BTreeMap::new() }
    }

    /// Shows a line of the host's.
    pub fn host(&mut self, line: &str) {
        self.show(HOST, AnsiColors::White, line);
    }

    /// Shows a line of the tool's own.
    pub fn tool(&mut self, line: &str) {
        self.show(TOOL, AnsiColors::BrightBlack, line);
    }

    /// Shows bytes of a guest's console; returns the lines that they complete.
    pub fn console(&mut self, name: &str, bytes: &[u8]) -> Vec<String> {
        let colour = COLOURS[self.guests.len() % COLOURS.len()];
        let (pending, colour) = self.guests.entry(name.to_owned()).or_insert_with(|| (Vec::new(), colour));
        let colour = *colour;
        let mut lines = Vec::new();
        for &byte in bytes {
            if byte != b'\n' {
                pending.push(byte);
            }
            if byte == b'\n' || pending.len() >= MAX_LINE_BYTES {
                lines.push(clean(&std::mem::take(pending)));
            }
        }
        for line in &lines {
            self.show(name, colour, line);
        }
        lines
    }

    /// Shows the unfinished lines of guests (a prompt); returns them with their guests' names.
    pub fn flush(&mut self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        for (name, (pending, colour)) in &mut self.guests {
            if !pending.is_empty() {
                lines.push((name.clone(), clean(&std::mem::take(pending)), *colour));
            }
        }
        lines.iter().for_each(|(name, line, colour)| self.show(name, *colour, line));
        lines.into_iter().map(|(name, line, _)| (name, line)).collect()
    }

    fn show(&mut self, name: &str, colour: AnsiColors, line: &str) {
        let head = format!("{name:width$} │", width = self.name_width);
        // A screen that is gone (a closed pipe) must not keep the machine from going on.
        let _ = match self.is_coloured {
            true => writeln!(self.out, "{} {line}", head.color(colour)),
            false => writeln!(self.out, "{head} {line}"),
        };
        let _ = self.out.flush();
    }
}

/// Returns a line without escape sequences and control characters.
fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut characters = text.chars().peekable();
    let mut cleaned = String::new();
    while let Some(character) = characters.next() {
        if character == '\x1b' && characters.peek() == Some(&'[') {
            // A control sequence: parameters, then one final character from '@' to '~'.
            characters.next();
            characters.find(|next| ('@'..='~').contains(next));
        } else if character == '\t' || !character.is_control() {
            cleaned.push(character);
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(is_coloured: bool, act: impl FnOnce(&mut Screen<&mut Vec<u8>>)) -> String {
        let mut out = Vec::new();
        act(&mut Screen::new(&mut out, is_coloured, ["debian", "a"]));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn lines_of_several_sources_do_not_mix() {
        let text = shown(false, |screen| {
            screen.console("debian", b"Linux ver");
            screen.host("ready");
            assert_eq!(screen.console("debian", b"sion\r\nnext"), ["Linux version"]);
            screen.console("a", b"x\n");
            screen.tool("bye");
            assert_eq!(screen.flush(), [("debian".to_owned(), "next".to_owned())]);
        });
        assert_eq!(text, "host   │ ready\ndebian │ Linux version\na      │ x\nbaton  │ bye\ndebian │ next\n");
    }

    #[test]
    fn a_guest_cannot_move_the_cursor() {
        let text = shown(false, |screen| drop(screen.console("a", b"\x1b[2J\x1b[1;31mred\x1b[0m\x07\x1bc\x9b\n")));
        assert_eq!(text, "a      │ redc\u{fffd}\n");
    }

    #[test]
    fn names_are_coloured_on_a_terminal() {
        let text = shown(true, |screen| screen.host("x"));
        assert_eq!(text, "\x1b[37mhost   │\x1b[39m x\n");
    }

    #[test]
    fn a_line_without_end_is_shown_in_pieces() {
        let text = shown(false, |screen| drop(screen.console("a", &[b'x'; 5000])));
        assert_eq!(text.len(), MAX_LINE_BYTES + "a      │ \n".len());
    }
}
