// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that the image before has parked.

use alloc::vec::Vec;

use bringup::{Entry, ParkSlot};

use crate::arch::{apic, fault};

unsafe extern "C" {
    static ap_high: u8;
}

/// The APIC identifier and the mailbox of a parked CPU.
pub fn parked(index: u32) -> Option<(u32, &'static ParkSlot)> {
    *PARKED.get()?.mailboxes.get(index as usize)?
}

/// Releases a parked CPU: writes its mailbox, then sends the one interrupt that makes it check. No second one is sent:
/// it might find the CPU on its way.
pub fn release(index: u32) -> bool {
    let (Some(adoption), Some((apic_id, mailbox))) = (PARKED.get(), parked(index)) else { return false };
    let entry = Entry { target: (&raw const ap_high) as u64, root: adoption.root, argument: 0 };
    match mailbox.release(apic_id, entry) {
        Ok(is_first) => {
            let is_stuck = fault::point!(adoption.stuck == Some(index), else false);
            !is_first || is_stuck || apic::send_nmi(apic_id)
        }
        Err(_) => false,
    }
}

/// CPUs that the image before has parked.
pub struct Adoption {
    /// Identifier and mailbox by number; nothing where no CPU is parked.
    pub mailboxes: Vec<Option<(u32, &'static ParkSlot)>>,
    /// Page tables that show their mailboxes and this image.
    pub root: u64,
    /// One that is not woken, though its mailbox is written: a self-test.
    #[cfg(feature = "faults")]
    pub stuck: Option<u32>,
}

static PARKED: spin::Once<Adoption> = spin::Once::new();

/// CPUs come from their mailboxes.
pub fn adopt(adoption: Adoption) {
    PARKED.call_once(|| adoption);
}

/// Returns whether CPUs come from mailboxes.
pub fn is_adopting() -> bool {
    PARKED.get().is_some()
}
