// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows as cells of text, for terminals and files alike.

use comfy_table::{Table, presets};
use serde::Serialize;

use super::rates::{CpuRow, GuestRow, HostRow, View};
use crate::size::Size;

/// The columns.
pub(super) const CPU_COLUMNS: [&str; 6] = ["CPU", "STATE", "GUEST%", "HOST%", "IDLE%", "VCPUS"];
pub(super) const GUEST_COLUMNS: [&str; 8] =
    ["GUEST", "STATE", "VCPUS", "MEMORY", "CPU%", "WAIT%", "EXITS/S", "BY KIND"];

/// Kinds of exits that are listed.
const KINDS: usize = 4;

/// Returns the tables that `--once` prints.
pub fn tables(view: &View) -> String {
    let table = |columns: &[&str], rows: Vec<Vec<String>>| {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(columns);
        table.add_rows(rows);
        table.to_string()
    };
    let cpus = view.cpus.iter().map(|row| cpu_cells(row).to_vec()).collect();
    let guests = view.guests.iter().map(|row| guest_cells(row).to_vec()).collect();
    let [cpus, guests] = [table(&CPU_COLUMNS, cpus), table(&GUEST_COLUMNS, guests)];
    format!("{}\n\n{cpus}\n\n{guests}\n", host_line(&view.host))
}

/// Describes the host in a line.
pub(super) fn host_line(host: &HostRow) -> String {
    let size = |bytes| Size { bytes };
    let (free, total) = (size(host.memory_free_bytes), size(host.memory_total_bytes));
    let (version, generation, uptime) = (&host.version, host.generation, host.uptime_s);
    format!("Baton {version}, generation {generation}, up {uptime:.0} s, memory {free} of {total} free")
}

/// Returns a CPU's cells.
pub(super) fn cpu_cells(row: &CpuRow) -> [String; 6] {
    let CpuRow { cpu, state, guest, host, idle, vcpus } = row;
    [cpu.to_string(), state.to_string(), percent(*guest), percent(*host), percent(*idle), vcpus.join(" ")]
}

/// Returns a guest's cells. vCPUs that wait are behind the share of all.
pub(super) fn guest_cells(row: &GuestRow) -> [String; 8] {
    let waiting = row.waiting.iter().map(|one| format!("{}:{:.0}", one.vcpu, one.share * 100.0));
    let waiting: Vec<String> = waiting.collect();
    let wait = match waiting.is_empty() {
        true => percent(row.wait),
        false => format!("{} (vCPU {})", percent(row.wait), waiting.join(" ")),
    };
    let kinds = row.exits.iter().take(KINDS).map(|exit| format!("{} {:.0}", word(&exit.kind), exit.per_s));
    [
        row.name.clone(),
        row.state.to_string(),
        row.vcpus.to_string(),
        Size { bytes: row.memory_bytes }.to_string(),
        percent(row.cpu),
        wait,
        row.exits_per_s.map_or_else(unknown, |rate| format!("{rate:.0}")),
        kinds.collect::<Vec<_>>().join(", "),
    ]
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(unknown, |share| format!("{:.1}", share * 100.0))
}

fn unknown() -> String {
    "-".to_owned()
}

/// Returns the name that a value has in JSON.
fn word(value: &impl Serialize) -> String {
    let json = serde_json::to_value(value).ok();
    json.and_then(|json| json.as_str().map(str::to_owned)).unwrap_or_default()
}
