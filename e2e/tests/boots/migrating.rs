// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that move from one host to another one while both run.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use baton::migrate::{Moved, Order, migrate};
use baton::size::Size;
use e2e::host::Host;
use e2e::recipe::{Recipe, folder, tiny};
use wire::{RequestBody, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[("a_guest_moves_to_another_host_and_back", a_guest_moves_to_another_host_and_back)];

const A: &str = "a";
const B: &str = "b";

/// The second host has no such guest, but the file that it is made of.
fn a_guest_moves_to_another_host_and_back() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("a.saved");
    let small = Guest { memory: Size { bytes: 4 << 20 }, vcpus: 2, ..tiny(A, "keeper", "do=beat")? };
    let mut one = Recipe::new().guest(small).beating(B)?.start()?;
    let mut other = Recipe::new().beating(B)?.start()?;
    one.beats(A, 5)?;
    other.beats(B, 2)?;
    let free = other.client()?.info()?.memory_free_bytes;
    let refused = moves((&mut one, &mut other), B, &path).err().context("it runs twice")?.to_string();
    ensure!(refused.contains("the other host has a guest 'b', which is running"), "{refused}");
    let moved = moves((&mut one, &mut other), A, &path)?;
    ensure!(moved.memory_bytes == 4 << 20 && moved.fetched_bytes < moved.memory_bytes, "{moved:?}");
    one.state(A, VmState::Stopped)?;
    other.beats(A, 5)?;
    ensure!(!path.exists() && other.client()?.files()?.iter().all(|file| !file.is_sent), "something is left");
    let last = *one.seen.heartbeats(A).last().context("it has beaten")?;
    follows(last, &other)?;
    // A host that is updated in between is no other host.
    other.update_to(2)?;
    other.beats(A, 5)?;
    let before = one.seen.heartbeats(A).len();
    moves((&mut other, &mut one), A, &path)?;
    other.state(A, VmState::Stopped)?;
    one.beats(A, before + 5)?;
    other.order(RequestBody::VmDelete { name: A.to_owned() })?;
    let left = other.client()?.info()?.memory_free_bytes;
    ensure!(left.abs_diff(free) < 8 << 20, "{free} bytes were free, and {left} are");
    one.beats(B, 5)?;
    other.beats(B, 5)?;
    one.powers_off()?;
    other.powers_off()
}

fn moves((from, to): (&mut Host, &mut Host), name: &str, path: &Path) -> Result<Moved> {
    let order = Order { name, path, has_same_disks: false };
    let moved = migrate(&mut from.client()?, &mut to.client()?, order, |_, _| {}, &|| false);
    from.catch_up();
    to.catch_up();
    moved
}

/// It goes on with the next heartbeat. Its last one may have been on its way to the first host when it stood still.
fn follows(last: u64, host: &Host) -> Result<()> {
    let beats = host.seen.heartbeats(A);
    ensure!((last + 1..last + 3).contains(&beats[0]), "after {last} it goes on with {beats:?}");
    ensure!(beats.windows(2).all(|pair| pair[1] == pair[0] + 1), "{beats:?}");
    Ok(())
}
