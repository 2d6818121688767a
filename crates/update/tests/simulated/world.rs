// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine of simulated CPUs amid an update: each step of a CPU is one act of its state machine. On any
//! schedule these hold, or the world panics:
//!
//! - a guest runs in one image at any time, and in the new one only once all CPUs have committed;
//! - a CPU saves only while no guest runs, and restores only what all CPUs have saved;
//! - nothing is saved or restored twice;
//! - all CPUs commit, or all roll back;
//! - the request is answered once, by the image that runs then;
//! - the new image takes the old one's memory only once every CPU has entered its guests.

use update::blackout::Blackout;
use update::finish::{Finishing, Step as Finish};
use update::inbound::{self, Inbound};
use update::nmi::ExpectedNmis;
use update::order::{End, Order, Progress};
use update::outbound::{self, Back, Outbound};
use update::takeover::{Takeover, Verdict};

use crate::fault::{Fault, Kind, Step};
use crate::machine::{TICK_US, View, Wires, cpu};

/// Ticks until CPUs roll back, and until the watchdog ends the new image's time on the first CPU.
pub const LIMIT: u64 = 3;
pub const WATCHDOG: u64 = 5;

/// The number of the request.
const REQUEST: u32 = 7;
/// In a fair schedule: more than a CPU has between two waits.
const ACTS_PER_TICK: u32 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    Old,
    New,
}

/// The place of a CPU.
#[derive(Debug)]
enum Place {
    /// In a guest, or in the old image's loop.
    Guest,
    /// In the old image's part of the blackout.
    Out(Outbound),
    /// In the new image.
    Lent(Outbound),
    /// In the new image for good.
    Over,
    /// The host ends: a CPU has not come back.
    Lost,
}

#[derive(Debug)]
struct Cpu {
    place: Place,
    /// The image in the loop of which guests run.
    runs: Option<Image>,
    /// The new image's state of the CPU.
    inbound: Inbound,
    /// Steps of the new image that it has passed.
    passed: Vec<Step>,
    is_hung: bool,
    saved: u32,
    restored: u32,
}

/// The machine.
#[derive(Debug)]
pub struct World {
    pub fault: Vec<Fault>,
    pub words: Takeover,
    blackout: Blackout,
    pub wires: Wires,
    cpus: Vec<Cpu>,
    watchdog: Option<u64>,
    expected_nmis: ExpectedNmis,
    /// The old image's, and the request as the new image knows it.
    order: Order<u32, ()>,
    handed_over: Option<u32>,
    finishing: Option<Finishing>,
    answers: Vec<(Image, u32)>,
    has_stray_nmi: Vec<usize>,
    /// A fault has made itself felt that forbids to commit.
    has_failed: bool,
}

impl World {
    /// Creates `cpus` CPUs at the start of the blackout.
    pub fn new(cpus: usize, fault: &[Fault]) -> Self {
        let wires = Wires::new(cpus);
        let words = Takeover::new();
        let mut blackout = Blackout::new(cpu(0), (0..cpus).map(cpu));
        let all = (0..cpus).map(Cpu::new).collect();
        for fault in fault {
            match *fault {
                Fault::InterruptsLost(at, lost) => wires.interrupts[at].1.set(lost),
                Fault::NmisLost(at, lost) if at < cpus => wires.nmis[at].1.set(lost),
                _ => {}
            }
        }
        let leader = View { wires: &wires, at: 0 };
        let order = departed(&wires);
        let expected_nmis = ExpectedNmis::new();
        expected_nmis.arm(WATCHDOG * TICK_US, &wires);
        blackout.begin(&words, LIMIT * TICK_US, &leader);
        blackout.interrupt_missing(&leader);
        // The leader begins it in its own loop.
        wires.interrupts[0].0.set(true);
        let stray = fault.iter().filter_map(|fault| match fault {
            Fault::StrayNmi(at) => Some(*at),
            _ => None,
        });
        Self {
            fault: fault.to_vec(),
            words,
            blackout,
            wires,
            cpus: all,
            watchdog: Some(WATCHDOG),
            expected_nmis,
            order,
            handed_over: None,
            finishing: None,
            answers: Vec::new(),
            has_stray_nmi: stray.collect(),
            has_failed: false,
        }
    }

    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Lets a tick pass.
    pub fn pass_time(&mut self) {
        self.wires.now.set(self.wires.now.get() + 1);
        if self.watchdog.is_some_and(|at| self.wires.now.get() >= at) {
            self.watchdog = None;
            self.wires.send_nmi(0);
        }
    }

    /// Sends the stray NMIs that are still to come.
    pub fn send_stray_nmi(&mut self) -> bool {
        let at = self.has_stray_nmi.pop();
        at.into_iter().for_each(|at| self.wires.send_nmi(at));
        at.is_some()
    }

    /// Returns whether the CPU cannot do anything now.
    fn is_held(&self, at: usize) -> bool {
        let now = self.wires.now.get();
        self.fault.iter().any(|fault| match *fault {
            Fault::Stuck(stuck) => stuck == at && matches!(self.cpus[at].place, Place::Guest),
            Fault::Smi(held, from, ticks) => held == at && (from..from + ticks).contains(&now),
            _ => false,
        })
    }

