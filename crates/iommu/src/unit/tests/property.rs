// SPDX-License-Identifier: MIT OR Apache-2.0
//! After any order of requests, updates and shortages of memory, a function reaches exactly what its guest's domain
//! maps, and its interrupts arrive exactly where they were set. The functions try everything after each request, so
//! that the unit has cached all that it may. No frame is given back that the unit still holds (`machine`).

use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

use proptest::prelude::*;
use units::{PAGE_BYTES as PAGE, PhysAddr};

use super::machine::*;
use super::requests::*;
use crate::intel::model::Features;
use crate::{DomainId, GuestDomain, Interrupt, Memory, Notice, Problem, Redirection, Signal};

/// The expected state.
#[derive(Default)]
struct Expected {
    attached: BTreeMap<usize, usize>,
    stopped: BTreeSet<usize>,
    /// By guest and page: the frame, and whether it may be written.
    mapped: [BTreeMap<u64, (u64, bool)>; GUESTS],
    opened: BTreeMap<usize, Vec<Option<u8>>>,
    /// By input of the I/O APIC: its entry, and what it sends.
    inputs: BTreeMap<u16, (Redirection, u8)>,
}

struct World<M: Model> {
    image: Image<M>,
    domains: [Option<GuestDomain>; GUESTS],
    taken: Vec<PhysAddr>,
    expected: Expected,
}

impl<M: Model> World<M> {
    fn new(image: Image<M>) -> Self {
        Self { image, domains: [None, None, None], taken: Vec::new(), expected: Expected::default() }
    }

    fn carry_out(&mut self, request: Request) {
        match request {
            Request::Create(guest) => self.create(guest),
            Request::Map { guest, place, skip, pages, is_writable } => {
                self.map(guest, PLACES[place] + skip * PAGE, skip * PAGE, pages, is_writable);
            }
            Request::Attach(of, guest) => self.attach(of, guest),
            Request::Block(of) => self.block(of),
            Request::Stop(of) => self.stop(of),
            Request::Free(guest) => self.free(guest),
            Request::Open(of, count) => self.open(of, count),
            Request::Set(of, index, vector) => self.set(of, index, vector),
            Request::Redirect(input, vector) => self.redirect(input, vector),
            Request::Update => self.update(),
            Request::Starve(left) => {
                let mut frames = self.image.frames_left();
                let spared = frames.split_off(frames.len().saturating_sub(left));
                spared.into_iter().for_each(|frame| self.image.memory.free_piece(frame, PAGE));
                self.taken.extend(frames);
            }
            Request::Relieve => {
                self.taken.drain(..).for_each(|frame| self.image.memory.free_piece(frame, PAGE));
            }
        }
    }

    fn create(&mut self, guest: usize) {
        if self.domains[guest].is_none() {
            match self.image.unit.create_domain(&mut self.image.memory, id(guest)) {
                Ok(domain) => self.domains[guest] = Some(domain),
                Err(problem) => self.expect_shortage(problem),
            }
        }
    }

    fn map(&mut self, guest: usize, address: u64, offset: u64, pages: u64, is_writable: bool) {
        let Some(domain) = &mut self.domains[guest] else { return };
        let phys = ((guest as u64 + 1) << 32) + offset;
        let mapped = &mut self.expected.mapped[guest];
        let first = address / PAGE;
        let is_free = mapped.range(first..first + pages).next().is_none();
        let Image { memory, unit, .. } = &mut self.image;
        match unit.map(memory, domain, address, PhysAddr(phys), pages * PAGE, is_writable) {
            Ok(()) => {
                assert!(is_free);
                mapped.extend((0..pages).map(|page| (first + page, (phys + page * PAGE, is_writable))));
            }
            Err(Problem::Map(_)) => assert!(!is_free),
            Err(problem) => self.expect_shortage(problem),
        }
    }

