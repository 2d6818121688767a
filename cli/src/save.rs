// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saving a guest of a host in a file, and having it go on from there.
//!
//! ```text
//! save       hold ──► state ──► memory that is not zero ──► file ──► stop, or resume
//! restore    file ──► memory, state: sent ──► the guest, created if the host has none ──► it goes on
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bundle::Manifest;
use wire::{ReplyBody, RequestBody, UploadKind, VmInfo, VmState};

use crate::client::Client;
use crate::dump::{Hold, Interrupted, Partial, fetch, image::Image, is_wrong_state, layout};
use crate::saved::{HEAD_BYTES, Head, Part, memory_offset};

/// The time limit for the host's CPUs to save a guest's vCPUs, and for a guest to go on.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The interval between two questions.
const INTERVAL: Duration = Duration::from_millis(20);

/// The contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The guest's memory in bytes.
    pub memory_bytes: u64,
    /// The bytes that came over the line; the rest was zero.
    pub fetched_bytes: u64,
}

/// Saves a guest in a file, which has its name once it is whole. The guest stands still meanwhile, and is stopped then,
/// or goes on if it `resumes`; after an error it goes on. `progress` gets the bytes of memory that are done, and of all
/// memory; `is_interrupted` is called all the while.
pub fn save(
    client: &mut Client,
    name: &str,
    path: &Path,
    resumes: bool,
    progress: impl FnMut(u64, u64),
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Saved> {
    let hold = Hold::begin(client, name)?;
    let partial = Partial::of(path);
    let saved = save_into(client, name, &partial, path, progress, is_interrupted).map(|(saved, _)| saved);
    let ends = saved.is_ok() && !resumes;
    match ends {
        true => client.order(RequestBody::VmStop { name: name.to_owned() })?,
        false => hold.end(client, name)?,
    }
    saved
}

/// Saves a guest that is held; returns its state, too.
pub(crate) fn save_into(
    client: &mut Client,
    name: &str,
    partial: &Partial,
    path: &Path,
    progress: impl FnMut(u64, u64),
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(Saved, Vec<u8>)> {
    let explain = || format!("{} cannot be written", path.display());
    let (host, info) = (client.config()?, client.info()?);
    let state = state(client, name)?;
    let ranges = layout(client, name)?;
    let file = partial.create().with_context(explain)?;
    file.write_all_at(&state, HEAD_BYTES).with_context(explain)?;
    let image = Image::new(file, memory_offset(state.len() as u64), &ranges).with_context(explain)?;
    let fetched_bytes = fetch::all(client, name, &image, progress, is_interrupted)?;
    // Had it gone on meanwhile, what was read would not belong together.
    ensure!(self::state(client, name)? == state, "guest '{name}' has gone on while it was saved; save it again");
    describe(&image, name, &format!("{} {}", info.version, info.build), &host, state.len() as u64)?;
    if is_interrupted() {
        bail!(Interrupted);
    }
    partial.complete(path).with_context(explain)?;
    Ok((Saved { memory_bytes: ranges.iter().map(|range| range.bytes).sum(), fetched_bytes }, state))
}

fn describe(image: &Image, name: &str, saved_by: &str, host: &Manifest, state_bytes: u64) -> Result<()> {
    let part = |offset, bytes| Part::of(&image.file, offset, bytes).context("what was saved cannot be read");
    let memory = image.pieces.iter().map(|piece| part(piece.offset, piece.bytes)).collect::<Result<_>>()?;
    Head::new(name, saved_by.trim_end().to_owned(), host, part(HEAD_BYTES, state_bytes)?, memory)?.write(&image.file)
}

/// Returns the state of a guest that stands still, once its CPUs have saved it.
pub(crate) fn state(client: &mut Client, name: &str) -> Result<Vec<u8>> {
    let (deadline, mut state) = (Instant::now() + TIMEOUT, Vec::new());
    loop {
        let from_byte = u32::try_from(state.len()).context("its state is too long")?;
        match client.request(RequestBody::VmSaved { name: name.to_owned(), from_byte }) {
            Ok(ReplyBody::Saved { bytes, total_bytes }) => {
                let has_more = !bytes.is_empty();
                state.extend(bytes);
                if total_bytes > 0 && state.len() >= total_bytes as usize {
                    return Ok(state);
                }
                if has_more {
                    continue;
                }
            }
            Ok(other) => bail!("the host answered something else ({other:?}); use tool and host of one release"),
            // Its vCPUs have not stopped yet.
            Err(error) if is_wrong_state(&error) && Instant::now() < deadline && state.is_empty() => {}
            Err(error) => return Err(error),
        }
        ensure!(Instant::now() < deadline, "the host's CPUs do not save guest '{name}'; see its log");
        thread::sleep(INTERVAL);
    }
}

/// Has the guest in a file go on, on a host that has the files from which it was started: as the guest of this name,
/// which is created if there is none. `progress` gets the bytes that were sent, and all bytes.
pub fn restore(client: &mut Client, path: &Path, name: Option<&str>, progress: impl FnMut(u64, u64)) -> Result<String> {
    let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let head = Head::read(&file, path)?;
    let name = name.unwrap_or(&head.guest);
    create(client, &head, name)?;
    let sent = send(client, (&file, path), &head, progress);
    let gone_on = sent.and_then(|()| order(client, &head, name)).and_then(|()| wait_for(client, name));
    remove_state(client, &head)?;
    match gone_on? {
        Outcome::Runs => Ok(name.to_owned()),
        Outcome::Failed(reason) => bail!("guest '{name}' cannot go on: {reason}"),
    }
}

/// Creates the guest if the host has none of this name; returns whether it has.
pub(crate) fn create(client: &mut Client, head: &Head, name: &str) -> Result<bool> {
    let is_new = !client.vms()?.iter().any(|vm| vm.name == name);
    if is_new {
        client.order(RequestBody::VmCreate { manifest: head.configuration(name)? })?;
    }
    Ok(is_new)
}

/// Sends all parts of a file. The state is a file of the host's until it is removed; memory that nothing asks for is
/// dropped.
pub(crate) fn send(
    client: &mut Client,
    (file, path): (&File, &Path),
    head: &Head,
    mut progress: impl FnMut(u64, u64),
) -> Result<()> {
    let total = head.state.bytes + head.memory.iter().map(|part| part.bytes).sum::<u64>();
    let mut done = 0;
    let parts = head.memory.iter().map(|part| (UploadKind::Memory, part));
    for (kind, part) in [(UploadKind::File, &head.state)].into_iter().chain(parts) {
        let content = part.read(file).with_context(|| path.display().to_string())?;
        client.upload(kind, &content, |there| progress(done + there, total))?;
        done += part.bytes;
    }
    Ok(())
}

/// Orders the guest to go on from what was sent.
pub(crate) fn order(client: &mut Client, head: &Head, name: &str) -> Result<()> {
    let memory = head.memory.iter().map(|part| part.sha256.clone()).collect();
    client.order(RequestBody::VmRestore { name: name.to_owned(), state: head.state.sha256.clone(), memory })
}

/// Removes the state that was sent.
pub(crate) fn remove_state(client: &mut Client, head: &Head) -> Result<()> {
    client.order(RequestBody::FileRemove { name: head.state.sha256.clone() })
}

/// The state in which a guest has come that was ordered to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has gone on.
    Runs,
    /// It cannot, for this reason.
    Failed(String),
}

/// Waits until a guest has gone on, or has failed to.
pub(crate) fn wait_for(client: &mut Client, name: &str) -> Result<Outcome> {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        match client.vms()?.into_iter().find(|vm| vm.name == name) {
            Some(VmInfo { state: VmState::Running, .. }) => return Ok(Outcome::Runs),
            Some(VmInfo { state: VmState::Failed, reason, .. }) => {
                return Ok(Outcome::Failed(reason.unwrap_or_default()));
            }
            Some(_) => thread::sleep(INTERVAL),
            None => bail!("the host has no guest '{name}' any more"),
        }
    }
    bail!("guest '{name}' does not go on; see the host's log")
}
