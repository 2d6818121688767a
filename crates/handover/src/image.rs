// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image of Baton as the running one sees it: an ELF file that states in a note how it is entered from a running
//! host, and which hand-over versions it reads.
//!
//! Images are linked at one virtual address, [`IMAGE_BASE`] plus 2 MiB, and can lie at any physical one: in a slot that
//! begins at a multiple of 2 MiB. The ELF file's physical addresses count from 2 MiB; what lies there goes to the
//! slot's start.
//!
//! The note (ELF gABI, "Note Section") has the owner `Baton` and the type [`NOTE_TYPE`]; its content is a [`Note`].

use arrayvec::{ArrayString, ArrayVec};
use object::Endianness;
use object::elf::{EM_X86_64, ET_EXEC, FileHeader64, NoteType, PF_W, PF_X, PT_LOAD, PT_NOTE, ProgramHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use units::PAGE_BYTES;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::ImageError;
use crate::layout::{OLDEST_VERSION, VERSION, VERSION_TEXT_BYTES, unpadded};

/// Link address less the ELF file's physical address, for all but the code that runs before paging.
pub const IMAGE_BASE: u64 = 0xffff_ffff_8000_0000;
/// The ELF file's physical address of what goes to the slot's first byte.
pub const LINKED_AT: u64 = 2 << 20;
/// The most memory that an image may want.
pub const MAX_IMAGE_BYTES: u64 = 64 << 20;
/// The owner of the note.
pub const NOTE_OWNER: &[u8] = b"Baton";
/// The type of the note.
pub const NOTE_TYPE: u32 = 1;
/// Bytes of the text behind the note that states which build an image is, padded with zeroes. Images of old may lack
/// it.
pub const BUILD_TEXT_BYTES: usize = 24;
/// The version that images know whose note names none.
const FIRST_TRIAL_VERSION: u32 = 1;
/// The security version of images built from this source. A release that closes a hole raises it: a host refuses images
/// whose number is lower than its own (`seal::Floor`). It lies in the image, so the seal's digest and signature cover
/// it. Images without one, as those of release 0.1.0, count as 0.
pub const SECURITY_VERSION: u32 = 1;
/// Segments that an image may have; it has four.
const MAX_SEGMENTS: usize = 16;
const ELF_CLASS_64: u8 = 2;

/// What an image states of itself. Behind it stand [`BUILD_TEXT_BYTES`] of text, the version of the pages between two
/// images that it knows (`update::trial`; images of old lack it, and know the first), and its [`SECURITY_VERSION`]. A
/// later version may add more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Note {
    /// Virtual address of its warm entry: 64-bit mode, RDI the record's physical address, on the page tables of
    /// [`crate::layout::SwitchPages::root`], without a stack. RSI is 0, and interrupts are off; or, in an update, it is
    /// the address of the CPU's page (`update::trial`), and interrupts are open and lead back to the old image.
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

/// One stretch of the file and where in the slot it goes. Both have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    file_offset: usize,
    file_bytes: usize,
    /// From the slot's first byte.
    place: u64,
    memory_bytes: u64,
    is_code: bool,
    is_high: bool,
}

/// An image that can replace the running one: what its file states, without the file.
#[derive(Clone, Debug)]
pub struct Image {
    /// By rising place in the file, where no two share a byte.
    segments: ArrayVec<Segment, MAX_SEGMENTS>,
    note: Note,
    said: Said,
    memory_bytes: u64,
}

/// What stands behind the note.
#[derive(Clone, Copy, Debug)]
struct Said {
    build: ArrayString<BUILD_TEXT_BYTES>,
    trial_version: u32,
    security_version: u32,
}

