// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every interleaving of vCPUs that post to one that takes.
//!
//! Loom's atomics exist only inside its models, and the other tests of the machine run outside. So the mailbox is
//! compiled a second time here, where `super::sync` is loom's; and so is [`cpu_location::CpuLocation`] of `sched`, by
//! which the hypervisor chooses the CPU to interrupt for a message.

use std::vec;
use std::vec::Vec;

use loom::sync::{Arc, Notify};
use loom::thread;

use self::cpu_location::CpuLocation;
use self::mailbox::Mailbox;
use super::ENABLED;
use crate::devices::lapic::{Action, Lapic};
use crate::devices::{DeliveryMode, Destination, GuestTsc, InterruptMessage};

#[path = "../../../../sched/src/cpu_location.rs"]
mod cpu_location;
#[allow(dead_code, clippy::duplicate_mod, reason = "what is not raced for is tested beside")]
#[path = "../mailbox.rs"]
mod mailbox;
#[path = "../../../../sched/src/sync.rs"]
mod sched_sync;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64};

    pub(super) use super::sched_sync::{AtomicU32, Ordering, const_new, fence};
}

const NMI: InterruptMessage = message(DeliveryMode::Nmi, 0, false);
const INIT: InterruptMessage = message(DeliveryMode::Init, 0, false);
const STARTUP: InterruptMessage = message(DeliveryMode::Startup, 0x9f, false);

const fn message(mode: DeliveryMode, vector: u8, is_level: bool) -> InterruptMessage {
    InterruptMessage { destination: Destination::Itself, mode, vector, is_level }
}

const fn edge(vector: u8) -> InterruptMessage {
    message(DeliveryMode::Fixed, vector, false)
}

const fn level(vector: u8) -> InterruptMessage {
    message(DeliveryMode::Fixed, vector, true)
}

/// The receiver: its local APIC, and the messages that it has taken so far.
struct Receiver {
    lapic: Lapic,
    /// With whether it was level-triggered.
    vectors: Vec<(u8, bool)>,
    nmis: u8,
    runs: bool,
    /// Start-up interrupts while it waited for one.
    starts: u8,
}

impl Receiver {
    fn new() -> Self {
        let mut lapic = Lapic::new(1, false);
        let _ = lapic.write_mmio(0xf0, ENABLED as u32, GuestTsc(0));
        assert!(lapic.is_software_enabled());
        Self { lapic, vectors: Vec::new(), nmis: 0, runs: true, starts: 0 }
    }

    fn take(&mut self, mailbox: &Mailbox) {
        let events = mailbox.take(&mut self.lapic);
        self.runs &= !events.init;
        if events.startup.is_some() && !self.runs {
            self.runs = true;
            self.starts += 1;
        }
        self.nmis += events.early_nmis + events.late_nmis;
        while let Some(vector) = self.lapic.acknowledge() {
            let is_level = self.lapic.end_of_interrupt() == Action::EndOfInterrupt(vector);
            self.vectors.push((vector, is_level));
        }
    }

    /// Sleeps unless a message is pending, until it has all that it waits for. A kick that is not sent is a deadlock,
    /// which loom finds.
    fn wait(&mut self, mailbox: &Mailbox, kick: &Notify, has_all: impl Fn(&Self) -> bool) {
        loop {
            if mailbox.has_pending() {
                self.take(mailbox);
            }
            if has_all(self) {
                return;
            }
            kick.wait();
        }
    }
}

/// Every interleaving of two senders and a receiver that waits until it `has_all`. Returns nothing, but what it has in
/// the end `is_right`.
fn explore(posts: [Vec<InterruptMessage>; 2], has_all: fn(&Receiver) -> bool, is_right: fn(&Receiver) -> bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let mut receiver = Receiver::new();
        let shared = Arc::new((Mailbox::new(receiver.lapic.addressing()), Notify::new()));
        let senders = posts.clone().map(|posts| {
            let shared = shared.clone();
            thread::spawn(move || {
                for message in &posts {
                    if shared.0.post(message) {
                        shared.1.notify();
                    }
                }
            })
        });
        receiver.wait(&shared.0, &shared.1, has_all);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        receiver.take(&shared.0);
        assert!(is_right(&receiver), "{:x?}, {} NMIs, {} starts", receiver.vectors, receiver.nmis, receiver.starts);
    });
}

