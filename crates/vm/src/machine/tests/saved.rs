// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine that is carried from one image to the next, in the blocks in which it is handed over.

mod devices;
mod moving;
mod mutations;
mod refusals;

use std::vec;
use std::vec::Vec;

use handover::block::{HEAD_BYTES, open};
use handover::image::Reader;
use handover::state;
use handover::{BlockMut, OLDEST_VERSION, Owner, VERSION};
use proptest::prelude::*;
use zerocopy::FromZeros as _;

use super::interrupts::{edge, nmi};
use super::properties::step;
use super::*;
use crate::devices::{DeliveryMode, Destination, InterruptMessage, StateError};

const GUEST: u32 = 5;
const TAIL_BYTES: usize = 4096;

/// A machine's blocks, and its memory, which stays where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HandOver {
    policy: Vec<u8>,
    vcpu: Vec<u8>,
    devices: Vec<u8>,
    memory: Vec<u8>,
}

fn owner(vcpu: u32) -> Owner {
    Owner { guest: GUEST, vcpu }
}

/// A block, filled; the closure returns how much of the tail is in use.
fn block<T: state::BlockState>(vcpu: u32, version: u32, fill: impl FnOnce(&mut T, &mut [u8]) -> usize) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_BYTES + TAIL_BYTES];
    let mut block = BlockMut::<T>::begin(&mut bytes, owner(vcpu), version).unwrap();
    let (state, tail) = block.parts().unwrap();
    let used = fill(state, tail);
    block.finish(used).unwrap();
    bytes
}

impl Lab {
    pub(super) fn hand_over(&self) -> HandOver {
        self.hand_over_in(VERSION)
    }

    fn hand_over_in(&self, version: u32) -> HandOver {
        let machine = &self.machine;
        HandOver {
            policy: block(0, version, |into, tail| machine.save_policy(into, tail).unwrap()),
            vcpu: block(0, version, |into: &mut state::Vcpu, _| {
                machine.save_vcpu(&self.vcpu, &self.cpu, into);
                machine.save_mailbox(0, into);
                0
            }),
            devices: block(0, version, |into, tail| machine.save_devices(into, tail, Reader::of(version)).unwrap()),
            memory: machine.memory().bytes(Gpa(0), MEMORY_BYTES),
        }
    }

    /// The same machine in another image.
    pub(super) fn carried(&self) -> Self {
        self.carried_in(VERSION)
    }

    pub(super) fn carried_in(&self, version: u32) -> Self {
        Self::opened(&self.hand_over_in(version), self.host.clone()).expect("what was saved can be restored")
    }

    pub(super) fn opened(hand_over: &HandOver, host: FakeHost) -> Result<Self, StateError> {
        let (policy, tail) = open::<state::Policy>(&hand_over.policy, owner(0)).unwrap();
        let memory = FakeMemory::new(MEMORY_BYTES);
        memory.write(Gpa(0), &hand_over.memory).unwrap();
        let machine = Machine::adopt(memory, &policy, tail)?;
        let mut cpu = Cpu::new(0, true, 0, 0, Arc::default());
        let mut vcpu = FakeVcpu { efer: efer::SVME, ..FakeVcpu::default() };
        let (saved, _) = open::<state::Vcpu>(&hand_over.vcpu, owner(0)).unwrap();
        machine.restore_vcpu(&saved, &mut vcpu, &mut cpu)?;
        let (devices, tail) = open::<state::Devices>(&hand_over.devices, owner(0)).unwrap();
        machine.restore_devices(&devices, tail)?;
        Ok(Self { machine, cpu, vcpu, host })
    }
}

#[test]
fn every_version_that_is_written_is_read() {
    // As version 3 has it.
    let mut lab = Lab::new();
    lab.machine.has_misc_enable = true;
    lab.host.typed.extend(b"typed");
    lab.context().poll_devices();
    for version in OLDEST_VERSION..=VERSION {
        let carried = Lab::opened(&lab.hand_over_in(version), lab.host.clone()).unwrap();
        assert_eq!(carried.hand_over(), lab.hand_over(), "version {version}");
    }
}

#[test]
fn a_guest_is_shown_what_it_was_shown_when_it_booted() {
    let lab = Lab::new();
    let carried = lab.carried();
    assert_eq!(carried.machine.cpuid, lab.machine.cpuid);
    assert_eq!((carried.machine.scale, carried.machine.boot_unix_ns), (lab.machine.scale, lab.machine.boot_unix_ns));
}

#[test]
fn a_timer_that_falls_into_the_blackout_fires_once_and_late() {
    let mut lab = Lab::new();
    lab.wrmsr(0x832, 0x4_0040).unwrap();
    lab.wrmsr(0x6e0, 10_000).unwrap();
    let mut lab = lab.carried();
    assert_eq!(lab.cpu.next_alarm(), Some(START + 10_000));
    lab.host.tsc = START + 900_000;
    lab.context().alarm();
    assert_eq!(lab.take_interrupt(), Some(0x40));
    lab.wrmsr(EOI, 0).unwrap();
    lab.pass(1_000_000);
    assert_eq!(lab.take_interrupt(), None);
}

