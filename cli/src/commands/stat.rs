// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton perf stat`: each CPU's cycles by use, from the host's own counters beside its guests'.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use comfy_table::{Table, presets};
use serde::Serialize;
use wire::{CpuPerf, CpuState};

use super::{DONE, connect};
use crate::args::{Format, Target};
use crate::client::Client;

#[cfg(test)]
mod tests;

/// The counters' bits.
const WIDTH_MASK: u64 = (1 << 48) - 1;
/// The interval between requests: the host stops counting 5 s after the last one.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// The use of one CPU in a span of time, in ticks of its time stamp counter. The host's, idle and all guests'
/// ticks add up to all ticks.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CpuSpan))]
pub struct Span {
    /// The CPU's number.
    pub cpu: u32,
    /// The length of the span.
    pub over_ns: u64,
    /// All ticks.
    pub ticks: u64,
    /// The host's cycles.
    pub host_cycles: u64,
    /// The host's cycles at the time stamp counter's rate.
    pub host_reference_cycles: u64,
    /// Ticks in which it waited.
    pub idle_ticks: u64,
    /// Ticks in all guests, those that have left the CPU included.
    pub guest_ticks: u64,
    /// The vCPUs that are on it.
    pub guests: Vec<GuestSpan>,
}

/// The ticks in one guest.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GuestSpan {
    /// The guest.
    pub vm: String,
    /// The vCPU's number.
    pub vcpu: u32,
    /// Ticks in it.
    pub ticks: u64,
}

/// Counts for this time.
pub(super) fn run(target: &Target, seconds: f64, format: Format) -> Result<u8> {
    let time = Duration::try_from_secs_f64(seconds).context("--seconds is a number of seconds, 0 or more")?;
    let mut client = connect(target)?;
    let guests: Vec<String> = client.vms()?.into_iter().map(|vm| vm.name).collect();
    let online = |cpu: &wire::CpuInfo| (cpu.state == CpuState::Online).then_some(cpu.index);
    let cpus: Vec<u32> = client.cpus()?.iter().filter_map(online).collect();
    let end = Instant::now() + time;
    let before = figures_of_all(&mut client, &cpus)?;
    let spans = loop {
        let left = end.saturating_duration_since(Instant::now());
        thread::sleep(left.min(ASK_EVERY));
        let now = figures_of_all(&mut client, &cpus)?;
        let spans = cpus.iter().zip(before.iter().zip(&now)).map(|(&cpu, (b, a))| between(cpu, &guests, b, a));
        // A CPU with reset counters need not be waited for.
        let spans = spans.collect::<Result<Vec<Span>>>()?;
        if left <= ASK_EVERY {
            break spans;
        }
    };
    if format.json {
        for span in &spans {
            println!("{}", serde_json::to_string(span)?);
        }
    } else {
        println!("{}", table(&spans));
    }
    Ok(DONE)
}

fn figures_of_all(client: &mut Client, cpus: &[u32]) -> Result<Vec<CpuPerf>> {
    cpus.iter().map(|&cpu| client.cpu_figures(cpu)).collect()
}

/// Returns the difference of two samples.
///
/// # Errors
/// The counters were reset in between, or the host's time went back.
pub fn between(cpu: u32, names: &[String], before: &CpuPerf, after: &CpuPerf) -> Result<Span> {
    if after.began_ns != before.began_ns {
        bail!("the counters of CPU {cpu} were reset: it was offline, or the host was replaced; ask again");
    }
    let had = |guest: u32, vcpu: u32| before.guests.iter().find(|had| (had.guest, had.vcpu) == (guest, vcpu));
    let guests = after.guests.iter().map(|now| {
        // A guest that has come back to the CPU begins at zero.
        let before = had(now.guest, now.vcpu).map_or(0, |had| had.ticks);
        let vm = names.get(now.guest as usize).cloned().unwrap_or_else(|| now.guest.to_string());
        GuestSpan { vm, vcpu: now.vcpu, ticks: now.ticks.checked_sub(before).unwrap_or(now.ticks) }
    });
    let counted = |of: fn(&CpuPerf) -> u64| of(after).wrapping_sub(of(before)) & WIDTH_MASK;
    Ok(Span {
        cpu,
        over_ns: spent(cpu, before.at_ns, after.at_ns)?,
        ticks: spent(cpu, before.ticks, after.ticks)?,
        host_cycles: counted(|perf| perf.host_cycles),
        host_reference_cycles: counted(|perf| perf.host_reference_cycles),
        idle_ticks: counted(|perf| perf.idle_ticks),
        guest_ticks: all_guests(after).saturating_sub(all_guests(before)),
        guests: guests.collect(),
    })
}

fn spent(cpu: u32, before: u64, after: u64) -> Result<u64> {
    let went_back = || format!("the time of CPU {cpu} went back, by the host's own report; ask again");
    after.checked_sub(before).with_context(went_back)
}

/// Returns the ticks in all guests, those that have left the CPU included.
fn all_guests(perf: &CpuPerf) -> u64 {
    perf.guests.iter().map(|guest| guest.ticks).fold(perf.gone_ticks, u64::saturating_add)
}

fn table(spans: &[Span]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["CPU", "USE", "CYCLES", "REF-CYCLES", "SHARE"]);
    for span in spans {
        let mut row = |user: &str, cycles: u64, reference: u64| {
            let (cpu, share) = (span.cpu.to_string(), share(reference, span.ticks));
            table.add_row([cpu, user.to_owned(), cycles.to_string(), reference.to_string(), share]);
        };
        row("host", span.host_cycles, span.host_reference_cycles);
        let stayed: u64 = span.guests.iter().map(|guest| guest.ticks).sum();
        for GuestSpan { vm, vcpu, ticks } in &span.guests {
            row(&format!("guest {vm}/{vcpu}"), *ticks, *ticks);
        }
        match span.guest_ticks.saturating_sub(stayed) {
            0 => {}
            gone => row("guests that left", gone, gone),
        }
        // A CPU that waits has no cycles.
        row("idle", 0, span.idle_ticks);
    }
    table
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.2} %", part as f64 * 100.0 / whole as f64) }
}
