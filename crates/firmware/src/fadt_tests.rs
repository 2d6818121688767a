// SPDX-License-Identifier: MIT OR Apache-2.0
use std::boxed::Box;
use std::vec::Vec;

use crate::testing::*;
use crate::{Fault, Location, PmTimer, Register, ResetRegister, Signature, Tables};

const TIMER: (usize, &[u8]) = (76, &[0x08, 0x06, 0, 0]);
const CONTROL: (usize, &[u8]) = (64, &[0x04, 0x06, 0, 0]);
const LENGTHS: [(usize, &[u8]); 2] = [(89, &[2]), (91, &[4])];

fn read(bytes: usize, fields: &[(usize, &[u8])]) -> Box<Tables> {
    let fields = [&LENGTHS[..], fields].concat();
    Machine::with_tables(&[fadt(bytes, &fields)]).discover().unwrap()
}

fn unusable(tables: &Tables) -> Vec<Register> {
    let register = |fault| match fault {
        Fault::UnusableRegister { register, .. } => Some(register),
        _ => None,
    };
    tables.warnings.iter().filter_map(|problem| register(problem.fault)).collect()
}

#[test]
fn the_first_revision_gives_ports_without_generic_addresses() {
    let tables = read(116, &[TIMER, CONTROL, (112, &[0, 1, 0, 0])]);
    assert_eq!(tables.pm_timer, Some(PmTimer { port: 0x608, width_bits: 32 }));
    assert_eq!(tables.pm1a_control_port, Some(0x604));
    assert_eq!(tables.reset_register, None);
}

#[test]
fn a_generic_address_wins_over_the_older_port() {
    let tables = read(276, &[TIMER, (208, &generic(1, 0x1808)), CONTROL, (172, &generic(1, 0x1804))]);
    assert_eq!(tables.pm_timer, Some(PmTimer { port: 0x1808, width_bits: 24 }));
    assert_eq!(tables.pm1a_control_port, Some(0x1804));
}

#[test]
fn a_generic_address_that_is_no_port_leaves_the_older_one() {
    let tables = read(276, &[TIMER, (208, &generic(0, 0xfe00_0000))]);
    assert_eq!(tables.pm_timer, Some(PmTimer { port: 0x608, width_bits: 24 }));
    assert_eq!(unusable(&tables), [Register::PmTimer]);
}

#[test]
fn a_register_must_end_below_the_last_port() {
    let timer = |port: u32| read(116, &[(76, &port.to_le_bytes())]);
    assert_eq!(timer(0xfffc).pm_timer.map(|timer| timer.port), Some(0xfffc));
    for port in [0xfffd, 0x1_0000, u32::MAX] {
        assert_eq!(timer(port).pm_timer, None);
        assert_eq!(unusable(&timer(port)), [Register::PmTimer]);
    }
}

#[test]
fn a_register_without_bytes_is_absent() {
    let tables = read(116, &[TIMER, CONTROL, (89, &[0]), (91, &[0])]);
    assert_eq!((tables.pm_timer, tables.pm1a_control_port), (None, None));
    assert_eq!(unusable(&tables), []);
}

#[test]
fn hardware_reduced_machines_have_no_power_management_ports() {
    let flags = (1u32 << 20 | 1 << 10).to_le_bytes();
    let tables = read(276, &[TIMER, CONTROL, (112, &flags), (116, &generic(0, 0xfe00)), (128, &[3])]);
    assert_eq!((tables.pm_timer, tables.pm1a_control_port, tables.acpi_enable), (None, None, None));
    let expected = ResetRegister { location: Location::Memory(0xfe00), value: 3 };
    assert_eq!(tables.reset_register, Some(expected));
}

#[test]
fn the_reset_register_counts_only_where_the_flag_is_set() {
    let register = generic(1, 0xcf9);
    assert_eq!(read(244, &[(116, &register)]).reset_register, None);
}

#[test]
fn a_reset_register_in_configuration_space_is_taken_apart() {
    let read = |address| read(244, &[(112, &[0, 4, 0, 0]), (116, &generic(2, address)), (128, &[6])]);
    let location = Location::PciConfiguration { device: 31, function: 2, offset: 0x40 };
    assert_eq!(read(0x001f_0002_0040).reset_register, Some(ResetRegister { location, value: 6 }));
    for address in [0x0020_0000_0040, 0x0008_0040, 0x0100, 1 << 48 | 1] {
        assert_eq!(read(address).reset_register, None, "{address:#x}");
        assert_eq!(unusable(&read(address)), [Register::Reset]);
    }
}

#[test]
fn a_reset_register_elsewhere_is_unusable() {
    for (space, address) in [(1, 0x1_0000), (3, 1), (0x7f, 1)] {
        let tables = read(244, &[(112, &[0, 4, 0, 0]), (116, &generic(space, address))]);
        assert_eq!(tables.reset_register, None);
        assert_eq!(unusable(&tables), [Register::Reset]);
    }
}

#[test]
fn an_smi_command_beyond_the_ports_is_unusable() {
    let tables = read(116, &[(48, &[0, 0, 1, 0]), (52, &[1])]);
    assert_eq!(tables.acpi_enable, None);
    assert_eq!(unusable(&tables), [Register::SmiCommand]);
}

#[test]
fn the_second_control_register_is_found() {
    let tables = read(116, &[CONTROL, (68, &[0x04, 0x08, 0, 0])]);
    assert_eq!(tables.pm1b_control_port, Some(0x804));
}

#[test]
fn a_missing_dsdt_is_a_warning() {
    let tables = read(276, &[]);
    assert!(tables.warnings.iter().any(|found| found.table == Signature::DSDT && found.fault == Fault::Missing));
    assert_eq!(tables.sleep_s5_type, None);
}
