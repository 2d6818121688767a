// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of hosts.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use wire::{HostInfo, IommuUnit};

use super::Scraped;
use super::family::{Row, family, labels, word};
use crate::host::{Link, Records};

/// Writes the metrics of every host, also of one without a line: the service's own counts.
pub(super) fn encode(all: &[Scraped], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let each = |figure: fn(&Scraped) -> f64| all.iter().map(move |scraped| (of(scraped), figure(scraped)));
    let up = family("baton_host_up", "1 if the host answers, 0 if there is no line to it");
    up.gauge(encoder, each(|scraped| f64::from(u8::from(scraped.snapshot.link == Link::Connected))))?;
    let losses = family("baton_host_line_losses", "How often the line to the host was lost");
    losses.counter(encoder, each(|scraped| scraped.snapshot.losses as f64))?;
    let counted = |rows: fn(&str, &Records) -> Vec<Row>| {
        all.iter().flat_map(move |scraped| rows(&scraped.host.name, &scraped.host.shared.records()))
    };
    family("baton_events", "Events of the host, by kind").counter(encoder, counted(events))?;
    family("baton_log_records", "Records of the host's log, by level").counter(encoder, counted(levels))?;
    let lost = family("baton_records_lost", "Events and records of the log that were lost in the host");
    lost.counter(encoder, counted(|host, records| vec![(labels([("host", host)]), records.counts.lost as f64)]))?;
    let errors = family("baton_hardware_errors", "Machine checks that the host has reported");
    errors.counter(encoder, counted(hardware_errors))
}

fn of(scraped: &Scraped) -> Vec<(&'static str, String)> {
    labels([("host", &scraped.host.name)])
}

fn events(host: &str, records: &Records) -> Vec<Row> {
    let rows = records.counts.kinds.iter();
    rows.map(|(kind, count)| (labels([("host", host), ("kind", kind)]), *count as f64)).collect()
}

fn levels(host: &str, records: &Records) -> Vec<Row> {
    let rows = records.counts.levels.iter();
    rows.map(|(level, count)| (labels([("host", host), ("level", &level.to_string())]), *count as f64)).collect()
}

/// Both kinds from the beginning on: an alert watches the rise from 0.
fn hardware_errors(host: &str, records: &Records) -> Vec<Row> {
    let kinds = [("corrected", "hardware-error-corrected"), ("uncorrected", "hardware-error-uncorrected")];
    let count = |kind| records.counts.kinds.get(kind).copied().unwrap_or_default() as f64;
    kinds.map(|(name, kind)| (labels([("host", host), ("kind", name)]), count(kind))).into()
}

/// Writes the metrics that hosts with a line have reported.
pub(super) fn encode_reached(all: &[&Scraped], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let infos: Vec<(&str, &HostInfo)> =
        all.iter().filter_map(|scraped| Some((&*scraped.host.name, scraped.snapshot.info.as_ref()?))).collect();
    let each =
        |figure: fn(&HostInfo) -> f64| infos.iter().map(move |(host, info)| (labels([("host", host)]), figure(info)));
    let image = family("baton_host_image", "Version and build of the host's running image");
    image.info(
        encoder,
        infos.iter().map(|(host, info)| labels([("host", host), ("version", &info.version), ("build", &info.build)])),
    )?;
    let uptime = family("baton_host_uptime", "Time since the host was entered").seconds();
    uptime.gauge(encoder, each(|info| info.uptime_ns as f64 / 1e9))?;
    let generation = family("baton_host_generation", "Images that have run since the machine was powered on");
    generation.gauge(encoder, each(|info| info.generation as f64))?;
    let memory = family("baton_host_memory", "Memory: all, free, and the host's own").bytes();
    memory.gauge(encoder, infos.iter().flat_map(|(host, info)| memory_of(host, info)))?;
    let nmis = family("baton_host_unclaimed_nmis", "NMIs that nothing has claimed since the image started");
    nmis.counter(encoder, each(|info| info.unclaimed_nmis as f64))?;
    let interrupts = family("baton_host_unexpected_interrupts", "Interrupts of unused vectors since the image started");
    interrupts.counter(encoder, each(|info| info.unexpected_interrupts as f64))?;
    encode_protection(all, encoder)
}

fn memory_of(host: &str, info: &HostInfo) -> [Row; 3] {
    let kinds =
        [("total", info.memory_total_bytes), ("free", info.memory_free_bytes), ("host", info.host_overhead_bytes)];
    kinds.map(|(kind, bytes)| (labels([("host", host), ("kind", kind)]), bytes as f64))
}

/// Writes the mitigations that protect guests from each other.
fn encode_protection(all: &[&Scraped], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let exposed = family("baton_vulnerable", "1 if the host is exposed to this speculation vulnerability");
    exposed.gauge(
        encoder,
        all.iter().flat_map(|scraped| {
            scraped.snapshot.vulnerabilities.iter().map(|row| {
                let labels = labels([("host", &scraped.host.name), ("vulnerability", &row.name)]);
                (labels, f64::from(u8::from(row.status.starts_with("Vulnerable"))))
            })
        }),
    )?;
    let iommus = |figure: fn(&IommuUnit) -> f64| {
        all.iter().flat_map(move |scraped| {
            scraped.snapshot.iommus.iter().map(move |unit| {
                let registers = format!("{:#x}", unit.registers);
                let labels =
                    labels([("host", &scraped.host.name), ("kind", &word(&unit.kind)), ("registers", &registers)]);
                (labels, figure(unit))
            })
        })
    };
    let isolates = family("baton_iommu_isolates", "1 if the IOMMU isolates the functions behind it");
    isolates.gauge(encoder, iommus(|unit| f64::from(u8::from(unit.problem.is_none()))))?;
    let refused = family("baton_iommu_refused_accesses", "Accesses that the IOMMU has refused since the image started");
    refused.counter(encoder, iommus(|unit| unit.refused as f64))
}
