// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton vm save` and `baton vm restore`.

use anyhow::{Result, ensure};

use super::DONE;
use super::orders::check_name;
use super::vm::{INTERRUPTED, watched};
use crate::args::{VmRestore, VmSave};
use crate::client::Client;
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

/// A serial line carries some ten kilobytes a second.
fn check_line(client: &Client, is_slow: bool) -> Result<()> {
    ensure!(
        is_slow || !client.is_over_serial_line(),
        "the line to the host is a serial one, over which a machine's memory takes long; use `--slow`, or connect from a \
         guest of the host (vsock)"
    );
    Ok(())
}
