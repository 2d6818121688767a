// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton vm perf`: a virtual machine's performance counters and exits, seen from outside while it runs.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use comfy_table::{Table, presets};
use serde::Serialize;
use wire::{ExitCount, PerfCounter, VcpuPerf};

use super::{DONE, seconds};
use crate::args::Format;
use crate::client::Client;

#[cfg(test)]
mod tests;

/// The exits and counters of a vCPU in a span of time.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = VcpuSpan))]
pub struct Span {
    /// The vCPU's number.
    pub vcpu: u32,
    /// The length of the span.
    pub over_ns: u64,
    /// The time for which it had a CPU.
    pub ran_ns: u64,
    /// The time for which it waited for one.
    pub waited_ns: u64,
    /// Ticks of the time stamp counter in the guest while a counter counted.
    pub counted_ticks: u64,
    /// Exits; kinds without any are left out.
    pub exits: Vec<ExitCount>,
    /// Its counters.
    pub counters: Vec<CounterSpan>,
}

/// The change of a counter in the span.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CounterSpan {
    /// Its state at the end.
    #[serde(flatten)]
    pub counter: PerfCounter,
    /// Overflows in the span.
    pub overflows_meanwhile: u64,
}

/// Samples the machine at both ends of this time; a machine of this name exists.
pub(super) fn run(client: &mut Client, name: &str, time: Duration, format: Format) -> Result<u8> {
    let vcpus = client.vms()?.iter().find(|vm| vm.name == name).map_or(0, |vm| vm.vcpus);
    let before = figures_of_all(client, name, vcpus)?;
    thread::sleep(time);
    let after = figures_of_all(client, name, vcpus)?;
    let spans: Vec<Span> = before.iter().zip(&after).zip(0..).map(|((b, a), vcpu)| between(vcpu, b, a)).collect();
    if format.json {
        for span in &spans {
            println!("{}", serde_json::to_string(span)?);
        }
        return Ok(DONE);
    }
    println!("{}", work_table(&spans));
    if spans.iter().any(|span| !span.counters.is_empty()) {
        println!("\n{}", counter_table(&spans));
    }
    Ok(DONE)
}

fn figures_of_all(client: &mut Client, name: &str, vcpus: u32) -> Result<Vec<VcpuPerf>> {
    (0..vcpus).map(|vcpu| client.figures(name, vcpu)).collect()
}

/// Returns the difference of two samples. A count that has fallen was reset: by another image, or another run of the
/// machine.
pub fn between(vcpu: u32, before: &VcpuPerf, after: &VcpuPerf) -> Span {
    let since = |before: u64, after: u64| after.checked_sub(before).unwrap_or(after);
    let had = |exit: &ExitCount| before.exits.iter().find(|had| had.kind == exit.kind).map_or(0, |had| had.count);
    let exits = after.exits.iter().map(|exit| ExitCount { count: since(had(exit), exit.count), ..*exit });
    let counters = after.counters.iter().map(|counter| {
        let is_same = |had: &&PerfCounter| (had.number, had.is_fixed) == (counter.number, counter.is_fixed);
        let had = before.counters.iter().find(is_same).map_or(0, |had| had.overflows);
        CounterSpan { counter: *counter, overflows_meanwhile: since(had, counter.overflows) }
    });
    Span {
        vcpu,
        over_ns: after.at_ns.saturating_sub(before.at_ns),
        ran_ns: since(before.ran_ns, after.ran_ns),
        waited_ns: since(before.waited_ns, after.waited_ns),
        counted_ticks: since(before.counted_ticks, after.counted_ticks),
        exits: exits.filter(|exit| exit.count > 0).collect(),
        counters: counters.collect(),
    }
}

fn work_table(spans: &[Span]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["VCPU", "OVER", "RAN", "WAITED", "COUNTED TICKS", "EXITS", "MOST OF THEM"]);
    for span in spans {
        let total: u64 = span.exits.iter().map(|exit| exit.count).sum();
        let most = span.exits.iter().max_by_key(|exit| exit.count);
        table.add_row([
            span.vcpu.to_string(),
            format!("{:.2} s", seconds(span.over_ns)),
            share(span.ran_ns, span.over_ns),
            share(span.waited_ns, span.over_ns),
            span.counted_ticks.to_string(),
            total.to_string(),
            most.map_or_else(String::new, |exit| format!("{:?} ({})", exit.kind, share(exit.count, total))),
        ]);
    }
    table
}

fn counter_table(spans: &[Span]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["VCPU", "COUNTER", "EVENT", "MODES", "STATE", "VALUE", "OVERFLOWS"]);
    for span in spans {
        for CounterSpan { counter, overflows_meanwhile } in &span.counters {
            table.add_row([
                span.vcpu.to_string(),
                format!("{}{}", if counter.is_fixed { "fixed " } else { "" }, counter.number),
                counter.event.to_string(),
                modes(counter).to_owned(),
                counter.state.to_string(),
                format!("{:#x}", counter.value),
                overflows_meanwhile.to_string(),
            ]);
        }
    }
    table
}

fn modes(counter: &PerfCounter) -> &'static str {
    match (counter.user, counter.kernel) {
        (true, true) => "user, kernel",
        (true, false) => "user",
        (false, true) => "kernel",
        (false, false) => "none",
    }
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}