impl Image {
    /// Reads an image, and checks everything that can be checked before it runs.
    ///
    /// # Errors
    /// [`ImageError`] with what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, ImageError> {
        let image = Self::describe(bytes)?;
        image.check_versions().map(|()| image)
    }

    /// Whether there is a hand-over version that it reads and that is written here.
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
    /// [`ImageError`] with what is wrong.
    pub fn describe(bytes: &[u8]) -> Result<Self, ImageError> {
        Self::of(read(bytes, bytes.len() as u64)?)
    }

    /// Reads what the first bytes of a file show of the image in it, so that a file that cannot be used is refused
    /// before the rest of its `file_bytes` arrives. `None`: these bytes do not show enough yet.
    ///
    /// # Errors
    /// [`ImageError`] with what is wrong.
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
        let NoteState::Found(note, said) = note else { return Err(ImageError::NoNote) };
        let entry = note.entry.get();
        let is_entered = |segment: &Segment| {
            let start = IMAGE_BASE + LINKED_AT + segment.place;
            segment.is_code && segment.is_high && (start..start + segment.file_bytes as u64).contains(&entry)
        };
        if !segments.iter().any(is_entered) {
            return Err(ImageError::EntryOutside { address: entry });
        }
        let memory_bytes = segments.iter().map(|segment| segment.place + segment.memory_bytes).max().unwrap_or(0);
        Ok(Self { segments, note, said, memory_bytes })
    }

    /// Returns what it reports of itself.
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
        self.said.trial_version
    }

    /// Its [`SECURITY_VERSION`]; 0 where it states none.
    pub fn security_version(&self) -> u32 {
        self.said.security_version
    }

    /// Bytes of memory it wants from its slot's start on.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Returns which build it is, in its maker's words; empty where it states none.
    pub fn build(&self) -> &str {
        &self.said.build
    }

    /// Fills a slot of at least [`Image::memory_bytes`] from the file that this image was read from: the segments, and
    /// zeroes everywhere else. `false`, with nothing written, if the slot is smaller.
    pub fn place(&self, file: &[u8], slot: &mut [u8]) -> bool {
        if (slot.len() as u64) < self.memory_bytes {
            return false;
        }
        slot.fill(0);
        for segment in &self.segments {
            let from = file.get(segment.file_offset..segment.file_end());
            let place = segment.place as usize;
            if let (Some(from), Some(into)) = (from, slot.get_mut(place..place + segment.file_bytes)) {
                into.copy_from_slice(from);
            }
        }
        true
    }

    /// The file's bytes from `offset` on, as far as they lie in one piece, and where they have been placed, from the
    /// slot: the CPU that reads the whole file this way has read what will run.
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

impl Segment {
    fn file_end(&self) -> usize {
        self.file_offset + self.file_bytes
    }
}

/// The newest version that is written here and read by an image that reads these.
fn common_version(oldest: u32, newest: u32) -> Option<u32> {
    let version = newest.min(VERSION);
    (version >= oldest && version >= OLDEST_VERSION).then_some(version)
}

type Read = (ArrayVec<Segment, MAX_SEGMENTS>, NoteState);

/// How far the note has been found.
enum NoteState {
    /// There is none in what has been read.
    Missing,
    /// It lies behind the bytes that are there.
    Ahead,
    /// The note, and what stands behind it.
    Found(Note, Said),
}

fn read_header(bytes: &[u8]) -> Result<&FileHeader64<Endianness>, ImageError> {
    if bytes.get(4).is_some_and(|class| *class != ELF_CLASS_64) {
        return Err(ImageError::BadElf("it is not of the 64-bit class"));
    }
    let header = FileHeader64::<Endianness>::parse(bytes)
        .map_err(|_| ImageError::BadElf("the file header is damaged or cut off"))?;
    let endian = header.endian().map_err(|_| ImageError::BadElf("its byte order is unknown"))?;
    let machine = header.e_machine(endian);
    if endian != Endianness::Little || machine != EM_X86_64 {
        return Err(ImageError::WrongMachine(machine.0));
    }
    if header.e_type(endian) != ET_EXEC {
        return Err(ImageError::BadElf("it is not linked for a fixed address"));
    }
    Ok(header)
}

/// Reads a file of `file_bytes`, of which `bytes` are the first.
fn read(bytes: &[u8], file_bytes: u64) -> Result<Read, ImageError> {
    let (header, endian) = (read_header(bytes)?, Endianness::Little);
    let programs =
        header.program_headers(endian, bytes).map_err(|_| ImageError::BadElf("the program headers are cut off"))?;
    let (mut segments, mut note) = (ArrayVec::<Segment, MAX_SEGMENTS>::new(), NoteState::Missing);
    for program in programs {
        match program.p_type(endian) {
            PT_LOAD => add_segment(&mut segments, program, file_bytes)?,
            PT_NOTE if matches!(note, NoteState::Missing) => note = find_note(program, bytes, file_bytes)?,
            _ => {}
        }
    }
    segments.sort_unstable_by_key(|segment| (segment.file_offset, segment.file_bytes));
    if let Some([_, second]) = segments.array_windows().find(|[first, second]| second.file_offset < first.file_end()) {
        let address = LINKED_AT + second.place;
        return Err(ImageError::BadSegment { address, reason: "shares bytes of the file with another" });
    }
    Ok((segments, note))
}

