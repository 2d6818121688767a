// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the first stop of a guest to this image's last instruction. Nothing here allocates or waits without a limit,
//! and from the moment the others are told to park, no lock is waited for: whoever does not park may hold one.

use core::sync::atomic::{AtomicBool, Ordering};

use ::update::platform::Cpu;
use ::update::restart::{Act, Departure};
use bringup::ParkSlot;
use handover::layout::{ProcessorState, Reason, Stamps};
use spin::Once;

use super::candidate::Hashed;
use super::parcel::{Parcel, Staged};
use super::record::write_record;
use crate::arch::crossing::Crossing;
use crate::arch::{apic, cpu, fault, percpu, timer};
use crate::kernel::console;
use crate::kernel::inherited::Conversation;
use crate::kernel::processors::{self, Member};
use crate::kernel::timeline::{self, Name};
use crate::lifecycle::update::machine::Machine;

static IS_PARKING: AtomicBool = AtomicBool::new(false);
static CROSSING: Once<Crossing> = Once::new();

/// Whether every processor is to park now.
pub fn is_parking() -> bool {
    IS_PARKING.load(Ordering::Acquire)
}

/// The calling processor waits for the next image. It has let go of its guests, and switched off what runs them.
pub fn park(index: u32) -> ! {
    let is_unresponsive = fault::point!(crate::lifecycle::faults::is_unresponsive_at_parking(index), else false);
    match CROSSING.get() {
        Some(crossing) if !is_unresponsive => {
            timeline::begin(Name::Parked, index);
            crossing.park(index)
        }
        _ => cpu::halt_forever(),
    }
}

/// Goes to the new image. What is done when is decided in [`::update::restart`].
pub fn leave(staged: Staged, reason: Reason, asked: u64, last_words: &mut dyn FnMut() -> Conversation) -> ! {
    let Staged { mut parcel, crossing } = staged;
    timer::refine();
    let crossing = CROSSING.call_once(|| crossing);
    let machine = Machine::new(percpu::BOOT_PROCESSOR, None);
    let mut departure = Departure::begin();
    let mut stamps = Stamps { asked: asked.into(), stopped: 0.into(), parked: 0.into(), left: 0.into() };
    let (mut conversation, mut hashed) = (Conversation::default(), Hashed::default());
    loop {
        let others = parcel.members.iter().skip(1).map(Member::cpu);
        let is_parked = |cpu: Cpu| crossing.mailbox(cpu.index).is_some_and(ParkSlot::is_parked);
        match departure.next(&machine, others, is_parked) {
            Act::PrintLog => spanned(Name::FlushLog, console::print_ahead),
            Act::StopGuests => {
                timeline::instant(Name::GuestsStopped, parcel.generation as u32);
                stamps.stopped = cpu::tsc().into();
            }
            Act::Park => order_to_park(&parcel, crossing),
            Act::Pause => cpu::pause(),
            Act::Lose(cpu) => lose(&mut parcel.members, cpu),
            Act::ResetAbsent => {
                processors::init_absent();
                stamps.parked = cpu::tsc().into();
                timeline::end(Name::Park, 0);
            }
            Act::SendOutput => conversation = last_words(),
            Act::CheckImage => hashed = check(&parcel),
            Act::EndLog => {
                console::hand_over();
                stamps.left = cpu::tsc().into();
            }
            Act::WriteRecord => spanned(Name::WriteRecord, || {
                // Without it the new image lacks the events of this one, and nothing else.
                let _ = parcel.baggage.save_host(parcel.version, &stamps, &conversation);
                // It fitted before, with room for the memory that has been found damaged since.
                let _ = write_record(&mut parcel, crossing, reason, &stamps, hashed, &conversation);
            }),
            Act::Leave => {
                processors::forget_guests();
                timeline::begin(Name::Crossing, parcel.generation as u32);
                crossing.leave(parcel.next.image.note().entry.get(), parcel.record.range().start())
            }
        }
    }
}

fn spanned(name: Name, step: impl FnOnce()) {
    timeline::begin(name, 0);
    step();
    timeline::end(name, 0);
}

/// From here on no lock is waited for.
fn order_to_park(parcel: &Parcel, crossing: &Crossing) {
    fault::point!(crate::lifecycle::faults::spoil_staged(parcel.next.slot.range()));
    timeline::begin(Name::Park, 0);
    for member in &parcel.members {
        crossing.mailbox(member.index).into_iter().for_each(|mailbox| mailbox.expect(member.apic_id));
    }
    IS_PARKING.store(true, Ordering::Release);
}

/// A CPU that has not parked in time is sent INIT, after which it does nothing.
fn lose(members: &mut [Member], lost: Cpu) {
    members
        .iter_mut()
        .filter(|member| member.index == lost.index)
        .for_each(|member| member.state = ProcessorState::Lost);
    apic::send_init(lost.apic_id);
}

fn check(parcel: &Parcel) -> Hashed {
    parcel.next.check_in_gap(parcel.source.image_file()).unwrap_or_else(|error| {
        panic!("the restart cannot go on, and guests have ended: after it was checked, {error}");
    })
}
