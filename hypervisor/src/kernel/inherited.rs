// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state that the image before this one has handed over: read from its record, used while this image boots, and
//! given back.

mod channel_state;
mod kept;
mod parked;
mod reading;
mod record;

pub use channel_state::{ChannelState, ControlStreams, channel_state_of};
pub use kept::{late, logged, logs, timelines, with_block, with_events, with_log};
pub use parked::{adoption, give_back};
pub use reading::take_over;
pub use record::{
    FILE_LENGTH_BYTES, announce, clocks_agree, file, generation, has_clock, is_update, known, members, old_build,
    on_trial, previous_bundle, record, release_previous_bundle, signer, succession,
};
