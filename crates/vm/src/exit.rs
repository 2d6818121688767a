// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exits of a CPU from its guest, in vendor-neutral terms.
//!
//! One place per extension decodes into this enum (for SVM: the `svm` crate); one `match` answers it.

use crate::addr::{AccessSize, Gpa};
use crate::vcpu::{Exception, Gpr};

/// The reason why the CPU left the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The guest executed CPUID.
    Cpuid,
    /// The guest executed RDMSR of a register it does not own.
    MsrRead,
    /// The guest executed WRMSR of a register it does not own.
    MsrWrite,
    /// The guest accessed an I/O port.
    Port(PortAccess),
    /// The guest touched an address that no memory backs.
    MemoryFault(MemoryFault),
    /// The guest executed HLT.
    Halt,
    /// The guest can take an interrupt now, and the monitor had asked to be notified.
    InterruptWindow,
    /// The guest is about to execute IRET, and the monitor had asked to be notified: it ends the handler of an NMI.
    InterruptReturn,
    /// The guest has ended the handler of an NMI and can take the next one, and the monitor had asked to be notified.
    NmiWindow,
    /// The guest has executed PAUSE so often in a row that it waits for another CPU.
    Pause,
    /// The guest has raised this exception, which has not been delivered; for #DB, DR6 already has its causes.
    Exception(Exception),
    /// A physical interrupt wants the host; it is still pending.
    HostInterrupt,
    /// A physical NMI wants the host; it is still pending.
    HostNmi,
    /// A machine check interrupted the guest. It has not been handled yet.
    MachineCheck,
    /// The guest executed VMCALL or VMMCALL.
    Hypercall,
    /// The guest executed XSETBV.
    Xsetbv,
    /// The guest executed a MOV to CR8, and the monitor had asked to be notified.
    TaskPriorityWrite {
        /// The register that is moved, where the CPU reports it.
        source: Option<Gpr>,
    },
    /// The guest executed an instruction that its CPU does not have (VMRUN, MONITOR, …): it gets #UD.
    AbsentInstruction,
    /// The guest executed RDPMC.
    CounterRead,
    /// The guest executed RDTSC or RDTSCP, and the monitor had asked to be notified.
    ClockRead,
    /// The guest invalidated its caches (WBINVD, INVD): nothing to do, memory is coherent.
    CacheFlush,
    /// The guest is to switch tasks, which its CPU leaves to the monitor.
    TaskSwitch,
    /// Triple fault.
    Shutdown,
    /// The CPU refused the guest's state; the guest has not run.
    EntryRefused,
    /// An exit that was never asked for.
    Unknown {
        /// The extension's own number for it.
        code: u64,
    },
}

impl Exit {
    /// An intercepted exception, as control blocks of all vendors describe it ([`Exception::raised`]). `code` is the
    /// extension's own number for such an exit.
    pub fn exception(vector: u8, error: u32, address: u64, code: u64) -> Self {
        Exception::raised(vector, error, address).map_or(Self::Unknown { code }, Self::Exception)
    }
}

/// One IN, OUT, INS or OUTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortAccess {
    /// The first port.
    pub port: u16,
    /// Bytes per transfer; never [`AccessSize::Qword`].
    pub size: AccessSize,
    /// True if the guest reads from the port.
    pub is_in: bool,
    /// INS or OUTS: the data is in memory.
    pub is_string: bool,
    /// REP prefix: RCX transfers.
    pub is_rep: bool,
    /// The address at which execution goes on.
    pub next_rip: u64,
}

/// An access to a guest-physical address that no memory backs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFault {
    /// The address touched (the page is exact, the offset within it too).
    pub gpa: Gpa,
    /// The guest's access.
    pub access: MemoryAccess,
    /// True if the fault came while the CPU walked the guest's own page tables.
    pub during_walk: bool,
}

/// Kind of a guest's access to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAccess {
    /// Data read.
    Read,
    /// Data write.
    Write,
    /// Instruction fetch.
    Execute,
}
