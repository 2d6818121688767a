// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU's local APIC, in xAPIC or x2APIC mode (AMD APM vol. 2, chapter 16; Intel SDM vol. 3, chapter 11).

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::trap::vector;
use super::{address, cpu};

/// The address at which the register page is mapped in xAPIC mode.
pub const MAPPED_AT: u64 = address::DEVICES;

const MSR_APIC_BASE: u32 = 0x1b;
const APIC_BASE_ENABLE: u64 = 1 << 11;
const APIC_BASE_X2APIC: u64 = 1 << 10;
const MSR_X2APIC: u32 = 0x800;

/// Registers by their xAPIC offset; the x2APIC's number is the offset divided by 16.
mod register {
    pub const ID: u32 = 0x20;
    pub const TASK_PRIORITY: u32 = 0x80;
    pub const END_OF_INTERRUPT: u32 = 0xb0;
    pub const SPURIOUS: u32 = 0xf0;
    /// The first of eight.
    pub const IN_SERVICE: u32 = 0x100;
    pub const COMMAND_LOW: u32 = 0x300;
    pub const COMMAND_HIGH: u32 = 0x310;
    pub const LVT_TIMER: u32 = 0x320;
    pub const LVT_COUNTERS: u32 = 0x340;
    pub const LVT_LINT0: u32 = 0x350;
    pub const LVT_LINT1: u32 = 0x360;
    pub const LVT_ERROR: u32 = 0x370;
    pub const TIMER_INITIAL: u32 = 0x380;
    pub const TIMER_CURRENT: u32 = 0x390;
    pub const TIMER_DIVIDE: u32 = 0x3e0;
}

/// Destination shorthand of the command register.
const ALL_BUT_SELF: u32 = 0b11 << 18;
const LVT_MASKED: u32 = 1 << 16;
const LVT_TSC_DEADLINE: u32 = 2 << 17;
const DELIVERY_PENDING: u32 = 1 << 12;
/// Reads of the command register before an interrupt counts as stuck.
const DELIVERY_PATIENCE: u32 = 100_000;

static IS_X2APIC: AtomicBool = AtomicBool::new(false);
/// Physical address of the xAPIC register page.
static PHYSICAL: AtomicU64 = AtomicU64::new(0xfee0_0000);

/// The mode that the operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Memory-mapped registers.
    Xapic,
    /// Registers as MSRs.
    X2apic,
}

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
/// What was asked for cannot be; the mode that is used instead is [`mode`]'s.
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
    IS_X2APIC.store(mode == Mode::X2apic, Ordering::Relaxed);
    PHYSICAL.store(base & 0x000f_ffff_ffff_f000, Ordering::Relaxed);
    match wanted {
        Some(Mode::X2apic) if mode == Mode::Xapic => Err(NotChosen::NoX2apic),
        Some(Mode::Xapic) if mode == Mode::X2apic => Err(NotChosen::X2apicIsOn),
        _ => Ok(()),
    }
}

/// The mode in use.
pub fn mode() -> Mode {
    if IS_X2APIC.load(Ordering::Relaxed) { Mode::X2apic } else { Mode::Xapic }
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
    write(register::TASK_PRIORITY, 0);
    for lvt in [register::LVT_TIMER, register::LVT_LINT0, register::LVT_LINT1, register::LVT_ERROR] {
        write(lvt, LVT_MASKED);
    }
    write(register::SPURIOUS, 0x100 | u32::from(vector::SPURIOUS));
}

/// Lets LINT1 interrupt the calling CPU by an NMI: a PC's chipset reports its errors there (Intel MultiProcessor
/// Specification 1.4, section 5.3.2; Intel SDM vol. 3, section 11.5.1). For the boot CPU, once an NMI has a stack of
/// its own.
pub fn open_nmi_line() {
    const NMI: u32 = 0b100 << 8;
    write(register::LVT_LINT1, NMI);
}

