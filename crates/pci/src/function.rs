// SPDX-License-Identifier: MIT OR Apache-2.0
//! One function: the content of its header (PCI Local Bus 3.0, chapter 6).

use arrayvec::ArrayVec;
use nvme::Serial;

use crate::bar::{self, Bar, MAX_BARS};
use crate::capability::{self, Capability, MAX_CAPABILITIES};
use crate::config::{Cost, Registers};
use crate::problem::{Problem, Problems};
use crate::{Bdf, ConfigSpace};

const IDENTITY: u16 = 0x00;
const COMMAND: u16 = 0x04;
const CLASS: u16 = 0x08;
const HEADER: u16 = 0x0c;
const BUSES: u16 = 0x18;
const CAPABILITIES: u16 = 0x34;
/// In the status, the upper half of the command's word.
const HAS_CAPABILITIES: u32 = 1 << 20;
/// The vendor identifier of a function that is there but not ready (PCI Express Base 5.0, section 2.3.2).
const NOT_READY: u16 = 0x0001;
/// Class, subclass and programming interface of NVMe.
const NVME: (u8, u8, u8) = (0x01, 0x08, 0x02);

/// Maker of a function, and its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Vendor identifier.
    pub vendor: u16,
    /// Device identifier.
    pub device: u16,
    /// Base class.
    pub class: u8,
    /// Subclass.
    pub subclass: u8,
    /// Programming interface.
    pub interface: u8,
    /// Revision.
    pub revision: u8,
}

/// Type of a function's header, and the registers of that type alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A device.
    Endpoint {
        /// Its address ranges.
        bars: ArrayVec<Bar, MAX_BARS>,
    },
    /// A bridge to another bus.
    Bridge {
        /// The bus behind it.
        secondary: u8,
        /// The last bus behind that.
        subordinate: u8,
    },
    /// A header that no specification in use describes.
    Other(u8),
}

/// A function that was probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its address.
    pub place: Bdf,
    /// Its maker and class.
    pub identity: Identity,
    /// Its header's type and content.
    pub kind: Kind,
    /// Its capabilities.
    pub capabilities: ArrayVec<Capability, MAX_CAPABILITIES>,
    /// Its serial number, if it is an NVMe controller that was asked for it.
    pub serial: Option<Serial>,
    /// Its problems.
    pub problems: Problems,
    /// Cost of probing it.
    pub cost: Cost,
}

impl Function {
    /// Returns whether it is a controller of NVMe disks (PCI Code and ID Assignment 1.11, section 1.2).
    pub fn is_nvme(&self) -> bool {
        (self.identity.class, self.identity.subclass, self.identity.interface) == NVME
    }
}

/// Result of the first read at an address.
pub(crate) enum Response {
    /// No function.
    Absent,
    /// A function that is to be asked again.
    NotReady,
    /// A function.
    Present(FirstRegisters),
}

/// The first registers of a function.
pub(crate) struct FirstRegisters {
    pub(crate) identity: Identity,
    /// Header type, without the bit for several functions; absurd where there is a problem.
    pub(crate) header: u8,
    pub(crate) has_siblings: bool,
    problem: Option<Problem>,
}

impl FirstRegisters {
    /// Returns those of a function that stayed not ready.
    pub(crate) fn never_ready() -> Self {
        let identity = Identity { vendor: NOT_READY, ..Identity::default() };
        Self { identity, header: u8::MAX, has_siblings: false, problem: Some(Problem::NotReady) }
    }
}

/// Returns what is at an address: one access where no function is, three where one is.
pub(crate) fn read_first(registers: &mut Registers<'_>) -> Response {
    let first = registers.read(IDENTITY);
    let (vendor, device) = (first as u16, (first >> 16) as u16);
    match vendor {
        // An undriven bus reads as all ones; some bridges answer 0 instead.
        u16::MAX | 0 => return Response::Absent,
        NOT_READY => return Response::NotReady,
        _ => {}
    }
    let [revision, interface, subclass, class] = registers.read(CLASS).to_le_bytes();
    let identity = Identity { vendor, device, class, subclass, interface, revision };
    let header = registers.read(HEADER);
    let problem = (header == u32::MAX).then_some(Problem::Vanished);
    let header = (header >> 16) as u8;
    let (has_siblings, header) = match problem {
        None => (header & 0x80 != 0, header & 0x7f),
        Some(_) => (false, u8::MAX),
    };
    Response::Present(FirstRegisters { identity, header, has_siblings, problem })
}

/// Reads all of a function's header, after a [`read_first`].
pub(crate) fn probe(registers: &mut Registers<'_>, first: &FirstRegisters) -> Function {
    let mut problems = Problems::default();
    first.problem.into_iter().for_each(|problem| problems.push(problem));
    let capabilities = if first.header <= 1 { list(registers, &mut problems) } else { ArrayVec::new() };
    let kind = match first.header {
        0 => Kind::Endpoint { bars: bar::read_all(registers, &mut problems) },
        1 => {
            let [_, secondary, subordinate, _] = registers.read(BUSES).to_le_bytes();
            Kind::Bridge { secondary, subordinate }
        }
        header => Kind::Other(header),
    };
    let cost = registers.cost();
    Function { place: registers.place(), identity: first.identity, kind, capabilities, serial: None, problems, cost }
}

/// Probes the function at an address; `None` if there is none, or if it is not ready.
pub fn find(config: &mut dyn ConfigSpace, place: Bdf) -> Option<Function> {
    let mut registers = Registers::of(config, place);
    match read_first(&mut registers) {
        Response::Present(first) => Some(probe(&mut registers, &first)),
        Response::Absent | Response::NotReady => None,
    }
}

/// Reads the capability list of a function that was probed before.
pub fn capabilities(config: &mut dyn ConfigSpace, place: Bdf) -> ArrayVec<Capability, MAX_CAPABILITIES> {
    list(&mut Registers::of(config, place), &mut Problems::default())
}

fn list(registers: &mut Registers<'_>, problems: &mut Problems) -> ArrayVec<Capability, MAX_CAPABILITIES> {
    let status_and_command = registers.read(COMMAND);
    if status_and_command & HAS_CAPABILITIES == 0 || status_and_command == u32::MAX {
        return ArrayVec::new();
    }
    let pointer = registers.read(CAPABILITIES) as u8;
    capability::read_list(registers, pointer, problems)
}
