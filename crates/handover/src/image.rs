// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image of Baton as the running one sees it: an ELF file with a note. The note states how the image is entered from
//! a running host, and which hand-over versions it reads.
//!
//! Images are linked at one virtual address, [`IMAGE_BASE`] plus 2 MiB, and can lie at any physical one: in a slot that
//! begins at a multiple of 2 MiB. The ELF file's physical addresses count from 2 MiB; what lies there goes to the
//! slot's start.
//!
//! The note (ELF gABI, "Note Section") has the owner `Baton` and the type [`NOTE_TYPE`]; its content is a [`Note`].

mod elf;
mod note;

use arrayvec::ArrayVec;
use object::Endianness;
use object::elf::{FileHeader64, ProgramHeader64};
use object::read::elf::FileHeader as _;

use self::elf::{MAX_SEGMENTS, NoteState, Read, Segment, read, read_header};
use self::note::NoteTail;
use crate::copying::{BLOCK_BYTES, copy_changed};
use crate::error::ImageError;
use crate::layout::Kind;
use crate::version::{OLDEST_VERSION, VERSION};

pub use self::elf::{IMAGE_BASE, LINKED_AT, MAX_IMAGE_BYTES, PACKED_MARGIN_BYTES};
pub use self::note::{
    BUILD_TEXT_BYTES, IOMMU_VERSION, NEWEST_DEVICE, NEWEST_SECTION, NOTE_OWNER, NOTE_TYPE, Note, REMAPPED_SINCE,
    RESETS_SINCE, SECURITY_VERSION,
};

/// An image that can replace the running one: its file's description, without the file.
#[derive(Clone, Debug)]
pub struct Image {
    /// By rising place in the file, where no two share a byte.
    segments: ArrayVec<Segment, MAX_SEGMENTS>,
    note: Note,
    tail: NoteTail,
    memory_bytes: u64,
}

impl Image {
    /// Reads an image, and checks everything that can be checked before it runs.
    ///
    /// # Errors
    /// [`ImageError`] with the problem.
    pub fn parse(bytes: &[u8]) -> Result<Self, ImageError> {
        let image = Self::describe(bytes)?;
        image.check_versions().map(|()| image)
    }

    /// Checks that the image reads a hand-over version that is written here.
    ///
    /// # Errors
    /// There is none.
    pub fn check_versions(&self) -> Result<(), ImageError> {
        let (oldest, newest) = (self.note.oldest.get(), self.note.newest.get());
        common_version(oldest, newest).map(drop).ok_or(ImageError::OtherVersions { oldest, newest })
    }

    /// Reads an image as [`Image::parse`] does, whichever hand-over versions it reads: to describe it to people.
    ///
    /// # Errors
    /// [`ImageError`] with the problem.
    pub fn describe(bytes: &[u8]) -> Result<Self, ImageError> {
        Self::of(read(bytes, bytes.len() as u64)?)
    }

    /// Reads the image in the first bytes of a file, as far as they show it, so that a file that cannot be used is
    /// refused before the rest of its `file_bytes` arrives. `None`: these bytes do not show enough yet.
    ///
    /// # Errors
    /// [`ImageError`] with the problem.
    pub fn describe_head(head: &[u8], file_bytes: u64) -> Result<Option<Self>, ImageError> {
        let is_whole = head.len() as u64 >= file_bytes;
        if !is_whole && head.len() < size_of::<FileHeader64<Endianness>>() {
            return Ok(None);
        }
        let header = read_header(head)?;
        let programs_bytes =
            u64::from(header.e_phnum(Endianness::Little)) * size_of::<ProgramHeader64<Endianness>>() as u64;
        let programs_end = header.e_phoff(Endianness::Little).saturating_add(programs_bytes);
        if !is_whole && (head.len() as u64) < programs_end && programs_end <= file_bytes {
            return Ok(None);
        }
        match read(head, file_bytes)? {
            (_, NoteState::Ahead) => Ok(None),
            found => Self::of(found).map(Some),
        }
    }

    fn of((segments, note): Read) -> Result<Self, ImageError> {
        let NoteState::Found(note, tail) = note else { return Err(ImageError::NoNote) };
        let entry = note.entry.get();
        let is_entered = |segment: &Segment| {
            let start = IMAGE_BASE + LINKED_AT + segment.place;
            segment.is_code && segment.is_high && (start..start + segment.file_bytes as u64).contains(&entry)
        };
        if !segments.iter().any(is_entered) {
            return Err(ImageError::EntryOutside { address: entry });
        }
        let memory_bytes = segments.iter().map(|segment| segment.place + segment.memory_bytes).max().unwrap_or(0);
        Ok(Self { segments, note, tail, memory_bytes })
    }

