// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;
use vm::addr::AccessSize;
use vm::exit::{MemoryAccess, PortAccess};
use vm::vcpu::{Exception, Gpr};

use super::*;
use crate::field::Field;
use crate::testing::{Cpu, Image};

/// A VMCS with this reason and qualification.
fn left(code: u32, qualification: u64) -> Image {
    let mut vmcs = Image::new(Cpu::complete().read().unwrap().allowed_controls());
    vmcs.write_32(Field32::ExitReason, code);
    vmcs.write_natural(FieldNatural::ExitQualification, qualification);
    vmcs
}

fn cause(code: u16, qualification: u64) -> Cause {
    decode(&left(code.into(), qualification))
}

/// A VMCS whose exit was caused by an interruption.
fn interrupted(reason: u16, interruption: Interruption) -> Image {
    let mut vmcs = left(reason.into(), 0x7000);
    vmcs.write_32(Field32::ExitInterruptionInformation, interruption.with_is_valid(true).into_bits());
    vmcs.write_32(Field32::ExitInterruptionErrorCode, 0x18);
    vmcs
}

fn raised(kind: u8, vector: u8, has_code: bool) -> Cause {
    let interruption = Interruption::new().with_kind(kind).with_vector(vector).with_has_error_code(has_code);
    decode(&interrupted(reason::EXCEPTION_OR_NMI, interruption))
}

#[test]
fn instructions_that_the_machine_answers_are_known_by_their_number() {
    let known = [
        (10, Exit::Cpuid),
        (12, Exit::Halt),
        (31, Exit::MsrRead),
        (32, Exit::MsrWrite),
        (7, Exit::InterruptWindow),
        (40, Exit::Pause),
        (18, Exit::Hypercall),
        (55, Exit::Xsetbv),
        (15, Exit::CounterRead),
        (16, Exit::ClockRead),
        (51, Exit::ClockRead),
        (13, Exit::CacheFlush),
        (54, Exit::CacheFlush),
        (2, Exit::Shutdown),
    ];
    for (code, exit) in known {
        assert_eq!(cause(code, 0), Cause::Machine(exit), "{code}");
    }
}

#[test]
fn instructions_that_need_vmx_or_that_no_guest_is_shown_do_not_exist() {
    for code in (19..=27).chain([11, 17, 36, 39, 50, 53, 59, 60, 65, 67, 68, 69, 70, 76, 77, 78, 79]) {
        assert_eq!(cause(code, 0), Cause::Machine(Exit::AbsentInstruction), "{code}");
    }
}

#[test]
fn exits_that_are_never_asked_for_are_unknown_with_their_number() {
    for code in [4, 5, 6, 14, 35, 38, 42, 46, 47, 57, 58, 61, 63, 64, 66, 71, 72, 73, 75, 80, 0xffff] {
        assert_eq!(cause(code, 0), Cause::Machine(Exit::Unknown { code: code.into() }), "{code}");
    }
}

#[test]
fn only_what_a_cause_needs_is_read() {
    let read = |vmcs: Image| {
        decode(&vmcs);
        vmcs.fields_read().len()
    };
    assert_eq!(read(left(reason::CPUID.into(), 0)), 1, "the reason");
    assert_eq!(read(left(reason::EPT_VIOLATION.into(), 0)), 3, "and qualification and address");
    assert_eq!(read(left(reason::IO.into(), 0)), 4, "and length, RIP, qualification");
    let vmcs = interrupted(reason::EXCEPTION_OR_NMI, Interruption::new().with_kind(kind::EXCEPTION).with_vector(6));
    decode(&vmcs);
    assert!(!vmcs.fields_read().contains(&FieldNatural::ExitQualification.encoding()), "#UD has no address");
}

