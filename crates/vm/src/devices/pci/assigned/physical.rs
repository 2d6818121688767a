// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's work for a guest with a physical function. All of it is called while the function is locked.

use ::pci::Bdf;
use ::pci::sriov::enabling::Sizes;

use crate::addr::{AccessSize, Gpa};

/// A physical function in the host's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostIdentity {
    /// The function.
    pub place: Bdf,
    /// The register of its MSI capability; 0 without one.
    pub msi: u8,
    /// The register of its MSI-X capability; 0 without one.
    pub msix: u8,
}

/// The virtual functions that a physical function states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualFunctions {
    /// Their device identifier.
    pub device: u16,
    /// Their ranges as powers of two, by base address register; 0 for none, and until they are enabled.
    pub sizes: Sizes,
}

/// Where the host receives an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The APIC identifier of its CPU.
    pub destination: u32,
    /// The vector there.
    pub vector: u8,
    /// Of a line: the global system interrupt by which it comes to the host; else 0.
    pub gsi: u32,
}

/// The number of the line where vectors of MSI and MSI-X have theirs.
pub const LINE: u16 = u16::MAX;

/// Pages of a base address register's range, and where they are in the guest's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The base address register.
    pub bar: u8,
    /// Where the piece begins in its range; a multiple of 4 KiB.
    pub offset: u64,
    /// Its length; a multiple of 4 KiB, never zero.
    pub bytes: u64,
    /// Where it is for the guest; a multiple of 4 KiB.
    pub gpa: Gpa,
}

/// How a function may interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interrupts {
    /// It may not.
    #[default]
    Off,
    /// By its INTx line.
    Line,
    /// By MSI with so many vectors, a power of two up to 32.
    Msi {
        /// How many.
        vectors: u32,
    },
    /// By the MSI-X vectors that are opened one by one.
    MsiX,
}

/// Whether a function works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It does.
    #[default]
    Ready,
    /// It is being reset; for the guest it does not answer.
    Resetting,
    /// It has vanished, or could not be reset; for the guest it does not answer any more.
    Gone,
}

/// An interrupt of the physical function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// Its INTx line, which the host has masked.
    Line,
    /// A vector of MSI or MSI-X.
    Vector(u16),
}

/// A physical function as its host hands it to a guest. No request names an address of the host's.
pub trait Physical: Send {
    /// Reads a configuration register; the register is a multiple of the size, which is at most four bytes. A function
    /// that does not answer reads as all ones.
    fn read_config(&mut self, register: u16, size: AccessSize) -> u32;

    /// Writes a configuration register.
    fn write_config(&mut self, register: u16, size: AccessSize, value: u32);

    /// Reads in a base address register's range. The access is aligned and inside of the range, and touches neither
    /// MSI-X table nor pending bits.
    fn read(&mut self, bar: u8, offset: u64, size: AccessSize) -> u64;

    /// Writes in a base address register's range, likewise.
    fn write(&mut self, bar: u8, offset: u64, size: AccessSize, value: u64);

    /// Maps pages of a range into the guest's address space, where nothing is. False if the host cannot: then the guest
    /// reaches them by [`read`](Self::read) and [`write`](Self::write).
    fn map(&mut self, piece: Piece) -> bool;

    /// Unmaps the pages that were mapped. A vCPU that runs may reach them until it leaves the guest the next time,
    /// which it is made to do at once.
    fn unmap(&mut self, piece: Piece);

    /// Closes all interrupts that were open, and opens those named. Of MSI-X none is open yet.
    fn set_interrupts(&mut self, interrupts: Interrupts);

    /// Opens an MSI-X vector, which the guest has unmasked for the first time since it has enabled MSI-X.
    fn open_vector(&mut self, vector: u16);

    /// The host's data of the function for the next image.
    fn identity(&self) -> HostIdentity;

    /// Where the host receives an open vector, or [`LINE`].
    fn route(&self, vector: u16) -> Route;

    /// Returns whether the image before can have routed an open vector so.
    fn is_possible(&self, route: Route) -> bool;

    /// The image before has opened these interrupts, and routed each vector so. The hardware is not accessed.
    fn adopt(&mut self, interrupts: Interrupts, routes: &mut dyn Iterator<Item = (u16, Route)>);

    /// The guest has ended the interrupt of the line: if the line is still asserted, the host raises it again.
    fn unmask(&mut self);

    /// The guest wants so many virtual functions, no more than are approved. The host enables and disables them later,
    /// and may refuse that.
    fn set_virtual_functions(&mut self, number: u8) {
        let _ = number;
    }

    /// The virtual functions, as far as they are known.
    fn virtual_functions(&self) -> VirtualFunctions {
        VirtualFunctions::default()
    }

    /// The image before has been asked for so many. The hardware is not accessed.
    fn adopt_virtual_functions(&mut self, number: u8, known: VirtualFunctions) {
        let _ = (number, known);
    }

    /// Begins to reset the function, and places it again afterwards. When it is done, or has failed, the host calls
    /// `Endpoint::finish_reset`. False if it cannot be reset.
    fn reset(&mut self) -> bool;
}
