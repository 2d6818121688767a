// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests beside an update: the update is refused, or takes guests as they are.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use e2e::host::{BOOT_LIMIT, Host};
use wire::{ReplyBody, RequestBody, UpdateBy, VmState};

use super::{B, are_stained, both_go_on, is_starved, two_keepers, update};
use crate::Rule;

pub const RULES: &[Rule] = &[
    ("nothing_else_changes_the_host_during_an_update", nothing_else_changes_the_host),
    ("a_guest_that_changes_during_an_update_is_not_lost", a_guest_that_changes_is_not_lost),
];

/// Asks for an update in a thread of its own.
pub fn update_beside(host: &mut Host) -> Result<JoinHandle<Result<ReplyBody>>> {
    let mut client = host.client()?;
    let body = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    Ok(thread::spawn(move || client.request_within(BOOT_LIMIT, body)))
}

/// An update's answer, unless the emulator's CPUs waited for cores.
fn is_updated(answer: JoinHandle<Result<ReplyBody>>) -> Result<bool> {
    match answer.join() {
        Ok(Ok(ReplyBody::Updated(report))) => {
            ensure!(!report.is_dry_run, "{report:?}");
            Ok(true)
        }
        Ok(Ok(other)) => bail!("not the answer to an update: {other:?}"),
        Ok(Err(error)) if is_starved(&error) => Ok(false),
        Ok(Err(error)) => Err(error),
        Err(_) => bail!("the client panicked"),
    }
}

/// Returns whether an update was made; if not, it was refused for a guest that had changed meanwhile, or was being
/// loaded.
pub fn refused_for_the_guest(answer: JoinHandle<Result<ReplyBody>>) -> Result<bool> {
    const WHY: [&str; 2] = ["while the new image prepared itself", "is being loaded"];
    is_updated(answer).or_else(|error| {
        let reason = format!("{error:#}");
        ensure!(WHY.iter().any(|why| reason.contains(why)), "{reason}");
        Ok(false)
    })
}

fn nothing_else_changes_the_host() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    let answer = update_beside(&mut host)?;
    // The image has been checked, and prepares itself for some hundred milliseconds.
    host.logs(&["whole ("])?;
    for change in [RequestBody::CpuOffline { index: 1 }, RequestBody::Restart] {
        let refusal = host.refusal(change)?;
        ensure!(refusal.reason.contains("an update is under way"), "{refusal:?}");
    }
    is_updated(answer)?;
    both_go_on(&mut host)?;
    host.powers_off()
}

/// A guest that is paused, goes on, is reset, stopped or started while the new image prepares itself: the update is
/// refused, or takes it as it is.
fn a_guest_that_changes_is_not_lost() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    let name = || B.to_owned();
    let changes = [
        RequestBody::VmPause { name: name() },
        RequestBody::VmResume { name: name() },
        RequestBody::VmReset { name: name() },
        RequestBody::VmStop { name: name() },
        RequestBody::VmStart { name: name() },
    ];
    let states = [VmState::Paused, VmState::Running, VmState::Running, VmState::Stopped, VmState::Running];
    for (change, state) in changes.into_iter().zip(states) {
        let answer = update_beside(&mut host)?;
        host.listen(Duration::from_millis(20));
        host.order(change.clone())?;
        refused_for_the_guest(answer).with_context(|| format!("{change:?}"))?;
        host.state(B, state)?;
    }
    both_go_on(&mut host)?;
    let generation = host.client()?.info()?.generation;
    ensure!(update(&mut host)?.generation == generation + 1, "{}", host.seen);
    both_go_on(&mut host)?;
    host.powers_off()
}
