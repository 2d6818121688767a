// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flags of a vCPU's saved state.

use crate::macros::flags;

flags! {
    /// Bits of [`super::Mail::start`].
    pub mod mail_flag: u32, since 2 {
        /// A start-up interrupt; its page is in bits 0–7.
        STARTUP = 8,
        /// An INIT, which came before all else.
        INIT = 9,
        /// An NMI that came before the start-up interrupt, or without one.
        EARLY_NMI = 10,
        /// An NMI that came after it.
        LATE_NMI = 11,
    }
}

flags! {
    /// Bits of [`super::MoreNmis::flags`].
    pub mod more_nmi: u32, since 4 {
        /// Beside [`event_state::NMI_PENDING`].
        PENDING = 0,
        /// Beside [`mail_flag::EARLY_NMI`].
        EARLY = 1,
        /// Beside [`mail_flag::LATE_NMI`].
        LATE = 2,
    }
}

flags! {
    /// Bits of [`super::MoreNmis::unhalt`].
    pub mod unhalt_flag: u32, since 4 {
        /// Another CPU has woken it, which it has not noticed.
        SENT = 0,
        /// It has noticed that, and its next halt ends at once.
        TAKEN = 1,
    }
}

flags! {
    /// Bits of [`super::Watch::flags`].
    pub mod watch_flag: u32, since 3 {
        /// It was found to spin, and has not been seen elsewhere since.
        SPINS = 0,
        /// It gets only a sliver of time.
        IS_THROTTLED = 1,
        /// [`super::super::Watch::rests_until`] counts.
        RESTS = 2,
    }
}

flags! {
    /// Bits of [`super::Events::flags`].
    pub mod event_state: u32, since 2 {
        /// An NMI waits.
        NMI_PENDING = 0,
        /// The guest may end its interrupt without an exit: the flag in its area is set.
        EOI_OFFERED = 1,
        /// [`super::super::Events::look_at`] counts.
        LOOKS = 2,
        /// [`super::super::Time::alarm`] counts.
        HAS_ALARM = 3,
    }
}
