// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads of a core: which CPUs run guests (`smt=`). The others are online, serve what the host has to do, and
//! take no vCPU.

use alloc::vec::Vec;

use mitigations::Mode;
use mitigations::smt::{is_first_of_its_core, thread_bits};

use super::table::{APIC_IDS, online};
use crate::arch::cpu;
use crate::kernel::platform::options;

/// Low bits of an APIC identifier that name a thread of a core, as the calling CPU's CPUID describes them.
fn bits() -> u32 {
    let has_basic = cpu::cpuid(0, 0).eax >= 0xb;
    let extended = has_basic.then(|| cpu::cpuid(0xb, 0)).map(|leaf| (leaf.eax, leaf.ecx));
    let has_threads = cpu::cpuid(0x8000_0000, 0).eax >= 0x8000_001e && cpu::cpuid(0x8000_0001, 0).ecx & (1 << 22) != 0;
    thread_bits(extended, if has_threads { cpu::cpuid(0x8000_001e, 0).ebx >> 8 & 0xff } else { 0 })
}

/// Returns whether the operator lets guests run on all threads of a core.
fn are_all_used() -> bool {
    options().is_none_or(|options| options.smt.uses_all_threads(options.mitigations == Mode::Auto))
}

/// Returns whether guests run beside each other on threads of one core.
pub fn are_shared() -> bool {
    bits() > 0 && are_all_used()
}

/// Returns whether the CPU with this number takes vCPUs.
pub fn runs_guests(index: u32) -> bool {
    let ids = APIC_IDS.get().map_or(&[][..], |ids| ids);
    are_all_used() || is_first_of_its_core(ids, index as usize, bits())
}

/// The numbers of those online that take vCPUs.
pub fn for_guests() -> Vec<u32> {
    let online = online();
    let (chosen, idle): (Vec<u32>, Vec<u32>) = online.into_iter().partition(|index| runs_guests(*index));
    if !idle.is_empty() {
        log::info!("smt: {} second threads run no guests: {idle:?}; with smt=on they do", idle.len());
    }
    chosen
}
