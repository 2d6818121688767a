// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers and flags in a record's sections.

use crate::macros::{flags, numbered};

flags! {
    /// Bits of [`Control::flags`](super::Control::flags).
    pub mod control_flag: u32, since 1 {
        /// A request waits for its answer.
        IS_ASKED = 0,
        /// Log records are streamed.
        LOG = 1,
        /// Events are streamed.
        EVENTS = 2,
        /// Consoles are streamed.
        CONSOLES = 3,
        /// The line's state is handed over: a new image goes on with it as it is, and no byte that waits there is lost.
        /// How many bytes it takes at once (1 where it has no FIFO) is in bits 16 to 23.
        LINE = 4,
        /// Its bytes leave in a wire's time.
        IS_PACED = 5,
    }
}

numbered! {
    /// The reason for a new image.
    pub enum Reason since 1 {
        /// The operator asked for a restart.
        Asked = 1,
        /// The option `restart-after-guests`.
        GuestsDone = 2,
        /// A live update: guests go on.
        Update = 3 since 2,
    }

    /// Time of the new image's check.
    pub enum CheckPolicy since 2 {
        /// At staging, and once more while no guest ran.
        Sha256 = 1,
        /// At staging; the image was write-protected from then on.
        Early = 2,
        /// Never.
        None = 3,
    }

    /// State in which the old image left a CPU.
    pub enum CpuState since 1 {
        /// It runs the new image.
        HandsOver = 1,
        /// It waits at its mailbox.
        Parked = 2,
        /// It did not park in time, and was sent INIT.
        Lost = 3,
    }

    /// Purpose of kept memory.
    pub enum Purpose since 1 {
        /// The new image's slot: for as long as it runs.
        Image = 1,
        /// The record itself: until it has been read.
        Record = 2,
        /// Pages where CPUs wait, and page tables: until every CPU has left them.
        SwitchPages = 3,
        /// The old image's log: until it has been read.
        Log = 4,
        /// Blocks ([`crate::block`]): until they have been read.
        Blocks = 5 since 2,
        /// Memory for the new image alone while the old one still owns the rest.
        Staging = 6 since 2,
        /// The file that the new image was made from, its seal included, and in the last eight bytes its length: for as
        /// long as an image that came from it may be gone back to.
        File = 7 since 2,
        /// The file of the image that hands over: likewise.
        PreviousFile = 8 since 2,
        /// The bundle of the image that hands over, where an update with another one is to be confirmed: until it has
        /// been.
        PreviousBundle = 9 since 4,
        /// Rings of the timeline, which describe themselves (`timeline::layout`): the new image goes on in them, where
        /// they lie.
        Timeline = 20 since 2,
        /// Tables of the IOMMUs, in pieces that describe themselves (`iommu::Store`): the units read them all the
        /// while, and the new image goes on with them, where they lie.
        Iommu = 30 since 4,
    }
}