#[test]
fn the_guests_clock_goes_on_from_where_it_was() {
    let mut lab = Lab::new();
    lab.wrmsr(0x10, 777).unwrap();
    let mut lab = lab.carried();
    assert_eq!(lab.vcpu.tsc_offset, lab.cpu.tsc_offset());
    lab.host.tsc += 1000;
    assert_eq!(lab.rdmsr(0x10), Ok(1777));
}

#[test]
fn messages_that_were_not_taken_are_taken_by_the_next_image() {
    let mut lab = Lab::new();
    let mailbox = &lab.machine.mailboxes[0];
    mailbox.post(&edge(0x51));
    mailbox.post(&InterruptMessage { is_level: true, ..edge(0x61) });
    mailbox.post(&nmi());
    lab.set_interrupts(true);
    let mut lab = lab.carried();
    assert!(lab.machine.has_pending_messages(&lab.cpu));
    assert_eq!(lab.enter(), Some(Event::Nmi));
    assert!(lab.vcpu.interrupt_return_watched);
    assert_eq!(lab.take_interrupt(), Some(0x61));
    assert_eq!(lab.rdmsr(0x818 + 3), Ok(1 << 1), "it is level-triggered");
    assert!(!lab.machine.has_pending_messages(&lab.cpu));
}

#[test]
fn an_nmi_waits_for_the_handlers_end_across_images() {
    let mut lab = Lab::new();
    lab.send(&nmi());
    assert_eq!(lab.enter(), Some(Event::Nmi));
    lab.send(&nmi());
    let mut lab = lab.carried();
    assert!(lab.vcpu.interrupt_return_watched);
    assert_eq!(lab.enter(), None);
    lab.handle(Exit::InterruptReturn);
    assert_eq!(lab.enter(), None, "its IRET has not been executed");
    let mut lab = lab.carried();
    lab.vcpu.rip += 2;
    assert_eq!(lab.enter(), Some(Event::Nmi));
}

#[test]
fn an_end_of_interrupt_that_was_offered_is_found() {
    const AREA: Gpa = Gpa(0x5000);
    let mut lab = Lab::new();
    lab.wrmsr(0x4b56_4d04, AREA.0 | 1).unwrap();
    lab.wrmsr(SELF_IPI, 0x55).unwrap();
    assert_eq!(lab.take_interrupt(), Some(0x55));
    let mut lab = lab.carried();
    assert_eq!(lab.machine.memory().bytes(AREA, 1), [1], "the offer stands");
    lab.machine.memory().write(AREA, &[0]).unwrap();
    lab.enter();
    assert_eq!(lab.cpu.lapic.highest_in_service(), None);
}

#[test]
fn who_sleeps_sleeps_on_and_counts_as_before() {
    let mut lab = Lab::new();
    lab.set_interrupts(true);
    lab.executed(&[0xf4], Exit::Halt);
    let mut lab = lab.carried();
    assert_eq!(lab.cpu.activity(), Activity::Halted);
    assert!(!lab.machine.others(&lab.cpu).can_run, "it counts once");
    assert!(!lab.context().prepare_entry());
    assert_eq!(lab.cpu.halts(), 1);
    lab.send(&edge(0x31));
    assert!(lab.context().prepare_entry());
}

#[test]
fn who_waits_for_a_start_up_interrupt_is_started_by_it() {
    let lab = Lab::with_vcpus(2, false);
    let before = Cpu::new(1, false, START, 0x1234, Arc::default());
    let start = InterruptMessage { destination: Destination::Itself, ..startup(0x9a) };
    lab.machine.mailboxes[1].post(&start);
    let saved = second(&lab.machine, &FakeVcpu { xcr0: 1, ..FakeVcpu::default() }, &before);
    let mut next = lab.carried();
    let (mut vcpu, mut cpu) = (FakeVcpu::default(), Cpu::new(1, false, 0, 0, Arc::default()));
    // As in a dry run on a copy before: the last time counts.
    for _ in 0..2 {
        let (state, _) = open::<state::Vcpu>(&saved, owner(1)).unwrap();
        next.machine.restore_vcpu(&state, &mut vcpu, &mut cpu).unwrap();
        assert_eq!(second(&next.machine, &vcpu, &cpu), saved);
    }
    assert!(next.machine.context(&mut vcpu, &mut cpu, &mut next.host).prepare_entry());
    assert_eq!(vcpu.segments[SegmentName::Cs as usize].base, 0x9a000);
}

