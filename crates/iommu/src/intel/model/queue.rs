// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queued invalidation in the model (section 6.5.2).

use crate::intel::model::hardware::Hardware;
use crate::intel::model::memory::Ram;

const ENABLED: u32 = 1 << 26;
const ERRORS: u32 = 0x70;
const QUEUE_ERROR: u32 = 1 << 4;

impl Hardware {
    /// Carries out what is in the queue, unless it has stopped.
    pub(super) fn run(&mut self, ram: &mut Ram) {
        assert_eq!(self.queue & 0xfff, 0, "the queue has one page of short descriptors");
        while self.status & ENABLED != 0 && !self.hangs && self.faults & ERRORS == 0 && self.head != self.tail {
            let at = self.queue + self.head;
            let words = [ram.load(at), ram.load(at + 8)];
            if core::mem::take(&mut self.errs) || self.carry_out(ram, words).is_none() {
                self.faults |= QUEUE_ERROR;
                return;
            }
            self.head = (self.head + 16) % 4096;
        }
    }

    /// Executes a descriptor; `None` for one that is wrong.
    fn carry_out(&mut self, ram: &mut Ram, [low, high]: [u64; 2]) -> Option<()> {
        match low & 0xf {
            1 => self.drop_contexts(low, high),
            2 => self.drop_pages(low, high),
            4 => self.drop_interrupts(low, high),
            5 => {
                let is_known = low & 0xffff_ffe0 == 1 << 5 && high & 3 == 0;
                let word = ram.load(high & !7);
                let shift = high % 8 * 8;
                ram.store(high & !7, word & !(0xffff_ffff << shift) | (low >> 32) << shift);
                is_known.then_some(())
            }
            _ => None,
        }
    }

    fn drop_contexts(&mut self, low: u64, high: u64) -> Option<()> {
        let (domain, requester) = ((low >> 16) as u16, (low >> 32) as u16);
        match low >> 4 & 3 {
            1 => self.contexts.clear(),
            2 => self.contexts.retain(|_, (tag, _)| *tag != domain),
            // An entry that is tagged with another domain stays.
            3 => self.contexts.retain(|of, (tag, _)| *of != requester || *tag != domain),
            _ => return None,
        }
        (low & 0xfffc_0000_0000_ffc0 | high == 0).then_some(())
    }

    fn drop_pages(&mut self, low: u64, high: u64) -> Option<()> {
        let domain = (low >> 16) as u16;
        let drains = low & 0xc0 == 0xc0;
        self.under_way.retain(|of| !drains || low >> 4 & 3 != 1 && *of != domain);
        match low >> 4 & 3 {
            1 => {
                self.pages.clear();
                self.tables.clear();
            }
            2 => {
                self.pages.retain(|(of, _), _| *of != domain);
                self.tables.retain(|(of, ..), _| *of != domain);
            }
            3 => {
                let (page, mask) = (high >> 12, high & 0x3f);
                let can_do = self.capability >> 39 & 1 != 0 && mask <= self.capability >> 48 & 0x3f;
                if !can_do || !page.is_multiple_of(1 << mask) || high & 0xf80 != 0 {
                    return None;
                }
                let is_meant = |number: u64, bits: u64| number >> (mask.max(bits) - bits) == page >> mask.max(bits);
                self.pages.retain(|(of, number), _| *of != domain || !is_meant(*number, 0));
                self.tables.retain(|(of, level, prefix), _| *of != domain || !is_meant(*prefix, u64::from(*level) * 9));
            }
            _ => return None,
        }
        (low & 0xffff_ffff_0000_ff00 == 0).then_some(())
    }

    fn drop_interrupts(&mut self, low: u64, high: u64) -> Option<()> {
        if low >> 4 & 1 == 0 {
            self.remapped.clear();
        } else {
            let (mask, first) = (low >> 27 & 0x1f, low >> 32);
            self.remapped.retain(|index, _| u64::from(*index) >> mask != first >> mask);
        }
        (low & 0xffff_0000_07ff_ffe0 | high == 0).then_some(())
    }
}
