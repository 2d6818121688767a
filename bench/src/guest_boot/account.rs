// SPDX-License-Identifier: MIT OR Apache-2.0
//! The account of the time that a boot under Baton takes longer.
//!
//! Exits of a kind, times the cycles of one round trip of that kind as the guest `exits` measured them right after the
//! boot. What the exits do not explain is left: in an emulator above all the second stage of address translation, which
//! it walks in software for every entry that it puts into its translation cache.
//!
//! A boot's exits are not the bench's, so the nearest row stands for each kind:
//!
//! | kind | row | because |
//! |---|---|---|
//! | CPUID and other instructions without a device | `cpuid` | a lookup and the next instruction |
//! | MSR reads | `msr` | the local APIC's registers |
//! | MSR writes | `self_ipi` / 2 | two writes of the local APIC and an interrupt |
//! | ports | `port_in` | nearly all are the serial line's |
//! | memory | `mmio` | an instruction that is decoded, and a device |
//! | halts | none | the guest waits for something either way |

use wire::{ExitCount, ExitKind};

use crate::exits::{Measured, Rows};

/// The account of one boot.
pub(super) struct Account {
    /// The cost of the exits of each kind.
    kinds: Vec<Entry>,
    /// The unexplained rest of the difference to the direct boot.
    left_ms: f64,
}

struct Entry {
    kind: ExitKind,
    count: u64,
    ms: f64,
}

/// One line of the accounts of all runs.
pub(super) struct Row {
    pub metric: String,
    pub unit: &'static str,
    pub runs: Vec<f64>,
}

impl Account {
    /// The account of a boot that took `difference_ms` longer.
    pub fn of(exits: &[ExitCount], costs: &Measured, difference_ms: f64) -> Self {
        let ms = |exit: &ExitCount| {
            exit.count as f64 * cost_cycles(exit.kind, &costs.rows) / costs.tsc_hz.max(1) as f64 * 1e3
        };
        let kinds: Vec<Entry> =
            exits.iter().map(|exit| Entry { kind: exit.kind, count: exit.count, ms: ms(exit) }).collect();
        let explained_ms: f64 = kinds.iter().map(|entry| entry.ms).sum();
        Self { kinds, left_ms: difference_ms - explained_ms }
    }

    fn find(&self, kind: ExitKind) -> Option<&Entry> {
        self.kinds.iter().find(|entry| entry.kind == kind)
    }
}

/// Cycles of one exit of a kind.
fn cost_cycles(kind: ExitKind, rows: &Rows) -> f64 {
    let row = |name: &str| rows.round_trip(name).unwrap_or_default();
    match kind {
        ExitKind::MsrRead => row("msr"),
        ExitKind::MsrWrite => row("self_ipi") / 2.0,
        ExitKind::Port => row("port_in"),
        ExitKind::MemoryFault => row("mmio"),
        ExitKind::Halt => 0.0,
        _ => row("cpuid"),
    }
}

/// The accounts of all runs, line by line: how often, what it cost, and what is left.
pub(super) fn rows(accounts: &[Account]) -> Vec<Row> {
    let Some(first) = accounts.first() else { return Vec::new() };
    let mut rows = Vec::new();
    for kind in first.kinds.iter().map(|entry| entry.kind) {
        let column = |value: fn(&Entry) -> f64| {
            accounts.iter().map(|account| account.find(kind).map_or(0.0, value)).collect::<Vec<f64>>()
        };
        let name = name(kind);
        rows.push(Row { metric: format!("exits_{name}"), unit: "exits", runs: column(|entry| entry.count as f64) });
        rows.push(Row { metric: format!("cost_{name}"), unit: "ms", runs: column(|entry| entry.ms) });
    }
    let left = accounts.iter().map(|account| account.left_ms).collect();
    rows.push(Row { metric: "cost_left".to_owned(), unit: "ms", runs: left });
    rows
}

fn name(kind: ExitKind) -> &'static str {
    match kind {
        ExitKind::Cpuid => "cpuid",
        ExitKind::MsrRead => "msr_read",
        ExitKind::MsrWrite => "msr_write",
        ExitKind::Port => "port",
        ExitKind::MemoryFault => "memory",
        ExitKind::Halt => "halt",
        ExitKind::InterruptWindow => "interrupt_window",
        ExitKind::HostInterrupt => "host_interrupt",
        ExitKind::HostNmi => "host_nmi",
        ExitKind::Hypercall => "hypercall",
        ExitKind::Xsetbv => "xsetbv",
        ExitKind::AbsentInstruction => "absent_instruction",
        ExitKind::CacheFlush => "cache_flush",
        ExitKind::Shutdown => "shutdown",
        ExitKind::EntryRefused => "entry_refused",
        ExitKind::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> Measured {
        let lines = ["empty", "cpuid", "port_in", "msr", "self_ipi", "mmio"].iter().zip([10, 110, 210, 310, 410, 510]);
        let lines: Vec<String> = lines.map(|(name, ticks)| format!("exits: {name} min=1 median={ticks} n=1")).collect();
        Measured { rows: Rows::parse(&lines).expect("rows"), tsc_hz: 1_000_000 }
    }

    #[test]
    fn exits_cost_the_figure_of_their_row_and_the_rest_is_left() {
        let exits = [
            ExitCount { kind: ExitKind::Port, count: 5 },
            ExitCount { kind: ExitKind::MsrWrite, count: 10 },
            ExitCount { kind: ExitKind::Halt, count: 99 },
        ];
        let rows = rows(&[Account::of(&exits, &costs(), 10.0)]);
        let reported: Vec<_> = rows.iter().map(|row| (row.metric.as_str(), row.runs[0])).collect();
        assert_eq!(
            reported,
            [
                ("exits_port", 5.0),
                ("cost_port", 1.0),
                ("exits_msr_write", 10.0),
                ("cost_msr_write", 2.0),
                ("exits_halt", 99.0),
                ("cost_halt", 0.0),
                ("cost_left", 7.0),
            ]
        );
    }

    #[test]
    fn a_kind_that_a_run_had_not_is_zero_there() {
        let with = Account::of(&[ExitCount { kind: ExitKind::Cpuid, count: 1 }], &costs(), 1.0);
        let without = Account::of(&[], &costs(), 1.0);
        assert_eq!(rows(&[with, without])[0].runs, [1.0, 0.0]);
    }
}
