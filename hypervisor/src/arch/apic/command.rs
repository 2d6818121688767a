// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts that a CPU sends: the command register (ICR).

use super::registers::{
    APIC_BASE_ENABLE, APIC_BASE_X2APIC, MSR_APIC_BASE, MSR_X2APIC, Mode, mode, number, read, write,
};
use crate::arch::{address, cpu};

/// Destination shorthand.
const ALL_BUT_SELF: u32 = 0b11 << 18;
/// Destination shorthand.
const SELF: u32 = 0b01 << 18;
const DELIVERY_PENDING: u32 = 1 << 12;
/// Reads of the command register before an interrupt counts as stuck.
const DELIVERY_PATIENCE: u32 = 100_000;

/// Type of the interrupt (Intel SDM vol. 3, section 11.6.1): a command's low half, level asserted.
#[derive(Clone, Copy)]
enum Delivery {
    /// An interrupt by this vector.
    Fixed(u8),
    Nmi,
    Init,
    /// Execution begins at this page of the first MiB.
    Startup(u8),
}

impl Delivery {
    const fn bits(self) -> u32 {
        const ASSERTED: u32 = 1 << 14;
        ASSERTED
            | match self {
                Self::Fixed(vector) => vector as u32,
                Self::Nmi => 0b100 << 8,
                Self::Init => 0b101 << 8,
                Self::Startup(page) => 0b110 << 8 | page as u32,
            }
    }
}

/// Sends a fixed interrupt to one CPU.
pub fn send(apic_id: u32, vector: u8) {
    command(apic_id, Delivery::Fixed(vector).bits());
}

/// Sends INIT to one CPU.
pub fn send_init(apic_id: u32) {
    command(apic_id, Delivery::Init.bits());
}

/// Sends INIT to all CPUs but this one, in whichever mode the firmware left this one's APIC: it is
/// software-disabled perhaps, and sends all the same (Intel SDM vol. 3, section 11.4.7.2). For the boot page tables,
/// before anything is chosen. Whether it was sent.
pub fn broadcast_init_at_boot() -> bool {
    const INIT_TO_OTHERS: u32 = ALL_BUT_SELF | Delivery::Init.bits();
    // SAFETY: every x86-64 CPU has the register; reading it has no effect.
    let base = unsafe { cpu::read_msr(MSR_APIC_BASE) };
    let page = base & 0x000f_ffff_ffff_f000;
    if base & APIC_BASE_ENABLE == 0 || page >= address::BOOT_MAPPED_BYTES {
        return false;
    }
    if base & APIC_BASE_X2APIC != 0 {
        // SAFETY: the interrupt command register exists in x2APIC mode; INIT ends whatever the others run, which is
        // nothing of ours yet.
        unsafe { cpu::write_msr(MSR_X2APIC + number::COMMAND_LOW / 16, u64::from(INIT_TO_OTHERS)) };
    } else {
        let at = address::DIRECT_MAP + page + u64::from(number::COMMAND_LOW);
        // SAFETY: the boot page tables map the first 4 GiB there, the APIC's page with them (the memory type registers
        // keep it uncached); as above. A shorthand needs no destination.
        unsafe { core::ptr::write_volatile(at as *mut u32, INIT_TO_OTHERS) };
    }
    true
}

/// Sends a start-up interrupt: execution begins at `page` × 4 KiB.
pub fn send_startup(apic_id: u32, page: u8) {
    command(apic_id, Delivery::Startup(page).bits());
}

/// Sends INIT to all CPUs but this one.
pub fn broadcast_init() {
    command(0, ALL_BUT_SELF | Delivery::Init.bits());
}

/// Sends a start-up interrupt to all CPUs but this one.
pub fn broadcast_startup(page: u8) {
    command(0, ALL_BUT_SELF | Delivery::Startup(page).bits());
}

/// Sends an NMI to one CPU, and returns whether it was sent.
pub fn send_nmi(apic_id: u32) -> bool {
    try_command(apic_id, Delivery::Nmi.bits())
}

/// Sends an NMI to one CPU from an NMI's handler, which may have interrupted code that was about to send something:
/// that one finds the command register as it left it.
pub fn send_nmi_from_nmi(apic_id: u32) {
    let is_shared = mode() == Mode::Xapic;
    let destination = if is_shared && is_sent() { read(number::COMMAND_HIGH) } else { 0 };
    send_nmi(apic_id);
    if is_shared {
        write(number::COMMAND_HIGH, destination);
    }
}

/// Sends a fixed interrupt to one CPU, and returns whether it was sent: for the end of the host, which must not log.
pub fn try_send(apic_id: u32, vector: u8) -> bool {
    try_command(apic_id, Delivery::Fixed(vector).bits())
}

/// Sends the calling CPU an interrupt, from a handler that may have interrupted code that was about to send something:
/// only the low half of the command is written (the shorthand "self"), so that the high half stays as that one left it.
pub fn wake_self_from_anywhere(vector: u8) {
    let low = SELF | Delivery::Fixed(vector).bits();
    if mode() == Mode::X2apic {
        try_command(0, low);
    } else if is_sent() {
        write(number::COMMAND_LOW, low);
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
        unsafe { cpu::write_msr(MSR_X2APIC + number::COMMAND_LOW / 16, u64::from(apic_id) << 32 | u64::from(low)) };
        return true;
    }
    write(number::COMMAND_HIGH, apic_id << 24);
    write(number::COMMAND_LOW, low);
    is_sent()
}

/// Waits, with a limit, until the xAPIC has sent what it was ordered to, and returns whether it has.
fn is_sent() -> bool {
    for _ in 0..DELIVERY_PATIENCE {
        if read(number::COMMAND_LOW) & DELIVERY_PENDING == 0 {
            return true;
        }
        cpu::pause();
    }
    false
}
