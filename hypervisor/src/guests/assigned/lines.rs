// SPDX-License-Identifier: MIT OR Apache-2.0
//! INTx lines of functions that have no MSI: the host's input of an I/O APIC belongs to functions of one guest.
//!
//! ```text
//! input ──► handler: masked, a bit ──► the boot CPU's loop ──► functions: their lines on the guest's I/O APIC asserted
//!   ▲                                                                                    │
//!   └── unmasked: interrupts again if it is asserted ◄── function: lowered ◄── the guest ends the interrupt
//! ```
//!
//! So a line interrupts the host once for each interrupt that its guest has ended. Functions that share an input share
//! the vector that it sends. When it interrupts, the host asserts the guest's lines of those functions whose status
//! register reports an interrupt; if none does twice in a row, of all. An input is unmasked when the guest ends the
//! interrupt of one function. If another one's is not ended yet, the input interrupts once more, to no effect: that one
//! still reports its interrupt, and its line is asserted, or the guest has served it meanwhile, and none reports one.
//!
//! A function is locked from the reading of its register to the assertion of its line, and while the guest's end of its
//! interrupt lowers the line: a register that was read before the guest served the function asserts nothing after it.

use alloc::format;
use alloc::string::String;

use ::pci::Bdf;
use ::pci::line::{Claim, Claims, Interrupted, MOST, Refused, Unserved, reports_interrupt};
use arrayvec::ArrayVec;
use iommu::{Interrupt, Signal};
use spin::Mutex;
use vm::devices::pci::assigned::LINE;

use super::choosing;
use super::routes::{self, Owner, Routes};
use crate::arch::ioapic::IoApic;
use crate::arch::line_inputs::{self, Input};
use crate::arch::percpu::{BOOT_CPU, wake};
use crate::guests::pci;
use crate::kernel::interrupts;
use crate::kernel::iommu::inputs;

/// The inputs that functions have. Held while a line is opened or closed.
static CLAIMS: Mutex<Claims> = Mutex::new(Claims::new());
/// Functions with lines that no driver serves, and that are to be stopped.
static UNSERVED: Mutex<ArrayVec<Bdf, MOST>> = Mutex::new(ArrayVec::new_const());

/// The line of a function. Dropped, its input is free.
pub struct Line {
    place: Bdf,
    gsi: u32,
    input: Input,
    unserved: Unserved,
}

impl Line {
    /// The input is the function's from here on, and stays as it is: masked if no other function has it.
    ///
    /// # Errors
    /// No I/O APIC has it, the host uses it, or another guest's function has it.
    pub fn claim(place: Bdf, gsi: u32, owner: Owner) -> Result<Self, String> {
        interrupts::check_line(gsi).and_then(|()| Self::adopt(place, gsi, None, owner)).map_err(|problem| {
            format!("its interrupt input (GSI {gsi}) {problem}: give it the right `gsi`, or choose another function")
        })
    }

    /// The input is the function's since an image before this one; it sends this vector if it is open. The hardware is
    /// not accessed.
    ///
    /// # Errors
    /// It cannot be.
    pub fn adopt(place: Bdf, gsi: u32, vector: Option<u8>, owner: Owner) -> Result<Self, String> {
        let input = interrupts::line_input(gsi).ok_or("is no I/O APIC's")?;
        let claim = Claim { gsi, function: place, guest: owner.guest, number: owner.function, vector };
        let mut claims = CLAIMS.lock();
        claims.claim(claim).map_err(text)?;
        if claims.partner(gsi, place).is_none() {
            vector.into_iter().for_each(|vector| line_inputs::add(vector, input));
        }
        Ok(Self { place, gsi, input, unserved: Unserved::default() })
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
        let mut claims = CLAIMS.lock();
        if !self.join(&mut claims, routes) {
            let vector = self.program(routes)?;
            claims.set_vector(self.place, Some(vector));
        }
        Ok(())
    }

    /// As [`Self::open`], if another function has the input open: no IOMMU is needed for that. Returns whether one has.
    pub fn open_beside(&mut self, routes: &mut Routes) -> bool {
        self.join(&mut CLAIMS.lock(), routes)
    }

