// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of devices, and flags in their states.

use crate::macros::{flags, numbered};

flags! {
    /// Bits of [`Blk::flags`].
    pub mod blk_flag: u8, since 4 {
        /// The connection takes requests: it goes on if its stream is there.
        CONNECTED = 0,
    }
}

flags! {
    /// Bits of [`AssignedFunction::flags`].
    pub mod assigned_flag: u32, since 4 {
        /// It has power management.
        POWER = 0,
        /// It is a PCI Express function.
        EXPRESS = 1,
        /// It can be reset by Device Control.
        RESETS = 2,
        /// Its INTx line is asserted until the guest ends the interrupt.
        LINE_ASSERTED = 3,
    }
}

flags! {
    /// Bits of [`Virtio::flags`].
    pub mod virtio_flag: u8, since 4 {
        /// A fault of the driver's has been reported.
        FAULT_REPORTED = 0,
    }
}

flags! {
    /// Bits of [`Vsock::flags`].
    pub mod vsock_flag: u32, since 4 {
        /// The driver has reset the device, and the other ends of its connections do not know that yet.
        RESET = 0,
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
        /// A physical PCI function that the guest owns.
        AssignedFunction = 9,
        /// The controller by which PCI functions come and go while the guest runs.
        HotPlug = 10,
        /// A virtio entropy source.
        VirtioRng = 11,
        /// A virtio console.
        VirtioConsole = 12,
        /// A virtio network device.
        VirtioNet = 13,
        /// A virtio socket device.
        VirtioVsock = 14,
        /// A physical PCI function that the guest owns, and that has an INTx line.
        LineFunction = 15,
        /// A physical PCI function that the guest owns, with a line or without, whose virtual functions it may enable.
        SriovFunction = 16,
        /// A virtio block device whose storage is an NBD server in another guest.
        VirtioBlk = 17,
        /// The power button.
        PowerButton = 18,
        /// A virtio memory balloon.
        VirtioBalloon = 19,
    }
}
