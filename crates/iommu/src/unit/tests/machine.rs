// SPDX-License-Identifier: MIT OR Apache-2.0
//! One unit of either vendor with the hypervisor's own table memory ([`Store`]): the models see which frames it gives
//! out and frees.

use std::cell::RefCell;
use std::rc::Rc;
use std::vec::Vec;

use pci::Bdf;
use units::{MIB, PAGE_BYTES, PhysAddr, PhysRange};

use crate::amd::tests::hardware::Machine as AmdMachine;
use crate::description::testing::one_unit;
use crate::description::{Description, Interrupter, InterrupterKind, Kind, Scope};
use crate::intel::model::{Features, Machine as IntelMachine};
use crate::store::Words;
use crate::{Memory, Message, Place, Redirection, Registers, Store, Unit};

/// The highest requester behind the unit.
const HIGHEST: u16 = 0x3ff;
/// The I/O APIC, and how many inputs it has.
pub const IO_APIC: u16 = 0xa0;
pub const INPUTS: u16 = 24;
/// The memory of all tables, above what the models give out themselves.
const PIECE: u64 = 64 * MIB;
const PIECE_BYTES: u64 = MIB / 2;
/// Words of a piece's head before its bits.
const BITS_AT: u64 = 3;

/// A vendor's model.
pub trait Model: Registers + Memory + Clone {
    const KIND: Kind;

    /// Performs a function's access.
    fn reach(&self, requester: u16, address: u64, is_write: bool) -> Option<u64>;
    /// Sends a function's message: returns the vector and the CPU.
    fn send(&self, requester: u16, message: Message) -> Option<(u8, u32)>;
    /// Has a function access memory without an owner, which the unit logs unless its entry disables that.
    fn misbehave(&self, requester: u16);
    /// Marks a frame as given out, or as freed.
    fn set_used(&self, frame: u64, is_used: bool);
    /// The unit does nothing any more.
    fn kill(&self);
    /// Returns all messages by which a function may send something.
    fn messages() -> Vec<Message>;
    /// Sends an I/O APIC's interrupt: returns the vector (2 for an NMI) and the CPU.
    fn input(&self, redirection: Redirection) -> Option<(u8, u32)>;
}

impl Model for AmdMachine {
    const KIND: Kind = Kind::Amd;

    fn reach(&self, requester: u16, address: u64, is_write: bool) -> Option<u64> {
        self.0.borrow_mut().reach(requester, address, is_write).ok()
    }

    fn send(&self, requester: u16, message: Message) -> Option<(u8, u32)> {
        self.0.borrow_mut().interrupt(requester, message.data).ok()
    }

    fn misbehave(&self, requester: u16) {
        assert_eq!(self.0.borrow_mut().access(requester, 0x7fff_f000, true), None);
    }

    fn set_used(&self, frame: u64, is_used: bool) {
        self.set_used(frame, is_used);
    }

    fn kill(&self) {
        self.0.borrow_mut().is_dead = true;
    }

    fn input(&self, Redirection(entry): Redirection) -> Option<(u8, u32)> {
        let (data, cpu) = (entry as u32 & 0x7ff, (entry >> 56) as u32);
        let sent = self.0.borrow_mut().interrupt(IO_APIC, data).ok();
        sent.map(|(vector, _)| (if data & 0x700 == 0x400 { 2 } else { vector }, cpu))
    }

    fn messages() -> Vec<Message> {
        (0..16).map(|data| Message { address: 0xfee0_0000, data }).collect()
    }
}

impl Model for IntelMachine {
    const KIND: Kind = Kind::Intel;

    fn reach(&self, requester: u16, address: u64, is_write: bool) -> Option<u64> {
        self.access(requester, address, is_write).ok()
    }

    fn send(&self, requester: u16, message: Message) -> Option<(u8, u32)> {
        let sent = self.interrupt(requester, message.address, message.data).ok();
        sent.map(|(vector, destination, _)| (vector, destination))
    }

    fn misbehave(&self, requester: u16) {
        self.access(requester, 0x7fff_f000, true).unwrap_err();
    }

    fn set_used(&self, frame: u64, is_used: bool) {
        self.set_used(frame, is_used);
    }

    fn kill(&self) {
        self.hang();
    }

    fn messages() -> Vec<Message> {
        let compatible = [Message { address: 0xfee0_1000, data: 0x31 }].into_iter();
        compatible.chain((0..64).map(|handle| Message { address: 0xfee0_0010 | handle << 5, data: 0 })).collect()
    }

