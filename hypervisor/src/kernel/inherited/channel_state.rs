// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control channel's state, from one image to the next.

use arrayvec::ArrayVec;
use handover::layout::{Control, control_flag};
use handover::record::Record;
use handover::state::{ControlStream, MOST_CONTROL_STREAMS};
use wire::Subscription;

/// The streams of clients in guests, each with its session.
pub type ControlStreams = ArrayVec<ControlStream, MOST_CONTROL_STREAMS>;

/// The state of COM2's session, or of a session of a client in a guest, as the next image continues it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChannelState {
    /// The request that the next image answers.
    pub request: Option<u32>,
    /// The streams.
    pub subscription: Subscription,
    /// Log records of this time or later are still to be streamed, in ticks.
    pub log_since: u64,
    /// The next event to be streamed.
    pub next_event: u64,
    /// The number of bytes that its UART takes at once, and whether they leave at the line's rate; `None` where the
    /// UART is to be probed again.
    pub line: Option<(u8, bool)>,
}

impl ChannelState {
    /// The section that describes it; `events`: the number of the next event that is recorded.
    pub fn section(&self, events: u64) -> Control {
        let Subscription { log, events: has_events, consoles } = self.subscription;
        let flags = [
            (self.request.is_some(), control_flag::IS_ASKED),
            (log, control_flag::LOG),
            (has_events, control_flag::EVENTS),
            (consoles, control_flag::CONSOLES),
            (self.line.is_some(), control_flag::LINE),
            (self.line.is_some_and(|(_, is_paced)| is_paced), control_flag::IS_PACED),
        ];
        let depth = self.line.map_or(0, |(depth, _)| u32::from(depth) << 16);
        let flags = depth | flags.iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, flag)| flags | flag);
        Control {
            request: self.request.unwrap_or(0).into(),
            flags: flags.into(),
            log_since: self.log_since.into(),
            next_event: self.next_event.into(),
            events: events.into(),
        }
    }
}

/// Returns the channel's state as the record has it.
pub fn channel_state(record: &Record<'_>) -> ChannelState {
    record.control.map_or_else(ChannelState::default, channel_state_of)
}

/// Returns the channel's state that a section describes.
pub fn channel_state_of(control: Control) -> ChannelState {
    let is_set = |flag| control.flags.get() & flag != 0;
    ChannelState {
        request: is_set(control_flag::IS_ASKED).then_some(control.request.get()),
        subscription: Subscription {
            log: is_set(control_flag::LOG),
            events: is_set(control_flag::EVENTS),
            consoles: is_set(control_flag::CONSOLES),
        },
        log_since: control.log_since.get(),
        next_event: control.next_event.get(),
        line: is_set(control_flag::LINE).then(|| ((control.flags.get() >> 16) as u8, is_set(control_flag::IS_PACED))),
    }
}