/// The calling CPU's identifier.
pub fn id() -> u32 {
    let raw = read(register::ID);
    if mode() == Mode::X2apic { raw } else { raw >> 24 }
}

/// Ends the interrupt in service.
#[inline]
pub fn end_of_interrupt() {
    write(register::END_OF_INTERRUPT, 0);
}

/// Sends a fixed interrupt to one CPU.
pub fn send(apic_id: u32, vector: u8) {
    command(apic_id, 0x4000 | u32::from(vector));
}

/// Sends INIT to one CPU.
pub fn send_init(apic_id: u32) {
    command(apic_id, 0x4500);
}

/// Sends INIT to all CPUs but this one, in whichever mode the firmware left this one's APIC: it is
/// software-disabled perhaps, and sends all the same (Intel SDM vol. 3, section 11.4.7.2). For the boot page tables,
/// before anything is chosen. Whether it was sent.
pub fn broadcast_init_at_boot() -> bool {
    const INIT_TO_OTHERS: u32 = ALL_BUT_SELF | 0x4500;
    // SAFETY: every x86-64 CPU has the register; reading it has no effect.
    let base = unsafe { cpu::read_msr(MSR_APIC_BASE) };
    let page = base & 0x000f_ffff_ffff_f000;
    if base & APIC_BASE_ENABLE == 0 || page >= address::BOOT_MAPPED_BYTES {
        return false;
    }
    if base & APIC_BASE_X2APIC != 0 {
        // SAFETY: the interrupt command register exists in x2APIC mode; INIT ends whatever the others run, which is
        // nothing of ours yet.
        unsafe { cpu::write_msr(MSR_X2APIC + register::COMMAND_LOW / 16, u64::from(INIT_TO_OTHERS)) };
    } else {
        let at = address::DIRECT_MAP + page + u64::from(register::COMMAND_LOW);
        // SAFETY: the boot page tables map the first 4 GiB there, the APIC's page with them (the memory type registers
        // keep it uncached); as above. A shorthand needs no destination.
        unsafe { core::ptr::write_volatile(at as *mut u32, INIT_TO_OTHERS) };
    }
    true
}

/// Sends a start-up interrupt: execution begins at `page` × 4 KiB.
pub fn send_startup(apic_id: u32, page: u8) {
    command(apic_id, 0x4600 | u32::from(page));
}

/// Sends INIT to all CPUs but this one.
pub fn broadcast_init() {
    command(0, ALL_BUT_SELF | 0x4500);
}

/// Sends a start-up interrupt to all CPUs but this one.
pub fn broadcast_startup(page: u8) {
    command(0, ALL_BUT_SELF | 0x4600 | u32::from(page));
}

/// Sends an NMI to one CPU, and returns whether it was sent.
pub fn send_nmi(apic_id: u32) -> bool {
    try_command(apic_id, 0x4400)
}

/// Sends an NMI to one CPU from an NMI's handler, which may have interrupted code that was about to send something:
/// that one finds the command register as it left it.
pub fn send_nmi_from_nmi(apic_id: u32) {
    let is_shared = mode() == Mode::Xapic;
    let destination = if is_shared && is_sent() { read(register::COMMAND_HIGH) } else { 0 };
    send_nmi(apic_id);
    if is_shared {
        write(register::COMMAND_HIGH, destination);
    }
}

/// Sends a fixed interrupt to one CPU, and returns whether it was sent: for the end of the host, which must not log.
pub fn try_send(apic_id: u32, vector: u8) -> bool {
    try_command(apic_id, 0x4000 | u32::from(vector))
}

/// Sends the calling CPU an interrupt, from a handler that may have interrupted code that was about to send something:
/// only the low half of the command is written (the shorthand "self"), so that the high half stays as that one left it.
pub fn wake_self_from_anywhere(vector: u8) {
    const TO_SELF: u32 = 1 << 18 | 0x4000;
    if mode() == Mode::X2apic {
        try_command(0, TO_SELF | u32::from(vector));
    } else if is_sent() {
        write(register::COMMAND_LOW, TO_SELF | u32::from(vector));
    }
}