    /// Returns its note about itself.
    pub fn note(&self) -> &Note {
        &self.note
    }

    /// The version of the record that is written for it: the newest one that both know. `newest` is what the writer's
    /// own note states. `None`: there is none.
    pub fn version_to_write(&self, newest: u32) -> Option<u32> {
        common_version(self.note.oldest.get(), self.note.newest.get().min(newest))
    }

    /// The version of the pages between two images (`update::trial`) that it knows.
    pub fn trial_version(&self) -> u32 {
        self.tail.trial_version
    }

    /// Its [`SECURITY_VERSION`]; 0 where it gives none.
    pub fn security_version(&self) -> u32 {
        self.tail.security_version
    }

    /// Its [`IOMMU_VERSION`]; 0 where it gives none.
    pub fn iommu_version(&self) -> u32 {
        self.tail.iommu_version
    }

    /// Returns whether it goes back to the image before where no client confirms the update in time.
    pub fn knows_deadlines(&self) -> bool {
        self.tail.newest_section >= Kind::Deadline as u32
    }

    /// The reader that it is of a record of this version.
    pub fn reader(&self, version: u32) -> Reader {
        Reader { version, newest_device: self.tail.newest_device }
    }

    /// Bytes of memory it wants from its slot's start on.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Returns the name of its build, in its maker's words; empty where it gives none.
    pub fn build(&self) -> &str {
        &self.tail.build
    }

    /// Puts the next `most` bytes of the image in `file` into a slot, from the offset `from` in the slot on: zeroes
    /// where it has no bytes of the file. Returns the offset that follows; `None` once the slot is complete, or if
    /// it is too small: then nothing is written.
    pub fn place(&self, file: &[u8], slot: &mut [u8], from: usize, most: usize) -> Option<usize> {
        let is_large_enough = slot.len() as u64 >= self.memory_bytes;
        let to = from.saturating_add(most).min(slot.len());
        let part = slot.get_mut(from..to).filter(|part| is_large_enough && !part.is_empty())?;
        for (at, block) in (from..).step_by(BLOCK_BYTES).zip(part.chunks_mut(BLOCK_BYTES)) {
            let bytes = &mut [0; BLOCK_BYTES][..block.len()];
            self.read_at(file, at, bytes);
            copy_changed(block, bytes);
        }
        (to < slot.len()).then_some(to)
    }

    /// Reads what belongs at the offset `from` of a slot into `block`, which is zeroed.
    fn read_at(&self, file: &[u8], from: usize, block: &mut [u8]) {
        for segment in &self.segments {
            let place = segment.place as usize;
            let (begin, end) = (place.max(from), (place + segment.file_bytes).min(from + block.len()));
            let in_file = |at: usize| segment.file_offset + (at - place);
            if begin < end
                && let Some(bytes) = file.get(in_file(begin)..in_file(end))
            {
                block[begin - from..end - from].copy_from_slice(bytes);
            }
        }
    }

    /// The file's bytes from `offset` on, as far as they lie in one piece, and where they have been placed, from the
    /// slot. A CPU that reads the whole file this way has read the code that will run.
    pub fn placed<'a>(&self, file: &'a [u8], slot: &'a [u8], offset: u64) -> &'a [u8] {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let Some(next) = self.segments.iter().find(|segment| offset < segment.file_end()) else {
            return file.get(offset..).unwrap_or_default();
        };
        match offset.checked_sub(next.file_offset) {
            None => file.get(offset..next.file_offset).unwrap_or_default(),
            Some(within) => {
                let place = next.place as usize;
                slot.get(place + within..place + next.file_bytes).unwrap_or_default()
            }
        }
    }
}

/// The image that reads a record or block: only items that it knows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The version of the record and its blocks.
    pub version: u32,
    /// The newest kind of device that the image knows ([`NEWEST_DEVICE`]).
    pub newest_device: u32,
}

impl Reader {
    /// A reader of this version that knows every device of that version.
    pub const fn of(version: u32) -> Self {
        Self { version, newest_device: u32::MAX }
    }

    /// Returns whether it knows a kind of device.
    pub const fn knows(self, kind: u32) -> bool {
        kind <= self.newest_device
    }
}

/// The newest version that is written here and read by an image that reads these.
fn common_version(oldest: u32, newest: u32) -> Option<u32> {
    let version = newest.min(VERSION);
    (version >= oldest && version >= OLDEST_VERSION).then_some(version)
}
