// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record, and the part of it that outlives it.

use alloc::format;
use alloc::string::String;

use arrayvec::{ArrayString, ArrayVec};
use frames::FrameRange;
use handover::layout::{Checked, CpuState, Purpose, Stamps};
use handover::record::Record;
use handover::{Items, RecordError};
use seal::PublicKey;
use spin::{Mutex, Once};
use units::PhysRange;

use super::channel_state::ChannelState;
use crate::arch::boot as entry;
use crate::arch::memory;

/// The length at the end of the frames in which a file is kept.
pub const FILE_LENGTH_BYTES: usize = size_of::<u64>();
/// The record, until it is given back.
pub static RECORD: Mutex<Option<Record<'static>>> = Mutex::new(None);
/// The memory of files that images were made from.
pub static FILES: Once<ArrayVec<(Purpose, PhysRange), 2>> = Once::new();
/// The memory of the bundle of the image before, while an update with another one is to be confirmed.
pub static PREVIOUS_BUNDLE: Mutex<Option<PhysRange>> = Mutex::new(None);
/// The fields that are needed after that.
pub static KNOWN: Once<Known> = Once::new();
/// The build of the image before, where only its file states.
static OLD_BUILD: Once<ArrayString<{ handover::image::BUILD_TEXT_BYTES }>> = Once::new();

/// The part of the record that outlives it.
#[derive(Clone, Debug)]
pub struct Known {
    /// The number of images that have run, this one included.
    pub generation: u64,
    /// The old image's version.
    pub old_version: ArrayString<{ handover::layout::VERSION_TEXT_BYTES }>,
    /// The old image's build; empty where its record gives none.
    pub old_build: ArrayString<{ handover::image::BUILD_TEXT_BYTES }>,
    /// The old image's time stamps.
    pub stamps: Option<Stamps>,
    /// The check of this image.
    pub checked: Option<Checked>,
    /// The control channel's state.
    pub channel_state: ChannelState,
    /// The key that has signed this image, where the old one has checked that.
    pub signer: Option<PublicKey>,
    /// CPUs that the old image had, this one included.
    pub cpus: u32,
    /// Guests go on.
    pub is_update: bool,
    /// Seconds within which a client is to confirm that they go on in this image, if that is wanted.
    pub confirm_within_s: Option<u32>,
}

/// Returns which image since the machine was powered on this is, from 1.
pub fn generation() -> u64 {
    KNOWN.get().map_or(1, |known| known.generation)
}

/// Returns what the image before handed over; `None` where a loader started this one.
pub fn known() -> Option<&'static Known> {
    KNOWN.get()
}

/// Returns which build the image before is, by its record, or else by its file; empty where neither states one.
pub fn old_build() -> &'static str {
    match known().map_or("", |known| known.old_build.as_str()) {
        "" => OLD_BUILD.call_once(build_of_previous_file),
        build => build,
    }
}

fn build_of_previous_file() -> ArrayString<{ handover::image::BUILD_TEXT_BYTES }> {
    let image = file(Purpose::PreviousFile).and_then(|file| handover::Image::describe(file).ok());
    image.and_then(|image| ArrayString::from(image.build()).ok()).unwrap_or_default()
}

/// Returns a short form of the key that has signed this image, where the image before has checked that.
pub fn signer() -> Option<String> {
    known()?.signer.map(|key| format!("{}", key.id()))
}

/// Version and build of the image before this one, and of this one.
pub fn succession() -> Option<(String, String)> {
    let known = known()?;
    let old = format!("{} {}", known.old_version, old_build());
    let new = format!("{} {}", env!("CARGO_PKG_VERSION"), entry::BUILD);
    Some((old.trim_ascii_end().into(), new.trim_ascii_end().into()))
}

/// Logs where this image comes from, and the CPUs lost on the way.
pub fn announce() {
    let record = RECORD.lock();
    let (Some(record), Some(known)) = (record.as_ref(), known()) else { return };
    let (generation, slot, version) = (known.generation, record.slot(), record.version);
    log::info!(
        "generation {generation}, handed over by {} in memory at {slot}, in version {version}",
        format_args!("{} {}", known.old_version, old_build())
    );
    for cpu in record.cpus.iter() {
        if cpu.state.get() == CpuState::Lost as u32 {
            let (index, apic_id) = (cpu.number, cpu.apic_id);
            log::error!("CPU {index} (APIC id {apic_id}) did not park in time: the host goes on without it");
        }
    }
}

/// Returns whether guests go on from where the image before left them.
pub fn is_update() -> bool {
    KNOWN.get().is_some_and(|known| known.is_update)
}

/// The record, while it is kept.
pub fn record() -> Option<Record<'static>> {
    *RECORD.lock()
}

/// Returns what an image on trial has: its memory, and the switch pages by which it came.
///
/// # Errors
/// The record names none.
pub fn on_trial() -> Result<(PhysRange, PhysRange), RecordError> {
    let record = RECORD.lock().ok_or(RecordError::Missing(handover::Kind::Kept))?;
    let one = |purpose| record.kept_for(purpose).next().ok_or(RecordError::BadSection(handover::Kind::Kept));
    Ok((one(Purpose::Staging)?, one(Purpose::SwitchPages)?))
}

/// The file that is kept for this purpose. Its frames end with its length.
pub fn file(purpose: Purpose) -> Option<&'static [u8]> {
    let files = FILES.get()?;
    let range = files.iter().find(|(of, _)| *of == purpose)?.1;
    let (room, length) = memory::module_bytes(range)?.split_last_chunk::<FILE_LENGTH_BYTES>()?;
    room.get(..u64::from_le_bytes(*length) as usize)
}

/// The bundle of the image before, if an update with another one is to be confirmed.
pub fn previous_bundle() -> Option<PhysRange> {
    *PREVIOUS_BUNDLE.lock()
}

/// Gives it back: the update stays.
pub fn release_previous_bundle() {
    PREVIOUS_BUNDLE.lock().take().and_then(FrameRange::adopt).into_iter().for_each(memory::release);
}

/// The CPUs that take part, the one that hands over first: the old image's number, identifier, and page or
/// mailbox.
pub fn members() -> impl Iterator<Item = (u32, u32, u64)> {
    let record = *RECORD.lock();
    let cpus = record.map_or(Items::EMPTY, |record| record.cpus);
    cpus.iter().map(|one| (one.number.get(), one.apic_id.get(), one.mailbox.get()))
}

/// Returns whether the clock's rates are known.
pub fn has_clock() -> bool {
    KNOWN.get().is_some()
}

/// Returns whether all clocks agreed.
pub fn clocks_agree() -> bool {
    RECORD.lock().is_some_and(|record| record.host.clocks_agree.get() == 1)
}
