// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disks as the control channel lists them.

use alloc::string::String;
use alloc::vec::Vec;

use bundle::DiskConfig;
use vm::devices::blk::{Figures, Transfers};
use wire::{DiskInfo, DiskTransfers, ReplyBody, page};

use crate::guests::guest::Guest;
use crate::guests::slots::GUESTS;
use crate::guests::sockets::streams;

/// The most disks collected for one page; a frame holds fewer.
const PAGE_DISKS: usize = 64;

/// A page of the disks, guest by guest.
pub fn list(from_index: u32) -> ReplyBody {
    let mut all = Vec::new();
    for guest in GUESTS.all() {
        let streams = streams::of(guest.number).into_iter().zip(1..);
        all.extend(streams.map(|(stream, number)| (guest.clone(), stream, number)));
    }
    let from = from_index as usize;
    let described = all.iter().skip(from).filter_map(|(guest, stream, number)| {
        let config = guest.config.disks.get(*number as usize - 1)?;
        Some(describe((guest, *number), config, *stream.figures.lock()))
    });
    let disks = page::fill(described, PAGE_DISKS);
    let next = from.saturating_add(disks.len());
    let next_index = (!disks.is_empty() && next < all.len()).then_some(next as u32);
    ReplyBody::Disks { disks, next_index }
}

fn describe((guest, number): (&Guest, u32), config: &DiskConfig, figures: Figures) -> DiskInfo {
    let Figures { export_bytes, is_up, in_flight, counts } = figures;
    DiskInfo {
        guest: guest.config.name.clone(),
        number,
        server: name_of(config.cid),
        export: config.export.clone(),
        serial: config.serial.clone(),
        is_read_only: config.is_read_only,
        is_write_back: config.is_write_back,
        bytes: export_bytes,
        is_connected: is_up,
        in_flight,
        reads: transfers(counts.reads),
        writes: transfers(counts.writes),
        others: counts.others,
        failures: counts.failures,
        connections: counts.connections,
    }
}

/// The name of the guest with this context identifier.
fn name_of(cid: u32) -> String {
    let its = |guest: &Guest| guest.config.vsock.as_ref().is_some_and(|vsock| vsock.cid == cid);
    GUESTS.all().find(|guest| its(guest)).map_or_else(String::new, |guest| guest.config.name.clone())
}

fn transfers(Transfers { requests, bytes }: Transfers) -> DiskTransfers {
    DiskTransfers { requests, bytes }
}
