// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's memory and registers as a core file that gdb and crash open.
//!
//! ```text
//!              hold, if it runs             resume, if it ran
//!  host ◄── registers, layout ── fetch: memory that is not zero, eight requests at a time ──► file
//!                                                                                              │
//!                            mappings: the guest's own page tables, read from the file ◄───────┤
//!                            elf: header, notes, places of memory                     ────────►┘
//! ```
//!
//! The file is ELF's ET_CORE (System V ABI, chapters 4 and 5): a note per CPU with its registers, and a PT_LOAD
//! for each piece of memory, by physical address. Where the guest pages in 64-bit mode, each run of mapped pages has
//! another PT_LOAD over the same bytes, so that gdb finds what a kernel's symbols name. Memory that is zero is a hole
//! in the file.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use thiserror::Error;
use wire::{MAX_HOLD_MS, MemoryRange, Refusal, RefusalCode, ReplyBody, RequestBody, VcpuRegisters};

use crate::client::Client;

mod elf;
pub(crate) mod fetch;
pub(crate) mod image;
mod mappings;
#[cfg(test)]
mod tests;

use image::Image;

/// The time for which the host holds a guest for us without a request. It is longer than the time between two of our
/// requests, which is five seconds at most, and the time that the line takes.
const HOLD: Duration = Duration::from_secs(15);
/// The time limit for a guest's vCPUs to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval between two requests for their state.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// The mode of a file with a guest's memory: its owner's alone.
const PRIVATE: u32 = 0o600;

/// The contents of a core file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// The number of vCPUs.
    pub vcpus: usize,
    /// The guest's memory in bytes.
    pub memory_bytes: u64,
    /// The bytes that came over the line; the rest was zero.
    pub fetched_bytes: u64,
    /// Runs of mapped pages.
    pub mappings: usize,
}

/// The operator has interrupted a dump; nothing is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("interrupted: the file is removed, and the guest goes on")]
pub struct Interrupted;

/// Writes the core of a guest with `vcpus` CPUs to `path`. One that runs is held meanwhile: the host lets it go
/// on when this end is gone. The file has its name once it is whole. `progress` gets the bytes of memory that are
/// done, and of all memory; `is_interrupted` is called all the while.
pub fn dump(
    client: &mut Client,
    name: &str,
    vcpus: u32,
    path: &Path,
    progress: impl FnMut(u64, u64),
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Dumped> {
    let hold = Hold::begin(client, name)?;
    let partial = Partial::of(path);
    let fetched = fetch_into(client, name, vcpus, &partial, progress, is_interrupted);
    let resumed = hold.end(client, name);
    let (image, registers, fetched_bytes) = fetched?;
    resumed?;
    let explain = || format!("{} cannot be written", path.display());
    let mappings = registers.first().map_or_else(Vec::new, |first| mappings::of(&image, first));
    elf::write(&image, &registers, &mappings).with_context(explain)?;
    if is_interrupted() {
        bail!(Interrupted);
    }
    partial.complete(path).with_context(explain)?;
    let memory_bytes = image.pieces.iter().map(|piece| piece.bytes).sum();
    Ok(Dumped { vcpus: registers.len(), memory_bytes, fetched_bytes, mappings: mappings.len() })
}

/// Reads everything from the guest while it is held.
fn fetch_into(
    client: &mut Client,
    name: &str,
    vcpus: u32,
    partial: &Partial,
    progress: impl FnMut(u64, u64),
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(Image, Vec<VcpuRegisters>, u64)> {
    let registers = (0..vcpus).map(|vcpu| registers(client, name, vcpu)).collect::<Result<Vec<_>>>()?;
    let ranges = layout(client, name)?;
    let explain = || format!("{} cannot be written", partial.path.display());
    let file = partial.create().with_context(explain)?;
    let image = Image::new(file, elf::data_offset(registers.len()), &ranges).with_context(explain)?;
    let fetched_bytes = fetch::all(client, name, &image, progress, is_interrupted)?;
    Ok((image, registers, fetched_bytes))
}

/// A guest that stands still for as long as it is read. The host lets it go on when this end is gone.
pub(crate) struct Hold {
    was_still: bool,
}

impl Hold {
    pub(crate) fn begin(client: &mut Client, name: &str) -> Result<Self> {
        let was_still = is_still(client, name)?;
        if !was_still {
            hold(client, name)?;
        }
        Ok(Self { was_still })
    }

    /// Goes on with it where nothing is read for a while.
    pub(crate) fn renew(&self, client: &mut Client, name: &str) -> Result<()> {
        if self.was_still { Ok(()) } else { hold(client, name) }
    }

    /// Resumes the guest, if it ran before and does not run already.
    pub(crate) fn end(self, client: &mut Client, name: &str) -> Result<()> {
        if self.was_still {
            return Ok(());
        }
        match client.order(RequestBody::VmResume { name: name.to_owned() }) {
            Err(error) if is_wrong_state(&error) => Ok(()),
            result => result,
        }
    }
}

fn hold(client: &mut Client, name: &str) -> Result<()> {
    let hold = client.patience(HOLD, 3 * fetch::ASKED_BYTES).as_millis();
    let ms = u32::try_from(hold).unwrap_or(MAX_HOLD_MS).min(MAX_HOLD_MS);
    client.order(RequestBody::VmHold { name: name.to_owned(), ms })
}

/// A file that is not whole yet, under a name that shows that. Dropped before it is complete, it is removed.
pub(crate) struct Partial {
    path: PathBuf,
}

impl Partial {
    pub(crate) fn of(path: &Path) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        Self { path: name.into() }
    }

    pub(crate) fn create(&self) -> io::Result<File> {
        // A guest's memory holds its secrets.
        File::options().read(true).write(true).create(true).truncate(true).mode(PRIVATE).open(&self.path)
    }

    pub(crate) fn complete(&self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Of a completed file nothing has this name.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns whether the guest is stopped already: paused, or held by the host.
fn is_still(client: &mut Client, name: &str) -> Result<bool> {
    match client.request(RequestBody::VmLayout { name: name.to_owned() }) {
        Ok(_) => Ok(true),
        Err(error) if is_wrong_state(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns a CPU's registers, once it has stopped.
fn registers(client: &mut Client, name: &str, vcpu: u32) -> Result<VcpuRegisters> {
    let deadline = Instant::now() + STOP_TIMEOUT;
    loop {
        match client.request(RequestBody::VmRegisters { name: name.to_owned(), vcpu }) {
            Ok(ReplyBody::Registers(registers)) => return Ok(*registers),
            Ok(other) => bail!("the host answered something else ({other:?}); use tool and host of one release"),
            Err(error) if is_wrong_state(&error) && Instant::now() < deadline => std::thread::sleep(STOP_INTERVAL),
            Err(error) => return Err(error),
        }
    }
}

/// Returns where a guest that stands still has memory.
pub(crate) fn layout(client: &mut Client, name: &str) -> Result<Vec<MemoryRange>> {
    match client.request(RequestBody::VmLayout { name: name.to_owned() })? {
        ReplyBody::Layout(ranges) => Ok(ranges),
        other => bail!("the host answered something else ({other:?}); use tool and host of one release"),
    }
}

pub(crate) fn is_wrong_state(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == RefusalCode::WrongState)
}
