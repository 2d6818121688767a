// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moving a guest to another host.
//!
//! ```text
//! source   ───────── hold ─► state, memory ─► file ─────── pause for good ──────────────► stop
//! target   can it be? ───────────────── created ─► sent ──────────────────► it goes on ─┘
//! ```
//!
//! It stands still from the hold on. The hold ends by itself when this end is gone: then the guest goes on where it
//! was. Before the target is ordered to let it go on, the source pauses it for good. So whatever breaks, it never runs
//! twice.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use wire::{Refusal, RequestBody, VmState};

use crate::client::Client;
use crate::dump::{Hold, Interrupted, Partial};
use crate::save::{self, Outcome, Saved};
use crate::saved::Head;

mod handing_over;

use handing_over::{GoneOn, Hosts, hand_over};

/// The interval at which the hold is renewed while memory is sent: the source gets no other request then.
const RENEWAL: Duration = Duration::from_secs(2);

/// The course of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The guest's memory in bytes.
    pub memory_bytes: u64,
    /// The bytes that were not zero.
    pub fetched_bytes: u64,
    /// The time for which it stood still, as this end has measured it.
    pub stood_still: Duration,
}

/// The guest that is moved, and how.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Its name.
    pub name: &'a str,
    /// A file for its memory, which is removed again.
    pub path: &'a Path,
    /// Its disks are the same at the target, and no other guest uses them.
    pub has_same_disks: bool,
}

/// Moves a guest from one host to another one. `progress` gets the bytes that are done, and all of them: first into the
/// file, then to the target. `is_interrupted` is called all the while.
///
/// # Errors
/// It goes on at the source, unless the error states otherwise.
pub fn migrate(
    source: &mut Client,
    target: &mut Client,
    order: Order<'_>,
    mut progress: impl FnMut(u64, u64),
    is_interrupted: &dyn Fn() -> bool,
) -> Result<Moved> {
    check(source, target, order)?;
    let (hold, began) = (Hold::begin(source, order.name)?, Instant::now());
    let mut moving = Moving { source, target, order, head: None, is_new: false };
    let prepared = moving.prepare(&hold, &mut progress, is_interrupted);
    if prepared.is_err() {
        // The error before is the one to report. The hold ends by itself, too.
        let _ = hold.end(moving.source, order.name);
    }
    let moved = prepared.and_then(|prepared| {
        hand_over(&mut Ends { moving: &mut moving, state: &prepared.state })?;
        let Saved { memory_bytes, fetched_bytes } = prepared.saved;
        Ok(Moved { memory_bytes, fetched_bytes, stood_still: began.elapsed() })
    });
    moving.clean_up(moved.is_ok());
    moved
}

/// Refuses what cannot be moved, before anything stands still.
fn check(source: &mut Client, target: &mut Client, order: Order<'_>) -> Result<()> {
    let name = order.name;
    let found = source.vms()?.into_iter().find(|vm| vm.name == name);
    let state = found.with_context(|| format!("the host has no guest '{name}'"))?.state;
    ensure!(state == VmState::Running, "guest '{name}' is {state}; one that runs can be moved");
    let there = target.vms()?.into_iter().find(|vm| vm.name == name);
    if let Some(there) = there.filter(|vm| !VmState::ENDED.contains(&vm.state)) {
        bail!("the other host has a guest '{name}', which is {}; stop it there, or move to another host", there.state);
    }
    let config = source.config()?;
    let guest = config.guests.iter().find(|guest| guest.name == name);
    let has_disks = guest.is_some_and(|guest| !guest.disks.is_empty());
    ensure!(
        order.has_same_disks || !has_disks,
        "guest '{name}' has disks; if they are the same ones at the other host, and no guest uses them there, add \
         `--same-disks`"
    );
    let (here, there) = (source.info()?, target.info()?);
    ensure!(
        here.virtualization == there.virtualization,
        "this host has {:?}, and the other one {:?}: a guest moves between hosts of one vendor",
        here.virtualization,
        there.virtualization
    );
    Ok(())
}

/// A guest on its way.
struct Moving<'a> {
    source: &'a mut Client,
    target: &'a mut Client,
    order: Order<'a>,
    /// The description of what is sent.
    head: Option<Head>,
    /// The target did not have a guest of this name.
    is_new: bool,
}

/// A guest of which everything is at the target.
struct Prepared {
    saved: Saved,
    state: Vec<u8>,
}

impl Moving<'_> {
    /// Brings all of the guest to the target, while it is held.
    fn prepare(
        &mut self,
        hold: &Hold,
        progress: &mut dyn FnMut(u64, u64),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Prepared> {
        let Order { name, path, .. } = self.order;
        let partial = Partial::of(path);
        let (saved, state) = save::save_into(self.source, name, &partial, path, &mut *progress, is_interrupted)?;
        let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let head = self.head.insert(Head::read(&file, path)?);
        self.is_new = save::create(self.target, head, name)?;
        let (source, mut renewed, mut lost) = (&mut *self.source, Instant::now(), None);
        save::send(self.target, (&file, path), head, |done, total| {
            if renewed.elapsed() >= RENEWAL {
                renewed = Instant::now();
                lost = hold.renew(source, name).err();
            }
            progress(done, total);
        })?;
        if is_interrupted() {
            bail!(Interrupted);
        }
        lost.map_or(Ok(Prepared { saved, state }), Err)
    }

    /// Leaves nothing behind that is not needed: neither here nor, as far as it can be reached, at the target.
    fn clean_up(&mut self, has_moved: bool) {
        let _ = fs::remove_file(self.order.path);
        if let Some(head) = &self.head {
            let _ = save::remove_state(self.target, head);
        }
        if self.is_new && !has_moved {
            // Refused if it runs there.
            let _ = self.target.order(RequestBody::VmDelete { name: self.order.name.to_owned() });
        }
    }
}

/// The hosts at the moment at which the guest changes from one to the other.
struct Ends<'e, 'a> {
    moving: &'e mut Moving<'a>,
    state: &'e [u8],
}

impl Hosts for Ends<'_, '_> {
    fn pause_for_good(&mut self) -> Result<()> {
        let Moving { source, order: Order { name, .. }, .. } = &mut *self.moving;
        source.order(RequestBody::VmPause { name: (*name).to_owned() })?;
        // Had it gone on meanwhile, it would go back in time at the target.
        let is_as_sent = save::state(source, name)? == self.state;
        ensure!(is_as_sent, "guest '{name}' has gone on while it was sent, since the line was too slow; try again");
        Ok(())
    }

    fn go_on(&mut self) -> GoneOn {
        let Moving { target, order: Order { name, .. }, head, .. } = &mut *self.moving;
        let ordered = head.as_ref().map_or(Ok(()), |head| save::order(target, head, name));
        match ordered.and_then(|()| save::wait_for(target, name)) {
            Ok(Outcome::Runs) => GoneOn::Runs,
            Ok(Outcome::Failed(reason)) => GoneOn::Refused(anyhow!("guest '{name}' cannot go on there: {reason}")),
            Err(error) if error.is::<Refusal>() => GoneOn::Refused(error),
            Err(error) => GoneOn::Unknown(error),
        }
    }

    fn stop(&mut self) -> Result<()> {
        self.moving.source.order(RequestBody::VmStop { name: self.moving.order.name.to_owned() })
    }

    fn resume(&mut self) -> Result<()> {
        self.moving.source.order(RequestBody::VmResume { name: self.moving.order.name.to_owned() })
    }
}
