// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that the image before has parked, and giving back all that it left.

use alloc::vec;

use ::boot::options::SelfTest;
use frames::FrameRange;
use handover::layout::{CpuState, Purpose};

use super::record::{RECORD, fails_by};
use crate::arch::smp::Adoption;
use crate::arch::{apic, memory, switch_pages};
use crate::kernel::timeline::{self, Name};

/// Of the CPUs with these identifiers, those that wait at their mailboxes; `None` if none does, or they cannot be
/// had from there.
pub fn adoption(ids: &[u32]) -> Option<Adoption> {
    let record = (*RECORD.lock())?;
    let version = record.switch_pages.mailbox_version.get();
    if version != bringup::park::VERSION {
        log::warn!("parked CPUs are sent INIT: their mailboxes have version {version}");
        return None;
    }
    let switch_pages = record.kept_for(Purpose::SwitchPages).next()?;
    let mut mailboxes = vec![None; ids.len()];
    for cpu in record.cpus.iter().filter(|cpu| is_parked(cpu.state.get())) {
        let apic_id = cpu.apic_id.get();
        let place = ids.iter().position(|id| *id == apic_id).and_then(|index| mailboxes.get_mut(index));
        let mailbox = switch_pages::inherited_mailbox(cpu.mailbox.get(), switch_pages);
        match (place, mailbox.map(|mailbox| mailbox.adopt(apic_id))) {
            (Some(place), Some(Ok(()))) => *place = mailbox.map(|mailbox| (apic_id, mailbox)),
            (_, Some(Err(error))) => log::error!("the CPU with APIC id {apic_id} is left out: {error}"),
            _ => log::error!("the CPU with APIC id {apic_id} is left out: it is nobody's, or its mailbox is nowhere"),
        }
    }
    let last = mailboxes.iter().rposition(Option::is_some)? as u32;
    let stuck = fails_by(SelfTest::StuckInMailbox, 2).then_some(last);
    Some(Adoption { mailboxes, root: record.switch_pages.root.get(), stuck })
}

fn is_parked(state: u32) -> bool {
    state == CpuState::Parked as u32
}

/// Every CPU that takes part is online: all memory that the image before left becomes free. CPUs that it parked and
/// that are not among those online are sent INIT first, after which they need no memory.
pub fn give_back(online: &[u32]) {
    let Some(record) = RECORD.lock().take() else { return };
    let _span = timeline::span(Name::GiveBack, 0);
    let parked = record.cpus.iter().filter(|cpu| is_parked(cpu.state.get()));
    parked.map(|cpu| cpu.apic_id.get()).filter(|id| !online.contains(id)).for_each(apic::send_init);
    for purpose in [Purpose::SwitchPages, Purpose::Log, Purpose::Blocks, Purpose::Record] {
        record.kept_for(purpose).filter_map(FrameRange::adopt).for_each(memory::release);
    }
}
