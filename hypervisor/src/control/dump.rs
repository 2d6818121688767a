// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers about a paused guest: the contents of its vmcore.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

use wire::{Refusal, RefusalCode, ReplyBody};

use crate::guests::freeze::{Frozen, Stretch, next_memory};
use crate::guests::guest::Guest;
use crate::guests::leases;

/// Returns where it has memory.
pub fn layout(guest: &Guest) -> Result<ReplyBody, Refusal> {
    read(guest, |run| Ok(ReplyBody::Layout(run.layout())))
}

/// The registers of one of its CPUs.
pub fn registers(guest: &Guest, vcpu: u32) -> Result<ReplyBody, Refusal> {
    if vcpu >= guest.config.vcpus {
        return Err(invalid("there is no such vCPU", format!("it has {}", guest.config.vcpus)));
    }
    read(guest, |run| {
        let registers = run.registers(vcpu).ok_or_else(|| not_still(guest))?;
        Ok(ReplyBody::Registers(Box::new(registers)))
    })
}

/// The next of its memory that is not zero: once what is one pattern, all of what is not.
pub fn memory(guest: &Guest, from_gpa: u64, to_gpa: u64) -> Result<ReplyBody, Refusal> {
    read(guest, |run| {
        let absent =
            || invalid("it has no memory there", "ask for its layout, and stay in one range of it".to_string());
        let Stretch { gpa, bytes, times, next_gpa } = next_memory(run, from_gpa, to_gpa).ok_or_else(absent)?;
        Ok(ReplyBody::Memory { gpa, bytes, times, next_gpa })
    })
}

/// Reads a guest that stands still.
pub fn read(guest: &Guest, read: impl FnOnce(&dyn Frozen) -> Result<ReplyBody, Refusal>) -> Result<ReplyBody, Refusal> {
    leases::renew(guest);
    guest.frozen.read(read).unwrap_or_else(|| Err(not_still(guest)))
}

fn not_still(guest: &Guest) -> Refusal {
    Refusal {
        code: RefusalCode::WrongState,
        reason: format!("guest '{}' does not stand still", guest.config.name),
        hint: "pause it first".to_string(),
    }
}

fn invalid(reason: &str, hint: String) -> Refusal {
    Refusal { code: RefusalCode::Invalid, reason: reason.to_string(), hint }
}
