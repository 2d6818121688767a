// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the functions of a bus decode, which are polled, and their lines.

use spin::Mutex;

use super::*;

impl Bus {
    /// Lets ranges of functions be mapped beside this many bytes of memory.
    pub fn open_apertures(&self, memory_bytes: u64) {
        self.pci.lock().set_apertures(Apertures::beside(memory_bytes));
    }

    /// Finds out again where PCI functions decode: they have been restored, or one was reset or vanished.
    pub fn place_functions(&self) {
        self.pci.lock().place();
    }

    /// The functions that are polled.
    pub fn polled(&self) -> impl Iterator<Item = &Mutex<dyn Device>> {
        self.polled.iter().filter_map(|device| self.devices.get(*device)).map(|device| &**device)
    }

    /// Returns whether any function has a line.
    #[inline]
    pub fn has_lines(&self) -> bool {
        self.lines.load(Ordering::Relaxed) != 0
    }

    /// The functions with a line that has interrupted with this vector, which the guest ends.
    pub fn lines_ended(&self, vector: u8) -> impl Iterator<Item = Found<'_>> {
        let pins = self.ioapic.lock().pins_in_service(vector);
        let slots = self.lines.load(Ordering::Acquire).to_le_bytes();
        let ended = PCI_PINS.zip(slots).filter(move |(pin, slot)| *slot != 0 && pins >> pin & 1 != 0);
        ended.filter_map(|(_, slot)| {
            let pci = self.pci.lock();
            match pci.reach(Slot(slot))? {
                Reach::Fixed(device) => Some(Found::Fixed(&**self.devices.get(device)?)),
                Reach::Plugged(slot) => Some(Found::Plugged(pci.plugged(slot)?)),
            }
        })
    }
}
