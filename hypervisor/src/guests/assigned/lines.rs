// SPDX-License-Identifier: MIT OR Apache-2.0
//! INTx lines of functions that have no MSI: the host's input of an I/O APIC belongs to one function.
//!
//! ```text
//! input ──► handler: masked, a bit ──► the boot CPU's loop ──► function: its line on the guest's I/O APIC is asserted
//!   ▲                                                                                    │
//!   └── unmasked: interrupts again if it is asserted ◄── function: lowered ◄── the guest ends the interrupt
//! ```
//!
//! So a line interrupts the host once for each interrupt that its guest has ended.

use alloc::format;
use alloc::string::String;

use ::pci::Bdf;
use ::pci::line::{Claims, MOST, Refused, Unserved};
use arrayvec::ArrayVec;
use iommu::{Interrupt, Signal};
use spin::Mutex;
use vm::devices::pci::assigned::LINE;

use super::choosing;
use super::routes::Routes;
use crate::arch::ioapic::IoApic;
use crate::arch::line_inputs::{self, Input};
use crate::arch::percpu::{BOOT_CPU, wake};
use crate::kernel::interrupts;
use crate::kernel::iommu::inputs;

/// The inputs that functions have.
static CLAIMS: Mutex<Claims> = Mutex::new(Claims::new());
/// Functions with lines that no driver serves, and that are to be stopped.
static UNSERVED: Mutex<ArrayVec<Bdf, MOST>> = Mutex::new(ArrayVec::new_const());

/// The line of a function. Dropped, its input is free.
pub struct Line {
    place: Bdf,
    gsi: u32,
    input: Input,
    /// The boot CPU's vector that the input sends.
    vector: Option<u8>,
    unserved: Unserved,
}

impl Line {
    /// The input is the function's from here on, and stays masked.
    ///
    /// # Errors
    /// No I/O APIC has it, the host uses it, or another function has it.
    pub fn claim(place: Bdf, gsi: u32) -> Result<Self, String> {
        interrupts::check_line(gsi).and_then(|()| Self::adopt(place, gsi, None)).map_err(|problem| {
            format!("its interrupt input (GSI {gsi}) {problem}: give it the right `gsi`, or choose another function")
        })
    }

    /// The input is the function's since an image before this one; it sends this vector if it is open. The hardware is
    /// not accessed.
    ///
    /// # Errors
    /// It cannot be.
    pub fn adopt(place: Bdf, gsi: u32, vector: Option<u8>) -> Result<Self, String> {
        let input = interrupts::line_input(gsi).ok_or("is no I/O APIC's")?;
        CLAIMS.lock().claim(gsi, place).map_err(text)?;
        vector.into_iter().for_each(|vector| line_inputs::add(vector, input));
        Ok(Self { place, gsi, input, vector, unserved: Unserved::default() })
    }

    /// Returns its global system interrupt.
    pub fn gsi(&self) -> u32 {
        self.gsi
    }

    /// Lets it interrupt the boot CPU from here on.
    ///
    /// # Errors
    /// No vector is left.
    pub fn open(&mut self, routes: &mut Routes) -> Result<(), String> {
        let (chip, input) = self.input;
        let vector = &mut self.vector;
        routes.open(LINE, |interrupt| {
            let interrupt = Interrupt { is_level: true, ..interrupt };
            *vector = Some(interrupt.vector);
            line_inputs::add(interrupt.vector, (chip, input));
            let entry = inputs::redirect(chip, input, Signal::Interrupt(interrupt), true);
            IoApic::mapped(chip).set(input, entry);
            Ok(())
        })
    }

    /// Masks and closes it.
    pub fn close(&mut self) {
        let (chip, input) = self.input;
        IoApic::mapped(chip).mask(input);
        self.end();
    }

    /// The guest has ended the interrupt. Where no driver serves the line it stays masked, and the function is stopped
    /// soon.
    pub fn unmask(&mut self) {
        let (chip, input) = self.input;
        let is_asserted = IoApic::mapped(chip).unmask(input);
        if self.unserved.note_end(is_asserted) {
            IoApic::mapped(chip).mask(input);
            self.unserved = Unserved::default();
            let _ = UNSERVED.lock().try_push(self.place);
            wake(BOOT_CPU);
        }
    }

    fn end(&mut self) {
        self.vector.take().into_iter().for_each(|vector| line_inputs::remove(vector, self.input));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.end();
        CLAIMS.lock().release(self.place);
    }
}

/// Returns the functions with lines that no driver serves, since this was called last.
pub fn take_unserved() -> ArrayVec<Bdf, MOST> {
    core::mem::take(&mut *UNSERVED.lock())
}

fn text(refused: Refused) -> String {
    match refused {
        Refused::Full => format!("is one too many: {MOST} functions have one"),
        Refused::Taken(other) => match choosing::guest_of(other) {
            Some(guest) => format!("is that of PCI function {other}, which guest {} has", guest.config.name),
            None => format!("is that of PCI function {other}"),
        },
    }
}
