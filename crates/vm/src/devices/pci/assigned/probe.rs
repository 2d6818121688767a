// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a physical function before it is given to a guest. Its registers are untrusted input.

use ::pci::Bdf;

use super::capabilities;
use super::description::{Description, Identity};
use super::passed::INTX_DISABLED;
use super::physical::Physical;
use super::prober::Prober;
use super::problem::{Problem, Reason};
use super::ranges;
use super::space;

const IDENTITY: u16 = 0x00;
const COMMAND: u16 = 0x04;
const CLASS: u16 = 0x08;
const HEADER: u16 = 0x0c;
const SUBSYSTEM: u16 = 0x2c;
const INTERRUPT: u16 = 0x3c;
/// The command register's bits for decoding and bus mastering.
const ACTIVE: u32 = 0b111;
/// The bits for decoding.
const DECODING: u32 = 0b011;

impl Description {
    /// Reads a function of no guest: its ranges' sizes show while it decodes nothing. It decodes as before afterwards,
    /// neither masters the bus nor uses INTx. `line` is the pin of the guest's I/O APIC for its INTx line, if it may
    /// have one.
    ///
    /// # Errors
    /// [`Problem`] if it does not answer, contradicts itself, or is nothing that a guest can be given.
    pub fn probe(name: Bdf, physical: &mut impl Physical, line: Option<u8>) -> Result<Self, Problem> {
        let mut prober = Prober::new(physical, name);
        let identity = identity(&mut prober)?;
        let command = prober.read(COMMAND)?;
        prober.write_word(COMMAND, command & 0xffff & !ACTIVE);
        let result = read_all(&mut prober, identity, line);
        let quiet = command & 0xffff & (!ACTIVE | DECODING) | u32::from(INTX_DISABLED);
        prober.write_word(COMMAND, quiet);
        let description = result?;
        // A function that has vanished meanwhile would be described by ones.
        if self::identity(&mut prober)? != identity {
            return Err(prober.problem(IDENTITY, Reason::Vanished));
        }
        Ok(description)
    }
}

fn identity<P: Physical>(prober: &mut Prober<'_, P>) -> Result<Identity, Problem> {
    let (first, class) = (prober.read(IDENTITY)?, prober.read(CLASS)?);
    let header = (prober.read(HEADER)? >> 16) as u8 & 0x7f;
    if header != 0 {
        return Err(prober.problem(HEADER + 2, Reason::NotEndpoint(header)));
    }
    let subsystem = prober.read(SUBSYSTEM)?;
    Ok(Identity {
        vendor: first as u16,
        device: (first >> 16) as u16,
        class,
        subsystem_vendor: subsystem as u16,
        subsystem: (subsystem >> 16) as u16,
    })
}

fn read_all<P: Physical>(
    prober: &mut Prober<'_, P>,
    identity: Identity,
    line: Option<u8>,
) -> Result<Description, Problem> {
    let mut description = Description { identity, ..Description::default() };
    description.ranges = ranges::read(prober)?;
    capabilities::read(prober, &mut description)?;
    let pin = prober.read(INTERRUPT)?.to_le_bytes()[1];
    description.line = line.filter(|_| (1..=4).contains(&pin));
    match space::build(&description) {
        Some(_) => Ok(description),
        None => Err(prober.problem(CLASS, Reason::NoRoom)),
    }
}
