// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton vm save`, `baton vm restore` and `baton vm migrate`.

use std::{env, process};

use anyhow::{Result, ensure};

use super::orders::check_name;
use super::vm::{INTERRUPTED, watched};
use super::{DONE, connect};
use crate::args::{Target, VmMigrate, VmRestore, VmSave};
use crate::client::Client;
use crate::migrate::{self, Order};
use crate::save;
use crate::size::Size;

pub(super) fn save(client: &mut Client, order: &VmSave) -> Result<u8> {
    check_name(client, &order.vm)?;
    check_line(client, order.slow)?;
    let saved = watched(client, |client, progress, is_interrupted| {
        save::save(client, &order.vm, &order.file, order.resume, progress, is_interrupted)
    })?;
    let Some(saved) = saved else { return Ok(INTERRUPTED) };
    let [memory, fetched] = [saved.memory_bytes, saved.fetched_bytes].map(|bytes| Size { bytes });
    let then = if order.resume { "goes on" } else { "is stopped" };
    println!("{}: {memory} of memory ({fetched} not zero); {} {then}", order.file.display(), order.vm);
    Ok(DONE)
}

pub(super) fn restore(client: &mut Client, order: &VmRestore) -> Result<u8> {
    check_line(client, order.slow)?;
    let restored =
        watched(client, |client, progress, _| save::restore(client, &order.file, order.name.as_deref(), progress))?;
    let Some(name) = restored else { return Ok(INTERRUPTED) };
    println!("{name} goes on from {}", order.file.display());
    Ok(DONE)
}

pub(super) fn migrate(client: &mut Client, target: &Target, order: &VmMigrate) -> Result<u8> {
    check_name(client, &order.vm)?;
    let mut there = connect(&Target { connect: Some(order.to.clone()), name: None, ..target.clone() })?;
    check_line(client, order.slow)?;
    check_line(&there, order.slow)?;
    let folder = order.folder.clone().unwrap_or_else(env::temp_dir);
    let path = folder.join(format!("{}-{}.saved", order.vm, process::id()));
    let moving = Order { name: &order.vm, path: &path, has_same_disks: order.same_disks };
    let moved = watched(client, |client, progress, is_interrupted| {
        migrate::migrate(client, &mut there, moving, progress, is_interrupted)
    })?;
    let Some(moved) = moved else { return Ok(INTERRUPTED) };
    let [memory, fetched] = [moved.memory_bytes, moved.fetched_bytes].map(|bytes| Size { bytes });
    let seconds = moved.stood_still.as_secs_f64();
    println!(
        "{} goes on at {}: {memory} of memory ({fetched} not zero); it stood still for {seconds:.1} s",
        order.vm, order.to
    );
    Ok(DONE)
}

/// A serial line carries some ten kilobytes a second.
fn check_line(client: &Client, is_slow: bool) -> Result<()> {
    ensure!(
        is_slow || !client.is_over_serial_line(),
        "the line to the host is a serial one, over which a machine's memory takes long; use `--slow`, or connect from a \
         guest of the host (vsock)"
    );
    Ok(())
}