    fn attach(&mut self, of: usize, guest: usize) {
        let Some(domain) = &self.domains[guest] else { return };
        match self.image.unit.attach(&mut self.image.memory, source(of), domain) {
            Ok(()) => {
                self.expected.attached.insert(of, guest);
                self.expected.stopped.remove(&of);
            }
            Err(problem) => {
                self.expect_shortage(problem);
                if self.image.unit.attached(&self.image.memory, source(of)).unwrap().is_none() {
                    self.expected.attached.remove(&of);
                }
            }
        }
    }

    fn block(&mut self, of: usize) {
        self.image.unit.block(&mut self.image.memory, source(of)).unwrap();
        self.expected.attached.remove(&of);
        self.expected.opened.remove(&of);
    }

    fn stop(&mut self, of: usize) {
        match self.image.unit.stop(&mut self.image.memory, source(of)) {
            Ok(()) => _ = self.expected.stopped.insert(of),
            Err(problem) => self.expect_shortage(problem),
        }
        self.expected.attached.remove(&of);
        self.expected.opened.remove(&of);
    }

    fn free(&mut self, guest: usize) {
        let Some(domain) = self.domains[guest].take() else { return };
        let attached: Vec<_> =
            self.expected.attached.iter().filter(|(_, of)| **of == guest).map(|(of, _)| *of).collect();
        attached.into_iter().for_each(|of| self.block(of));
        self.image.unit.free_domain(&mut self.image.memory, domain).unwrap();
        self.expected.mapped[guest].clear();
    }

    fn open(&mut self, of: usize, count: u16) {
        match self.image.unit.open_interrupts(&mut self.image.memory, source(of), count) {
            // Vendors round the number up as they need.
            Ok(()) => _ = self.expected.opened.insert(of, std::vec![None; count.into()]),
            Err(problem) => self.expect_shortage(problem),
        }
    }

    fn set(&mut self, of: usize, index: u16, vector: Option<u8>) {
        let opened = self.expected.opened.get_mut(&of).and_then(|all| all.get_mut(usize::from(index)));
        let Some(opened) = opened else { return };
        self.image.unit.set_interrupt(&mut self.image.memory, source(of), index, vector.map(interrupt)).unwrap();
        *opened = vector;
    }

    fn redirect(&mut self, input: u16, vector: Option<u8>) {
        let nmi = Signal::Nmi { destination: destination() };
        let signal = vector.map_or(nmi, |vector| Signal::Interrupt(interrupt(vector)));
        let Image { memory, unit, .. } = &mut self.image;
        let entry = unit.redirect(memory, (function(IO_APIC), INPUTS), input, signal, false).unwrap();
        self.expected.inputs.insert(input, (entry, vector.unwrap_or(2)));
    }

    /// Domains to which no function is attached are lost: their owner frees them before it hands over.
    fn update(&mut self) {
        for guest in 0..GUESTS {
            if !self.expected.attached.values().any(|of| *of == guest) {
                self.free(guest);
            }
        }
        self.image.update();
        self.domains = [None, None, None];
        for of in 0..FUNCTIONS.len() {
            let attached = self.image.unit.attached(&self.image.memory, source(of)).unwrap();
            assert_eq!(attached.as_ref().map(GuestDomain::id), self.expected.attached.get(&of).copied().map(id));
            if let Some(domain) = attached {
                let guest = usize::from(domain.id().0) - 2;
                self.domains[guest] = Some(domain);
            }
        }
    }

    fn expect_shortage(&self, problem: Problem) {
        assert!(problem == Problem::OutOfMemory && !self.taken.is_empty(), "{problem}");
    }

    fn check(&self) {
        for (of, requester) in FUNCTIONS.into_iter().enumerate() {
            let mapped = self.expected.attached.get(&of).map(|guest| &self.expected.mapped[*guest]);
            for address in probes() {
                let page = mapped.and_then(|mapped| mapped.get(&(address / PAGE)));
                for is_write in [false, true] {
                    let expected = page.filter(|(_, may_write)| *may_write || !is_write).map(|(frame, _)| *frame);
                    assert_eq!(self.image.machine.reach(requester, address, is_write), expected, "{requester:#x}");
                }
            }
            self.check_interrupts(of);
        }
        for (entry, vector) in self.expected.inputs.values() {
            assert_eq!(self.image.machine.input(*entry), Some((*vector, destination())));
        }
    }

