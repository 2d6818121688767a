// SPDX-License-Identifier: MIT OR Apache-2.0
//! The content of a record and its blocks as a table: `baton image info` prints it, and a test compares it with the
//! files in `schema/`, so that the format cannot change without a version.

use core::fmt;

use crate::layout;
use crate::layout::guests::{BlockPlace, Guest, GuestMemory, GuestState, MemoryUse};
use crate::layout::{
    Assignment, CheckPolicy, Checked, Clock, Control, Cpu, CpuState, Deadline, Header, Host, Kept, Kind, LogRing,
    Module, PortCounters, Purpose, Reason, Region, Retired, RevokedKey, SectionHeader, Signer, Stamps, SwitchPages,
};
use crate::state::{self, BlockHeader, BlockKind, DeviceKind};
use crate::version::{OLDEST_VERSION, VERSION};

pub use crate::described::{Described, Field, Numbers, Plain};

/// Role of a part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A section of the record: any number of the structure, or one.
    Section(Kind),
    /// A block beside the record.
    Block(BlockKind),
    /// A part of other structures.
    Piece,
}

/// One structure of the format.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Its role.
    pub part: Part,
    /// Its name.
    pub name: &'static str,
    /// The first version that has it.
    pub since: u32,
    /// Its fields.
    pub fields: &'static [Field],
}

const fn structure<T: Described>(part: Part) -> Structure {
    Structure { part, name: T::NAME, since: T::SINCE, fields: T::FIELDS }
}

const fn piece<T: Described>() -> Structure {
    structure::<T>(Part::Piece)
}

/// The whole format, sections and blocks by their numbers. The command line is text, and where the ACPI tables start is
/// eight bytes or none: these have no structure.
pub const STRUCTURES: &[Structure] = &[
    structure::<Header>(Part::Piece),
    structure::<SectionHeader>(Part::Piece),
    structure::<Host>(Part::Section(Kind::Host)),
    structure::<Region>(Part::Section(Kind::MemoryMap)),
    structure::<Module>(Part::Section(Kind::Modules)),
    structure::<Clock>(Part::Section(Kind::Clock)),
    structure::<SwitchPages>(Part::Section(Kind::SwitchPages)),
    structure::<Cpu>(Part::Section(Kind::Cpus)),
    structure::<Kept>(Part::Section(Kind::Kept)),
    structure::<Stamps>(Part::Section(Kind::Stamps)),
    structure::<Control>(Part::Section(Kind::Control)),
    structure::<LogRing>(Part::Section(Kind::Log)),
    structure::<Guest>(Part::Section(Kind::Guests)),
    structure::<GuestMemory>(Part::Section(Kind::GuestMemory)),
    structure::<BlockPlace>(Part::Section(Kind::Blocks)),
    structure::<Checked>(Part::Section(Kind::Checked)),
    structure::<Retired>(Part::Section(Kind::Retired)),
    structure::<Assignment>(Part::Section(Kind::Assignments)),
    structure::<PortCounters>(Part::Section(Kind::Ports)),
    structure::<Deadline>(Part::Section(Kind::Deadline)),
    structure::<RevokedKey>(Part::Section(Kind::RevokedKeys)),
    structure::<Signer>(Part::Section(Kind::Signer)),
    structure::<BlockHeader>(Part::Piece),
    structure::<state::Policy>(Part::Block(BlockKind::Policy)),
    structure::<state::CpuidLeaf>(Part::Piece),
    structure::<state::Vcpu>(Part::Block(BlockKind::Vcpu)),
    structure::<state::Registers>(Part::Piece),
    structure::<state::SegmentRegister>(Part::Piece),
    structure::<state::Lapic>(Part::Piece),
    structure::<state::Mail>(Part::Piece),
    structure::<state::Events>(Part::Piece),
    structure::<state::Time>(Part::Piece),
    structure::<state::Msrs>(Part::Piece),
    structure::<state::Extended>(Part::Piece),
    structure::<state::Turn>(Part::Piece),
    structure::<state::Watch>(Part::Piece),
    structure::<state::Pmu>(Part::Piece),
    structure::<state::Speculation>(Part::Piece),
    structure::<state::MoreNmis>(Part::Piece),
    structure::<state::Extension>(Part::Piece),
    structure::<state::Devices>(Part::Block(BlockKind::Devices)),
    structure::<state::Serial>(Part::Piece),
    structure::<state::Cmos>(Part::Piece),
    structure::<state::Ioapic>(Part::Piece),
    structure::<state::Small>(Part::Piece),
    structure::<state::PciFunction>(Part::Piece),
    structure::<state::DeviceBlock>(Part::Piece),
    structure::<state::Console>(Part::Block(BlockKind::Console)),
    structure::<state::Late>(Part::Block(BlockKind::Late)),
    structure::<state::Functions>(Part::Block(BlockKind::Functions)),
    structure::<state::ControlStreams>(Part::Block(BlockKind::ControlStreams)),
    structure::<state::ControlStream>(Part::Piece),
    structure::<state::DiskStreams>(Part::Block(BlockKind::DiskStreams)),
    structure::<state::DiskStream>(Part::Piece),
    structure::<state::Saved>(Part::Block(BlockKind::Saved)),
    structure::<state::OnDemand>(Part::Block(BlockKind::OnDemand)),
];

