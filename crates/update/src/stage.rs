// SPDX-License-Identifier: MIT OR Apache-2.0
//! The staging of the next image while guests run: the order of its steps, and which of them the policy and the reason
//! demand.
//!
//! ```text
//! place   describe ─▶ admit ─▶ seal ─▶ allocate
//! copy    a slice at a time, with guests in between ─▶ lock (policy)
//! hash    a slice at a time, with guests in between (policy)
//! finish  check guests ─▶ judge (policy) ─▶ version ─▶ record ─▶ staging memory, files (update) ─▶ pack ─▶ assemble
//!           ─▶ switch pages ─▶ write the record ─▶ does it fit? ─▶ map the switch pages
//! ```
//!
//! Each step can fail, and none after it is done then: what was made is dropped, which gives it back, and guests run
//! on. An image that is locked is hashed only after that, so that what was hashed is what will run. The record is
//! written once to measure it: in the blackout it cannot be refused any more.

use handover::MAX_RECORD_BYTES;

use crate::needs::will_fit;

/// The checks that an image must pass before the host trusts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// It is hashed, and judged by its seal.
    pub is_checked: bool,
    /// Its memory is locked before it is hashed.
    pub is_locked: bool,
}

/// The parts of a slot for an image.
pub trait Placer {
    /// An image as its file describes it.
    type Image;
    /// Memory that can be written.
    type Memory;
    /// The same once the image is in it, locked or not.
    type Slot;
    /// Why the image cannot be placed.
    type Error;

    /// Reads and checks the file's headers.
    ///
    /// # Errors
    /// This host cannot run it.
    fn describe(&mut self) -> Result<Self::Image, Self::Error>;
    /// Compares its security version with what this host admits.
    ///
    /// # Errors
    /// It is too old.
    fn admit(&mut self, image: &Self::Image) -> Result<(), Self::Error>;
    /// Returns how many of the file's bytes its seal covers.
    ///
    /// # Errors
    /// It has no seal, or a damaged one.
    fn sealed_bytes(&mut self) -> Result<u64, Self::Error>;
    /// Allocates memory for it.
    ///
    /// # Errors
    /// There is none.
    fn allocate(&mut self, image: &Self::Image) -> Result<Self::Memory, Self::Error>;
    /// Copies a slice of it from its file, from this offset in the memory on. Returns the offset that follows; `None`
    /// once all is there.
    fn copy(&mut self, image: &Self::Image, memory: &mut Self::Memory, from: usize) -> Option<usize>;
    /// Takes the right to write to the memory from all CPUs.
    ///
    /// # Errors
    /// A CPU does not flush its TLB in time.
    fn lock(&mut self, memory: Self::Memory) -> Result<Self::Slot, Self::Error>;
    /// Leaves the memory as it is.
    fn leave_open(&mut self, memory: Self::Memory) -> Self::Slot;
}

/// An image whose slot is allocated.
#[derive(Debug)]
pub struct Described<I, M> {
    /// Its description.
    pub image: I,
    /// Bytes of its file that are hashed; 0 where it is not checked and has no seal.
    pub sealed_bytes: u64,
    /// Its way into the slot.
    pub placing: Placing<M>,
}

/// An image that is being copied into its slot.
#[derive(Debug)]
pub struct Placing<M> {
    memory: M,
    /// The offset of the next slice; `None` once all is there.
    next: Option<usize>,
}

/// Begins to put an image into a slot.
///
/// # Errors
/// The first step that failed.
pub fn place<P: Placer>(placer: &mut P, policy: Policy) -> Result<Described<P::Image, P::Memory>, P::Error> {
    let image = placer.describe()?;
    placer.admit(&image)?;
    let sealed_bytes = match placer.sealed_bytes() {
        Ok(bytes) => bytes,
        Err(error) if policy.is_checked => return Err(error),
        Err(_) => 0,
    };
    let memory = placer.allocate(&image)?;
    Ok(Described { image, sealed_bytes, placing: Placing { memory, next: Some(0) } })
}

impl<M> Placing<M> {
    /// Copies a slice; returns whether all is there.
    pub fn step<P: Placer<Memory = M>>(&mut self, placer: &mut P, image: &P::Image) -> bool {
        self.next = self.next.and_then(|from| placer.copy(image, &mut self.memory, from));
        self.next.is_none()
    }

    /// Copies what is left. Returns the slot, locked where the policy demands that.
    ///
    /// # Errors
    /// A CPU does not flush its TLB in time.
    pub fn finish<P: Placer<Memory = M>>(
        mut self,
        placer: &mut P,
        image: &P::Image,
        policy: Policy,
    ) -> Result<P::Slot, P::Error> {
        while !self.step(placer, image) {}
        if policy.is_locked { placer.lock(self.memory) } else { Ok(placer.leave_open(self.memory)) }
    }
}

/// Goes on hashing by a slice, where the policy demands that; returns whether nothing is left to hash.
pub fn hash(policy: Policy, slice: impl FnOnce() -> bool) -> bool {
    !policy.is_checked || slice()
}

/// The hand-over block would not fit into its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// A staged image, and the steps to it. Its drop frees its memory.
pub trait Stager: Sized {
    /// An image that is hashed.
    type Placed;
    /// An image that may run.
    type Trusted;
    /// Memory.
    type Memory;
    /// Copies of the new image's file and of this one's.
    type Files;
    /// The hand-over state of the host and of guests.
    type State;
    /// The file with the new image.
    type Source;
    /// All of it.
    type HandOver: HandOver<Source = Self::Source, Error = Self::Error>;
    /// The reason why there is no restart and no update.
    type Error: From<TooLarge>;

