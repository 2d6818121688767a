// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device's interrupts: where they go, and how many came.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use tiny::answers::Wrong;
use tiny::apic::{self, Register as Local};
use tiny::{cpu, interrupts};

use crate::config::{Function, NO_INTX};
use crate::device::{self, Register};

/// The vector of messages.
pub const MESSAGE_VECTOR: u8 = 0x51;
/// The vector of the I/O APIC's first pin.
const FIRST_PIN_VECTOR: u8 = 0x60;
/// Pins that lines of PCI functions may lead to.
pub const PINS: core::ops::Range<u8> = 16..24;

/// MSI (PCI Local Bus 3.0, section 6.8.1).
const MSI: u8 = 0x05;
const MSI_ENABLE: u32 = 1 << 16;
/// 64-bit addresses.
const MSI_WIDE: u32 = 1 << 23;
/// The vectors that are enabled, as a power of two.
const MSI_MULTIPLE: u32 = 0b111 << 20;
/// The address at which messages are interrupts (Intel SDM vol. 3, section 11.11.1).
pub const MESSAGE_ADDRESS: u64 = 0xfee0_0000;

const IOAPIC_SELECT: u64 = 0xfec0_0000;
const IOAPIC_WINDOW: u64 = 0xfec0_0010;
const FIRST_ENTRY: u32 = 0x10;
const MASKED: u32 = 1 << 16;
const LEVEL_ACTIVE_LOW: u32 = 1 << 15 | 1 << 13;

static CAME: AtomicU32 = AtomicU32::new(0);
/// The handler acknowledges nothing.
static IS_IDLE: AtomicBool = AtomicBool::new(false);
static LAST_VECTOR: AtomicU32 = AtomicU32::new(0);
static LAST_TICKS: AtomicU64 = AtomicU64::new(0);

/// Interrupts that came so far.
pub fn came() -> u32 {
    CAME.load(Ordering::Acquire)
}

/// The vector of the last one.
pub fn last_vector() -> u8 {
    LAST_VECTOR.load(Ordering::Relaxed) as u8
}

/// The time stamp at which the handler of the last one began.
pub fn last_ticks() -> u64 {
    LAST_TICKS.load(Ordering::Relaxed)
}

/// The identifier of this CPU's local APIC.
pub fn own_identifier() -> u32 {
    let identifier = apic::read(Local::Identifier);
    if apic::is_x2apic() { identifier } else { identifier >> 24 }
}

/// The message's address for a fixed interrupt to this CPU.
pub fn own_address() -> u64 {
    MESSAGE_ADDRESS | u64::from(own_identifier() & 0xff) << 12
}

/// Lets the device interrupt this CPU by messages.
pub fn use_messages(function: Function) -> Result<(), Wrong> {
    interrupts::hook(MESSAGE_VECTOR, |_| handle(MESSAGE_VECTOR));
    set_message(function, own_address(), MESSAGE_VECTOR.into())?;
    function.change_command(0, NO_INTX);
    Ok(())
}

/// Sets the address and the data of the device's message, and enables it.
pub fn set_message(function: Function, address: u64, data: u32) -> Result<(), Wrong> {
    let register = function.capability(MSI).ok_or(Wrong::new("capability", MSI.into(), 0))?;
    let control = function.read(register) & !(MSI_ENABLE | MSI_MULTIPLE);
    function.write(register, control);
    function.write(register + 4, address as u32);
    let data_register = if control & MSI_WIDE != 0 {
        function.write(register + 8, (address >> 32) as u32);
        register + 12
    } else {
        register + 8
    };
    function.write(data_register, data);
    function.write(register, control | MSI_ENABLE);
    Ok(())
}

/// Ends messages, whether there were any.
pub fn end_messages(function: Function) {
    if let Some(register) = function.capability(MSI) {
        function.write(register, function.read(register) & !MSI_ENABLE);
    }
}

/// Lets the device interrupt this CPU by its INTx line, wherever that leads to: the vector shows it.
pub fn use_line(function: Function) {
    end_messages(function);
    hook_lines(&LINE_HANDLERS);
    function.change_command(NO_INTX, 0);
}

/// Has each pin to which a line may lead interrupt this CPU, and call its own handler.
pub fn hook_lines(handlers: &[fn(u64); 8]) {
    for (pin, handler) in PINS.zip(handlers) {
        interrupts::hook(FIRST_PIN_VECTOR + pin, *handler);
        set_entry(pin, LEVEL_ACTIVE_LOW | u32::from(FIRST_PIN_VECTOR + pin));
    }
}

/// The handler acknowledges nothing any more: the line stays asserted.
pub fn stop_serving() {
    IS_IDLE.store(true, Ordering::Relaxed);
}

/// Masks all lines.
pub fn end_line() {
    PINS.for_each(|pin| set_entry(pin, MASKED));
}

/// The pin of the line that the last interrupt came by.
pub fn last_pin() -> u8 {
    last_vector().wrapping_sub(FIRST_PIN_VECTOR)
}

fn set_entry(pin: u8, low: u32) {
    let register = FIRST_ENTRY + 2 * u32::from(pin);
    for (register, value) in [(register, MASKED), (register + 1, own_identifier() << 24), (register, low)] {
        cpu::write_memory(IOAPIC_SELECT, register);
        cpu::write_memory(IOAPIC_WINDOW, value);
    }
}

/// A handler knows its vector only if it is the vector's own.
const LINE_HANDLERS: [fn(u64); 8] = [
    |_| handle(FIRST_PIN_VECTOR + 16),
    |_| handle(FIRST_PIN_VECTOR + 17),
    |_| handle(FIRST_PIN_VECTOR + 18),
    |_| handle(FIRST_PIN_VECTOR + 19),
    |_| handle(FIRST_PIN_VECTOR + 20),
    |_| handle(FIRST_PIN_VECTOR + 21),
    |_| handle(FIRST_PIN_VECTOR + 22),
    |_| handle(FIRST_PIN_VECTOR + 23),
];

/// Counts, and acknowledges what the device states as the cause, so that its line is low before the end of interrupt.
fn handle(vector: u8) {
    LAST_TICKS.store(cpu::ticks(), Ordering::Relaxed);
    LAST_VECTOR.store(vector.into(), Ordering::Relaxed);
    if device::is_placed() && !IS_IDLE.load(Ordering::Relaxed) {
        device::write(Register::AcknowledgeInterrupt, device::read(Register::InterruptStatus));
    }
    CAME.fetch_add(1, Ordering::Release);
}