#[test]
fn every_vector_arrives_once_and_the_receiver_is_kicked_for_it() {
    let has_all = |receiver: &Receiver| receiver.vectors.len() >= 3;
    explore([vec![edge(0x31)], vec![edge(0x32), edge(0xf1)]], has_all, |receiver| {
        let mut vectors = receiver.vectors.clone();
        vectors.sort_unstable();
        vectors == [(0x31, false), (0x32, false), (0xf1, false)]
    });
}

#[test]
fn every_nmi_arrives_once_whatever_arrives_with_it() {
    let has_all = |receiver: &Receiver| receiver.nmis >= 2 && !receiver.vectors.is_empty();
    explore([vec![NMI], vec![edge(0x31), NMI]], has_all, |receiver| receiver.nmis == 2 && receiver.vectors.len() == 1);
}

#[test]
fn a_startup_never_overtakes_its_init() {
    let has_all = |receiver: &Receiver| receiver.starts >= 1;
    explore([vec![INIT, STARTUP], vec![NMI]], has_all, |receiver| receiver.starts == 1 && receiver.runs);
}

#[test]
fn a_vector_keeps_its_trigger_mode() {
    let has_all = |receiver: &Receiver| receiver.vectors.len() >= 2;
    explore([vec![level(0x41)], vec![edge(0x42)]], has_all, |receiver| {
        let mut vectors = receiver.vectors.clone();
        vectors.sort_unstable();
        vectors == [(0x41, true), (0x42, false)]
    });
}

/// The mode is the last message's: an edge after a level that was taken is an edge, and the other way round.
#[test]
fn a_vector_takes_its_next_trigger_mode() {
    for (before, after) in [(level(0x41), edge(0x41)), (edge(0x41), level(0x41))] {
        loom::model(move || {
            let mut receiver = Receiver::new();
            let mailbox = Arc::new(Mailbox::new(receiver.lapic.addressing()));
            mailbox.post(&before);
            receiver.take(&mailbox);
            let sender = {
                let mailbox = mailbox.clone();
                thread::spawn(move || mailbox.post(&after))
            };
            receiver.take(&mailbox);
            assert!(sender.join().unwrap() || receiver.vectors.len() == 2, "it waits, and no CPU is notified");
            receiver.take(&mailbox);
            assert_eq!(receiver.vectors, [(0x41, before.is_level), (0x41, after.is_level)]);
        });
    }
}

#[test]
fn of_two_senders_one_kicks_a_receiver_that_does_not_poll() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::new(Receiver::new().lapic.addressing()));
        let other = {
            let mailbox = mailbox.clone();
            thread::spawn(move || mailbox.post(&edge(0x31)))
        };
        let must_kick = mailbox.post(&NMI);
        assert_ne!(must_kick, other.join().unwrap());
        assert!(mailbox.has_pending());
    });
}

/// The message before it may wait as well: then its sender sends no kick.
#[test]
fn a_message_to_a_vcpu_that_moves_is_found_or_the_new_cpu_is_interrupted() {
    const OLD: u32 = 1;
    const NEW: u32 = 2;
    for was_posted in [false, true] {
        loom::model(move || {
            let mut receiver = Receiver::new();
            let shared = Arc::new((Mailbox::new(receiver.lapic.addressing()), CpuLocation::new(OLD)));
            if was_posted {
                shared.0.post(&edge(0x31));
            }
            let sender = {
                let shared = shared.clone();
                thread::spawn(move || shared.0.post(&NMI).then(|| shared.1.after_message()))
            };
            shared.1.move_to(NEW);
            if shared.0.has_pending() {
                receiver.take(&shared.0);
            }
            let interrupted = sender.join().unwrap();
            assert!(receiver.nmis == 1 || interrupted == Some(NEW), "the message waits, and no CPU is notified");
            assert_eq!(shared.1.now(), NEW);
        });
    }
}
