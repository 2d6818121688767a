// SPDX-License-Identifier: MIT OR Apache-2.0
//! Updates of the host, and resets of the storage guest, under a guest that verifies its disk.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use lab::disk_use::DiskUse;
use wire::{DiskInfo, ReplyBody, RequestBody, UpdateBy};

use super::machine::{Console, STORAGE, answered, disk, setup};
use crate::Context;
use crate::setup::{HostSetup, Started, temporary_folder};

/// The guest goes round in so many MiB: blocks are overwritten while the ones before are in the write-back cache.
const MEBIBYTES: u64 = 2;
const BLOCKS: u64 = (MEBIBYTES << 20) / 4096;
const CPUS: u32 = 2;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The result of a run in which no block was lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Survived {
    /// Updates and resets.
    pub events: u64,
    /// Blocks that were read back, all right.
    pub verified: u64,
    /// The guest's slowest access before all, among updates, and among resets.
    pub stall_ms: f64,
    pub update_stall_ms: f64,
    pub reset_stall_ms: f64,
}

/// Updates the host and resets the storage guest so many times each, on one machine.
pub(super) fn measure(context: &Context, updates: u64, resets: u64) -> Result<Survived> {
    let folder = temporary_folder()?;
    let image = baton::config::Image::Usual;
    let setup =
        HostSetup { cpus: CPUS, image, ..setup(context, folder.path(), &format!("disk:{MEBIBYTES},wait"), true)? };
    let mut user = User {
        host: setup.start(context)?,
        console: Console::default(),
        limit: context.timeout,
        last: DiskUse::default(),
    };
    let mut survived = Survived { stall_ms: user.verifies_a_round()?, ..Survived::default() };
    for update in 1..=updates {
        context.step(&format!("blk: update {update} of {updates}"));
        user.limit += context.timeout;
        let before = user.update(context.timeout)?;
        survived.update_stall_ms = user.is_back(before)?.max(survived.update_stall_ms);
        survived.events += 1;
    }
    survived.update_stall_ms = user.verifies_a_round()?.max(survived.update_stall_ms);
    for reset in 1..=resets {
        context.step(&format!("blk: reset {reset} of {resets}"));
        user.limit += context.timeout;
        let before = user.reset()?;
        survived.reset_stall_ms = user.is_back(before)?.max(survived.reset_stall_ms);
        survived.events += 1;
    }
    survived.reset_stall_ms = user.verifies_a_round()?.max(survived.reset_stall_ms);
    survived.verified = user.last.verified;
    Ok(survived)
}

/// The machine, and what its guest with the disk has reported.
struct User {
    host: Started,
    console: Console,
    /// The machine's longest time until now.
    limit: Duration,
    last: DiskUse,
}

impl User {
    /// Replaces the host. Returns the connections that the disk has had once it is back, at least, by the count of the
    /// image that answers next.
    fn update(&mut self, timeout: Duration) -> Result<u64> {
        let body = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        match self.host.lab.client()?.request_within(timeout, body)? {
            // Each image counts from 0, and goes on with the connection if nothing would have to be repeated.
            ReplyBody::Updated(_) => Ok(0),
            other => bail!("not the answer to an update: {other:?}"),
        }
    }

    /// The same for a reset of the storage guest.
    fn reset(&mut self) -> Result<u64> {
        let mut client = self.host.lab.client()?;
        let before = disk(&mut client)?.connections;
        client.request(RequestBody::VmReset { name: STORAGE.to_owned() })?;
        Ok(before + 1)
    }

    /// Waits until the disk has had so many connections, and has answered further requests. Returns the guest's slowest
    /// access meanwhile, in milliseconds.
    fn is_back(&mut self, connections: u64) -> Result<f64> {
        let mut client = self.host.lab.client()?;
        let mut is_ready = |is: &dyn Fn(&DiskInfo) -> bool| loop {
            let disk = disk(&mut client)?;
            ensure!(disk.failures == 0, "requests of the disk failed: {disk:?}");
            if is(&disk) {
                return Ok(answered(&disk));
            }
            ensure!(self.host.lab.elapsed() < self.limit, "the disk is not back: {disk:?}");
            sleep(POLL_INTERVAL);
        };
        let answered_before = is_ready(&|disk| disk.is_connected && disk.connections >= connections)?;
        is_ready(&|disk| answered(disk) > answered_before)?;
        self.reports()
    }

    /// Waits until all blocks are written and read back once more. Returns the slowest access meanwhile.
    fn verifies_a_round(&mut self) -> Result<f64> {
        let mut slowest_ms = self.reports()?;
        // Blocks that are read back first may have been written before.
        let end = self.last.verified + 2 * BLOCKS;
        while self.last.verified < end {
            slowest_ms = self.reports()?.max(slowest_ms);
        }
        Ok(slowest_ms)
    }

    /// Takes all reports that are there, and waits for one more. Returns the slowest access in them.
    fn reports(&mut self) -> Result<f64> {
        let mut slowest_us = 0;
        while let Some(report) = self.console.old_report(&mut self.host)? {
            slowest_us = report.slowest_us.max(slowest_us);
        }
        self.last = self.console.next_report(&mut self.host, self.limit)?;
        Ok(self.last.slowest_us.max(slowest_us) as f64 / 1e3)
    }
}