    fn join(&self, claims: &mut Claims, routes: &mut Routes) -> bool {
        let shared = claims.partner(self.gsi, self.place).and_then(|partner| partner.vector);
        if let Some(vector) = shared {
            routes.join(vector);
            claims.set_vector(self.place, shared);
        }
        shared.is_some()
    }

    /// Has the input send a vector of its own, which is returned.
    fn program(&self, routes: &mut Routes) -> Result<u8, String> {
        let (chip, input) = self.input;
        let mut vector = 0;
        routes.open(LINE, |interrupt| {
            let interrupt = Interrupt { is_level: true, ..interrupt };
            vector = interrupt.vector;
            line_inputs::add(vector, (chip, input));
            let entry = inputs::redirect(chip, input, Signal::Interrupt(interrupt), true);
            IoApic::mapped(chip).set(input, entry);
            Ok(())
        })?;
        Ok(vector)
    }

    /// Closes it. The input is masked, unless another function has it: that one may have interrupted meanwhile.
    pub fn close(&mut self) {
        let (chip, input) = self.input;
        let mut claims = CLAIMS.lock();
        let vector = claims.vector_of(self.place);
        claims.set_vector(self.place, None);
        match claims.partner(self.gsi, self.place) {
            Some(partner) => {
                partner.vector.into_iter().for_each(|vector| routes::pass_line(vector, owner(&partner)));
                IoApic::mapped(chip).unmask(input);
            }
            None => {
                IoApic::mapped(chip).mask(input);
                vector.into_iter().for_each(|vector| line_inputs::remove(vector, self.input));
            }
        }
    }

    /// The guest has ended the interrupt. Where no driver serves the line it stays masked, and the function is stopped
    /// soon.
    pub fn unmask(&mut self) {
        let (chip, input) = self.input;
        let is_asserted = IoApic::mapped(chip).unmask(input) && self.has_asserted();
        if self.unserved.note_end(is_asserted) {
            IoApic::mapped(chip).mask(input);
            self.unserved = Unserved::default();
            let _ = UNSERVED.lock().try_push(self.place);
            wake(BOOT_CPU);
        }
    }

    /// Returns whether it is this function that has asserted the input.
    fn has_asserted(&self) -> bool {
        CLAIMS.lock().partner(self.gsi, self.place).is_none() || has_interrupt(self.place)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut claims = CLAIMS.lock();
        let vector = claims.vector_of(self.place);
        claims.release(self.place);
        if claims.partner(self.gsi, self.place).is_none() {
            vector.into_iter().for_each(|vector| line_inputs::remove(vector, self.input));
        }
    }
}

/// The functions with open lines at an input, and whether others have it, too.
pub struct Sharing {
    /// The functions.
    pub open: ArrayVec<Owner, MOST>,
    /// Only those that report an interrupt have interrupted.
    pub is_shared: bool,
}

/// The functions at the input of one to which its vector leads.
pub fn sharing(by: Owner) -> Sharing {
    let claims = CLAIMS.lock();
    let gsi = claims.gsi_of(by.guest, by.function);
    gsi.map_or_else(
        || Sharing { open: ArrayVec::new(), is_shared: false },
        |gsi| Sharing { open: claims.at(gsi).iter().map(owner).collect(), is_shared: claims.is_shared(gsi) },
    )
}

/// Notes that a function's shared input has interrupted, and whether a function with an open line reports an interrupt.
/// If that was served meanwhile, the input is unmasked. Returns whether the interrupt is for all.
pub fn note_interrupt(by: Owner, is_reported: bool) -> bool {
    let mut claims = CLAIMS.lock();
    let Some(gsi) = claims.gsi_of(by.guest, by.function) else { return false };
    let interrupted = claims.note_interrupt(gsi, is_reported);
    if interrupted == Interrupted::Served
        && let Some((chip, input)) = interrupts::line_input(gsi)
    {
        IoApic::mapped(chip).unmask(input);
    }
    interrupted == Interrupted::All
}

/// Returns whether a function reports an interrupt for its line.
pub fn has_interrupt(function: Bdf) -> bool {
    pci::with_config(|config| reports_interrupt(config, function))
}

fn owner(claim: &Claim) -> Owner {
    Owner { guest: claim.guest, function: claim.number }
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
