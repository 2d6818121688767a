// SPDX-License-Identifier: MIT OR Apache-2.0
//! The note by which an image describes itself.

use arrayvec::ArrayString;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::layout::{Kind, VERSION_TEXT_BYTES, unpadded};
use crate::state::DeviceKind;

/// The owner of the note.
pub const NOTE_OWNER: &[u8] = b"Baton";
/// The type of the note.
pub const NOTE_TYPE: u32 = 1;
/// Bytes of the text behind the note that names an image's build, padded with zeroes. Images of old may lack it.
pub const BUILD_TEXT_BYTES: usize = 24;
/// The version that images know if their note names none.
const FIRST_TRIAL_VERSION: u32 = 1;
/// The security version of images built from this source. A release that closes a hole raises it: a host refuses images
/// whose number is lower than its own (`seal::Floor`). It lies in the image, so the seal's digest and signature cover
/// it. Images without one, as those of release 0.1.0, count as 0.
pub const SECURITY_VERSION: u32 = 1;

/// The version of the IOMMUs' state that images built from this source adopt. Images that state none count as 0: they
/// write entries of I/O APICs that VT-d's interrupt remapping blocks, so interrupts are not remapped when they begin.
pub const IOMMU_VERSION: u32 = 2;
/// The first [`IOMMU_VERSION`] of images that go on with interrupts remapped, and with functions that guests have.
pub const REMAPPED_SINCE: u32 = 1;
/// The first [`IOMMU_VERSION`] of images that carry out the resets that guests ask for.
pub const RESETS_SINCE: u32 = 2;

/// The newest kind of device ([`DeviceKind`]) that images built from this source know: they know all kinds up to it.
pub const NEWEST_DEVICE: u32 = DeviceKind::VirtioBalloon as u32;
/// The same of images whose note states none.
const FIRST_NEWEST_DEVICE: u32 = DeviceKind::AssignedFunction as u32;

/// The newest kind of section ([`Kind`]) that images built from this source know: they know all kinds up to it.
pub const NEWEST_SECTION: u32 = newest(Kind::NUMBERS.all);
/// The same of images whose note states none: no older one knows more.
const FIRST_NEWEST_SECTION: u32 = Kind::Ports as u32;

/// An image's note about itself. Behind it follow [`BUILD_TEXT_BYTES`] of text, the version of the pages between two
/// images that it knows (`update::trial`; images of old lack it, and know the first), its [`SECURITY_VERSION`], its
/// [`IOMMU_VERSION`], its [`NEWEST_DEVICE`] and its [`NEWEST_SECTION`]. A later version may add more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Note {
    /// Virtual address of its warm entry: 64-bit mode, RDI the record's physical address, on the page tables of
    /// [`crate::layout::SwitchPages::root`], without a stack. RSI is 0, and interrupts are disabled; or, in an update,
    /// it is the address of the CPU's page (`update::trial`), and interrupts are enabled and lead back to the old
    /// image.
    pub entry: U64,
    /// The oldest hand-over version that it reads.
    pub oldest: U32,
    /// The newest.
    pub newest: U32,
    /// Its version in text, padded with zeroes.
    pub version: [u8; VERSION_TEXT_BYTES],
}

impl Note {
    /// Its version in text.
    pub fn version(&self) -> &str {
        unpadded(&self.version)
    }
}

/// The fields behind the note.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoteTail {
    pub(super) build: ArrayString<BUILD_TEXT_BYTES>,
    pub(super) trial_version: u32,
    pub(super) security_version: u32,
    pub(super) iommu_version: u32,
    pub(super) newest_device: u32,
    pub(super) newest_section: u32,
}

impl NoteTail {
    /// Reads the fields from the bytes behind the note.
    pub(super) fn read(more: &[u8]) -> Self {
        let build = more.get(..BUILD_TEXT_BYTES).map(unpadded).and_then(|text| ArrayString::from(text).ok());
        let number = |place: usize| {
            let number = more.get(BUILD_TEXT_BYTES + place * size_of::<U32>()..);
            number.and_then(|more| U32::read_from_prefix(more).ok()).map(|(number, _)| number.get())
        };
        Self {
            build: build.unwrap_or_default(),
            trial_version: number(0).unwrap_or(FIRST_TRIAL_VERSION),
            security_version: number(1).unwrap_or(0),
            iommu_version: number(2).unwrap_or(0),
            newest_device: number(3).unwrap_or(FIRST_NEWEST_DEVICE),
            newest_section: number(4).unwrap_or(FIRST_NEWEST_SECTION),
        }
    }
}

const fn newest(kinds: &[(&str, u32, u32)]) -> u32 {
    let (mut newest, mut at) = (0, 0);
    while at < kinds.len() {
        if kinds[at].1 > newest {
            newest = kinds[at].1;
        }
        at += 1;
    }
    newest
}
