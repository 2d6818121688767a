// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states of devices as blocks of their own, since version 4: header, kinds, and what is in those that have no
//! structure of version 3.

use zerocopy::little_endian::{U32, U64};

use crate::macros::{numbered, plain};

plain! {
    /// The header of one device's state, which follows it, padded to eight bytes.
    pub struct DeviceBlock since 4 {
        /// A [`DeviceKind`]'s number.
        pub kind: U32 as "number",
        /// Number among the guest's devices of this kind; a PCI function's slot.
        pub instance: U32 as "number",
        /// The version of this kind's format: see [`crate::schema::DEVICES`].
        pub version: U32 as "number",
        /// Bytes of the state, without the padding.
        pub bytes: U32 as "bytes",
    }

    /// Power and reset registers.
    pub struct Power since 4 {
        /// ACPI sleep control.
        pub sleep_control: u8 as "register",
        /// Reset control.
        pub reset_control: u8 as "register",
        /// Zero.
        pub zero: [u8; 6] as "zero",
    }

    /// The pvpanic device.
    pub struct Pvpanic since 4 {
        /// The last event reported: 0 none, 1 panicked, 2 crash kernel loaded.
        pub last_event: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// The debug-exit port.
    pub struct DebugExit since 4 {
        /// The last number written.
        pub code: U32 as "number",
        /// Of [`super::small_flag`].
        pub flags: U32 as "flags",
    }

    /// PCI configuration mechanism 1.
    pub struct PciAddress since 4 {
        /// The address register.
        pub address: U32 as "register",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// One entry of a function's MSI-X table. The pending bits follow the last one, 64 to a word.
    pub struct MsixEntry since 4 {
        /// The message's address.
        pub address: U64 as "register",
        /// The message's data.
        pub data: U32 as "register",
        /// Vector control.
        pub control: U32 as "register",
    }
}

numbered! {
    /// The device of a [`DeviceBlock`]. Numbers are never reused.
    pub enum DeviceKind since 4 {
        /// COM1.
        Com1 = 1,
        /// The clock and its memory.
        Cmos = 2,
        /// The I/O APIC.
        Ioapic = 3,
        /// Power and reset registers.
        Power = 4,
        /// The pvpanic device.
        Pvpanic = 5,
        /// The debug-exit port.
        DebugExit = 6,
        /// PCI configuration mechanism 1.
        PciHost = 7,
        /// A PCI function without anything behind its registers: the host bridge.
        PlainFunction = 8,
    }
}
