// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selection of the CPUs that a new image takes from their mailboxes after a warm restart: those that the image before
//! has parked, that belong to this machine, and that wait there. Any other CPU is left out, or is started by INIT.

use alloc::vec;
use alloc::vec::Vec;

use handover::layout::CpuState;
use handover::record::Record;

/// Mailboxes in the switch pages, which the image before has built.
pub trait Mailboxes {
    /// A mailbox.
    type Mailbox: Copy;
    /// The reason why a CPU cannot be taken from its mailbox.
    type Error;

    /// Returns the mailbox at this physical address, if one can be there.
    fn at(&self, address: u64) -> Option<Self::Mailbox>;
    /// Checks that the CPU with this APIC identifier waits there.
    ///
    /// # Errors
    /// It does not.
    fn check(&self, mailbox: Self::Mailbox, apic_id: u32) -> Result<(), Self::Error>;
}

/// The reason why a parked CPU is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut<E> {
    /// This machine has no such CPU, or has it already, or its mailbox cannot be where the image before gave.
    Unknown,
    /// It does not wait at its mailbox.
    Absent(E),
}

/// The version of the mailboxes, which is not this image's: no CPU is taken from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherVersion(pub u32);

/// Identifier and mailbox of each parked CPU, by its place in `ids`, the APIC identifiers of this machine's CPUs.
pub type Parked<M> = Vec<Option<(u32, M)>>;

/// Finds the parked CPUs. `leave_out` gets each that is left out, by its APIC identifier. `version` is that of the
/// mailboxes that this image knows.
///
/// # Errors
/// The mailboxes have another version.
pub fn find<M: Mailboxes>(
    record: &Record<'_>,
    version: u32,
    ids: &[u32],
    mailboxes: &M,
    mut leave_out: impl FnMut(u32, LeftOut<M::Error>),
) -> Result<Parked<M::Mailbox>, OtherVersion> {
    let found = record.switch_pages.mailbox_version.get();
    if found != version {
        return Err(OtherVersion(found));
    }
    let mut parked = vec![None; ids.len()];
    for (apic_id, address) in all(record) {
        let place = ids.iter().position(|id| *id == apic_id).and_then(|index| parked.get_mut(index));
        let place = place.filter(|place| place.is_none());
        match (place, mailboxes.at(address)) {
            (Some(place), Some(mailbox)) => match mailboxes.check(mailbox, apic_id) {
                Ok(()) => *place = Some((apic_id, mailbox)),
                Err(error) => leave_out(apic_id, LeftOut::Absent(error)),
            },
            _ => leave_out(apic_id, LeftOut::Unknown),
        }
    }
    Ok(parked)
}

/// Returns the place of the last CPU that is parked; `None` if none is.
pub fn last<M>(parked: &[Option<(u32, M)>]) -> Option<u32> {
    parked.iter().rposition(Option::is_some).and_then(|place| u32::try_from(place).ok())
}

/// Returns the APIC identifiers of parked CPUs that are not `online`: they still wait in the switch pages.
pub fn left_behind(record: &Record<'_>, online: &[u32]) -> Vec<u32> {
    all(record).map(|(apic_id, _)| apic_id).filter(|apic_id| !online.contains(apic_id)).collect()
}

/// Returns identifier and mailbox address of each CPU that the image before reports parked.
fn all(record: &Record<'_>) -> impl Iterator<Item = (u32, u64)> {
    let parked = |state: u32| state == CpuState::Parked as u32;
    let cpus = record.cpus.iter().filter(move |cpu| parked(cpu.state.get()));
    cpus.map(|cpu| (cpu.apic_id.get(), cpu.mailbox.get()))
}
