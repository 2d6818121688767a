// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the end of the host keeps for its report and its watch: where CPUs were stopped, and what follows.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use boot::options::PanicAction;
use endstate::{Action, Rest};

use crate::arch::cpu_local::cpu_local;
use crate::arch::percpu::{self, my_number};

static ACTION: AtomicU32 = AtomicU32::new(Action::Halt.to_number());

cpu_local! {
    /// Where the CPU was stopped: instruction and stack pointer.
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

/// How the owner rests.
pub(super) fn owners_rest(action: Action) -> Rest {
    // Without a local APIC nothing would wake it for its reboot.
    if percpu::number().is_some() { action.rest(true) } else { Rest::Spin }
}
