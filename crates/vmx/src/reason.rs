// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exit reasons (appendix C), and the bit that distinguishes a failed entry from an exit.
#![allow(missing_docs, reason = "the names are the manual's")]

pub const EXCEPTION_OR_NMI: u16 = 0;
pub const EXTERNAL_INTERRUPT: u16 = 1;
pub const TRIPLE_FAULT: u16 = 2;
pub const INIT: u16 = 3;
pub const INTERRUPT_WINDOW: u16 = 7;
pub const NMI_WINDOW: u16 = 8;
pub const TASK_SWITCH: u16 = 9;
pub const CPUID: u16 = 10;
pub const GETSEC: u16 = 11;
pub const HLT: u16 = 12;
pub const INVD: u16 = 13;
pub const RDPMC: u16 = 15;
pub const RDTSC: u16 = 16;
pub const RSM: u16 = 17;
pub const VMCALL: u16 = 18;
/// VMCLEAR, VMLAUNCH, VMPTRLD, VMPTRST, VMREAD, VMRESUME, VMWRITE, VMXOFF, VMXON.
pub const FIRST_VMX_INSTRUCTION: u16 = 19;
pub const LAST_VMX_INSTRUCTION: u16 = 27;
pub const CONTROL_REGISTER: u16 = 28;
pub const DEBUG_REGISTER: u16 = 29;
pub const IO: u16 = 30;
pub const RDMSR: u16 = 31;
pub const WRMSR: u16 = 32;
pub const ENTRY_FAILED_BY_GUEST_STATE: u16 = 33;
pub const ENTRY_FAILED_BY_MSR: u16 = 34;
pub const MWAIT: u16 = 36;
pub const MONITOR_TRAP_FLAG: u16 = 37;
pub const MONITOR: u16 = 39;
pub const PAUSE: u16 = 40;
pub const ENTRY_FAILED_BY_MACHINE_CHECK: u16 = 41;
pub const TPR_BELOW_THRESHOLD: u16 = 43;
pub const APIC_ACCESS: u16 = 44;
pub const VIRTUALIZED_EOI: u16 = 45;
pub const EPT_VIOLATION: u16 = 48;
pub const EPT_MISCONFIGURATION: u16 = 49;
pub const INVEPT: u16 = 50;
pub const RDTSCP: u16 = 51;
pub const PREEMPTION_TIMER: u16 = 52;
pub const INVVPID: u16 = 53;
pub const WBINVD: u16 = 54;
pub const XSETBV: u16 = 55;
pub const APIC_WRITE: u16 = 56;
pub const VMFUNC: u16 = 59;
pub const ENCLS: u16 = 60;
pub const PML_FULL: u16 = 62;
pub const PCONFIG: u16 = 65;
pub const UMWAIT: u16 = 67;
pub const TPAUSE: u16 = 68;
pub const LOADIWKEY: u16 = 69;
pub const ENCLV: u16 = 70;
pub const BUS_LOCK: u16 = 74;
pub const SEAMCALL: u16 = 76;
pub const TDCALL: u16 = 77;
pub const RDMSRLIST: u16 = 78;
pub const WRMSRLIST: u16 = 79;

/// Bit of the whole reason: the VM entry has failed, and the guest has not run.
pub const ENTRY_FAILED: u32 = 1 << 31;
