// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exit qualifications (section 28.2.1).

use vm::addr::AccessSize;
use vm::exit::{MemoryAccess, PortAccess};
use vm::vcpu::Gpr;

/// A guest's access to a control register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRegisterAccess {
    /// MOV to CR0, CR3, CR4 or CR8.
    Write {
        /// The register's number.
        register: u8,
        /// Where the value is.
        source: Gpr,
    },
    /// MOV from CR3 or CR8.
    Read {
        /// The register's number.
        register: u8,
        /// Where the value is to be.
        destination: Gpr,
    },
    /// CLTS.
    ClearTaskSwitched,
    /// LMSW.
    LoadStatusWord {
        /// The value for the low bits of CR0.
        value: u16,
    },
}

impl ControlRegisterAccess {
    pub(crate) fn decode(qualification: u64) -> Option<Self> {
        let register = (qualification & 0xf) as u8;
        let gpr = Gpr::ALL[(qualification >> 8 & 0xf) as usize];
        match qualification >> 4 & 3 {
            0 if matches!(register, 0 | 3 | 4 | 8) => Some(Self::Write { register, source: gpr }),
            1 if matches!(register, 3 | 8) => Some(Self::Read { register, destination: gpr }),
            2 => Some(Self::ClearTaskSwitched),
            3 => Some(Self::LoadStatusWord { value: (qualification >> 16) as u16 }),
            _ => None,
        }
    }
}

/// A guest's MOV to or from a debug register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugRegisterAccess {
    /// The register's number, 0–7.
    pub register: u8,
    /// The guest reads it.
    pub is_read: bool,
    /// The other operand.
    pub gpr: Gpr,
}

impl DebugRegisterAccess {
    pub(crate) fn decode(qualification: u64) -> Self {
        Self {
            register: (qualification & 7) as u8,
            is_read: qualification & 1 << 4 != 0,
            gpr: Gpr::ALL[(qualification >> 8 & 0xf) as usize],
        }
    }
}

/// A task switch, which VMX always leaves to the monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSwitch {
    /// The selector of the new task's segment.
    pub selector: u16,
    /// The cause.
    pub source: TaskSwitchSource,
}

/// The cause of a task switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub enum TaskSwitchSource {
    Call,
    Iret,
    Jmp,
    /// A task gate in the IDT.
    TaskGate,
}

impl TaskSwitch {
    pub(crate) fn decode(qualification: u64) -> Self {
        let source = match qualification >> 30 & 3 {
            0 => TaskSwitchSource::Call,
            1 => TaskSwitchSource::Iret,
            2 => TaskSwitchSource::Jmp,
            _ => TaskSwitchSource::TaskGate,
        };
        Self { selector: qualification as u16, source }
    }
}

/// An access to the APIC-access page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApicAccess {
    /// Offset in the page, where the CPU reports it.
    pub offset: Option<u16>,
    /// The access, where the CPU reports it.
    pub access: Option<MemoryAccess>,
    /// It was part of the delivery of an event.
    pub during_delivery: bool,
}

impl ApicAccess {
    pub(crate) fn decode(qualification: u64) -> Option<Self> {
        let offset = Some((qualification & 0xfff) as u16);
        let (offset, access, during_delivery) = match qualification >> 12 & 0xf {
            0 => (offset, Some(MemoryAccess::Read), false),
            1 => (offset, Some(MemoryAccess::Write), false),
            2 => (offset, Some(MemoryAccess::Execute), false),
            3 => (offset, None, true),
            // By a guest-physical address: the offset is undefined.
            10 => (None, None, true),
            15 => (None, None, false),
            _ => return None,
        };
        Some(Self { offset, access, during_delivery })
    }
}

/// The qualification of an I/O instruction that ends at `next_rip`.
pub(crate) fn port_access(qualification: u64, next_rip: u64) -> Option<PortAccess> {
    let size = match qualification & 7 {
        0 => AccessSize::Byte,
        1 => AccessSize::Word,
        3 => AccessSize::Dword,
        _ => return None,
    };
    Some(PortAccess {
        port: (qualification >> 16) as u16,
        size,
        is_in: qualification & 1 << 3 != 0,
        is_string: qualification & 1 << 4 != 0,
        is_rep: qualification & 1 << 5 != 0,
        next_rip,
    })
}

/// The access of an EPT violation, and whether it came while the CPU walked the guest's own page tables. A
/// read-modify-write counts as a write.
pub(crate) fn violation(qualification: u64) -> (MemoryAccess, bool) {
    const HAS_LINEAR_ADDRESS: u64 = 1 << 7;
    const IS_FINAL: u64 = 1 << 8;
    let access = match qualification {
        it if it & 1 << 2 != 0 => MemoryAccess::Execute,
        it if it & 1 << 1 != 0 => MemoryAccess::Write,
        _ => MemoryAccess::Read,
    };
    (access, qualification & (HAS_LINEAR_ADDRESS | IS_FINAL) == HAS_LINEAR_ADDRESS)
}
