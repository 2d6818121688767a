// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the first stop of a guest to this image's last instruction. Nothing here allocates or waits without a limit,
//! and from the moment the others are told to park, no lock is waited for: whoever does not park may hold one.

use core::sync::atomic::{AtomicBool, Ordering};

use boot::options::SelfTest;
use bringup::ParkSlot;
use handover::layout::{ProcessorState, Reason, Stamps};
use spin::Once;
use units::PhysAddr;

use super::record::write_record;
use super::staging::Staged;
use crate::arch::address::DIRECT_MAP;
use crate::arch::crossing::Crossing;
use crate::arch::reminder::Reminder;
use crate::arch::{apic, cpu, lock, percpu, timer};
use crate::kernel::console;
use crate::kernel::inherited::{Conversation, fails_by};
use crate::kernel::processors::{self, Member};
use crate::kernel::timeline::{self, Name};

/// In the new image's code.
const SPOILT_AT: u64 = 0x8000;
/// How long processors may take to park. They do so at their next exit; but an emulator on a crowded machine may let
/// one wait for seconds, and nobody waits this long unless one is dead.
const PARK_LIMIT_US: u64 = 5_000_000;

static IS_PARKING: AtomicBool = AtomicBool::new(false);
static CROSSING: Once<Crossing> = Once::new();

/// Whether every processor is to park now.
pub fn is_parking() -> bool {
    IS_PARKING.load(Ordering::Acquire)
}

/// The calling processor waits for the next image. It has let go of its guests, and switched off what runs them.
pub fn park(index: u32) -> ! {
    let last = processors::online().last().copied();
    match CROSSING.get() {
        Some(crossing) if !(last == Some(index) && fails_by(SelfTest::DeafAtParking, 1)) => {
            timeline::begin(Name::Parked, index);
            crossing.park(index)
        }
        _ => cpu::halt_forever(),
    }
}

/// Goes to the new image.
pub fn leave(staged: Staged, reason: Reason, asked: u64, last_words: &mut dyn FnMut() -> Conversation) -> ! {
    let Staged { mut parcel, crossing } = staged;
    timer::refine();
    // While guests run on other processors, so that little is left for the moment when none does.
    timeline::begin(Name::FlushLog, 0);
    console::print_ahead();
    timeline::end(Name::FlushLog, 0);
    timeline::instant(Name::GuestsStopped, parcel.generation as u32);
    let mut stamps = Stamps { asked: asked.into(), stopped: cpu::tsc().into(), parked: 0.into(), left: 0.into() };
    let crossing = CROSSING.call_once(|| crossing);
    if fails_by(SelfTest::SpoilStaged, 1) {
        let at = parcel.next.slot.range().start().0 + SPOILT_AT;
        log::warn!("self-test: a stray write to the staged image at {:#018x}", DIRECT_MAP + at);
        lock::write_astray(PhysAddr(at));
    }
    timeline::begin(Name::Park, 0);
    park_others(&mut parcel.members, crossing);
    processors::init_absent();
    stamps.parked = cpu::tsc().into();
    timeline::end(Name::Park, 0);
    let conversation = last_words();
    let hashed = parcel.next.check_in_gap(parcel.source.image_file()).unwrap_or_else(|error| {
        panic!("the restart cannot go on, and guests have ended: after it was checked, {error}");
    });
    console::hand_over();
    stamps.left = cpu::tsc().into();
    // It fitted before, with room for the memory that has been found damaged since.
    timeline::begin(Name::WriteRecord, 0);
    // Without it the new image lacks the events of this one, and nothing else.
    let _ = parcel.baggage.save_host(parcel.version, &stamps, &conversation);
    let _ = write_record(&mut parcel, crossing, reason, &stamps, hashed, &conversation);
    timeline::end(Name::WriteRecord, 0);
    processors::forget_guests();
    timeline::begin(Name::Crossing, parcel.generation as u32);
    crossing.leave(parcel.next.image.note().entry.get(), parcel.record.range().start())
}

/// Tells the others to park, and waits for them; whoever does not park in time is sent INIT, after which it does
/// nothing.
fn park_others(members: &mut [Member], crossing: &Crossing) {
    for member in &*members {
        crossing.mailbox(member.index).into_iter().for_each(|mailbox| mailbox.expect(member.apic_id));
    }
    IS_PARKING.store(true, Ordering::Release);
    members.iter().skip(1).for_each(|member| percpu::wake(member.index));
    let deadline = cpu::tsc().wrapping_add(timer::us_to_ticks(PARK_LIMIT_US));
    let mut reminder = Reminder::new();
    for member in members.iter_mut().skip(1) {
        let is_parked = || crossing.mailbox(member.index).is_some_and(ParkSlot::is_parked);
        while !is_parked() && (cpu::tsc().wrapping_sub(deadline) as i64) < 0 {
            if reminder.is_due() {
                percpu::wake(member.index);
            }
            cpu::pause();
        }
        if !is_parked() {
            member.state = ProcessorState::Lost;
            apic::send_init(member.apic_id);
        }
    }
}
