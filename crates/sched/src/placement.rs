// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of the CPU for an entity: its own where that takes it, else the one that has least to do, by weight.

use core::fmt;

/// Load of a CPU, and its free capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Its number.
    pub cpu: u32,
    /// The weights of all that is there.
    pub weight: u32,
    /// Number of further vCPUs that it can hold.
    pub free: u32,
}

/// No CPU can take another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no other CPU that is online can hold another vCPU")
    }
}

impl core::error::Error for NoRoom {}

/// Returns the CPU for one entity: `own` where that has room, else the least loaded that has; among equals the first.
///
/// # Errors
/// [`NoRoom`] where none of them has.
pub fn place(loads: &[Load], own: Option<u32>) -> Result<u32, NoRoom> {
    let is_free = |load: &&Load| load.free > 0;
    let own = loads.iter().filter(is_free).find(|load| Some(load.cpu) == own);
    let best = own.or_else(|| loads.iter().filter(is_free).min_by_key(|load| load.weight));
    best.map(|load| load.cpu).ok_or(NoRoom)
}

/// The most that [`spread`] deals out at a time.
pub const MOST_MOVERS: usize = crate::MOST_SLOTS;

/// Deals out entities of these weights, the heaviest first, each to the CPU that has least to do by then. `each` is
/// called for every one (its place in `weights`, the CPU). `loads` are as they will be.
///
/// # Errors
/// [`NoRoom`] where they do not all fit, or are more than [`MOST_MOVERS`]; then `each` has not been called.
pub fn spread(weights: &[u32], loads: &mut [Load], mut each: impl FnMut(usize, u32)) -> Result<(), NoRoom> {
    let room: u64 = loads.iter().map(|load| u64::from(load.free)).sum();
    if weights.len() > MOST_MOVERS || room < weights.len() as u64 {
        return Err(NoRoom);
    }
    let mut is_dealt = [false; MOST_MOVERS];
    for _ in weights {
        let left = weights.iter().zip(&is_dealt).enumerate().filter(|(_, (_, is_dealt))| !**is_dealt);
        // Of equals the first: `max_by_key` would take the last.
        let Some((mover, (&weight, _))) = left.rev().max_by_key(|(_, (weight, _))| **weight) else { break };
        let cpu = place(loads, None)?;
        for load in loads.iter_mut().filter(|load| load.cpu == cpu) {
            load.weight = load.weight.saturating_add(weight);
            load.free -= 1;
        }
        is_dealt[mover] = true;
        each(mover, cpu);
    }
    Ok(())
}
