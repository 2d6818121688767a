// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states of devices as blocks of their own, since version 4: header, kinds, and what is in those that have no
//! structure of version 3.

use zerocopy::little_endian::{U16, U32, U64};

use crate::macros::{flags, numbered, plain};

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
        /// What each range is: 0 none, 1 ports, 2 memory below 4 GiB, 3 memory anywhere, 4 the same and prefetchable.
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

    /// A virtio device of the host's: what its driver has negotiated and set up. A [`VirtioQueue`] for each queue
    /// follows, and then what the kind of device has of its own.
    pub struct Virtio since 4 {
        /// The features that the driver has accepted.
        pub features: U64 as "register",
        /// Which half of the offered features shows.
        pub device_feature_select: U32 as "register",
        /// Which half of the accepted features shows.
        pub driver_feature_select: U32 as "register",
        /// The MSI-X vector for changes of the configuration; 0xffff for none.
        pub config_vector: U16 as "register",
        /// The queue whose registers show.
        pub queue_select: U16 as "register",
        /// [`VirtioQueue`]s behind this.
        pub queues: U16 as "count",
        /// Device status.
        pub status: u8 as "register",
        /// Interrupt status.
        pub interrupt_status: u8 as "register",
        /// The generation of the configuration.
        pub generation: u8 as "number",
        /// Of [`super::virtio_flag`].
        pub flags: u8 as "flags",
        /// Zero.
        pub zero: [u8; 6] as "zero",
    }

    /// A split virtqueue.
    pub struct VirtioQueue since 4 {
        /// Where the descriptor table is.
        pub descriptors: U64 as "address",
        /// Where the available ring is.
        pub driver: U64 as "address",
        /// Where the used ring is.
        pub device: U64 as "address",
        /// Its descriptors.
        pub size: U16 as "count",
        /// Its MSI-X vector; 0xffff for none.
        pub vector: U16 as "register",
        /// Chains taken from the available ring, modulo 2^16.
        pub taken: U16 as "count",
        /// Chains published in the used ring, modulo 2^16.
        pub used: U16 as "count",
        /// Whether the driver has enabled it: 0 or 1.
        pub is_enabled: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A virtio block device whose storage is behind an NBD server: what the server stated of its export, and where the
    /// connection is. The [`BlkRequest`]s in flight follow, and then the [`BlkWrite`]s that are acknowledged and not
    /// stable.
    pub struct Blk since 4 {
        /// The export's size; with its block 0: none was negotiated.
        pub bytes: U64 as "bytes",
        /// The next request's number.
        pub sequence: U64 as "number",
        /// The next message's number.
        pub cookie: U64 as "number",
        /// The next flush's number.
        pub flush: U64 as "number",
        /// The export's smallest block.
        pub block: U32 as "bytes",
        /// The most data of one request.
        pub payload: U32 as "bytes",
        /// Bytes that are sent of the request that is being sent.
        pub sent: U32 as "bytes",
        /// Bytes of data that have arrived for the read that is being received.
        pub read: U32 as "bytes",
        /// The tag of the request that is being sent; 0xffff for none.
        pub sending: U16 as "number",
        /// The tag of the read that is being received; 0xffff for none.
        pub reading: U16 as "number",
        /// The export's transmission flags.
        pub export_flags: U16 as "flags",
        /// [`BlkRequest`]s.
        pub requests: U16 as "count",
        /// [`BlkWrite`]s.
        pub writes: U16 as "count",
        /// Bytes of `reply`.
        pub reply_bytes: u8 as "bytes",
        /// Of [`super::blk_flag`].
        pub flags: u8 as "flags",
        /// Zero.
        pub zero: U32 as "zero",
        /// The part of a reply that has arrived.
        pub reply: [u8; 16] as "number",
    }

    /// A request of a block device in flight. Its data stays in the guest's memory.
    pub struct BlkRequest since 4 {
        /// The first byte on the disk.
        pub offset: U64 as "bytes",
        /// Its place in the order of requests.
        pub sequence: U64 as "number",
        /// What its reply must state.
        pub cookie: U64 as "number",
        /// How long it has waited.
        pub waited_ns: U64 as "ns",
        /// Its length.
        pub bytes: U32 as "bytes",
        /// Bytes that the server has answered.
        pub done: U32 as "bytes",
        /// Bytes of the part that is being sent or unanswered.
        pub part: U32 as "bytes",
        /// The first descriptor of its chain; 128 is a flush of the device's own.
        pub tag: U16 as "number",
        /// 0 read, 1 write, 2 flush, 3 trim, 4 write zeroes, 5 the same where storage may be freed.
        pub command: u8 as "number",
        /// 1 it waits, 2 it is being sent, 3 it is sent.
        pub stage: u8 as "number",
        /// Whether its data is answered, and a flush for it is under way: 0 or 1.
        pub is_flushing: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A change that is acknowledged and not stable. The data of a write follows, padded to eight bytes.
    pub struct BlkWrite since 4 {
        /// The first byte on the disk.
        pub offset: U64 as "bytes",
        /// Its length.
        pub bytes: U32 as "bytes",
        /// As [`BlkRequest::command`].
        pub command: U32 as "number",
    }

    /// A guest's virtio socket device. The [`VsockConnection`]s follow, those of its table first, in order of port,
    /// peer and the peer's port.
    pub struct Vsock since 4 {
        /// The guest's context identifier.
        pub cid: U32 as "number",
        /// Bytes of the next packet's data that its receiver has already.
        pub passed: U32 as "bytes",
        /// Connections in its table.
        pub connections: U16 as "count",
        /// Packets that have been refused, for which the driver is still to get RST.
        pub refused: U16 as "count",
        /// Of [`super::vsock_flag`].
        pub flags: U32 as "flags",
    }

    /// The guest's end of a connection.
    pub struct VsockConnection since 4 {
        /// The guest's port.
        pub own_port: U32 as "number",
        /// The other end's context identifier.
        pub peer_cid: U32 as "number",
        /// The other end's port.
        pub peer_port: U32 as "number",
        /// How far it is: 0 the guest has asked for it, 1 the guest has been asked for it, 2 open, 3 the other end is
        /// gone and the driver is still to get RST.
        pub phase: U32 as "number",
        /// Bytes that the guest has received, modulo 2^32.
        pub delivered: U32 as "bytes",
        /// Bytes up to which the guest has stated room, modulo 2^32.
        pub room_until: U32 as "bytes",
    }
}

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
        /// A virtio block device.
        VirtioBlk = 16,
        /// A physical PCI function that the guest owns, with a line or without, whose virtual functions it may enable.
        SriovFunction = 17,
    }
}