fn add_segment(
    segments: &mut ArrayVec<Segment, MAX_SEGMENTS>,
    program: &ProgramHeader64<Endianness>,
    present_bytes: u64,
) -> Result<(), ImageError> {
    let endian = Endianness::Little;
    let (file_offset, file_bytes) = (program.p_offset(endian), program.p_filesz(endian));
    let (address, linear, memory_bytes) = (program.p_paddr(endian), program.p_vaddr(endian), program.p_memsz(endian));
    let bad = |reason| ImageError::BadSegment { address, reason };
    if memory_bytes == 0 {
        return Ok(());
    }
    if file_bytes > memory_bytes {
        return Err(bad("has more bytes in the file than in memory"));
    }
    let needed_bytes = file_offset.saturating_add(file_bytes);
    if needed_bytes > present_bytes {
        return Err(ImageError::Truncated { needed_bytes, present_bytes });
    }
    let flags = program.p_flags(endian);
    if flags.0 & PF_W.0 != 0 && flags.0 & PF_X.0 != 0 {
        return Err(bad("can be written and executed"));
    }
    let place = address.checked_sub(LINKED_AT).ok_or(bad("lies below the link address of images"))?;
    if !place.is_multiple_of(PAGE_BYTES) {
        return Err(bad("does not begin at a page"));
    }
    let is_high = linear.wrapping_sub(IMAGE_BASE) == address;
    if !is_high && linear != address {
        return Err(bad("is linked elsewhere than images are"));
    }
    let end = place.saturating_add(memory_bytes);
    if end > MAX_IMAGE_BYTES {
        return Err(ImageError::TooLarge { bytes: end });
    }
    let overlaps = |other: &Segment| place < other.place + other.memory_bytes && other.place < end;
    if segments.iter().any(overlaps) {
        return Err(bad("overlaps another"));
    }
    let is_code = flags.0 & PF_X.0 != 0;
    // One without bytes in the file is nowhere in it.
    let file_offset = if file_bytes == 0 { 0 } else { file_offset as usize };
    let file_bytes = file_bytes as usize;
    let segment = Segment { file_offset, file_bytes, place, memory_bytes, is_code, is_high };
    segments.try_push(segment).map_err(|_| ImageError::BadElf("it has more than 16 segments"))
}

fn find_note(program: &ProgramHeader64<Endianness>, bytes: &[u8], file_bytes: u64) -> Result<NoteState, ImageError> {
    let endian = Endianness::Little;
    let end = program.p_offset(endian).saturating_add(program.p_filesz(endian));
    if end > bytes.len() as u64 && end <= file_bytes {
        return Ok(NoteState::Ahead);
    }
    let damaged = |_| ImageError::BadElf("its notes are damaged");
    let Some(mut notes) = program.notes(endian, bytes).map_err(damaged)? else { return Ok(NoteState::Missing) };
    while let Some(note) = notes.next().map_err(damaged)? {
        if note.name() == NOTE_OWNER && note.n_type(endian) == NoteType(NOTE_TYPE) {
            let (note, more) = Note::read_from_prefix(note.desc()).map_err(|_| ImageError::BadNote)?;
            let build = more.get(..BUILD_TEXT_BYTES).map(unpadded).and_then(|text| ArrayString::from(text).ok());
            let number = |at: usize| more.get(at..).and_then(|more| U32::read_from_prefix(more).ok());
            let said = Said {
                build: build.unwrap_or_default(),
                trial_version: number(BUILD_TEXT_BYTES).map_or(FIRST_TRIAL_VERSION, |(version, _)| version.get()),
                security_version: number(BUILD_TEXT_BYTES + size_of::<U32>()).map_or(0, |(version, _)| version.get()),
            };
            return Ok(NoteState::Found(note, said));
        }
    }
    Ok(NoteState::Missing)
}
