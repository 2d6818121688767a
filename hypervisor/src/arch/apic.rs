// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU's local APIC, in xAPIC or x2APIC mode (AMD APM vol. 2, chapter 16; Intel SDM vol. 3, chapter 11).

mod command;
mod registers;

use core::sync::atomic::{AtomicU64, Ordering};

pub use self::command::{
    broadcast_init, broadcast_init_at_boot, broadcast_startup, send, send_init, send_nmi, send_nmi_from_nmi,
    send_startup, try_send, wake_self_from_anywhere,
};
use self::registers::{APIC_BASE_ENABLE, APIC_BASE_X2APIC, MSR_APIC_BASE, number, read, set_mode, write};
pub use self::registers::{MAPPED_AT, Mode, mode};
use super::cpu;
use super::trap::vector;

const LVT_MASKED: u32 = 1 << 16;
const LVT_TSC_DEADLINE: u32 = 2 << 17;

/// Physical address of the xAPIC register page.
static PHYSICAL: AtomicU64 = AtomicU64::new(0xfee0_0000);

/// The reason for which the mode that was asked for is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotChosen {
    /// The CPU has no x2APIC mode.
    NoX2apic,
    /// Firmware has left x2APIC mode on.
    X2apicIsOn,
}

/// Chooses the mode for all CPUs: x2APIC where they have it, unless asked otherwise. The mode that firmware has left on
/// is kept if it is x2APIC: leaving it would take each CPU through a disabled APIC (Intel SDM vol. 3, section 11.12.5),
/// and those with identifiers above 254 could not follow.
///
/// # Errors
/// The wanted mode is not possible; [`mode`] returns the one that is used instead.
pub fn choose(wanted: Option<Mode>) -> Result<(), NotChosen> {
    let has_x2apic = cpu::cpuid(1, 0).ecx & (1 << 21) != 0;
    // SAFETY: every x86-64 CPU has the register; reading it has no effect.
    let base = unsafe { cpu::read_msr(MSR_APIC_BASE) };
    let is_on = has_x2apic && base & APIC_BASE_ENABLE != 0 && base & APIC_BASE_X2APIC != 0;
    let mode = match wanted {
        Some(Mode::Xapic) if !is_on => Mode::Xapic,
        _ if has_x2apic => Mode::X2apic,
        _ => Mode::Xapic,
    };
    set_mode(mode);
    PHYSICAL.store(base & 0x000f_ffff_ffff_f000, Ordering::Relaxed);
    match wanted {
        Some(Mode::X2apic) if mode == Mode::Xapic => Err(NotChosen::NoX2apic),
        Some(Mode::Xapic) if mode == Mode::X2apic => Err(NotChosen::X2apicIsOn),
        _ => Ok(()),
    }
}

/// Physical address of the register page, to be mapped at [`MAPPED_AT`].
pub fn physical() -> u64 {
    PHYSICAL.load(Ordering::Relaxed)
}

/// Enables the calling CPU's local APIC in the chosen mode, everything masked but the timer.
pub fn enable() {
    // SAFETY: the register exists; the mode goes up only (disabled to xAPIC to x2APIC), which is always legal.
    unsafe {
        let base = cpu::read_msr(MSR_APIC_BASE) | APIC_BASE_ENABLE;
        cpu::write_msr(MSR_APIC_BASE, base);
        if mode() == Mode::X2apic {
            cpu::write_msr(MSR_APIC_BASE, base | APIC_BASE_X2APIC);
        }
    }
    write(number::TASK_PRIORITY, 0);
    for lvt in [number::LVT_TIMER, number::LVT_LINT0, number::LVT_LINT1, number::LVT_ERROR] {
        write(lvt, LVT_MASKED);
    }
    write(number::SPURIOUS, 0x100 | u32::from(vector::SPURIOUS));
}

/// Lets LINT1 interrupt the calling CPU by an NMI: a PC's chipset reports its errors there (Intel MultiProcessor
/// Specification 1.4, section 5.3.2; Intel SDM vol. 3, section 11.5.1). For the boot CPU, once an NMI has a stack of
/// its own.
pub fn open_nmi_line() {
    const NMI: u32 = 0b100 << 8;
    write(number::LVT_LINT1, NMI);
}

/// The calling CPU's identifier.
pub fn id() -> u32 {
    let raw = read(number::ID);
    if mode() == Mode::X2apic { raw } else { raw >> 24 }
}

/// Ends the interrupt in service.
#[inline]
pub fn end_of_interrupt() {
    write(number::END_OF_INTERRUPT, 0);
}

/// Masks the timer and everything else that this local APIC itself would interrupt for.
pub fn mask_all() {
    for lvt in [number::LVT_TIMER, number::LVT_LINT0, number::LVT_LINT1, number::LVT_ERROR] {
        write(lvt, LVT_MASKED);
    }
}

/// Ends every interrupt in service, so that none of any priority is held back.
pub fn end_all_interrupts() {
    for _ in 0..256 {
        if (0..8).all(|word| read(number::IN_SERVICE + word * 0x10) == 0) {
            return;
        }
        end_of_interrupt();
    }
}

/// Returns the lowest of these vectors that is pending at the calling CPU's local APIC (its interrupt request
/// register).
#[cfg(feature = "faults")]
pub fn pending(vectors: core::ops::RangeInclusive<u8>) -> Option<u8> {
    const WORD_BITS: u8 = 32;
    (vectors.start() / WORD_BITS..=vectors.end() / WORD_BITS).find_map(|word| {
        let bits = read(number::REQUESTED + u32::from(word) * 0x10);
        (0..WORD_BITS)
            .filter(|bit| bits >> bit & 1 != 0)
            .map(|bit| word * WORD_BITS + bit)
            .find(|v| vectors.contains(v))
    })
}

/// Sets the timer to one-shot (or TSC-deadline) mode, divider 1.
pub fn prepare_timer(tsc_deadline: bool) {
    write(number::TIMER_DIVIDE, 0b1011);
    let mode = if tsc_deadline { LVT_TSC_DEADLINE } else { 0 };
    write(number::LVT_TIMER, u32::from(vector::TIMER) | mode);
}

/// Masks the timer, so that only INIT interrupts the calling CPU, which leaves the host.
pub fn mask_timer() {
    write(number::LVT_TIMER, LVT_MASKED);
}

/// Sets whether an overflow of the calling CPU's performance counters interrupts it. AMD's entry stays as it is when it
/// does.
pub fn let_counters_interrupt(is_let: bool) {
    write(number::LVT_COUNTERS, u32::from(vector::COUNTERS) | if is_let { 0 } else { LVT_MASKED });
}

/// Starts the timer; 0 stops it.
#[inline]
pub fn start_timer(ticks: u32) {
    write(number::TIMER_INITIAL, ticks);
}

/// Returns what is left of the timer's count.
pub fn timer_count() -> u32 {
    read(number::TIMER_CURRENT)
}
