// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last output over COM2: the host is about to end.

use endstate::last_words::{Outlet, send_last_words};
use uart::Patience;
use wire::Subscription;

use super::consoles;
use super::outgoing::Outgoing;
use crate::arch::serial::Uart;

/// Sends all that waits, and waits until it has left the machine, each for a bounded time. Allocates nothing, and waits
/// for no lock for ever.
pub fn drain(outgoing: &mut Outgoing, uart: &mut Uart) {
    let mut last_words = LastWords { outgoing, uart, asked: None };
    send_last_words(&mut last_words);
    if let Some(asked) = last_words.asked {
        outgoing.set_subscription(asked);
    }
}

/// The channel as the host's end uses it.
struct LastWords<'a> {
    outgoing: &'a mut Outgoing,
    uart: &'a mut Uart,
    /// The subscription, if all streams were opened.
    asked: Option<Subscription>,
}

impl Outlet for LastWords<'_> {
    fn has_subscriber(&self) -> bool {
        self.outgoing.is_asked()
    }

    fn open_streams(&mut self) {
        self.asked.get_or_insert(self.outgoing.open_streams());
    }

    fn retry(&mut self) {
        self.uart.retry();
    }

    fn gather(&mut self) {
        consoles::pump(self.outgoing, &mut []);
        self.outgoing.gather();
    }

    fn is_empty(&self) -> bool {
        self.outgoing.is_quiet()
    }

    fn send(&mut self) -> bool {
        self.outgoing.send_all(self.uart)
    }

    fn wait_until_sent(&mut self) {
        self.uart.drain(Patience::LAST_WORDS);
    }
}