/// The format of one kind of device. It is apart from the versions of the record: a new device adds its own and changes
/// nothing else.
#[derive(Clone, Copy, Debug)]
pub struct DeviceFormat {
    /// The kind.
    pub kind: DeviceKind,
    /// The newest version of its state.
    pub version: u32,
    /// The structures of the state, in order.
    pub pieces: &'static [Structure],
}

const fn device(kind: DeviceKind, pieces: &'static [Structure]) -> DeviceFormat {
    DeviceFormat { kind, version: 1, pieces }
}

/// Formats of the states of devices.
pub const DEVICES: &[DeviceFormat] = &[
    device(DeviceKind::Com1, &[piece::<state::Serial>()]),
    device(DeviceKind::Cmos, &[piece::<state::Cmos>()]),
    device(DeviceKind::Ioapic, &[piece::<state::Ioapic>()]),
    device(DeviceKind::Power, &[piece::<state::Power>()]),
    device(DeviceKind::Pvpanic, &[piece::<state::Pvpanic>()]),
    device(DeviceKind::DebugExit, &[piece::<state::DebugExit>()]),
    device(DeviceKind::PciHost, &[piece::<state::PciAddress>()]),
    device(DeviceKind::PlainFunction, &[FUNCTION]),
    device(DeviceKind::AssignedFunction, ASSIGNED),
    device(DeviceKind::HotPlug, &[piece::<state::HotPlug>()]),
    device(DeviceKind::VirtioRng, VIRTIO),
    device(DeviceKind::VirtioConsole, VIRTIO),
    device(DeviceKind::VirtioNet, &[FUNCTION, TRANSPORT, QUEUE, piece::<state::VirtioNet>()]),
    device(
        DeviceKind::VirtioVsock,
        &[FUNCTION, TRANSPORT, QUEUE, piece::<state::Vsock>(), piece::<state::VsockConnection>()],
    ),
    device(DeviceKind::LineFunction, ASSIGNED),
    device(
        DeviceKind::SriovFunction,
        &[FUNCTION, piece::<state::AssignedFunction>(), piece::<state::VirtualFunctions>()],
    ),
    device(
        DeviceKind::VirtioBlk,
        &[FUNCTION, TRANSPORT, QUEUE, piece::<state::Blk>(), piece::<state::BlkRequest>(), piece::<state::BlkWrite>()],
    ),
    device(DeviceKind::PowerButton, &[piece::<state::PowerButton>()]),
    device(DeviceKind::VirtioBalloon, &[FUNCTION, TRANSPORT, QUEUE, piece::<state::Balloon>()]),
];

/// The first structures in the state of a PCI function, of a virtio function, and of each of its queues.
const FUNCTION: Structure = piece::<state::PciFunction>();
const TRANSPORT: Structure = piece::<state::Virtio>();
const QUEUE: Structure = piece::<state::VirtioQueue>();

/// A physical function, with a line or without.
const ASSIGNED: &[Structure] = &[FUNCTION, piece::<state::AssignedFunction>()];

/// A virtio function without a state of its own: a [`state::VirtioQueue`] for each of its queues.
const VIRTIO: &[Structure] = &[FUNCTION, TRANSPORT, QUEUE];

/// The entries behind the registers of a PCI function that has MSI-X, before its device's own state.
pub const MSIX: Structure = piece::<state::MsixEntry>();