/// The block of a second vCPU.
fn second(machine: &Machine<FakeMemory>, vcpu: &FakeVcpu, cpu: &Cpu) -> Vec<u8> {
    block(1, VERSION, |into: &mut state::Vcpu, _| {
        machine.save_vcpu(vcpu, cpu, into);
        machine.save_mailbox(1, into);
        0
    })
}

#[test]
fn what_the_others_do_is_known_in_the_next_image() {
    for (activity, can_run, halted_for_good) in
        [(Activity::Running, true, false), (Activity::Halted, true, false), (Activity::HaltedForGood, false, true)]
    {
        let lab = Lab::with_vcpus(2, false);
        let mut cpu = Cpu::new(1, false, START, 0x1234, Arc::default());
        lab.machine.set_activity(&mut cpu, activity);
        let saved = second(&lab.machine, &FakeVcpu { xcr0: 1, ..FakeVcpu::default() }, &cpu);
        let next = lab.carried();
        let (mut vcpu, mut cpu) = (FakeVcpu::default(), Cpu::new(1, false, 0, 0, Arc::default()));
        for _ in 0..2 {
            let (state, _) = open::<state::Vcpu>(&saved, owner(1)).unwrap();
            next.machine.restore_vcpu(&state, &mut vcpu, &mut cpu).unwrap();
            let others = next.machine.others(&next.cpu);
            assert_eq!((others.can_run, others.halted_for_good), (can_run, halted_for_good), "{activity:?}");
        }
    }
}

fn startup(page: u8) -> InterruptMessage {
    InterruptMessage { mode: DeliveryMode::Startup, vector: page, ..edge(0) }
}

#[test]
fn what_was_typed_and_not_read_is_read() {
    let mut lab = Lab::new();
    lab.outb(0x3fa, 1);
    lab.host.typed.extend(b"0123456789abcdefXYZ");
    lab.context().poll_devices();
    let mut lab = lab.carried();
    let read: Vec<u8> = (0..19).map(|_| lab.inb(0x3f8)).collect();
    assert_eq!(read, b"0123456789abcdefXYZ");
}

#[test]
fn a_tail_without_room_is_refused() {
    let lab = Lab::new();
    let (mut policy, mut devices) = (state::Policy::new_zeroed(), state::Devices::new_zeroed());
    assert_eq!(lab.machine.save_policy(&mut policy, &mut [0; 100]), Err(Full));
    let needed = lab.machine.devices_tail_bytes();
    let reader = Reader::of(VERSION);
    for room in 0..needed {
        assert_eq!(lab.machine.save_devices(&mut devices, &mut vec![0; room], reader), Err(Full), "{room} bytes");
    }
    assert_eq!(lab.machine.save_devices(&mut devices, &mut vec![0; needed], reader), Ok(needed));
    assert!(lab.machine.save_policy(&mut policy, &mut vec![0; 4096]).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Two machines do the same; one of them is carried to another image after some of the steps, in either version.
    #[test]
    fn a_carried_machine_does_what_it_would_have_done(
        steps in prop::collection::vec((step(), prop::option::weighted(0.3, OLDEST_VERSION..=VERSION)), 1..32),
        is_x2apic in any::<bool>(),
    ) {
        let lab = || if is_x2apic { Lab::new() } else { Lab::with_xapic() };
        let (mut plain, mut carried) = (lab(), lab());
        // As version 3 has it.
        (plain.machine.has_misc_enable, carried.machine.has_misc_enable) = (true, true);
        for (step, version) in steps {
            // A second NMI that waits is known since version 4.
            let is_kept = carried.cpu.nmi.pending() < 2 || version == Some(VERSION);
            if let Some(version) = version.filter(|_| is_kept) {
                let before = carried.hand_over();
                carried = carried.carried_in(version);
                prop_assert_eq!(&before, &carried.hand_over(), "saved, restored and saved again");
            }
            let exits = [&mut plain, &mut carried].map(|lab| lab.prepare(&step));
            let outcomes = (plain.handle(exits[0]), carried.handle(exits[1]));
            prop_assert_eq!(outcomes.0, outcomes.1);
            plain.pass(step.ticks.into());
            carried.pass(step.ticks.into());
            prop_assert_eq!(plain.enter(), carried.enter());
            prop_assert_eq!(seen(&plain), seen(&carried));
        }
        prop_assert_eq!(plain.hand_over(), carried.hand_over());
    }
}

/// Returns the parts of a machine that a guest, the operator and the hypervisor see.
fn seen(lab: &Lab) -> impl PartialEq + core::fmt::Debug {
    let FakeVcpu { gprs, rip, rflags, tsc_offset, .. } = lab.vcpu;
    let asked = (lab.vcpu.window_requested, lab.vcpu.task_priority_watched, lab.vcpu.interrupt_return_watched);
    let host = (lab.host.console.clone(), lab.host.alarm, lab.host.panics.clone(), lab.host.kicked.clone());
    (gprs, rip, rflags, tsc_offset, asked, host, lab.cpu.activity(), lab.cpu.next_alarm())
}
