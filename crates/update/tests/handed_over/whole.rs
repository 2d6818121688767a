// SPDX-License-Identifier: MIT OR Apache-2.0
//! A blackout in which CPUs restore their guests: all vCPUs run in the new image, each once, or none does.

use proptest::prelude::*;
use update::inbound::{Act, Inbound};
use update::platform::{Clock, Cpu, Platform, Problem};
use update::takeover::{Takeover, Verdict};
use update::trial::Stamp;

use crate::image::{Fault, Image, Vcpu};
use crate::record::{GuestSample, Sample};

/// A stopped clock: no CPU is late.
struct Still;

impl Clock for Still {
    fn now(&self) -> u64 {
        0
    }

    fn ticks(&self, us: u64) -> u64 {
        us
    }
}

impl Platform for Still {
    fn interrupt(&self, _: Cpu) {}

    fn send_nmi(&self, _: Cpu) {}

    fn stamp(&self, _: Stamp) {}

    fn note(&self, _: Problem) {}
}

/// One CPU, the vCPUs that it has taken, and how it ended.
struct Arriving {
    cpu: u32,
    inbound: Inbound,
    taken: Vec<Vcpu>,
    end: Option<Verdict>,
}

impl Arriving {
    fn step(&mut self, image: &mut Image, words: &Takeover) {
        if self.end.is_some() {
            return;
        }
        match self.inbound.next(words, &Still) {
            Act::Restore => match image.restore(self.cpu, &mut self.taken) {
                Ok(()) => self.inbound.restored(),
                Err(_) => self.end = Some(words.roll_back(self.cpu)),
            },
            Act::Pause => {}
            Act::TakeOver => self.end = Some(Verdict::Committed),
            Act::GoBack => self.end = Some(Verdict::RolledBack),
        }
    }
}

/// The blackout of `cpus` CPUs in this order of acts, then in turn. The fault comes in the blackout only.
fn blackout(sample: &Sample, cpus: u32, fault: Fault, schedule: &[u32]) {
    let mut image = Image::beside(sample, Fault::None);
    assert_eq!(image.prepare(sample), Ok(()));
    image.fault = fault;
    let words = Takeover::new();
    words.begin(cpus, u64::MAX);
    let begin = |cpu| Arriving { cpu, inbound: Inbound::begin(cpu), taken: Vec::new(), end: None };
    let mut all: Vec<Arriving> = (0..cpus).map(begin).collect();
    let in_turn = std::iter::repeat_n(0..cpus, 4).flatten();
    schedule.iter().copied().chain(in_turn).for_each(|cpu| all[(cpu % cpus) as usize].step(&mut image, &words));
    check(sample, &all, fault);
}

fn check(sample: &Sample, all: &[Arriving], fault: Fault) {
    let expected = if fault == Fault::None { Verdict::Committed } else { Verdict::RolledBack };
    assert!(all.iter().all(|arriving| arriving.end == Some(expected)), "{fault:?}: not all CPUs agree");
    let mut taken: Vec<(usize, u32)> = Vec::new();
    for arriving in all {
        for vcpu in &arriving.taken {
            assert_eq!(sample.guests[vcpu.guest].cpus[vcpu.number as usize], arriving.cpu);
            assert_eq!(vcpu.restored, 3, "{fault:?}: it would run with a draft");
            taken.push((vcpu.guest, vcpu.number));
        }
    }
    taken.sort_unstable();
    let guests = sample.guests.iter().enumerate().filter(|(_, guest)| guest.has_run);
    let vcpus: Vec<(usize, u32)> =
        guests.flat_map(|(guest, sample)| (0..sample.cpus.len() as u32).map(move |vcpu| (guest, vcpu))).collect();
    taken.dedup();
    assert!(expected != Verdict::Committed || taken == vcpus, "{fault:?}: {taken:?}");
}

/// Returns each thing that can fail in the blackout.
fn faults(sample: &Sample) -> Vec<Fault> {
    let guests = sample.guests.iter().enumerate().filter(|(_, guest)| guest.has_run);
    let of = |(guest, sample): (usize, &GuestSample)| {
        let vcpus = (0..sample.cpus.len() as u32).map(move |vcpu| Fault::RestoreVcpu(guest, vcpu));
        vcpus.chain([Fault::RestoreDevices(guest)]).collect::<Vec<_>>()
    };
    guests.flat_map(of).chain([Fault::None]).collect()
}

#[test]
fn two_cpus_agree_in_every_order_whatever_fails() {
    let sample = Sample { guests: vec![GuestSample::on(&[0, 1]), GuestSample::on(&[1, 1])], ..Sample::default() };
    for fault in faults(&sample) {
        // Six acts in every order.
        for bits in 0..64_u32 {
            let schedule: Vec<u32> = (0..6).map(|act| bits >> act & 1).collect();
            blackout(&sample, 2, fault, &schedule);
        }
    }
}

fn host() -> impl Strategy<Value = (Sample, u32)> {
    (1..=64_u32).prop_flat_map(|cpus| {
        let guest = (prop::collection::vec(0..cpus, 1..8), prop::bool::weighted(0.9));
        let guest = guest.prop_map(|(cpus, has_run)| GuestSample { has_run, ..GuestSample::on(&cpus) });
        let guests = prop::collection::vec(guest, 0..12);
        guests.prop_map(move |guests| (Sample { guests, ..Sample::default() }, cpus))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn up_to_64_cpus_agree_whatever_fails_and_when(
        (sample, cpus) in host(),
        fault in any::<prop::sample::Index>(),
        schedule in prop::collection::vec(0..64_u32, 0..300),
    ) {
        let faults = faults(&sample);
        blackout(&sample, cpus, faults[fault.index(faults.len())], &schedule);
    }
}
