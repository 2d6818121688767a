// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exit codes and their vendor-independent meaning (appendix C).

use vm::addr::{AccessSize, Gpa};
use vm::exit::{Exit, MemoryAccess, MemoryFault, PortAccess};
use vm::vcpu::Gpr;

use crate::features::Features;
use crate::vmcb::Control;

#[allow(missing_docs)]
pub mod number {
    pub const CR8_WRITE: u64 = 0x18;
    pub const FIRST_EXCEPTION: u64 = 0x40;
    pub const LAST_EXCEPTION: u64 = 0x5f;
    pub const MACHINE_CHECK: u64 = 0x40 + 18;
    pub const INTR: u64 = 0x60;
    pub const NMI: u64 = 0x61;
    pub const SMI: u64 = 0x62;
    pub const INIT: u64 = 0x63;
    pub const VINTR: u64 = 0x64;
    pub const RDTSC: u64 = 0x6e;
    pub const RDPMC: u64 = 0x6f;
    pub const CPUID: u64 = 0x72;
    pub const RSM: u64 = 0x73;
    pub const IRET: u64 = 0x74;
    pub const INVD: u64 = 0x76;
    pub const PAUSE: u64 = 0x77;
    pub const HLT: u64 = 0x78;
    pub const INVLPGA: u64 = 0x7a;
    pub const IOIO: u64 = 0x7b;
    pub const MSR: u64 = 0x7c;
    pub const FERR_FREEZE: u64 = 0x7e;
    pub const SHUTDOWN: u64 = 0x7f;
    pub const VMRUN: u64 = 0x80;
    pub const VMMCALL: u64 = 0x81;
    pub const VMLOAD: u64 = 0x82;
    pub const VMSAVE: u64 = 0x83;
    pub const STGI: u64 = 0x84;
    pub const CLGI: u64 = 0x85;
    pub const SKINIT: u64 = 0x86;
    pub const RDTSCP: u64 = 0x87;
    pub const WBINVD: u64 = 0x89;
    pub const MONITOR: u64 = 0x8a;
    pub const MWAIT: u64 = 0x8b;
    pub const MWAIT_ARMED: u64 = 0x8c;
    pub const XSETBV: u64 = 0x8d;
    pub const RDPRU: u64 = 0x8e;
    pub const NESTED_PAGE_FAULT: u64 = 0x400;
    /// VMEXIT_INVALID is −1: CPUs and QEMU until 9 write all 64 bits, QEMU 10 the lower 32.
    pub const INVALID: u64 = u64::MAX;
    pub const INVALID_32: u64 = u32::MAX as u64;
}

/// Decodes the exit recorded in `control`, on a CPU with these features.
pub fn decode(control: &Control, features: &Features) -> Exit {
    match control.exit_code {
        number::CPUID => Exit::Cpuid,
        number::MSR if control.exit_info_1 & 1 == 0 => Exit::MsrRead,
        number::MSR => Exit::MsrWrite,
        number::IOIO => port_access(control.exit_info_1, control.exit_info_2),
        number::NESTED_PAGE_FAULT => Exit::MemoryFault(memory_fault(control.exit_info_1, control.exit_info_2)),
        number::HLT => Exit::Halt,
        number::INTR => Exit::HostInterrupt,
        number::VINTR => Exit::InterruptWindow,
        number::NMI => Exit::HostNmi,
        number::MACHINE_CHECK => Exit::MachineCheck,
        number::IRET => Exit::InterruptReturn,
        number::PAUSE => Exit::Pause,
        // SMIs and INITs for the host: still pending, taken as soon as the host opens its window.
        number::SMI | number::INIT => Exit::HostInterrupt,
        number::VMMCALL => Exit::Hypercall,
        number::XSETBV => Exit::Xsetbv,
        number::CR8_WRITE => Exit::TaskPriorityWrite { source: moved_register(control, features) },
        number::RDPMC => Exit::CounterRead,
        number::RDTSC | number::RDTSCP => Exit::ClockRead,
        number::INVD | number::WBINVD => Exit::CacheFlush,
        number::SHUTDOWN | number::FERR_FREEZE => Exit::Shutdown,
        number::RSM | number::INVLPGA => Exit::AbsentInstruction,
        number::VMRUN..=number::SKINIT => Exit::AbsentInstruction,
        number::MONITOR..=number::MWAIT_ARMED | number::RDPRU => Exit::AbsentInstruction,
        number::INVALID | number::INVALID_32 => Exit::EntryRefused,
        code @ number::FIRST_EXCEPTION..=number::LAST_EXCEPTION => exception(code, control),
        code => Exit::Unknown { code },
    }
}

/// EXITINFO1 and EXITINFO2 of an intercepted exception (section 15.12): the error code; for #PF the address, which is
/// not in CR2 yet. For #DB, DR6 is already as the guest's handler is to find it.
fn exception(code: u64, control: &Control) -> Exit {
    let vector = (code - number::FIRST_EXCEPTION) as u8;
    Exit::exception(vector, control.exit_info_1 as u32, control.exit_info_2, code)
}

/// EXITINFO1 of an access to a control register, where the CPU has decode assists: bit 63 is set for a MOV, whose
/// general purpose register is in bits 0 to 3 (section 15.8.1).
fn moved_register(control: &Control, features: &Features) -> Option<Gpr> {
    const IS_MOVE: u64 = 1 << 63;
    let is_reported = features.decode_assists && control.exit_info_1 & IS_MOVE != 0;
    is_reported.then(|| Gpr::ALL[(control.exit_info_1 & 0xf) as usize])
}

/// EXITINFO1 and EXITINFO2 of IOIO (section 15.10.2).
fn port_access(info: u64, next_rip: u64) -> Exit {
    let size = match (info >> 4) & 7 {
        1 => AccessSize::Byte,
        2 => AccessSize::Word,
        4 => AccessSize::Dword,
        _ => return Exit::Unknown { code: number::IOIO },
    };
    Exit::Port(PortAccess {
        port: (info >> 16) as u16,
        size,
        is_in: info & 1 != 0,
        is_string: info & (1 << 2) != 0,
        is_rep: info & (1 << 3) != 0,
        next_rip,
    })
}

/// EXITINFO1 and EXITINFO2 of a nested page fault (section 15.25.6).
fn memory_fault(info: u64, address: u64) -> MemoryFault {
    let access = if info & (1 << 4) != 0 {
        MemoryAccess::Execute
    } else if info & (1 << 1) != 0 {
        MemoryAccess::Write
    } else {
        MemoryAccess::Read
    };
    MemoryFault { gpa: Gpa(address), access, during_walk: info & (1 << 33) != 0 }
}

#[cfg(test)]
#[path = "code_tests.rs"]
mod tests;