/// All enumerations and flags.
pub const NUMBERS: &[Numbers] = &[
    Kind::NUMBERS,
    Reason::NUMBERS,
    CpuState::NUMBERS,
    CheckPolicy::NUMBERS,
    Purpose::NUMBERS,
    GuestState::NUMBERS,
    MemoryUse::NUMBERS,
    BlockKind::NUMBERS,
    state::Activity::NUMBERS,
    state::ExtensionKind::NUMBERS,
    state::NmiGate::NUMBERS,
    state::AreaFormat::NUMBERS,
    layout::control_flag::NUMBERS,
    layout::assignment_flag::NUMBERS,
    layout::guests::guest_flag::NUMBERS,
    state::policy_flag::NUMBERS,
    state::later_policy::NUMBERS,
    state::event_flag::NUMBERS,
    state::mail_flag::NUMBERS,
    state::more_nmi::NUMBERS,
    state::unhalt_flag::NUMBERS,
    state::event_state::NUMBERS,
    state::watch_flag::NUMBERS,
    state::serial_flag::NUMBERS,
    state::small_flag::NUMBERS,
];

/// The structures of a version, each with the fields that this version has.
pub fn structures(version: u32) -> impl Iterator<Item = (Structure, impl Iterator<Item = Field>)> {
    let there = STRUCTURES.iter().filter(move |structure| structure.since <= version);
    there.map(move |structure| (*structure, structure.fields.iter().copied().filter(move |f| f.since <= version)))
}

/// A version's description in text, a line for each structure and field.
#[derive(Clone, Copy, Debug)]
pub struct Description(pub u32);

/// Versions that this build reads, oldest first; it writes all of these.
pub fn versions() -> core::ops::RangeInclusive<u32> {
    OLDEST_VERSION..=VERSION
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "hand-over version {}", self.0)?;
        for (structure, fields) in structures(self.0) {
            write!(f, "\n{} {}", structure.part, structure.name)?;
            writeln!(f, " (since version {})", structure.since)?;
            write_fields(f, fields)?;
        }
        for numbers in NUMBERS.iter().filter(|numbers| numbers.since <= self.0) {
            write_numbers(f, numbers, self.0)?;
        }
        f.write_str("\n")
    }
}

/// The states of all devices in text.
#[derive(Clone, Copy, Debug)]
pub struct DeviceDescription;

impl fmt::Display for DeviceDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("states of devices\n")?;
        for DeviceFormat { kind, version, pieces } in DEVICES {
            writeln!(f, "\ndevice {} {kind:?}, version {version}:", *kind as u32)?;
            pieces.iter().try_for_each(|piece| write_piece(f, piece))?;
        }
        f.write_str("\nbehind the registers of a PCI function with MSI-X, for each vector:\n")?;
        write_piece(f, &MSIX)?;
        write_numbers(f, &DeviceKind::NUMBERS, VERSION)?;
        write_numbers(f, &state::assigned_flag::NUMBERS, VERSION)?;
        write_numbers(f, &state::virtio_flag::NUMBERS, VERSION)?;
        write_numbers(f, &state::vsock_flag::NUMBERS, VERSION)?;
        write_numbers(f, &state::blk_flag::NUMBERS, VERSION)?;
        f.write_str("\n")
    }
}

/// The numbers that a version has.
fn write_numbers(f: &mut fmt::Formatter<'_>, numbers: &Numbers, version: u32) -> fmt::Result {
    write!(f, "\nnumbers {}:", numbers.name)?;
    let there = numbers.all.iter().filter(|(_, _, since)| *since <= version);
    there.into_iter().try_for_each(|(variant, number, _)| write!(f, " {number} {variant}"))
}

fn write_piece(f: &mut fmt::Formatter<'_>, piece: &Structure) -> fmt::Result {
    writeln!(f, "piece {}", piece.name)?;
    write_fields(f, piece.fields.iter().copied())
}

fn write_fields(f: &mut fmt::Formatter<'_>, mut fields: impl Iterator<Item = Field>) -> fmt::Result {
    fields.try_for_each(|Field { name, type_name, unit, since, offset, bytes }| {
        writeln!(f, "{offset:6} {bytes:5}  {name}: {type_name}, {unit}, since {since}")
    })
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Section(kind) => write!(f, "section {} {kind:?}, {}:", *kind as u32, kind.presence()),
            Self::Block(kind) => write!(f, "block {} {kind:?}:", *kind as u32),
            Self::Piece => f.write_str("piece"),
        }
    }
}
