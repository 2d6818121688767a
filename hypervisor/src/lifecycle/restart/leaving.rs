// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the first stop of a guest to this image's last instruction. Nothing here allocates or waits without a limit,
//! and from the moment the others are ordered to park, no lock is waited for: the CPU that does not park may hold one.

use core::sync::atomic::{AtomicBool, Ordering};

use ::update::platform::Cpu;
use ::update::restart::{Act, Departure};
use bringup::ParkSlot;
use handover::image::REMAPPED_SINCE;
use handover::layout::{CpuState, Reason, Stamps};
use spin::Once;

use super::hand_over::{HandOver, Staged};
use super::record::write_record;
use super::staged_image::Hashed;
use crate::arch::switch_pages::SwitchPages;
use crate::arch::{apic, cpu, fault, percpu, timer};
use crate::guests::assigned::under_way;
use crate::guests::instance::Instance;
use crate::guests::slots::GUESTS;
use crate::kernel::console;
use crate::kernel::cpus::{self, Member};
use crate::kernel::inherited::ChannelState;
use crate::kernel::interrupts;
use crate::kernel::timeline::{self, Name};
use crate::lifecycle::update::machine::Machine;

static IS_PARKING: AtomicBool = AtomicBool::new(false);
static SWITCH_PAGES: Once<SwitchPages> = Once::new();

/// Returns whether every CPU is to park now.
pub fn is_parking() -> bool {
    IS_PARKING.load(Ordering::Acquire)
}

/// The calling CPU waits for the next image. It has let go of its guests, and disabled what runs them.
pub fn park(index: u32) -> ! {
    let is_unresponsive = fault::point!(crate::lifecycle::faults::is_unresponsive_at_parking(index), else false);
    match SWITCH_PAGES.get() {
        Some(switch_pages) if !is_unresponsive => {
            timeline::begin(Name::Parked, index);
            switch_pages.park(index)
        }
        _ => cpu::halt_forever(),
    }
}

/// Switches to the new image. [`::update::restart`] decides the order of the steps.
pub fn leave(staged: Staged, reason: Reason, asked: u64, last_words: &mut dyn FnMut() -> ChannelState) -> ! {
    let Staged { mut hand_over, switch_pages } = staged;
    timer::refine();
    if hand_over.next.image.iommu_version() < REMAPPED_SINCE {
        interrupts::pass_interrupts();
    }
    let switch_pages = SWITCH_PAGES.call_once(|| switch_pages);
    let machine = Machine::new(percpu::BOOT_CPU, None);
    let mut departure = Departure::begin(hand_over.next.policy.checks_in_blackout());
    let mut stamps = Stamps { asked: asked.into(), stopped: 0.into(), parked: 0.into(), left: 0.into() };
    let (mut channel_state, mut hashed) = (ChannelState::default(), Hashed::default());
    loop {
        let others = hand_over.members.iter().skip(1).map(Member::cpu);
        let is_parked = |cpu: Cpu| switch_pages.mailbox(cpu.index).is_some_and(ParkSlot::is_parked);
        match departure.next(&machine, others, is_parked) {
            Act::PrintLog => spanned(Name::FlushLog, console::print_ahead),
            Act::StopGuests => {
                withdraw_functions();
                timeline::instant(Name::GuestsStopped, hand_over.generation as u32);
                stamps.stopped = cpu::tsc().into();
            }
            Act::Park => order_to_park(&hand_over, switch_pages),
            Act::Pause => cpu::pause(),
            Act::Lose(cpu) => lose(&mut hand_over.members, cpu),
            Act::ResetAbsent => {
                cpus::init_absent();
                stamps.parked = cpu::tsc().into();
                timeline::end(Name::Park, 0);
            }
            Act::SendOutput => channel_state = last_words(),
            Act::CheckImage => hashed = check(&hand_over),
            Act::EndLog => {
                console::hand_over();
                stamps.left = cpu::tsc().into();
            }
            Act::WriteRecord => spanned(Name::WriteRecord, || {
                // Without it the new image lacks the events of this one, and nothing else.
                let _ = hand_over.hand_over_state.save_host(hand_over.version, &stamps, &channel_state);
                // It fitted before, with room for the memory that has been found damaged since.
                let _ = write_record(&mut hand_over, switch_pages, reason, &stamps, hashed, &channel_state);
            }),
            Act::Leave => {
                cpus::clear_guest_state();
                timeline::begin(Name::SwitchPages, hand_over.generation as u32);
                switch_pages.leave(hand_over.next.image.note().entry.get(), hand_over.record.range().start())
            }
        }
    }
}

/// No PCI function reaches a guest's memory when the next image uses it for something else.
fn withdraw_functions() {
    GUESTS.all().filter_map(|guest| guest.run::<Instance>()).for_each(|run| run.withdraw_functions());
    under_way::finish_all();
}

fn spanned(name: Name, step: impl FnOnce()) {
    timeline::begin(name, 0);
    step();
    timeline::end(name, 0);
}

/// Orders the other CPUs to park. From here on no lock is waited for.
fn order_to_park(hand_over: &HandOver, switch_pages: &SwitchPages) {
    fault::point!(crate::lifecycle::faults::spoil_staged(hand_over.next.slot.range()));
    timeline::begin(Name::Park, 0);
    for member in &hand_over.members {
        switch_pages.mailbox(member.index).into_iter().for_each(|mailbox| mailbox.expect(member.apic_id));
    }
    IS_PARKING.store(true, Ordering::Release);
}

/// A CPU that has not parked in time is sent INIT, after which it does nothing.
fn lose(members: &mut [Member], lost: Cpu) {
    members.iter_mut().filter(|member| member.index == lost.index).for_each(|member| member.state = CpuState::Lost);
    apic::send_init(lost.apic_id);
}

fn check(hand_over: &HandOver) -> Hashed {
    hand_over.next.check_in_blackout(hand_over.source.image_file()).unwrap_or_else(|error| {
        panic!("the restart cannot go on, and guests have ended: after it was checked, {error}");
    })
}
