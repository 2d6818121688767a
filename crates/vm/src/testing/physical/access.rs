// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of a guest's function to the model.

use super::*;

impl Physical for FakePhysical {
    fn read_config(&mut self, register: u16, size: AccessSize) -> u32 {
        assert!(register < 256 && usize::from(register).is_multiple_of(size.bytes()));
        self.accesses += 1;
        self.is_gone |= self.accesses > self.vanishes_after;
        let value = self.get(register & !3) >> (register % 4 * 8);
        if self.is_gone { size.mask() as u32 } else { value & size.mask() as u32 }
    }

    fn write_config(&mut self, register: u16, size: AccessSize, value: u32) {
        self.requests += 1;
        self.accesses += 1;
        if self.is_gone {
            return;
        }
        let now = self.get(register & !3);
        if register == COMMAND && size == AccessSize::Word {
            assert!(!self.is_sealed || (now ^ value) & 0xffff & !GUESTS == 0, "decoding is the host's: {value:#x}");
            return self.set(COMMAND, now & !0xffff | value);
        }
        assert!(!self.is_sealed, "a hidden register is written: {register:#x}");
        assert!((0x10..0x28).contains(&register) && size == AccessSize::Dword, "{register:#x}");
        assert_eq!(self.get(COMMAND) & 0b111, 0, "it decodes while it is sized");
        let mask = self.masks[usize::from(register - 0x10) / 4];
        self.set(register, now & !mask | value & mask);
    }

    fn read(&mut self, bar: u8, offset: u64, size: AccessSize) -> u64 {
        self.check(bar, offset, size);
        self.reads += 1;
        self.registers.get(&(bar, offset)).copied().unwrap_or(self.reads) & size.mask()
    }

    fn write(&mut self, bar: u8, offset: u64, size: AccessSize, value: u64) {
        self.check(bar, offset, size);
        self.registers.insert((bar, offset), value);
    }

    fn map(&mut self, piece: Piece) -> bool {
        self.requests += 1;
        assert!(piece.offset + piece.bytes <= self.range_bytes(piece.bar), "{piece:?}");
        assert!(piece.bar != 0 || piece.offset + piece.bytes <= Self::TABLE, "MSI-X is emulated: {piece:?}");
        if !self.refuses_maps {
            self.space.lock().unwrap().add(self.number, piece);
        }
        !self.refuses_maps
    }

    fn unmap(&mut self, piece: Piece) {
        self.requests += 1;
        self.space.lock().unwrap().remove(self.number, piece);
    }

    fn set_interrupts(&mut self, interrupts: Interrupts) {
        self.requests += 1;
        assert_ne!(self.interrupts, interrupts, "nothing changes");
        self.interrupts = interrupts;
        self.opened.clear();
    }

    fn open_vector(&mut self, vector: u16) {
        self.requests += 1;
        assert_eq!(self.interrupts, Interrupts::MsiX);
        assert!(vector < Self::VECTORS && !self.opened.contains(&vector), "{vector}");
        self.opened.push(vector);
    }

    fn identity(&self) -> HostIdentity {
        HostIdentity { place: Bdf::of_requester(0, self.number as u16), msi: 0x40, msix: 0x50 }
    }

    fn route(&self, vector: u16) -> Route {
        let gsi = 16 + self.number;
        let route = match vector {
            LINE if self.interrupts == Interrupts::Line => Route { destination: self.number, vector: 0x60, gsi },
            LINE => Route { gsi, ..Route::default() },
            _ => Route { destination: self.number, vector: 0x50 + vector as u8, gsi: 0 },
        };
        let adopted = self.routes.get(&vector).filter(|_| vector != LINE);
        adopted.copied().unwrap_or(route)
    }

    fn is_possible(&self, route: Route) -> bool {
        route.vector >= 0x50
    }

    fn adopt(&mut self, interrupts: Interrupts, routes: &mut dyn Iterator<Item = (u16, Route)>) {
        self.interrupts = interrupts;
        self.routes = routes.collect();
        let opened = self.routes.keys().filter(|_| interrupts == Interrupts::MsiX);
        self.opened = opened.copied().filter(|vector| *vector != LINE).collect();
    }

    fn unmask(&mut self) {
        self.unmasked += 1;
    }

    fn set_virtual_functions(&mut self, number: u8) {
        self.virtual_wanted = number;
    }

    fn virtual_functions(&self) -> VirtualFunctions {
        self.virtual_functions
    }

    fn adopt_virtual_functions(&mut self, number: u8, known: VirtualFunctions) {
        (self.virtual_wanted, self.virtual_functions) = (number, known);
    }

    fn reset(&mut self) -> bool {
        assert_eq!(self.interrupts, Interrupts::Off, "it may not interrupt while it is reset");
        assert_eq!(self.get(COMMAND) >> 2 & 1, 0, "it does not master the bus");
        self.resets += 1;
        !self.refuses_reset
    }
}
