// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of guests' consoles and of hosts' PCI functions.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use wire::{ConsoleOutput, VmInfo};

use super::Scraped;
use super::family::{Row, family, labels};

/// Writes them.
pub(super) fn encode(all: &[&Scraped], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let output =
        family("baton_console_output", "Output of the guest's console that came to the service, with its marks")
            .bytes();
    output.counter(encoder, all.iter().flat_map(|scraped| received(scraped)))?;
    let followers = family("baton_console_followers", "Clients of the service that follow the guest's console");
    followers.gauge(encoder, all.iter().flat_map(|scraped| followed(scraped)))?;
    let written = family("baton_guest_console_output", "Output of the guest's console since the image started").bytes();
    written.counter(encoder, all.iter().flat_map(|scraped| printed(scraped, |console| console.bytes)))?;
    let lost =
        family("baton_guest_console_lost", "Output of the guest's console that the host had no room for").bytes();
    lost.counter(encoder, all.iter().flat_map(|scraped| printed(scraped, |console| console.lost_bytes)))?;
    let functions = family("baton_pci_functions", "PCI functions of the host, by state and guest");
    functions.gauge(encoder, all.iter().flat_map(|scraped| pci(scraped)))?;
    let problems = family("baton_pci_functions_with_problems", "PCI functions with a problem that the host has found");
    let of = |scraped: &&Scraped| labels([("host", &scraped.host.name)]);
    problems.gauge(encoder, all.iter().map(|scraped| (of(scraped), f64::from(scraped.snapshot.pci.with_problems))))
}

/// Returns the bytes of each guest whose console the service has.
fn received(scraped: &Scraped) -> Vec<Row> {
    let ends = scraped.host.shared.consoles.ends().into_iter();
    ends.map(|(guest, end)| (labels([("host", &scraped.host.name), ("guest", &guest)]), end as f64)).collect()
}

fn printed(scraped: &Scraped, figure: fn(&ConsoleOutput) -> u64) -> Vec<Row> {
    let row = |vm: &VmInfo| (labels([("host", &scraped.host.name), ("guest", &vm.name)]), figure(&vm.console) as f64);
    scraped.snapshot.guests.iter().map(row).collect()
}

fn followed(scraped: &Scraped) -> Vec<Row> {
    let consoles = &scraped.host.shared.consoles;
    let row =
        |guest: &str| (labels([("host", &scraped.host.name), ("guest", guest)]), consoles.followers_of(guest) as f64);
    scraped.snapshot.guests.iter().map(|vm| row(&vm.name)).collect()
}

/// Returns the number of functions in each state; only those that are assigned have a guest.
fn pci(scraped: &Scraped) -> Vec<Row> {
    let row = |state: &str, guest: &str, count: u32| {
        (labels([("host", &scraped.host.name), ("state", state), ("guest", guest)]), f64::from(count))
    };
    let counts = &scraped.snapshot.pci;
    let others = [row("bridge", "", counts.bridges), row("free", "", counts.free)];
    let assigned = counts.assigned.iter().map(|(guest, count)| row("assigned", guest, *count));
    others.into_iter().chain(assigned).collect()
}