#[test]
fn a_port_access_names_port_width_and_where_execution_goes_on() {
    let access = |qualification| {
        let mut vmcs = left(reason::IO.into(), qualification);
        vmcs.write_32(Field32::ExitInstructionLength, 2);
        vmcs.write_natural(FieldNatural::GuestRip, 0x1000);
        decode(&vmcs)
    };
    let out = PortAccess {
        port: 0x3f8,
        size: AccessSize::Byte,
        is_in: false,
        is_string: false,
        is_rep: false,
        next_rip: 0x1002,
    };
    assert_eq!(access(0x3f8 << 16), Cause::Machine(Exit::Port(out)));
    let ins = PortAccess { port: 0x1f0, size: AccessSize::Dword, is_in: true, is_string: true, is_rep: true, ..out };
    assert_eq!(access(0x1f0 << 16 | 0b11_1000 | 3), Cause::Machine(Exit::Port(ins)));
    assert_eq!(access(0x80 << 16 | 2), Cause::Machine(Exit::Unknown { code: 30 }), "three bytes are no width");
}

#[test]
fn an_ept_violation_distinguishes_fetches_writes_reads_and_walks() {
    let fault = |qualification| {
        let mut vmcs = left(reason::EPT_VIOLATION.into(), qualification);
        vmcs.write_64(Field64::GuestPhysicalAddress, 0xfee0_0020);
        match decode(&vmcs) {
            Cause::Machine(Exit::MemoryFault(fault)) => {
                assert_eq!(fault.gpa, Gpa(0xfee0_0020));
                (fault.access, fault.during_walk)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(fault(0x184), (MemoryAccess::Execute, false));
    assert_eq!(fault(0x182), (MemoryAccess::Write, false));
    assert_eq!(fault(0x183), (MemoryAccess::Write, false), "a read-modify-write");
    assert_eq!(fault(0x181), (MemoryAccess::Read, false));
    assert_eq!(fault(0x081), (MemoryAccess::Read, true), "a walk");
    assert_eq!(fault(0x001), (MemoryAccess::Read, false), "without a linear address, e.g. of a PDPTE");
}

#[test]
fn exceptions_come_with_error_code_and_address() {
    let exception = |exception| Cause::Machine(Exit::Exception(exception));
    assert_eq!(raised(kind::EXCEPTION, 14, true), exception(Exception::PageFault { code: 0x18, address: 0x7000 }));
    assert_eq!(raised(kind::EXCEPTION, 13, true), exception(Exception::Fault { vector: 13, code: Some(0x18) }));
    assert_eq!(raised(kind::EXCEPTION, 6, false), exception(Exception::Fault { vector: 6, code: None }));
    assert_eq!(raised(kind::SOFTWARE_EXCEPTION, 3, false), exception(Exception::Fault { vector: 3, code: None }));
    assert_eq!(raised(kind::EXCEPTION, 32, false), Cause::Machine(Exit::Unknown { code: 0 }));
    assert_eq!(cause(0, 0), Cause::Machine(Exit::Unknown { code: 0 }), "the VMCS describes none");
}

#[test]
fn a_debug_exception_has_its_causes_and_nmi_and_machine_check_are_no_exceptions_of_the_guest() {
    let mut vmcs = interrupted(reason::EXCEPTION_OR_NMI, Interruption::new().with_kind(kind::EXCEPTION).with_vector(1));
    vmcs.write_natural(FieldNatural::ExitQualification, u64::MAX);
    assert_eq!(decode(&vmcs), Cause::Debug { causes: 0x1_680f });
    assert_eq!(raised(kind::EXCEPTION, 18, false), Cause::Machine(Exit::MachineCheck));
    assert_eq!(raised(kind::NMI, 2, false), Cause::Nmi);
}

#[test]
fn an_interrupt_is_pending_unless_the_exit_has_acknowledged_it() {
    assert_eq!(cause(reason::EXTERNAL_INTERRUPT, 0), Cause::Machine(Exit::HostInterrupt));
    let acknowledged = interrupted(reason::EXTERNAL_INTERRUPT, Interruption::new().with_vector(0x31));
    assert_eq!(decode(&acknowledged), Cause::Interrupt { vector: 0x31 });
}

#[test]
fn accesses_to_control_registers_are_distinguished() {
    let access = |qualification| cause(reason::CONTROL_REGISTER, qualification);
    let own = Cause::ControlRegister;
    assert_eq!(access(0x900), own(ControlRegisterAccess::Write { register: 0, source: Gpr::R9 }));
    assert_eq!(access(0x304), own(ControlRegisterAccess::Write { register: 4, source: Gpr::Rbx }));
    assert_eq!(access(0x013), own(ControlRegisterAccess::Read { register: 3, destination: Gpr::Rax }));
    assert_eq!(access(0x020), own(ControlRegisterAccess::ClearTaskSwitched));
    assert_eq!(access(0xfff1_0030), own(ControlRegisterAccess::LoadStatusWord { value: 0xfff1 }));
    assert_eq!(access(0x108), Cause::Machine(Exit::TaskPriorityWrite { source: Some(Gpr::Rcx) }));
    assert_eq!(access(0x001), Cause::Machine(Exit::Unknown { code: 28 }), "there is no CR1");
}

#[test]
fn qualifications_of_vmxs_own_exits_are_decoded() {
    let switch = TaskSwitch { selector: 0x28, source: TaskSwitchSource::TaskGate };
    assert_eq!(cause(9, 0xc000_0028), Cause::TaskSwitch(switch));
    let access = DebugRegisterAccess { register: 7, is_read: true, gpr: Gpr::Rdx };
    assert_eq!(cause(29, 0x217), Cause::DebugRegister(access));
    let write = ApicAccess { offset: Some(0xb0), access: Some(MemoryAccess::Write), during_delivery: false };
    assert_eq!(cause(44, 0x10b0), Cause::ApicAccess(write));
    let delivery = ApicAccess { offset: Some(0xb0), access: None, during_delivery: true };
    assert_eq!(cause(44, 0x30b0), Cause::ApicAccess(delivery));
    let physical = ApicAccess { offset: None, access: None, during_delivery: false };
    assert_eq!(cause(44, 0xf0b0), Cause::ApicAccess(physical));
    assert_eq!(cause(44, 0x5000), Cause::Machine(Exit::Unknown { code: 44 }));
    assert_eq!(cause(56, 0x300), Cause::ApicWrite { offset: 0x300 });
    assert_eq!(cause(45, 0x41), Cause::EndOfInterrupt { vector: 0x41 });
    assert_eq!(cause(49, 0), Cause::Misconfiguration { gpa: Gpa(0) });
    let plain = [
        (3, Cause::Init),
        (8, Cause::NmiWindow),
        (37, Cause::MonitorTrap),
        (43, Cause::TaskPriorityBelowThreshold),
        (52, Cause::TimerExpired),
        (62, Cause::ModificationLogFull),
        (74, Cause::BusLock),
    ];
    for (code, expected) in plain {
        assert_eq!(cause(code, 0), expected, "{code}");
    }
}

#[test]
fn a_failed_entry_is_one_only_with_its_bit() {
    let failed = |code: u32| decode(&left(reason::ENTRY_FAILED | code, 3));
    let state = EntryFailure::GuestState { qualification: 3 };
    assert_eq!(failed(33), Cause::EntryFailed(state));
    assert_eq!(failed(34), Cause::EntryFailed(EntryFailure::MsrLoading { entry: 3 }));
    assert_eq!(failed(41), Cause::Machine(Exit::MachineCheck));
    assert_eq!(failed(10), Cause::Machine(Exit::Unknown { code: 0x8000_000a }));
    assert_eq!(cause(33, 0), Cause::Machine(Exit::Unknown { code: 33 }));
    assert_eq!(Exit::from(state), Exit::EntryRefused);
}

proptest! {
    #[test]
    fn every_exit_means_something(
        code in prop_oneof![0u32..96, (0u32..96).prop_map(|it| it | 1 << 31), any::<u32>()],
        qualification: u64,
        interruption: u32,
        length: u32,
        rip: u64,
    ) {
        let mut vmcs = left(code, qualification);
        vmcs.write_32(Field32::ExitInterruptionInformation, interruption);
        vmcs.write_32(Field32::ExitInstructionLength, length);
        vmcs.write_natural(FieldNatural::GuestRip, rip);
        decode(&vmcs);
    }
}
