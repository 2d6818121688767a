// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams that a guest has opened to a port of the host's, and how one goes on in the next image.

use super::{Progress, Stream, StreamPhase, guest_end};
use crate::header::{Address, Header};

impl Stream {
    /// Returns whether the guest knows of no connection of this stream: it may answer another one.
    pub fn is_free(&self) -> bool {
        self.phase == StreamPhase::Closed && !self.is_requested && self.ended_port.is_none()
    }

    /// A guest's REQUEST opens the stream, which is [free](Self::is_free): the answer is the first packet to the guest.
    pub fn answer(&mut self, request: &Header) {
        self.begin(request.source, request.destination.port);
        self.owes_answer = true;
        self.guest.note_room(request);
    }

    /// Returns whether the host has received all that has come.
    pub fn is_drained(&self) -> bool {
        self.from_guest.used() == 0
    }

    /// Returns the progress of an open stream; `None` while anything is on its way in either direction.
    pub fn progress(&self) -> Option<Progress> {
        let is_empty = self.to_guest.used() == 0 && self.from_guest.used() == 0;
        let owes_nothing = !self.owes_answer && self.ended_port.is_none();
        (is_empty && owes_nothing && self.phase == StreamPhase::Open).then_some(Progress {
            peer: self.peer,
            own_port: self.own_port,
            delivered: self.guest.delivered,
            room_until: self.guest.room_until,
            consumed: self.consumed,
        })
    }

    /// Goes on with a stream of the image before. False if none can have made this progress: then it is free.
    pub fn resume(&mut self, progress: &Progress) -> bool {
        self.begin(progress.peer, progress.own_port);
        (self.guest.delivered, self.guest.room_until) = (progress.delivered, progress.room_until);
        // The guest may not know of all that was received.
        (self.consumed, self.stated, self.owes_credit) = (progress.consumed, progress.consumed, true);
        let is_possible = self.guest.is_possible();
        if !is_possible {
            self.note_gone();
        }
        is_possible
    }

    fn begin(&mut self, peer: Address, own_port: u32) {
        (self.peer, self.guest) = (peer, guest_end(peer, own_port));
        self.open(own_port);
        (self.phase, self.is_requested) = (StreamPhase::Open, true);
    }
}
