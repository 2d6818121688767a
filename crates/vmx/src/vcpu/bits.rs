// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bits of the interruptibility state and of DR7, and what follows from them.

use vm::vcpu::{Rflags, dr6};

/// Interruptibility state (section 25.4.2): blocking by STI, and by a load of SS.
pub(super) const SHADOW: u64 = 0b11;
/// Blocking by STI.
pub(super) const SHADOW_OF_STI: u64 = 0b01;
/// Blocking by a load of SS.
pub(super) const SHADOW_OF_SS: u64 = 0b10;
/// Blocking by NMI.
pub(super) const BLOCKED_NMI: u64 = 1 << 3;
/// DR7.GD: an access to a debug register is #DB, whose delivery clears the bit. Injection leaves it (section 27.6.1.1).
pub(super) const DR7_GENERAL_DETECT: u64 = 1 << 13;

/// Pending debug exceptions as an entry wants them: the step of an instruction in a shadow is among them.
pub(super) const fn single_step(rflags: u64, interruptibility: u64, debug_control: u64) -> u64 {
    const BRANCH_STEPS: u64 = 1 << 1;
    let is_in_shadow = interruptibility & (SHADOW_OF_STI | SHADOW_OF_SS) != 0;
    let is_stepped = rflags & Rflags::TRAP.bits() != 0 && debug_control & BRANCH_STEPS == 0;
    if is_in_shadow && is_stepped { dr6::BS } else { 0 }
}
