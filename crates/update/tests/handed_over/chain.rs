// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole warm restart: CPUs park in the old image, the new one has them from their mailboxes, and frees the memory in
//! which they waited. With any failure, each CPU is online in the new image or has been reset, and none is ever
//! in memory that is free.

use std::cell::{Cell, RefCell};

use handover::layout::{CpuState, Purpose};
use proptest::prelude::*;
use update::parked::{Mailboxes, find, left_behind};
use update::platform::{Clock, Cpu, Platform, Problem};
use update::release::{Act as Free, Release};
use update::restart::{Act, Departure};
use update::trial::Stamp;

use crate::record::{Sample, mailbox};

const VERSION: u32 = 1;

/// Faults of one CPU, or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// It never leaves its guest.
    NeverParks,
    /// It parks this many ticks late.
    ParksLate(u64),
    /// It parks, but its mailbox does not show that.
    MailboxDamaged,
    /// It does not come although it was released.
    StaysInMailbox,
}

/// The place of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Guest,
    /// In the switch pages.
    Parked,
    /// It executes nothing.
    Reset,
    Online,
}

struct Host {
    now: Cell<u64>,
    faults: Vec<Fault>,
    places: RefCell<Vec<Place>>,
    is_parking: Cell<bool>,
}

fn cpu(at: usize) -> Cpu {
    Cpu { index: at as u32 + 1, apic_id: at as u32 + 101 }
}

fn at(apic_id: u32) -> usize {
    apic_id as usize - 101
}

impl Clock for Host {
    fn now(&self) -> u64 {
        self.now.get()
    }

    fn ticks(&self, us: u64) -> u64 {
        us / 1_000
    }
}

impl Platform for Host {
    fn interrupt(&self, _: Cpu) {}

    fn send_nmi(&self, _: Cpu) {}

    fn stamp(&self, _: Stamp) {}

    fn note(&self, _: Problem) {}
}

impl Mailboxes for Host {
    type Mailbox = usize;
    type Error = ();

    fn at(&self, address: u64) -> Option<usize> {
        (0..self.faults.len()).find(|place| mailbox(*place as u64 + 1) == address)
    }

    fn check(&self, place: usize, apic_id: u32) -> Result<(), ()> {
        let waits = self.places.borrow()[place] == Place::Parked && self.faults[place] != Fault::MailboxDamaged;
        if waits && at(apic_id) == place { Ok(()) } else { Err(()) }
    }
}

impl Host {
    fn new(faults: &[Fault]) -> Self {
        let places = RefCell::new(vec![Place::Guest; faults.len()]);
        Self { now: Cell::new(0), faults: faults.to_vec(), places, is_parking: Cell::new(false) }
    }

    /// Each CPU parks if it is to, and may.
    fn step(&self) {
        self.now.set(self.now.get() + 1);
        for (place, fault) in self.places.borrow_mut().iter_mut().zip(&self.faults) {
            let is_ready = match *fault {
                Fault::NeverParks => false,
                Fault::ParksLate(ticks) => self.now.get() > ticks,
                Fault::None | Fault::MailboxDamaged | Fault::StaysInMailbox => true,
            };
            if *place == Place::Guest && is_ready && self.is_parking.get() {
                *place = Place::Parked;
            }
        }
    }

    /// Runs the old image up to its last instruction. Returns the CPUs that it has lost.
    fn leave(&self) -> Vec<Cpu> {
        let (mut departure, mut lost) = (Departure::begin(true), Vec::new());
        for _ in 0..100_000 {
            let is_parked = |cpu: Cpu| self.places.borrow()[at(cpu.apic_id)] == Place::Parked;
            match departure.next(self, (0..self.faults.len()).map(cpu), is_parked) {
                Act::Park => self.is_parking.set(true),
                Act::Pause => self.step(),
                Act::Lose(cpu) => {
                    self.places.borrow_mut()[at(cpu.apic_id)] = Place::Reset;
                    lost.push(cpu);
                }
                Act::WriteRecord => {
                    assert!(!self.places.borrow().contains(&Place::Guest), "a guest runs while the block is written");
                }
                Act::Leave => return lost,
                _ => {}
            }
        }
        panic!("it does not leave");
    }

    fn block(&self, lost: &[Cpu], mailbox_version: u32) -> Sample {
        let state = |place| match lost.contains(&cpu(place)) {
            true => CpuState::Lost,
            false => CpuState::Parked,
        };
        let cpus = (0..self.faults.len()).map(|place| (cpu(place).apic_id, state(place), mailbox(place as u64 + 1)));
        Sample { cpus: cpus.collect(), mailbox_version, ..Sample::default() }
    }

    /// Runs the new image: CPUs come from their mailboxes, and memory becomes free.
    fn arrive(&self, sample: &Sample) {
        let ids: Vec<u32> = std::iter::once(0).chain((0..self.faults.len()).map(|place| cpu(place).apic_id)).collect();
        sample.with(|record| {
            let parked = find(record, VERSION, &ids, self, |_, _| ()).unwrap_or_default();
            for (_, place) in parked.into_iter().flatten() {
                if self.faults[place] != Fault::StaysInMailbox {
                    self.places.borrow_mut()[place] = Place::Online;
                }
            }
            let is_online = |apic_id: &u32| *apic_id == 0 || self.places.borrow()[at(*apic_id)] == Place::Online;
            let online: Vec<u32> = ids.iter().copied().filter(is_online).collect();
            Release::begin(left_behind(record, &online)).for_each(|act| self.free(act));
        });
    }

    fn free(&self, act: Free) {
        match act {
            Free::Reset(apic_id) => {
                let place = &mut self.places.borrow_mut()[at(apic_id)];
                assert_eq!(*place, Place::Parked, "a CPU that is online is reset");
                *place = Place::Reset;
            }
            Free::Free(Purpose::SwitchPages) => {
                assert!(!self.places.borrow().contains(&Place::Parked), "a CPU waits in memory that is free");
            }
            Free::CopyLog | Free::Free(_) => {}
        }
    }
}

fn restart(faults: &[Fault], mailbox_version: u32) {
    let host = Host::new(faults);
    let lost = host.leave();
    host.arrive(&host.block(&lost, mailbox_version));
    for (place, fault) in host.places.borrow().iter().zip(faults) {
        let is_back = match *fault {
            Fault::None => mailbox_version == VERSION,
            Fault::ParksLate(ticks) => mailbox_version == VERSION && ticks < LIMIT,
            Fault::NeverParks | Fault::MailboxDamaged | Fault::StaysInMailbox => false,
        };
        assert_eq!(*place, if is_back { Place::Online } else { Place::Reset }, "{fault:?}");
    }
}

/// Ticks in which CPUs must park.
const LIMIT: u64 = 5_000;
const ALL: [Fault; 6] = [
    Fault::None,
    Fault::NeverParks,
    Fault::ParksLate(100),
    Fault::ParksLate(2 * LIMIT),
    Fault::MailboxDamaged,
    Fault::StaysInMailbox,
];

#[test]
fn two_cpus_are_online_or_reset_whatever_fails_on_either() {
    for version in [VERSION, VERSION + 1] {
        for (one, other) in ALL.iter().flat_map(|one| ALL.map(|other| (*one, other))) {
            restart(&[one, other], version);
        }
    }
}

#[test]
fn a_host_with_one_cpu_restarts() {
    restart(&[], VERSION);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn up_to_64_cpus_are_online_or_reset_whatever_fails(
        faults in prop::collection::vec(prop::sample::select(&ALL[..]), 0..64),
        version in VERSION..=VERSION + 1,
    ) {
        restart(&faults, version);
    }
}
