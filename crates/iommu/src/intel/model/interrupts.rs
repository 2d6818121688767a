// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupt remapping in the model (section 5.1).

use crate::intel::model::hardware::Hardware;
use crate::intel::model::memory::Ram;

const REMAPPING: u32 = 1 << 25;
const COMPATIBILITY: u32 = 1 << 23;
/// The vector with which an NMI arrives at the CPU.
pub(super) const NMI_VECTOR: u8 = 2;

impl Hardware {
    /// Performs a function's write to the interrupt range: returns vector, destination, level.
    pub(super) fn interrupt(
        &mut self,
        ram: &Ram,
        requester: u16,
        address: u64,
        data: u32,
    ) -> Result<(u8, u32, bool), u8> {
        assert_eq!(address >> 20, 0xfee, "an interrupt is in the range of interrupts");
        let is_compatible = address & 1 << 4 == 0;
        let is_extended = self.interrupts_in_use & 1 << 11 != 0;
        let passes = is_compatible && !is_extended && self.status & COMPATIBILITY != 0;
        if self.status & REMAPPING == 0 || passes {
            return Ok((data as u8, (address >> 12) as u32 & 0xff, data & 1 << 15 != 0));
        }
        let has_subhandle = address & 1 << 3 != 0;
        let handle = (address >> 5 & 0x7fff | (address >> 2 & 1) << 15) as u32;
        let index = handle + if has_subhandle { data & 0xffff } else { 0 };
        let found = match is_compatible {
            true => Err(0x25),
            false if has_subhandle && data >> 16 != 0 => Err(0x20),
            false => self.remap(ram, requester, index, is_extended),
        };
        if let Err(reason) = found {
            self.record(requester, u64::from(index) << 48, false, reason);
        }
        found
    }

    fn remap(&mut self, ram: &Ram, requester: u16, index: u32, is_extended: bool) -> Result<(u8, u32, bool), u8> {
        if index >= 2 << (self.interrupts_in_use & 0xf) {
            return Err(0x21);
        }
        let [low, high] = self.entry(ram, index as u16)?;
        if low & 1 == 0 {
            return Err(0x22);
        }
        let reserved = if is_extended { 0 } else { 0xffff_00ff << 32 };
        // Fixed delivery and NMIs to one physical identifier are all that the driver makes.
        let is_nmi = low & 0xe0 == 0x80;
        let is_wrong = if is_nmi { low & 0xff_0010 != 0 } else { low & 0xe0 != 0 };
        if low & (0xff00_f000 | reserved) != 0 || high >> 20 != 0 || low & 0xc != 0 || is_wrong {
            return Err(0x24);
        }
        match high >> 16 & 0xf {
            0b0100 if high as u16 == requester => {}
            0b0000 => {}
            0b0100 => return Err(0x26),
            _ => panic!("the driver verifies whole identifiers"),
        }
        let destination = (low >> 32) as u32;
        let destination = if is_extended { destination } else { destination >> 8 };
        Ok((if is_nmi { NMI_VECTOR } else { (low >> 16) as u8 }, destination, low & 1 << 4 != 0))
    }

    fn entry(&mut self, ram: &Ram, index: u16) -> Result<[u64; 2], u8> {
        if let Some(entry) = self.remapped.get(&index) {
            return Ok(*entry);
        }
        let at = (self.interrupts_in_use & !0xfff) + u64::from(index) * 16;
        let entry = [ram.seen(at).ok_or(0x23)?, ram.seen(at + 8).ok_or(0x23)?];
        if entry[0] & 1 != 0 || self.caches_absent() {
            self.remapped.insert(index, entry);
        }
        Ok(entry)
    }
}
