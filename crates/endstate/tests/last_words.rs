// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last output of a guest on its way to the reader, on a model of the channel: rings, a bounded queue, a UART with
//! a FIFO that may have been given up, and a line that takes its time. Then the machine goes, and all that has not
//! reached the line is lost.

use endstate::last_words::{Outlet, send_last_words};
use proptest::prelude::*;

/// Bytes that the queue and the FIFO hold.
const QUEUE: usize = 64;
const FIFO: usize = 16;

/// A fix that is reverted: the call has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reverted {
    OpenStreams,
    Retry,
    LaterRounds,
    WaitUntilSent,
}

#[derive(Clone, Debug, Default)]
struct Machine {
    /// By guest, bytes in its ring.
    rings: Vec<usize>,
    queued: usize,
    fifo: usize,
    /// Bytes that have reached the reader.
    read: usize,
    is_subscribed: bool,
    are_streams_open: bool,
    /// The UART stood still a moment ago, and takes nothing until it is tried again.
    is_given_up: bool,
    /// The line is dead: the UART takes nothing for good.
    is_dead: bool,
    rounds: usize,
    reverted: Option<Reverted>,
}

impl Machine {
    fn new(rings: &[usize]) -> Self {
        Self { rings: rings.to_vec(), is_subscribed: true, ..Self::default() }
    }

    fn without(self, fix: Reverted) -> Self {
        Self { reverted: Some(fix), ..self }
    }

    fn written(&self) -> usize {
        self.rings.iter().sum::<usize>() + self.queued + self.fifo
    }

    /// Sends the last words, and loses the power. Returns how many bytes are lost.
    fn end(mut self, end: impl FnOnce(&mut Self)) -> usize {
        let written = self.written();
        end(&mut self);
        written - self.read
    }
}

impl Outlet for Machine {
    fn has_subscriber(&self) -> bool {
        self.is_subscribed
    }

    fn open_streams(&mut self) {
        self.are_streams_open = self.reverted != Some(Reverted::OpenStreams);
    }

    fn retry(&mut self) {
        self.is_given_up &= self.reverted == Some(Reverted::Retry);
    }

    fn gather(&mut self) {
        self.rounds += 1;
        let is_over = self.reverted == Some(Reverted::LaterRounds) && self.rounds > 1;
        if is_over || !(self.is_subscribed || self.are_streams_open) {
            return;
        }
        for ring in &mut self.rings {
            let taken = (*ring).min(QUEUE - self.queued);
            *ring -= taken;
            self.queued += taken;
        }
    }

    fn is_empty(&self) -> bool {
        self.queued == 0
    }

    fn send(&mut self) -> bool {
        if self.is_given_up || self.is_dead {
            return false;
        }
        // The UART has sent what its FIFO has no room for: the last fill may still be there.
        let all = self.fifo + self.queued;
        self.fifo = all.min(FIFO);
        self.read += all - self.fifo;
        self.queued = 0;
        true
    }

    fn wait_until_sent(&mut self) {
        if self.reverted != Some(Reverted::WaitUntilSent) && !self.is_given_up && !self.is_dead {
            self.read += std::mem::take(&mut self.fifo);
        }
    }
}

/// The end of release 0.1.0: subscribed messages were queued once and given to the UART.
fn end_of_release_0_1_0(machine: &mut Machine) {
    machine.gather();
    machine.send();
}

fn lost(machine: Machine) -> usize {
    machine.end(send_last_words)
}

#[test]
fn a_guests_last_line_is_not_lost() {
    assert_eq!(lost(Machine::new(&[20])), 0);
    assert_eq!(Machine::new(&[20]).end(end_of_release_0_1_0), FIFO, "the defect does not show");
}

#[test]
fn what_is_in_the_fifo_is_waited_for() {
    assert_eq!(lost(Machine::new(&[5]).without(Reverted::WaitUntilSent)), 5, "the defect does not show");
}

#[test]
fn what_came_before_anybody_subscribed_is_sent() {
    let machine = Machine { is_subscribed: false, ..Machine::new(&[20, 3]) };
    assert_eq!(lost(machine.clone()), 0);
    assert_eq!(lost(machine.clone().without(Reverted::OpenStreams)), 23, "the defect does not show");
    assert_eq!(machine.end(end_of_release_0_1_0), 23, "the defect does not show");
}

#[test]
fn more_than_the_queue_holds_is_sent() {
    let machine = Machine::new(&[QUEUE, 3 * QUEUE, 1]);
    assert_eq!(lost(machine.clone()), 0);
    assert_eq!(lost(machine.without(Reverted::LaterRounds)), 3 * QUEUE + 1, "the defect does not show");
}

#[test]
fn a_uart_that_stood_still_is_tried_again() {
    let machine = Machine { is_given_up: true, ..Machine::new(&[20]) };
    assert_eq!(lost(machine.clone()), 0);
    assert_eq!(lost(machine.clone().without(Reverted::Retry)), 20, "the defect does not show");
    assert_eq!(machine.end(end_of_release_0_1_0), 20, "the defect does not show");
}

#[test]
fn a_dead_line_is_tried_once_and_without_end_no_more() {
    let mut machine = Machine { is_dead: true, ..Machine::new(&[10 * QUEUE]) };
    send_last_words(&mut machine);
    assert_eq!((machine.rounds, machine.read), (1, 0));
}

#[test]
fn a_guest_that_writes_for_ever_does_not_keep_the_machine() {
    let mut machine = Machine::new(&[usize::MAX / 2]);
    send_last_words(&mut machine);
    assert_eq!((machine.rounds, machine.read), (64, 64 * QUEUE));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_whatever_waits_where(
        rings in prop::collection::vec(0..4 * QUEUE, 0..16),
        queued in 0..=QUEUE,
        fifo in 0..=FIFO,
        is_subscribed: bool,
        is_given_up: bool,
    ) {
        let machine = Machine { queued, fifo, is_subscribed, is_given_up, ..Machine::new(&rings) };
        prop_assert_eq!(lost(machine), 0);
    }
}