/// Masks the timer and everything else that this local APIC itself would interrupt for.
pub fn mask_all() {
    for lvt in [register::LVT_TIMER, register::LVT_LINT0, register::LVT_LINT1, register::LVT_ERROR] {
        write(lvt, LVT_MASKED);
    }
}

/// Ends every interrupt in service, so that none of any priority is held back.
pub fn end_all_interrupts() {
    for _ in 0..256 {
        if (0..8).all(|word| read(register::IN_SERVICE + word * 0x10) == 0) {
            return;
        }
        end_of_interrupt();
    }
}

fn command(apic_id: u32, low: u32) {
    if !try_command(apic_id, low) {
        log::error!("local APIC: interrupt {low:#x} to CPU {apic_id} was not sent");
    }
}

fn try_command(apic_id: u32, low: u32) -> bool {
    if mode() == Mode::X2apic {
        // SAFETY: the interrupt command register exists in x2APIC mode; what is sent is the callers' business, all of
        // which is in this file.
        unsafe { cpu::write_msr(MSR_X2APIC + register::COMMAND_LOW / 16, u64::from(apic_id) << 32 | u64::from(low)) };
        return true;
    }
    write(register::COMMAND_HIGH, apic_id << 24);
    write(register::COMMAND_LOW, low);
    is_sent()
}

/// Waits, with a limit, until the xAPIC has sent what it was ordered to, and returns whether it has.
fn is_sent() -> bool {
    for _ in 0..DELIVERY_PATIENCE {
        if read(register::COMMAND_LOW) & DELIVERY_PENDING == 0 {
            return true;
        }
        cpu::pause();
    }
    false
}

/// Sets the timer to one-shot (or TSC-deadline) mode, divider 1.
pub fn prepare_timer(tsc_deadline: bool) {
    write(register::TIMER_DIVIDE, 0b1011);
    let mode = if tsc_deadline { LVT_TSC_DEADLINE } else { 0 };
    write(register::LVT_TIMER, u32::from(vector::TIMER) | mode);
}

/// Masks the timer, so that the calling CPU, which leaves the host, is interrupted by nobody but through INIT.
pub fn mask_timer() {
    write(register::LVT_TIMER, LVT_MASKED);
}

/// Whether an overflow of the calling CPU's performance counters interrupts it. AMD's entry stays as it is when
/// it does.
pub fn let_counters_interrupt(is_let: bool) {
    write(register::LVT_COUNTERS, u32::from(vector::COUNTERS) | if is_let { 0 } else { LVT_MASKED });
}

/// Starts the timer; 0 stops it.
#[inline]
pub fn start_timer(ticks: u32) {
    write(register::TIMER_INITIAL, ticks);
}

/// Returns what is left of the timer's count.
pub fn timer_count() -> u32 {
    read(register::TIMER_CURRENT)
}

#[inline]
fn read(offset: u32) -> u32 {
    if IS_X2APIC.load(Ordering::Relaxed) {
        // SAFETY: only registers that exist in x2APIC mode are read here, without side effects.
        unsafe { cpu::read_msr(MSR_X2APIC + offset / 16) as u32 }
    } else {
        // SAFETY: the register page is mapped uncached at this address.
        unsafe { core::ptr::read_volatile((MAPPED_AT + u64::from(offset)) as *const u32) }
    }
}

#[inline]
fn write(offset: u32, value: u32) {
    if IS_X2APIC.load(Ordering::Relaxed) {
        // SAFETY: only registers that exist in x2APIC mode are written here, with values they take.
        unsafe { cpu::write_msr(MSR_X2APIC + offset / 16, u64::from(value)) };
    } else {
        // SAFETY: the register page is mapped uncached at this address.
        unsafe { core::ptr::write_volatile((MAPPED_AT + u64::from(offset)) as *mut u32, value) };
    }
}