    /// Steps the CPU by its next act.
    pub fn step(&mut self, at: usize) {
        if self.is_held(at) {
            return;
        }
        let place = std::mem::replace(&mut self.cpus[at].place, Place::Guest);
        let place = match place {
            Place::Guest => self.in_guest(at),
            Place::Out(way) => self.in_old_image(at, way),
            Place::Lent(way) => self.in_new_image(at, way),
            Place::Over | Place::Lost => {
                self.wires.nmis[at].0.set(false);
                if at == 0 {
                    self.finish_step();
                }
                place
            }
        };
        self.cpus[at].place = place;
        self.check();
    }

    fn in_guest(&mut self, at: usize) -> Place {
        self.take_nmi(at);
        if at == 0 {
            self.poll_order();
        }
        match self.wires.interrupts[at].0.replace(false).then(|| Outbound::begin(cpu(at).index, &self.blackout)) {
            Some(Some(way)) => Place::Out(way),
            _ => Place::Guest,
        }
    }

    fn poll_order(&mut self) {
        let are_all_back = || self.words.are_all_back();
        match self.order.poll(&self.wires, |()| Progress::<(), ()>::UnderWay(()), are_all_back) {
            Some((request, End::RolledBack)) => self.answer(Image::Old, request),
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    }

    fn finish_step(&mut self) {
        let have_all_entered =
            self.cpus.iter().enumerate().all(|(at, cpu)| at == 0 || matches!(cpu.place, Place::Over));
        let Some(mut finishing) = self.finishing.take() else { return };
        while let Some(step) = finishing.turn(&self.wires, || have_all_entered) {
            assert!(have_all_entered || step != Finish::Memory, "a CPU has not entered its guests");
            if step == Finish::Control {
                let request = self.handed_over.expect("a request was handed over");
                return self.answer(Image::New, request);
            }
            finishing.end_step(&self.wires);
        }
        self.finishing = Some(finishing);
    }

    fn answer(&mut self, image: Image, request: u32) {
        assert_eq!(request, REQUEST);
        self.answers.push((image, request));
        assert_eq!(self.answers.len(), 1, "{self:#?}");
        if image == Image::Old {
            self.watchdog = None;
            self.expected_nmis.disarm(&self.wires);
        }
    }

    /// The old image claims an NMI, or would not know its cause.
    fn take_nmi(&mut self, at: usize) {
        if !self.wires.nmis[at].0.replace(false) {
            return;
        }
        let claim = self.expected_nmis.claim(at == 0, &self.wires);
        assert!(claim.is_expected, "an NMI that no CPU claims: {self:#?}");
        if let Some(us) = claim.arm_again_us {
            self.watchdog = Some(self.wires.now.get() + us / TICK_US);
        }
    }

    fn in_old_image(&mut self, at: usize, mut way: Outbound) -> Place {
        self.take_nmi(at);
        match way.next(&self.blackout, &self.words, &View { wires: &self.wires, at }) {
            outbound::Act::Continue | outbound::Act::Pause => {}
            outbound::Act::LeaveGuests => {
                assert_eq!(self.cpus[at].runs.take(), Some(Image::Old));
            }
            outbound::Act::Save => way.saved(self.save(at)),
            outbound::Act::Lend => return Place::Lent(way),
            outbound::Act::NoteReturn => assert_eq!(self.words.verdict(), Verdict::RolledBack),
            outbound::Act::Lost => return Place::Lost,
            outbound::Act::Done => {
                self.cpus[at].runs = Some(Image::Old);
                return Place::Guest;
            }
        }
        Place::Out(way)
    }

    fn save(&mut self, at: usize) -> bool {
        assert!(self.cpus.iter().all(|cpu| cpu.runs.is_none()), "CPU {at} saves while a guest runs");
        if self.fault.contains(&Fault::SaveFails(at)) {
            self.has_failed = true;
            return false;
        }
        if at == 0 {
            self.handed_over = self.order.request();
        }
        self.cpus[at].saved += 1;
        assert_eq!(self.cpus[at].saved, 1, "CPU {at} saves twice");
        true
    }

    fn in_new_image(&mut self, at: usize, mut way: Outbound) -> Place {
        if self.wires.nmis[at].0.replace(false) {
            way.returned(Back::Nmi);
            return Place::Out(way);
        }
        if self.cpus[at].is_hung {
            return Place::Lent(way);
        }
        if let Some(back) = self.fail(at, Step::Arrive) {
            return self.give_back(at, way, back);
        }
        match self.cpus[at].inbound.next(&self.words, &View { wires: &self.wires, at }) {
            inbound::Act::Restore => match self.fail(at, Step::Restore).or_else(|| self.restore(at)) {
                Some(back) => return self.give_back(at, way, back),
                None => self.cpus[at].inbound.restored(),
            },
            inbound::Act::Pause => {}
            inbound::Act::TakeOver => {
                self.cpus[at].runs = Some(Image::New);
                if at == 0 {
                    self.finishing = Some(Finishing::begin(&self.wires));
                }
                return Place::Over;
            }
            inbound::Act::GoBack => return self.give_back(at, way, Some(Back::GoesBack)),
        }
        Place::Lent(way)
    }

    /// `None`: the CPU is still the new image's, and stays there.
    fn give_back(&mut self, at: usize, mut way: Outbound, back: Option<Back>) -> Place {
        let Some(back) = back else {
            self.cpus[at].is_hung = true;
            return Place::Lent(way);
        };
        way.returned(back);
        Place::Out(way)
    }

    fn restore(&mut self, at: usize) -> Option<Option<Back>> {
        if self.cpus[at].restored == 0 {
            assert!(self.cpus.iter().all(|cpu| cpu.saved == 1), "CPU {at} restores before all have saved");
            assert!(self.cpus.iter().all(|cpu| cpu.runs != Some(Image::New)));
            self.cpus[at].restored += 1;
        }
        self.fail(at, Step::Meet)
    }

    /// Returns whether the new image fails here, and how the CPU comes back; the inner `None`: it does not, by itself.
    fn fail(&mut self, at: usize, step: Step) -> Option<Option<Back>> {
        if self.cpus[at].passed.contains(&step) {
            return None;
        }
        self.cpus[at].passed.push(step);
        let kind = self.fault.iter().find_map(|fault| match *fault {
            Fault::NewImage(victim, failing, kind) => (victim == at && failing == step).then_some(kind),
            Fault::AllHang(failing) => (failing == step).then_some(Kind::Hangs),
            _ => None,
        })?;
        self.has_failed |= kind != Kind::Interrupted;
        Some(match kind {
            Kind::Hangs => None,
            Kind::Fails => Some(Back::Failed),
            Kind::Interrupted => Some(Back::Interrupt),
        })
    }

    /// Checks the invariants.
    fn check(&self) {
        let runs = |image| self.cpus.iter().any(|cpu| cpu.runs == Some(image));
        if runs(Image::New) {
            assert!(!runs(Image::Old), "guests run in both images: {self:#?}");
            assert_eq!(self.words.verdict(), Verdict::Committed, "{self:#?}");
        }
        let is_on_again = |cpu: &Cpu| cpu.saved == 1 && cpu.runs == Some(Image::Old);
        if self.cpus.iter().any(is_on_again) {
            assert_eq!(self.words.verdict(), Verdict::RolledBack, "{self:#?}");
        }
    }

    /// Returns whether every CPU runs its guests again, in the image that was decided for; panics if in another.
    pub fn is_over(&self) -> bool {
        let image = match self.words.verdict() {
            Verdict::Open => return false,
            Verdict::Committed => Image::New,
            Verdict::RolledBack => Image::Old,
        };
        let are_done = self.cpus.iter().all(|cpu| match (&cpu.place, image) {
            (Place::Guest, Image::Old) => cpu.runs == Some(Image::Old),
            (Place::Over, Image::New) => cpu.runs == Some(Image::New),
            _ => false,
        });
        let came = self.words.are_all_back() || image == Image::New;
        are_done && came && self.answers == [(image, REQUEST)]
    }

    pub fn is_lost(&self) -> bool {
        self.cpus.iter().any(|cpu| matches!(cpu.place, Place::Lost))
    }

    /// Steps each CPU in turn some times, then a tick, until all is over; panics after `rounds` rounds.
    pub fn finish(&mut self, rounds: u32) {
        for _ in 0..rounds {
            if self.is_over() {
                return self.check_end();
            }
            for _ in 0..ACTS_PER_TICK {
                (0..self.cpus()).for_each(|at| self.step(at));
            }
            if self.words.verdict() != Verdict::Open || self.wires.now.get() <= LIMIT {
                self.send_stray_nmi();
            }
            self.pass_time();
        }
        panic!("it does not end: {self:#?}");
    }

    fn check_end(&self) {
        let verdict = self.words.verdict();
        assert!(!self.has_failed || verdict == Verdict::RolledBack, "committed in spite of a fault: {self:#?}");
        let blamed = self.words.blamed();
        assert_eq!(blamed.is_some(), verdict == Verdict::RolledBack);
        assert!(blamed.is_none_or(|index| (1..=self.cpus.len() as u32).contains(&index)));
    }
}

/// Returns an order at the start of its blackout.
fn departed(wires: &Wires) -> Order<u32, ()> {
    let mut order = Order::default();
    order.begin(REQUEST, false, ());
    let end = order.poll(wires, |()| Progress::<(), ()>::Prepared(()), || false);
    assert!(end.is_none() && order.may_depart(wires, true));
    assert_eq!(order.depart(|()| None::<()>), Some(Ok(())));
    order
}

impl Cpu {
    fn new(at: usize) -> Self {
        Self {
            place: Place::Guest,
            runs: Some(Image::Old),
            inbound: Inbound::begin(cpu(at).index),
            passed: Vec::new(),
            is_hung: false,
            saved: 0,
            restored: 0,
        }
    }
}
