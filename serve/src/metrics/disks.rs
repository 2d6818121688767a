// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of disks behind servers in other guests.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use wire::DiskInfo;

use super::Scraped;
use super::family::{Labels, Row, family};

/// Writes them.
pub(super) fn encode(all: &[&Scraped], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let disks = |rows: fn(&str, &DiskInfo) -> Vec<Row>| {
        all.iter()
            .flat_map(move |scraped| scraped.snapshot.disks.iter().flat_map(move |disk| rows(&scraped.host.name, disk)))
    };
    let connected = family("baton_disk_connected", "1 while the disk's server is connected");
    connected.gauge(encoder, disks(|host, disk| one(host, disk, f64::from(u8::from(disk.is_connected)))))?;
    let size = family("baton_disk_size", "Size of the disk, once its server was there").bytes();
    size.gauge(
        encoder,
        disks(|host, disk| disk.bytes.map(|bytes| (of(host, disk), bytes as f64)).into_iter().collect()),
    )?;
    let waiting = family("baton_disk_requests_in_flight", "Requests of the guest that have no answer yet");
    waiting.gauge(encoder, disks(|host, disk| one(host, disk, f64::from(disk.in_flight))))?;
    let requests = family("baton_disk_requests", "Requests that were carried out, by kind");
    requests.counter(encoder, disks(by_kind))?;
    let bytes = family("baton_disk", "Bytes that were read and written").bytes();
    bytes.counter(encoder, disks(by_direction))?;
    let failures = family("baton_disk_failed_requests", "Requests that failed");
    failures.counter(encoder, disks(|host, disk| one(host, disk, disk.failures as f64)))?;
    let connections = family("baton_disk_connections", "Connections to the disk's server that were made");
    connections.counter(encoder, disks(|host, disk| one(host, disk, disk.connections as f64)))
}

fn one(host: &str, disk: &DiskInfo, value: f64) -> Vec<Row> {
    vec![(of(host, disk), value)]
}

fn by_kind(host: &str, disk: &DiskInfo) -> Vec<Row> {
    let kinds = [("read", disk.reads.requests), ("write", disk.writes.requests), ("other", disk.others)];
    kinds.map(|(kind, count)| (with(host, disk, ("kind", kind)), count as f64)).into()
}

fn by_direction(host: &str, disk: &DiskInfo) -> Vec<Row> {
    let directions = [("read", disk.reads.bytes), ("written", disk.writes.bytes)];
    directions.map(|(direction, bytes)| (with(host, disk, ("direction", direction)), bytes as f64)).into()
}

fn with(host: &str, disk: &DiskInfo, (key, value): (&'static str, &str)) -> Labels {
    let mut labels = of(host, disk);
    labels.push((key, value.to_owned()));
    labels
}

fn of(host: &str, disk: &DiskInfo) -> Labels {
    let DiskInfo { guest, number, server, .. } = disk;
    let pairs =
        [("host", host.to_owned()), ("guest", guest.clone()), ("disk", number.to_string()), ("server", server.clone())];
    pairs.into()
}
