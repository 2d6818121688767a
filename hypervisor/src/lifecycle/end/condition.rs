// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the host's end for its report and its watch: the places at which CPUs were stopped, and the action that
//! follows.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use boot::options::PanicAction;
use endstate::{Action, Rest};

use crate::arch::cpu_local::cpu_local;
use crate::arch::percpu::{self, my_number};

static ACTION: AtomicU32 = AtomicU32::new(Action::Halt.to_number());

cpu_local! {
    /// The CPU's instruction pointer and stack pointer when it was stopped.
    pub static STOPPED_AT: (AtomicU64, AtomicU64) = (AtomicU64::new(0), AtomicU64::new(0));
}

/// Sets what follows the report.
pub fn set_action(action: PanicAction) {
    let action = match action {
        PanicAction::Spin => Action::Spin,
        PanicAction::Halt => Action::Halt,
        PanicAction::Exit => Action::Exit,
        PanicAction::Reboot { after_seconds } => Action::Reboot { after_seconds },
    };
    ACTION.store(action.to_number(), Ordering::Relaxed);
}

/// Returns what follows the report.
pub(super) fn action() -> Action {
    Action::from_number(ACTION.load(Ordering::Relaxed))
}

/// Notes where the calling CPU was stopped.
pub(super) fn note_stop(at_rip: u64, at_rsp: u64) {
    if let Some((rip, rsp)) = STOPPED_AT.of(my_number()) {
        rip.store(at_rip, Ordering::Relaxed);
        rsp.store(at_rsp, Ordering::Relaxed);
    }
}

/// Returns the way in which the owner rests.
pub(super) fn owners_rest(action: Action) -> Rest {
    // Without a local APIC nothing would wake it for its reboot.
    if percpu::number().is_some() { action.rest(true) } else { Rest::Spin }
}