    /// Checks that refused accesses of a stopped function are not logged, and those of another one are.
    fn check_reports(&mut self) {
        for (of, requester) in FUNCTIONS.into_iter().enumerate() {
            while self.next_notice().is_some() {}
            self.image.machine.misbehave(requester);
            let is_stopped = self.expected.stopped.contains(&of);
            let noticed = self.next_notice();
            let is_its = matches!(noticed, Some(Notice::Refused(fault)) if fault.source == source(of));
            assert!(if is_stopped { noticed.is_none() } else { is_its }, "{requester:#x}: {noticed:?}");
            assert_eq!(self.image.unit.is_stopped(&self.image.memory, source(of)), Ok(is_stopped));
        }
    }

    fn next_notice(&mut self) -> Option<Notice> {
        self.image.unit.next_notice(&mut self.image.memory).unwrap()
    }

    fn check_interrupts(&self, of: usize) {
        let (unit, memory) = (&self.image.unit, &self.image.memory);
        let opened = self.expected.opened.get(&of).map_or(&[][..], |opened| opened);
        for (index, vector) in opened.iter().enumerate() {
            let message = unit.message(memory, source(of), index as u16).unwrap();
            let sent = self.image.machine.send(FUNCTIONS[of], message);
            assert_eq!(sent, vector.map(|vector| (vector, destination())));
            assert_eq!(unit.interrupt(memory, source(of), index as u16), Ok(vector.map(interrupt)));
        }
        let mut expected: Vec<_> = opened.iter().flatten().map(|vector| (*vector, destination())).collect();
        expected.sort_unstable();
        assert_eq!(self.image.sent_by(FUNCTIONS[of]), expected);
        assert_eq!(unit.interrupt(memory, source(of), 512), Err(Problem::NoInterrupt { source: source(of) }));
    }

    /// All guests end, and every frame of theirs is given back.
    fn finish(mut self, left_at_first: usize) {
        self.carry_out(Request::Relieve);
        (0..GUESTS).for_each(|guest| self.free(guest));
        (0..FUNCTIONS.len()).for_each(|of| self.block(of));
        let buses = 4;
        assert!(self.image.frames_left().len() + buses >= left_at_first, "tables of guests are left");
    }
}

fn id(guest: usize) -> DomainId {
    DomainId(guest as u16 + 2)
}

fn source(of: usize) -> pci::Bdf {
    function(FUNCTIONS[of])
}

fn destination() -> u32 {
    3
}

fn interrupt(vector: u8) -> Interrupt {
    Interrupt { vector, destination: destination(), is_level: false }
}

fn probes() -> impl Iterator<Item = u64> {
    let pages = [0, 1, 2, 3, 5, 511, 512, 513, 515, 1024];
    PLACES.into_iter().flat_map(move |place| pages.map(|page| place + page * PAGE))
}

fn run<M: Model>(mut image: Image<M>, requests: Vec<Request>) {
    let left = image.frames_left();
    left.iter().for_each(|frame| image.memory.free_piece(*frame, PAGE));
    let mut world = World::new(image);
    for request in requests {
        world.carry_out(request);
        world.check();
        world.check_reports();
    }
    world.finish(left.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn guests_of_amd_reach_and_send_what_they_were_given(
        features in prop_oneof![Just(1 << 6), Just(1 << 6 | 1 << 7), Just(1 << 2 | 1 << 6 | 1 << 7)],
        requests in prop::collection::vec(request(), 1..40),
    ) {
        run(amd(features), requests);
    }

    #[test]
    fn guests_of_intel_reach_and_send_what_they_were_given(
        features in Features::any(),
        requests in prop::collection::vec(request(), 1..40),
    ) {
        run(intel(features), requests);
    }
}
