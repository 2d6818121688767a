// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers, by number: an offset in the register page divided by 16, or an MSR less 0x800 (Intel SDM vol. 3,
//! tables 11-1 and 11-6).

use bitfield_struct::bitfield;

/// Identifier (read only).
pub const ID: u32 = 0x02;
/// Version (read only).
pub const VERSION: u32 = 0x03;
/// Task priority.
pub const TASK_PRIORITY: u32 = 0x08;
/// CPU priority (read only).
pub const PROCESSOR_PRIORITY: u32 = 0x0a;
/// End of interrupt (write only).
pub const END_OF_INTERRUPT: u32 = 0x0b;
/// Logical destination (read only in x2APIC mode).
pub const LOGICAL_DESTINATION: u32 = 0x0d;
/// Destination format (xAPIC mode only).
pub const DESTINATION_FORMAT: u32 = 0x0e;
/// Spurious interrupt vector.
pub const SPURIOUS: u32 = 0x0f;
/// Vectors in service: eight registers (read only).
pub const IN_SERVICE: u32 = 0x10;
/// Trigger modes: eight registers (read only).
pub const TRIGGER_MODE: u32 = 0x18;
/// Vectors requested: eight registers (read only).
pub const REQUESTED: u32 = 0x20;
/// The last of [`REQUESTED`]'s.
pub const REQUESTED_LAST: u32 = 0x27;
/// Error status.
pub const ERROR_STATUS: u32 = 0x28;
/// Interrupt command; its low half in xAPIC mode.
pub const INTERRUPT_COMMAND: u32 = 0x30;
/// High half of the interrupt command (xAPIC mode only).
pub const INTERRUPT_COMMAND_HIGH: u32 = 0x31;
/// The local vector table: [`LocalVector`](super::local_vector::LocalVector)'s registers.
pub const LOCAL_VECTORS: u32 = 0x32;
/// The last of [`LOCAL_VECTORS`].
pub const LOCAL_VECTORS_LAST: u32 = 0x37;
/// Timer's initial count.
pub const INITIAL_COUNT: u32 = 0x38;
/// Timer's current count (read only).
pub const CURRENT_COUNT: u32 = 0x39;
/// Timer's divider.
pub const DIVIDE: u32 = 0x3e;
/// Interrupt to oneself (x2APIC mode only, write only).
pub const SELF_IPI: u32 = 0x3f;

/// An integrated APIC with 5 as the number of its last local vector; end-of-interrupt broadcasts cannot be suppressed.
pub const VERSION_VALUE: u32 = 0x0005_0014;

/// Spurious vector register: the APIC is enabled by software.
pub const SOFTWARE_ENABLE: u32 = 1 << 8;
/// Spurious vector register: bits that can be written (vector, enable, focus checking).
pub const SPURIOUS_MASK: u32 = 0x3ff;
/// Spurious vector register after reset.
pub const SPURIOUS_RESET: u32 = 0xff;

/// Logical destination in xAPIC mode: bits that can be written.
pub const LOGICAL_DESTINATION_MASK: u32 = 0xff00_0000;
/// Destination format: the model in the high four bits, the others read as one.
pub const DESTINATION_FORMAT_MASK: u32 = 0xf000_0000;
/// Timer's divider: bits that can be written.
pub const DIVIDE_MASK: u32 = 0b1011;

/// Error status bits.
pub mod error {
    /// An interrupt was to be sent with a vector below 16.
    pub const SEND_ILLEGAL_VECTOR: u32 = 1 << 5;
    /// An interrupt came in with a vector below 16.
    pub const RECEIVE_ILLEGAL_VECTOR: u32 = 1 << 6;
    /// An access to a register that does not exist (xAPIC mode).
    pub const ILLEGAL_REGISTER: u32 = 1 << 7;
    /// All that can be set here.
    pub const ALL: u32 = SEND_ILLEGAL_VECTOR | RECEIVE_ILLEGAL_VECTOR | ILLEGAL_REGISTER;
}

/// Vectors below this one are the CPU's own.
pub const FIRST_LEGAL_VECTOR: u8 = 16;

/// Destination shorthands of the interrupt command; 0 is the destination field.
pub mod shorthand {
    /// The sender.
    pub const ITSELF: u8 = 1;
    /// Every APIC.
    pub const ALL: u8 = 2;
    /// Every APIC but the sender's.
    pub const ALL_BUT_SELF: u8 = 3;
}

/// The interrupt command register (Intel SDM vol. 3, figures 11-12 and 11-28).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct InterruptCommand {
    /// The vector.
    pub vector: u8,
    /// The delivery mode's encoding.
    #[bits(3)]
    pub delivery_mode: u8,
    /// The destination is logical.
    pub is_logical: bool,
    /// Still being sent: never seen.
    pub delivery_pending: bool,
    #[bits(1)]
    __: u8,
    /// Assert, as opposed to de-assert.
    pub is_assert: bool,
    /// Level-triggered; only an INIT de-assert checks it.
    pub is_level: bool,
    #[bits(2)]
    __: u8,
    /// One of [`shorthand`].
    #[bits(2)]
    pub shorthand: u8,
    #[bits(12)]
    __: u16,
    /// The destination: 32 bits in x2APIC mode, the high eight of them in xAPIC mode.
    pub destination: u32,
}

impl InterruptCommand {
    /// Bits of the low half that can be written.
    pub const LOW_MASK: u32 = 0x000c_cfff;
    /// Bits that read as zero but may be written as anything.
    pub const LOW_IGNORED: u32 = 1 << 12;
    /// Bits of the high half that exist in xAPIC mode.
    pub const XAPIC_HIGH_MASK: u32 = 0xff00_0000;
}