    /// Checks that every guest can stop at once.
    ///
    /// # Errors
    /// A guest is being loaded: its CPU would not park in time.
    fn check_guests(&mut self) -> Result<(), Self::Error>;
    /// Judges the image by its seal and the digest.
    ///
    /// # Errors
    /// It is another image than was sealed, or none of the host's keys has signed it.
    fn judge(&mut self, placed: Self::Placed) -> Result<Self::Trusted, Self::Error>;
    /// Takes the image as it is.
    fn trust_unchecked(&mut self, placed: Self::Placed) -> Self::Trusted;
    /// Returns the newest hand-over version that both images know.
    ///
    /// # Errors
    /// There is none.
    fn version(&mut self, next: &Self::Trusted) -> Result<u32, Self::Error>;
    /// Allocates memory for the hand-over block.
    ///
    /// # Errors
    /// There is none.
    fn allocate_record(&mut self) -> Result<Self::Memory, Self::Error>;
    /// Allocates memory for what the new image needs while this one owns the rest.
    ///
    /// # Errors
    /// There is none.
    fn allocate_staging_memory(&mut self) -> Result<Self::Memory, Self::Error>;
    /// Returns the copies of the images' files, to go back by.
    ///
    /// # Errors
    /// There was no memory for them.
    fn copied_files(&mut self) -> Result<Self::Files, Self::Error>;
    /// Packs what is handed over, for a reader of this version.
    ///
    /// # Errors
    /// A guest cannot be handed over.
    fn pack(&mut self, version: u32) -> Result<Self::State, Self::Error>;
    /// Puts all of it together.
    fn assemble(self, parts: Parts<Self>) -> Self::HandOver;
    /// Returns the file.
    fn into_source(self) -> Self::Source;
}

/// Everything that is handed over, and the switch pages to the new image.
pub trait HandOver {
    /// The switch pages.
    type SwitchPages;
    /// The file with the new image.
    type Source;
    /// See [`Stager::Error`].
    type Error;
    /// The bytes by which the hand-over block may grow until it is written for good.
    const GROWTH_BYTES: usize;

    /// Builds the switch pages.
    ///
    /// # Errors
    /// There is no memory for them.
    fn build_switch_pages(&mut self) -> Result<Self::SwitchPages, Self::Error>;
    /// Writes the hand-over block as far as it is known; returns its length in bytes.
    ///
    /// # Errors
    /// It does not fit.
    fn write_record(&mut self, switch_pages: &Self::SwitchPages) -> Result<usize, Self::Error>;
    /// Maps the switch pages in the host's own page tables.
    ///
    /// # Errors
    /// There is no memory for a page table.
    fn map(&mut self, switch_pages: &Self::SwitchPages) -> Result<(), Self::Error>;
    /// Returns the file.
    fn into_source(self) -> Self::Source;
}

/// The parts of a hand-over.
#[derive(Debug)]
pub struct Parts<S: Stager> {
    /// The new image.
    pub next: S::Trusted,
    /// The hand-over version that is written.
    pub version: u32,
    /// Memory for the hand-over block.
    pub record: S::Memory,
    /// In an update, the new image's memory while this one owns the rest.
    pub staging_memory: Option<S::Memory>,
    /// In an update, the images' files.
    pub files: Option<S::Files>,
    /// The hand-over state of the host and of guests.
    pub state: S::State,
}

/// All that is staged.
pub type Staged<S> = (<S as Stager>::HandOver, <<S as Stager>::HandOver as HandOver>::SwitchPages);
/// Why nothing is, and the file.
pub type Refused<S> = (<S as Stager>::Error, <S as Stager>::Source);

/// Stages a restart or an update with an image that is hashed.
///
/// # Errors
/// The first step that failed.
pub fn finish<S: Stager>(
    mut stager: S,
    placed: S::Placed,
    policy: Policy,
    is_update: bool,
) -> Result<Staged<S>, Refused<S>> {
    let parts = match gather(&mut stager, placed, policy, is_update) {
        Ok(parts) => parts,
        Err(error) => return Err((error, stager.into_source())),
    };
    let mut hand_over = stager.assemble(parts);
    match prepare_switch(&mut hand_over) {
        Ok(switch_pages) => Ok((hand_over, switch_pages)),
        Err(error) => Err((error, hand_over.into_source())),
    }
}

fn gather<S: Stager>(stager: &mut S, placed: S::Placed, policy: Policy, is_update: bool) -> Result<Parts<S>, S::Error> {
    stager.check_guests()?;
    let next = if policy.is_checked { stager.judge(placed)? } else { stager.trust_unchecked(placed) };
    let version = stager.version(&next)?;
    let record = stager.allocate_record()?;
    let staging_memory = if is_update { Some(stager.allocate_staging_memory()?) } else { None };
    let files = if is_update { Some(stager.copied_files()?) } else { None };
    let state = stager.pack(version)?;
    Ok(Parts { next, version, record, staging_memory, files, state })
}

fn prepare_switch<H: HandOver<Error: From<TooLarge>>>(hand_over: &mut H) -> Result<H::SwitchPages, H::Error> {
    let switch_pages = hand_over.build_switch_pages()?;
    let bytes = hand_over.write_record(&switch_pages)?;
    if !will_fit(bytes, H::GROWTH_BYTES, MAX_RECORD_BYTES) {
        return Err(TooLarge.into());
    }
    hand_over.map(&switch_pages)?;
    Ok(switch_pages)
}