    fn input(&self, Redirection(entry): Redirection) -> Option<(u8, u32)> {
        let sent = self.input(IO_APIC, entry).ok();
        sent.map(|(vector, destination, _)| (vector, destination))
    }
}

/// The words of the tables' memory. The piece's head is kept apart: the model learns of each bit that changes there.
#[derive(Clone)]
pub struct Frames<M> {
    machine: M,
    head: Rc<RefCell<Vec<u64>>>,
}

impl<M: Model> Frames<M> {
    fn set_head(&mut self, index: u64, value: u64) {
        let before = std::mem::replace(&mut self.head.borrow_mut()[index as usize], value);
        if index < BITS_AT {
            return;
        }
        for bit in (0..64).filter(|bit| (before ^ value) >> bit & 1 != 0) {
            let page = (index - BITS_AT) * 64 + bit;
            if page > 0 {
                self.machine.set_used(PIECE + page * PAGE_BYTES, value >> bit & 1 != 0);
            }
        }
    }
}

impl<M: Model> Words for Frames<M> {
    fn read(&self, at: PhysAddr) -> u64 {
        match (at.0 - PIECE) / 8 {
            index if index < PAGE_BYTES / 8 => self.head.borrow()[index as usize],
            _ => self.machine.read_word(at),
        }
    }

    fn write(&mut self, at: PhysAddr, value: u64) {
        match (at.0 - PIECE) / 8 {
            index if index < PAGE_BYTES / 8 => self.set_head(index, value),
            _ => self.machine.write_word(at, value),
        }
    }

    fn write_pair(&mut self, at: PhysAddr, values: [u64; 2]) {
        self.machine.write_pair(at, values);
    }

    fn write_back(&mut self, at: PhysAddr, bytes: u64) {
        self.machine.write_back(at, bytes);
    }
}

/// The machine, its unit and the tables' memory, as one image has them.
pub struct Image<M: Model> {
    pub machine: M,
    pub memory: Store<Frames<M>>,
    pub unit: Unit<M>,
    frames: Frames<M>,
}

impl<M: Model> Image<M> {
    /// Starts the first image, which takes the unit over.
    pub fn start(machine: M) -> Self {
        let frames = Frames { machine: machine.clone(), head: Rc::new(RefCell::new(std::vec![0; 512])) };
        let mut memory = Store::new(frames.clone());
        memory.add(piece()).unwrap();
        let description = description(M::KIND);
        let mut unit = Unit::take_over(machine.clone(), &mut memory, place(&description)).unwrap();
        unit.remap_interrupts(&mut memory, true).unwrap();
        Self { machine, memory, unit, frames }
    }

    /// The next image, which knows the unit's registers and the tables' memory only.
    pub fn update(&mut self) {
        let mut memory = Store::new(self.frames.clone());
        memory.adopt(piece()).unwrap();
        let description = description(M::KIND);
        self.unit = Unit::adopt(self.machine.clone(), &memory, place(&description)).unwrap();
        self.memory = memory;
    }

    /// Frames that are left for tables.
    pub fn frames_left(&mut self) -> Vec<PhysAddr> {
        std::iter::from_fn(|| self.memory.allocate_piece(PAGE_BYTES)).collect()
    }

    /// Returns every interrupt that a function can send by any write.
    pub fn sent_by(&self, requester: u16) -> Vec<(u8, u32)> {
        let mut sent: Vec<_> =
            M::messages().into_iter().filter_map(|message| self.machine.send(requester, message)).collect();
        sent.sort_unstable();
        sent
    }
}

/// Returns a unit of AMD's with these features.
pub fn amd(features: u64) -> Image<AmdMachine> {
    Image::start(AmdMachine::new(features))
}

/// Returns a unit of Intel's with these features.
pub fn intel(features: Features) -> Image<IntelMachine> {
    Image::start(IntelMachine::new(features))
}

pub fn function(requester: u16) -> Bdf {
    Bdf::of_requester(0, requester)
}

fn piece() -> PhysRange {
    PhysRange::from_start(PhysAddr(PIECE), PIECE_BYTES).unwrap()
}

fn place(description: &Description) -> Place<'_> {
    Place { description, number: 0, is_x2apic: true }
}

fn description(kind: Kind) -> Description {
    let mut description = one_unit(kind, 0x1000, false);
    let kind = InterrupterKind::IoApic;
    description.interrupters.push(Interrupter { kind, id: 0, unit: 0, requester: IO_APIC });
    description.scopes.push(Scope { last: HIGHEST, ..Scope::default() });
    description
}
