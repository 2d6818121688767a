// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states of devices as blocks of their own, since version 4: header, kinds, and what is in those that have no
//! structure of version 3.

use zerocopy::little_endian::{U16, U32, U64};

use crate::macros::plain;

plain! {
    /// The header of one device's state, which follows it, padded to eight bytes.
    pub struct DeviceBlock since 4 {
        /// A [`super::DeviceKind`]'s number.
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

    /// The controller by which PCI functions come and go while the guest runs. Bit `n` of each set is the device with
    /// number `n`.
    pub struct HotPlug since 4 {
        /// Devices that the guest is still to check; bit 0: the whole bus.
        pub checks: U32 as "devices",
        /// Devices that the guest is still to be asked to eject.
        pub requests: U32 as "devices",
        /// Devices that the host has asked for and the guest has not ejected.
        pub asked: U32 as "devices",
        /// Devices that the guest has ejected and the host has not taken.
        pub ejected: U32 as "devices",
    }

    /// The power button.
    pub struct PowerButton since 4 {
        /// 1 from when it is pressed until the guest has seen that, else 0.
        pub pressed: U32 as "number",
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

    /// A physical function that the guest owns: what it is, and what the guest has made of it. The MSI-X vectors that
    /// are open follow as bits, 64 to a word; then, for each open vector of MSI or MSI-X, a word of where the host
    /// receives it: the vector in bits 0-7, the APIC identifier in bits 8-39. One that has a line ends with a word of
    /// that: likewise while it is open, and its global system interrupt in bits 40-63.
    pub struct AssignedFunction since 4 {
        /// Vendor identifier.
        pub vendor: U16 as "number",
        /// Device identifier.
        pub device: U16 as "number",
        /// The subsystem's vendor identifier.
        pub subsystem_vendor: U16 as "number",
        /// The subsystem's identifier.
        pub subsystem: U16 as "number",
        /// Base class, subclass, programming interface and revision, from the high byte down.
        pub class: U32 as "register",
        /// Of [`super::assigned_flag`].
        pub flags: U32 as "flags",
        /// Where the host has placed each base address register's range.
        pub bar_addresses: [U64; 6] as "address",
        /// Bytes or ports of each range; 0 for none.
        pub bar_bytes: [U64; 6] as "bytes",
        /// The kind of each range: 0 none, 1 ports, 2 memory below 4 GiB, 3 memory anywhere, 4 the same and
        /// prefetchable.
        pub bar_kinds: [u8; 6] as "number",
        /// MSI vectors as a power of two, and one more; 0 without MSI.
        pub msi: u8 as "number",
        /// The I/O APIC's pin of its INTx line, and one more; 0 without a line.
        pub line: u8 as "number",
        /// MSI-X vectors; 0 without MSI-X.
        pub msix_vectors: U16 as "count",
        /// The range with the MSI-X table.
        pub msix_bar: u8 as "number",
        /// The range with the pending bits.
        pub msix_pending_bar: u8 as "number",
        /// Where the MSI-X table begins.
        pub msix_table: U32 as "bytes",
        /// Where the pending bits begin.
        pub msix_pending: U32 as "bytes",
        /// Bits of the command register that have been passed to it.
        pub passed: U16 as "register",
        /// Whether it works: 0 yes, 1 it is being reset, 2 it is gone.
        pub phase: u8 as "number",
        /// How it interrupts: 0 not, 1 by its line, 2 by MSI-X, 16 and more by MSI with a power of two of vectors.
        pub interrupts: u8 as "number",
        /// Its PCI segment.
        pub segment: U16 as "number",
        /// Its requester identifier: bus, device, function.
        pub requester: U16 as "number",
        /// The register of its MSI capability; 0 without one.
        pub msi_register: u8 as "register",
        /// The register of its MSI-X capability; 0 without one.
        pub msix_register: u8 as "register",
        /// The device number of its slot; 0: that of its place among the guest's functions, from 1 on.
        pub device_number: u8 as "number",
        /// How many virtual functions of it the host has approved; with any, its kind is
        /// [`DeviceKind::SriovFunction`].
        pub virtual_functions: u8 as "count",
        /// The ranges with the registers of a virtio function: common, notifications, interrupt status, device.
        pub virtio_bars: [u8; 4] as "number",
        /// Where each of these begins in its range.
        pub virtio_offsets: [U32; 4] as "bytes",
        /// Bytes of each of these; 0 for none.
        pub virtio_bytes: [U32; 4] as "bytes",
        /// Bytes from one queue's notification to the next one's.
        pub virtio_multiplier: U32 as "bytes",
    }

    /// The virtual functions of a physical function that the guest owns: behind its [`AssignedFunction`].
    pub struct VirtualFunctions since 4 {
        /// Their device identifier.
        pub device: U16 as "number",
        /// SR-IOV Control as the guest has written it.
        pub control: U16 as "register",
        /// NumVFs as the guest has written it.
        pub number: U16 as "register",
        /// Their ranges as powers of two, by base address register; 0 for none.
        pub sizes: [u8; 6] as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }
}
