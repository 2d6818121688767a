// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that the image before has parked, and giving back all that it left. [`::update::parked`] and
//! [`::update::release`] decide what is done with each, and in which order.

use ::update::parked::{self, LeftOut, Mailboxes, OtherVersion};
use ::update::release::{Act, Release};
use bringup::ParkSlot;
use bringup::park::SlotError;
use frames::FrameRange;
use handover::layout::Purpose;
use units::PhysRange;

use super::record::RECORD;
use crate::arch::smp::Adoption;
use crate::arch::{apic, memory, switch_pages};
use crate::kernel::timeline::{self, Name};

/// The mailboxes in these switch pages.
struct Inherited(PhysRange);

impl Mailboxes for Inherited {
    type Mailbox = &'static ParkSlot;
    type Error = SlotError;

    fn at(&self, address: u64) -> Option<&'static ParkSlot> {
        switch_pages::inherited_mailbox(address, self.0)
    }

    fn check(&self, mailbox: &'static ParkSlot, apic_id: u32) -> Result<(), SlotError> {
        mailbox.adopt(apic_id)
    }
}

/// Of the CPUs with these APIC identifiers, those that wait at their mailboxes; `None` if none does, or they cannot be
/// had from there.
pub fn adoption(ids: &[u32]) -> Option<Adoption> {
    let record = (*RECORD.lock())?;
    let pages = Inherited(record.kept_for(Purpose::SwitchPages).next()?);
    let mailboxes = match parked::find(&record, bringup::park::VERSION, ids, &pages, log_left_out) {
        Ok(mailboxes) => mailboxes,
        Err(OtherVersion(version)) => {
            log::warn!("parked CPUs are sent INIT: their mailboxes have version {version}");
            return None;
        }
    };
    parked::last(&mailboxes)?;
    Some(Adoption {
        #[cfg(feature = "faults")]
        stuck: crate::kernel::faults::stuck_in_mailbox(&mailboxes),
        mailboxes,
        root: record.switch_pages.root.get(),
    })
}

fn log_left_out(apic_id: u32, why: LeftOut<SlotError>) {
    match why {
        LeftOut::Absent(error) => log::error!("the CPU with APIC id {apic_id} is left out: {error}"),
        LeftOut::Unknown => {
            log::error!(
                "the CPU with APIC id {apic_id} is left out: this machine lacks it, or its mailbox's address is bad"
            )
        }
    }
}

/// Every CPU that takes part is online: all memory that the image before left becomes free. `copy_log` reads its log
/// for the last time. Returns whether there was anything.
pub fn give_back(online: &[u32], mut copy_log: impl FnMut()) -> bool {
    let Some(record) = *RECORD.lock() else {
        copy_log();
        return false;
    };
    let mut span = None;
    for act in Release::begin(parked::left_behind(&record, online)) {
        match act {
            Act::CopyLog => {
                copy_log();
                span = Some(timeline::span(Name::GiveBack, 0));
                // From here on only this function reads it.
                *RECORD.lock() = None;
            }
            Act::Reset(apic_id) => apic::send_init(apic_id),
            Act::Free(purpose) => {
                record.kept_for(purpose).filter_map(FrameRange::adopt).for_each(memory::release);
            }
        }
    }
    drop(span);
    true
}
