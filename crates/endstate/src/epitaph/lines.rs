// SPDX-License-Identifier: MIT OR Apache-2.0
//! An epitaph as lines for people. Return addresses are ` #n 0x…`, as in the report, so that the tool can name
//! functions.

use core::fmt::{self, Write};

use super::{Epitaph, REGISTERS};

/// Registers in a line.
const IN_A_LINE: usize = 4;

impl Epitaph<'_> {
    /// Shows every line, without its end. None of them holds a control character.
    pub fn lines(&self, visit: &mut dyn FnMut(&dyn fmt::Display)) {
        let (seconds, microseconds) = (self.uptime_ns / 1_000_000_000, self.uptime_ns % 1_000_000_000 / 1000);
        let (version, cpu) = (Escaped(self.host_version), self.cpu);
        visit(&format_args!("Baton {version} ended on CPU {cpu} after {seconds}.{microseconds:06} s"));
        visit(&Escaped(self.reason));
        for row in 0..REGISTERS.len().div_ceil(IN_A_LINE) {
            if let Some(values) = &self.registers {
                visit(&Row { first: row * IN_A_LINE, values });
            }
        }
        for (index, address) in self.backtrace.iter().enumerate() {
            visit(&format_args!(" #{} {address:#018x}", index + 1));
        }
        visit(&"its log's last lines:");
        self.tail.lines().for_each(|line| visit(&Escaped(line)));
    }
}

struct Row<'a> {
    first: usize,
    values: &'a [u64],
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = REGISTERS.iter().zip(self.values).skip(self.first).take(IN_A_LINE).enumerate();
        row.into_iter()
            .try_for_each(|(at, (name, value))| write!(f, "{}{name:6} {value:016x}", if at == 0 { "" } else { " " }))
    }
}

/// Text with its control characters escaped.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            _ if character.is_control() => write!(f, "{}", character.escape_default()),
            _ => f.write_char(character),
        })
    }
}
