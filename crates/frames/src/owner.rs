// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owner of a frame: by the ledger, and by its record where there is one.

use units::{PAGE_BYTES, PhysAddr, PhysRange};

use crate::frames::Frames;
use crate::records::Records;
use crate::state::FrameState;

impl<'m> Frames<'m> {
    /// Returns the owner of the frame at `address`. A frame that is just being scrubbed counts as free.
    pub fn state_of(&self, address: PhysAddr) -> FrameState {
        let start = address.align_down(PAGE_BYTES);
        let Some(frame) = PhysRange::from_start(start, PAGE_BYTES) else { return FrameState::Absent };
        if !self.memory.contains(frame) {
            FrameState::Absent
        } else if self.retired.contains(frame) {
            FrameState::Retired
        } else if self.free.contains(frame) {
            FrameState::Free
        } else if self.huge_free.contains(frame) {
            FrameState::FreeHuge
        } else if self.scrubbing.contains(frame) {
            if self.huge.contains(frame) { FrameState::FreeHuge } else { FrameState::Free }
        } else if self.guests.contains(frame) {
            FrameState::Guest
        } else {
            FrameState::Host
        }
    }

    /// Has the frames' own records kept from now on, and writes those of memory that is not free.
    pub fn keep_records(&mut self, records: &'m Records<'m>) {
        self.records = Some(records);
        for memory in self.memory.iter() {
            for (part, is_free) in self.free.parts(memory) {
                if !is_free {
                    self.record_taken(part);
                }
            }
        }
    }

    /// Records memory that is not free for any owner: set aside, retired, a guest's, or the host's.
    fn record_taken(&self, range: PhysRange) {
        for (part, is_huge) in self.huge_free.parts(range) {
            if is_huge {
                self.record(part, FrameState::FreeHuge);
                continue;
            }
            for (part, is_guests) in self.guests.parts(part) {
                let state = if is_guests { FrameState::Guest } else { FrameState::Host };
                self.record(part, state);
            }
            for (part, _) in self.retired.parts(part).filter(|(_, is_retired)| *is_retired) {
                self.record(part, FrameState::Retired);
            }
        }
    }

    /// Records those parts of `range` that are free for any owner.
    pub(crate) fn record_free_parts(&self, range: PhysRange, state: FrameState) {
        if self.records.is_some() {
            let parts = self.free.parts(range).filter(|(_, is_free)| *is_free);
            parts.for_each(|(part, _)| self.record(part, state));
        }
    }

    pub(crate) fn record(&self, range: PhysRange, state: FrameState) {
        self.records.iter().for_each(|records| records.note(range, state));
    }

    /// Records what [`Frames::put_back`] has done.
    pub(crate) fn record_free(&self, range: PhysRange) {
        let Some(records) = self.records else { return };
        for (part, is_retired) in self.retired.parts(range) {
            for (part, is_huge) in self.huge.parts(part) {
                let free = if is_huge { FrameState::FreeHuge } else { FrameState::Free };
                records.note(part, if is_retired { FrameState::Retired } else { free });
            }
        }
    }

    /// Returns the frames' own records, where they are kept.
    pub fn records(&self) -> Option<&'m Records<'m>> {
        self.records
    }
}
