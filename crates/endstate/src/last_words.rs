// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last words: output of guests and events, sent before the machine is reset or loses power.
//!
//! ```text
//! guests' rings, events ─gather─▶ queue ─send─▶ UART's FIFO ─▶ the line
//! ```
//!
//! Each arrow may leave something behind when the machine is reset or loses power: the queue holds less than the rings,
//! the UART takes less than the queue holds, and the contents of its FIFO are lost with the power. `tests/last_words`
//! shows each loss.

/// Rounds at most: each sends a full queue, and the consoles of all guests hold no more.
const MOST_ROUNDS: u32 = 64;

/// The channel on which they go out. Nothing here may allocate, or wait for a lock or for the line without a limit.
pub trait Outlet {
    /// Returns true if a client has subscribed.
    fn has_subscriber(&self) -> bool;
    /// Sends events and consoles from now on as if a client had subscribed to them: a client that is about to do so has
    /// opened the line.
    fn open_streams(&mut self);
    /// Sends again to a UART that was given up because it stood still.
    fn retry(&mut self);
    /// Queues new events and output, as far as there is room.
    fn gather(&mut self);
    /// Returns true if nothing is queued.
    fn is_empty(&self) -> bool;
    /// Gives the UART all that is queued, with the patience of last words. Returns whether it has taken all of it.
    fn send(&mut self) -> bool;
    /// Waits until the UART has sent its last byte.
    fn wait_until_sent(&mut self);
}

/// Sends all that waits, and waits until it has left the machine.
pub fn send_last_words(outlet: &mut impl Outlet) {
    if !outlet.has_subscriber() {
        outlet.open_streams();
    }
    outlet.retry();
    for _ in 0..MOST_ROUNDS {
        outlet.gather();
        if outlet.is_empty() || !outlet.send() {
            break;
        }
    }
    outlet.wait_until_sent();
}
