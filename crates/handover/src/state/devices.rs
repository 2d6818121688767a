// SPDX-License-Identifier: MIT OR Apache-2.0
//! State that the vCPUs of a guest share: its devices, and the machine as the guest saw it when it booted.

use zerocopy::little_endian::{I64, U16, U32, U64};

use crate::macros::{flags, plain};

/// Bytes of a UART's FIFO.
pub const FIFO_BYTES: usize = 16;
/// Bytes behind the CMOS index register.
pub const CMOS_BYTES: usize = 128;
/// Inputs of the I/O APIC.
pub const IOAPIC_PINS: usize = 24;
/// Bytes of a PCI function's configuration space.
pub const CONFIG_BYTES: usize = 256;

plain! {
    /// The machine as a guest saw it when it booted, and must see it for as long as it runs.
    pub struct Policy since 2 {
        /// Wall clock at the guest's time 0, since 1970.
        pub boot_unix_ns: U64 as "ns",
        /// vCPUs.
        pub vcpus: U32 as "count",
        /// Of [`policy_flag`].
        pub flags: U32 as "flags",
        /// Ticks to nanoseconds: the fraction.
        pub scale_multiplier: U32 as "ns/tick * 2^32",
        /// Ticks to nanoseconds: the shift to the left, as a signed byte.
        pub scale_shift: U32 as "bits",
        /// [`CpuidLeaf`]s behind this.
        pub leaves: U32 as "count",
        /// Zero.
        pub zero: U32 as "zero",
        /// Of [`later_policy`].
        pub later_flags: U32 as "flags" since 4,
        /// Zero.
        pub later_zero: U32 as "zero" since 4,
    }

    /// CPUID's answer to a leaf and subleaf; all others answer zero.
    pub struct CpuidLeaf since 2 {
        /// The leaf.
        pub leaf: U32 as "number",
        /// The subleaf; 0 where a leaf has none.
        pub subleaf: U32 as "number",
        /// EAX.
        pub eax: U32 as "register",
        /// EBX.
        pub ebx: U32 as "register",
        /// ECX.
        pub ecx: U32 as "register",
        /// EDX.
        pub edx: U32 as "register",
    }

    /// The devices that all vCPUs of a guest share. Version 3 has a place for each device that it knows, and
    /// [`PciFunction`]s behind the structure. Since version 4 these places are zero, and all devices are in
    /// [`super::DeviceBlock`]s behind the structure.
    pub struct Devices since 2 {
        /// COM1.
        pub serial: Serial as "piece",
        /// The clock and its memory.
        pub cmos: Cmos as "piece",
        /// The I/O APIC.
        pub ioapic: Ioapic as "piece",
        /// All the small ones.
        pub small: Small as "piece",
        /// [`super::DeviceBlock`]s behind this: one for each device.
        pub blocks: U32 as "count" since 4,
        /// Zero.
        pub blocks_zero: U32 as "zero" since 4,
    }

    /// A 16550A.
    pub struct Serial since 2 {
        /// Bytes received that the guest has not read, oldest first.
        pub received: [u8; FIFO_BYTES] as "bytes",
        /// Number of these.
        pub received_count: u8 as "count",
        /// Interrupt enable register.
        pub interrupt_enable: u8 as "register",
        /// FIFO control register.
        pub fifo_control: u8 as "register",
        /// Line control register.
        pub line_control: u8 as "register",
        /// Modem control register.
        pub modem_control: u8 as "register",
        /// The change bits of the modem status register.
        pub modem_changes: u8 as "register",
        /// Scratch register.
        pub scratch: u8 as "register",
        /// Of [`serial_flag`].
        pub flags: u8 as "flags",
        /// The divisor latch.
        pub divisor: U16 as "register",
        /// Zero.
        pub zero: [u8; 6] as "zero",
    }

    /// An MC146818 with memory.
    pub struct Cmos since 2 {
        /// Seconds that the guest's clock is ahead of the host's.
        pub offset_seconds: I64 as "s",
        /// Time registers that the guest holds.
        pub held_time: [u8; 8] as "register",
        /// The register selected.
        pub index: u8 as "number",
        /// Register A.
        pub register_a: u8 as "register",
        /// Register B.
        pub register_b: u8 as "register",
        /// Zero.
        pub zero: [u8; 5] as "zero",
        /// Memory.
        pub ram: [u8; CMOS_BYTES] as "bytes",
    }

    /// An 82093AA.
    pub struct Ioapic since 2 {
        /// The redirection entries.
        pub entries: [U64; IOAPIC_PINS] as "register",
        /// The lines that are asserted.
        pub lines: U32 as "pins",
        /// The index register.
        pub index: u8 as "register",
        /// The identifier.
        pub id: u8 as "number",
        /// Zero.
        pub zero: [u8; 2] as "zero",
    }

    /// Power, panic and exit ports, PCI's address register.
    pub struct Small since 2 {
        /// PCI configuration mechanism 1: the address register.
        pub pci_address: U32 as "register",
        /// [`PciFunction`]s behind this.
        pub pci_functions: U32 as "count",
        /// The last number written to the debug-exit port.
        pub debug_exit_code: U32 as "number",
        /// Of [`small_flag`].
        pub flags: U32 as "flags",
        /// The last event reported to pvpanic: 0 none, 1 panicked, 2 crash kernel loaded.
        pub panic_event: U32 as "number",
        /// ACPI sleep control.
        pub sleep_control: u8 as "register",
        /// Reset control.
        pub reset_control: u8 as "register",
        /// Zero.
        pub zero: [u8; 2] as "zero",
    }

    /// One PCI function.
    pub struct PciFunction since 2 {
        /// Device in bits 3–7, function in bits 0–2.
        pub slot: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
        /// Its registers.
        pub config: [u8; CONFIG_BYTES] as "register",
    }
}

flags! {
    /// Bits of [`Policy::flags`].
    pub mod policy_flag: u32, since 2 {
        /// There is a debug-exit port.
        HAS_DEBUG_EXIT = 0,
    }
}

flags! {
    /// Bits of [`Policy::later_flags`].
    pub mod later_policy: u32, since 4 {
        /// There is no MISC_ENABLE: AMD's CPUs have none. Guests of older images were shown one.
        NO_MISC_ENABLE = 0,
    }
}

flags! {
    /// Bits of [`Serial::flags`].
    pub mod serial_flag: u8, since 2 {
        /// A byte was lost and the guest has not read so yet.
        OVERRUN = 0,
        /// The transmitter ran empty and the guest has not been notified yet.
        TRANSMIT_EMPTY = 1,
    }
}

flags! {
    /// Bits of [`Small::flags`] and [`super::DebugExit::flags`].
    pub mod small_flag: u32, since 2 {
        /// The number was written.
        DEBUG_EXIT_WRITTEN = 0,
    }
}
