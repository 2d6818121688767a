// SPDX-License-Identifier: MIT OR Apache-2.0
//! The content of blocks: the state of guests, byte for byte. `vm` and `svm` fill these and read them, with checks.
//!
//! | block | how many | written | behind the structure |
//! |---|---|---|---|
//! | [`Policy`] | one for each guest that runs | before the guests stop | [`CpuidLeaf`]s |
//! | [`Vcpu`] | one for each vCPU | by the CPU that carries it | the XSAVE area |
//! | [`Devices`] | one for each guest that runs | when all its vCPUs have stopped | [`DeviceBlock`]s |
//! | [`Console`] | one for each guest | likewise | the bytes that wait |
//! | [`Functions`] | one for each guest that has physical functions | before the guests stop | [`AssignedFunction`]s |
//! | [`OnDemand`] | one for each guest with memory on demand | before the guests stop | where its blocks are |
//! | [`Late`] | one | last of all | nothing |
//! | [`ControlStreams`] | one where guests may control the host | last of all | [`ControlStream`]s |
//! | [`DiskStreams`] | one where guests have disks | last of all | [`DiskStream`]s |
//!
//! A guest that is saved in a file has blocks of the same kinds, one behind the other, after a [`Saved`].

mod device_blocks;
mod device_kinds;
mod devices;
mod host;
mod registers;
mod vcpu;
mod vcpu_flags;
mod virtio_blocks;

pub use device_blocks::*;
pub use device_kinds::*;
pub use devices::*;
pub use host::*;
pub use registers::*;
pub use vcpu::*;
pub use vcpu_flags::*;
pub use virtio_blocks::*;

use zerocopy::little_endian::{U32, U64};

use crate::described::Described;
use crate::macros::{numbered, plain};

plain! {
    /// Header of a block.
    pub struct BlockHeader since 2 {
        /// [`crate::block::MAGIC`].
        pub magic: [u8; 8] as "text",
        /// The version that the block is written in.
        pub version: U32 as "number",
        /// A [`BlockKind`]'s number.
        pub kind: U32 as "number",
        /// [`crate::layout::guests::Guest::number`]; 0 for the host's.
        pub guest: U32 as "number",
        /// The vCPU's number; 0 for all else.
        pub vcpu: U32 as "number",
        /// Bytes in use behind the first page.
        pub tail_bytes: U64 as "bytes",
        /// [`crate::block`]'s sums over header (this field as zero), structure and tail.
        pub sum: [U64; 2] as "sums",
    }
}

numbered! {
    /// Kind of a block's content.
    pub enum BlockKind since 2 {
        /// A [`Policy`].
        Policy = 1,
        /// A [`Vcpu`].
        Vcpu = 2,
        /// [`Devices`].
        Devices = 3,
        /// A [`Console`].
        Console = 4,
        /// [`Late`].
        Late = 5,
        /// [`Functions`].
        Functions = 6 since 4,
        /// [`ControlStreams`].
        ControlStreams = 7 since 4,
        /// [`DiskStreams`].
        DiskStreams = 8 since 4,
        /// [`Saved`].
        Saved = 9 since 4,
        /// [`OnDemand`].
        OnDemand = 10 since 4,
    }
}

/// A structure that is a block's.
pub trait BlockState: Described {
    /// Kind of the block.
    const KIND: BlockKind;
}

macro_rules! blocks {
    ($($name:ident,)*) => {$(
        impl BlockState for $name {
            const KIND: BlockKind = BlockKind::$name;
        }
        // Sums are over whole words, and a structure shares its page with the header.
        const _: () = assert!(size_of::<$name>().is_multiple_of(8) && size_of::<$name>() <= 4096 - size_of::<BlockHeader>());
    )*};
}

blocks! { Policy, Vcpu, Devices, Console, Late, Functions, ControlStreams, DiskStreams, Saved, OnDemand, }
