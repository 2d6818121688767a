// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;
use vm::addr::{AccessSize, Gpa};
use vm::exit::{Exit, MemoryAccess};
use vm::vcpu::{Exception, Gpr};

use super::{decode, number};
use crate::features::Features;
use crate::vmcb::Vmcb;

fn exit(code: u64, info_1: u64, info_2: u64) -> Exit {
    exit_with(Features::default(), code, info_1, info_2)
}

fn exit_with(features: Features, code: u64, info_1: u64, info_2: u64) -> Exit {
    let mut vmcb = Vmcb::zeroed();
    vmcb.control.exit_code = code;
    vmcb.control.exit_info_1 = info_1;
    vmcb.control.exit_info_2 = info_2;
    decode(&vmcb.control, &features)
}

#[test]
fn an_out_of_a_byte_names_port_width_and_where_execution_goes_on() {
    let Exit::Port(access) = exit(number::IOIO, 0x3f8 << 16 | 1 << 4, 0x1002) else { panic!("not a port access") };
    assert_eq!((access.port, access.size, access.next_rip), (0x3f8, AccessSize::Byte, 0x1002));
    assert!(!access.is_in && !access.is_string && !access.is_rep);
}

#[test]
fn a_rep_ins_of_dwords_is_a_repeated_string_input() {
    let Exit::Port(access) = exit(number::IOIO, 0x1f0 << 16 | 4 << 4 | 0b1101, 0) else { panic!("not a port access") };
    assert!(access.is_in && access.is_string && access.is_rep);
    assert_eq!(access.size, AccessSize::Dword);
}

#[test]
fn a_port_access_of_no_width_is_not_believed() {
    assert_eq!(exit(number::IOIO, 0x80 << 16, 0), Exit::Unknown { code: number::IOIO });
}

#[test]
fn a_nested_page_fault_distinguishes_fetches_writes_and_reads() {
    let access = |info| match exit(number::NESTED_PAGE_FAULT, info, 0xfee0_0020) {
        Exit::MemoryFault(fault) => {
            assert_eq!(fault.gpa, Gpa(0xfee0_0020));
            (fault.access, fault.during_walk)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(access(1 << 4), (MemoryAccess::Execute, false));
    assert_eq!(access(1 << 1), (MemoryAccess::Write, false));
    assert_eq!(access(1 << 33), (MemoryAccess::Read, true));
}

#[test]
fn a_machine_check_is_an_exit_of_its_own_and_no_unknown_one() {
    assert_eq!(exit(0x52, 0, 0), Exit::MachineCheck);
}

#[test]
fn both_ways_to_read_the_clock_are_one_exit() {
    assert_eq!(exit(0x6e, 0, 0), Exit::ClockRead);
    assert_eq!(exit(0x87, 0, 0), Exit::ClockRead);
}

#[test]
fn instructions_that_need_svm_do_not_exist_for_a_guest() {
    for code in [0x80, 0x82, 0x83, 0x84, 0x85, 0x86, 0x8a, 0x8b, 0x8c, 0x8e, 0x7a, 0x73] {
        assert_eq!(exit(code, 0, 0), Exit::AbsentInstruction, "{code:#x}");
    }
}

#[test]
fn the_end_of_an_nmis_handler_and_a_spinning_cpu_are_recognised() {
    assert_eq!(exit(0x74, 0, 0), Exit::InterruptReturn);
    assert_eq!(exit(0x77, 0, 0), Exit::Pause);
}

#[test]
fn a_refused_entry_is_known_in_both_widths_of_its_code() {
    assert_eq!(exit(u64::MAX, 0, 0), Exit::EntryRefused);
    assert_eq!(exit(0xffff_ffff, 0, 0), Exit::EntryRefused);
}

#[test]
fn an_intercepted_exception_comes_with_its_error_code_and_address() {
    assert_eq!(exit(0x41, 0, 0), Exit::Exception(Exception::Debug));
    assert_eq!(exit(0x51, 0, 0), Exit::Exception(Exception::Fault { vector: 17, code: Some(0) }));
    assert_eq!(exit(0x4d, 0x18, 0), Exit::Exception(Exception::Fault { vector: 13, code: Some(0x18) }));
    assert_eq!(exit(0x46, 0x18, 0), Exit::Exception(Exception::Fault { vector: 6, code: None }));
    assert_eq!(exit(0x4e, 6, 0x1234), Exit::Exception(Exception::PageFault { code: 6, address: 0x1234 }));
    assert_eq!(exit(0x42, 0, 0), Exit::Unknown { code: 0x42 }, "an NMI has an exit of its own");
}

#[test]
fn a_move_to_cr8_names_its_register_where_the_cpu_reports_it() {
    let assisted = Features { decode_assists: true, ..Features::default() };
    let source = |features, info| match exit_with(features, number::CR8_WRITE, info, 0) {
        Exit::TaskPriorityWrite { source } => source,
        other => panic!("{other:?}"),
    };
    assert_eq!(source(assisted, 1 << 63 | 9), Some(Gpr::R9));
    assert_eq!(source(assisted, 9), None, "no MOV");
    assert_eq!(source(Features::default(), 1 << 63 | 9), None, "what is there means nothing");
}

proptest! {
    #[test]
    fn every_code_means_something(code in any::<u64>(), info_1 in any::<u64>(), info_2 in any::<u64>()) {
        exit(code, info_1, info_2);
    }
}
