// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;

use super::{Machine, Power};
use crate::testing::{fadt, generic};
use crate::{Location, ResetRegister, SmiCommand, Tables};

/// A machine with registers that hold the values written, and the writes to it. Reading a register that does not exist
/// gives ones.
#[derive(Default)]
struct Model {
    values: BTreeMap<u64, u32>,
    written: Vec<(Location, u8, u32)>,
    milliseconds: u32,
    /// Firmware sets SCI_EN in this register so long after the command.
    hands_over: Option<(u16, u32)>,
}

fn key(at: Location) -> u64 {
    match at {
        Location::Port(port) => u64::from(port),
        Location::Memory(address) => 1 << 62 ^ address,
        Location::PciConfiguration { device, function, offset } => {
            1 << 61 | u64::from(device) << 16 | u64::from(function) << 8 | u64::from(offset)
        }
    }
}

impl Model {
    fn with(values: &[(u16, u32)]) -> Self {
        let values = values.iter().map(|(port, value)| (u64::from(*port), *value)).collect();
        Self { values, ..Self::default() }
    }
}

impl Machine for Model {
    fn read(&mut self, at: Location, bytes: u8) -> u32 {
        let enabled =
            self.hands_over.filter(|(port, after)| at == Location::Port(*port) && self.milliseconds >= *after);
        let ones = u32::MAX >> (32 - 8 * u32::from(bytes));
        self.values.get(&key(at)).copied().unwrap_or(ones) | u32::from(enabled.is_some())
    }

    fn write(&mut self, at: Location, bytes: u8, value: u32) {
        self.values.insert(key(at), value);
        self.written.push((at, bytes, value));
    }

    fn wait(&mut self) {
        self.milliseconds += 1;
    }
}

const A: u16 = 0x404;
const B: u16 = 0x804;
const SMI: SmiCommand = SmiCommand { port: 0xb2, value: 0xa0 };
const PORT_A: Location = Location::Port(A);
const PORT_B: Location = Location::Port(B);

fn tables() -> Tables {
    Tables {
        pm1a_control_port: Some(A),
        sleep_s5_type: Some(5),
        sleep_s5_type_b: Some(6),
        acpi_enable: Some(SMI),
        ..Tables::new()
    }
}

fn powered_off(tables: &Tables, mut machine: Model) -> Model {
    Power::new(tables).power_off(&mut machine);
    machine
}

#[test]
fn other_bits_of_the_register_are_kept_and_the_type_comes_before_the_enable() {
    let machine = powered_off(&tables(), Model::with(&[(A, 0x9203 | 7 << 10)]));
    assert_eq!(
        machine.written,
        [(PORT_A, 2, 0x9203 & !0x3c00 | 5 << 10), (PORT_A, 2, 0x9203 & !0x3c00 | 5 << 10 | 1 << 13)]
    );
}

#[test]
fn both_registers_get_their_own_type_before_either_is_enabled() {
    let tables = Tables { pm1b_control_port: Some(B), ..tables() };
    let machine = powered_off(&tables, Model::with(&[(A, 1), (B, 0x41)]));
    let [a, b] = [1 | 5 << 10, 0x41 | 6 << 10];
    let enabled = 1 << 13;
    assert_eq!(machine.written, [(PORT_A, 2, a), (PORT_B, 2, b), (PORT_A, 2, a | enabled), (PORT_B, 2, b | enabled)]);
}

#[test]
fn one_type_is_meant_for_both_registers() {
    let tables = Tables { pm1b_control_port: Some(B), sleep_s5_type_b: None, ..tables() };
    let machine = powered_off(&tables, Model::with(&[(A, 1), (B, 1)]));
    assert_eq!(machine.written[1], (PORT_B, 2, 1 | 5 << 10));
}

#[test]
fn firmware_hands_the_registers_over_first() {
    let machine = powered_off(&tables(), Model { hands_over: Some((A, 7)), ..Model::with(&[(A, 0)]) });
    assert_eq!(machine.written[0], (Location::Port(SMI.port), 1, SMI.value.into()));
    assert_eq!(machine.written[1], (PORT_A, 2, 1 | 5 << 10));
    assert!((7..1000).contains(&machine.milliseconds), "{}", machine.milliseconds);
}

#[test]
fn firmware_that_never_hands_them_over_is_waited_for_three_seconds() {
    let machine = powered_off(&tables(), Model::with(&[(A, 0)]));
    assert!((3000..4000).contains(&machine.milliseconds), "{}", machine.milliseconds);
    assert_eq!(machine.written.last(), Some(&(PORT_A, 2, 5 << 10 | 1 << 13)), "it is tried all the same");
}

#[test]
fn what_has_been_handed_over_is_not_asked_for() {
    let machine = powered_off(&tables(), Model::with(&[(A, 1)]));
    assert!(machine.written.iter().all(|(at, ..)| *at == PORT_A));
}

#[test]
fn a_machine_without_these_registers_is_powered_off_by_sleep_control() {
    let (control, status) = (Location::Memory(0xfed8_0000), Location::Port(0x601));
    let tables =
        Tables { sleep_control: Some(control), sleep_status: Some(status), sleep_s5_type: Some(5), ..Tables::new() };
    let mut machine = Model::default();
    machine.values.insert(key(control), 0x83);
    let machine = powered_off(&tables, machine);
    assert_eq!(machine.written, [(status, 1, 0x80), (control, 1, 0x83 | 5 << 2 | 1 << 5)]);
    assert_eq!(Power::new(&tables).addresses().collect::<Vec<_>>(), [0xfed8_0000]);
}

#[test]
fn without_a_sleep_type_nothing_is_written() {
    let tables = Tables { sleep_s5_type: None, sleep_s5_type_b: None, ..tables() };
    assert_eq!(powered_off(&tables, Model::default()).written, []);
}

const FALLBACKS: [(Location, u8, u32); 3] =
    [(Location::Port(0xcf9), 1, 0x0a), (Location::Port(0xcf9), 1, 0x0e), (Location::Port(0x64), 1, 0xfe)];

fn reset(location: Option<Location>) -> Model {
    let reset_register = location.map(|location| ResetRegister { location, value: 0x5a });
    let mut machine = Model::with(&[(0x64, 0)]);
    Power::new(&Tables { reset_register, ..Tables::new() }).reset(&mut machine);
    machine
}

#[test]
fn the_tables_register_comes_first_wherever_it_is() {
    let pci = Location::PciConfiguration { device: 31, function: 0, offset: 0x41 };
    for location in [Location::Port(0x92), Location::Memory(0xfed8_1000), pci] {
        let machine = reset(Some(location));
        assert_eq!(machine.written[0], (location, 1, 0x5a));
        assert_eq!(machine.written[1..], FALLBACKS);
    }
}

#[test]
fn without_it_the_old_ways_remain() {
    assert_eq!(reset(None).written, FALLBACKS);
}

#[test]
fn a_keyboard_controller_that_is_always_busy_is_not_waited_for_for_ever() {
    let mut machine = Model::default();
    Power::default().reset(&mut machine);
    assert!(machine.milliseconds < 1000);
    assert_eq!(machine.written, FALLBACKS);
}

#[test]
fn sleep_control_is_read_from_tables_that_are_long_enough() {
    let read = |bytes, control: &[u8], flags: u32| {
        let fields: [(usize, &[u8]); 3] = [(112, &flags.to_le_bytes()), (244, control), (256, &generic(1, 0x605))];
        let fields = &fields[..if bytes >= 268 { 3 } else { 1 }];
        crate::testing::Machine::with_tables(&[fadt(bytes, fields)]).discover().unwrap()
    };
    const REDUCED: u32 = 1 << 20;
    let whole = read(276, &generic(1, 0x604), REDUCED);
    assert_eq!((whole.sleep_control, whole.sleep_status), (Some(Location::Port(0x604)), Some(Location::Port(0x605))));
    let with_ports = read(276, &generic(1, 0x604), 0);
    assert_eq!(with_ports.sleep_control, None, "a machine with PM1 registers has no other");
    for (bytes, control) in
        [(244, generic(1, 0x604)), (276, generic(1, 0)), (276, generic(1, 0x1_0000)), (276, generic(9, 1))]
    {
        assert_eq!(read(bytes, &control, REDUCED).sleep_control, None, "{bytes} {control:?}");
    }
}

#[test]
fn a_register_in_usable_memory_is_none() {
    let reset_register = Some(ResetRegister { location: Location::Memory(0x9000), value: 1 });
    let mut tables = Tables {
        sleep_control: Some(Location::Memory(0xfed8_0000)),
        sleep_status: Some(Location::Port(0x600)),
        reset_register,
        ..Tables::new()
    };
    tables.check_power_registers(|address| address >= 0x10_0000);
    assert_eq!((tables.reset_register, tables.warnings.len()), (None, 1));
    assert!(tables.sleep_control.is_some() && tables.sleep_status.is_some());
    tables.check_power_registers(|_| false);
    assert_eq!((tables.sleep_control, tables.sleep_status), (None, Some(Location::Port(0x600))));
}

proptest! {
    /// Whatever the tables state and the machine holds: there is an end, and nothing is written but what the tables
    /// name.
    #[test]
    fn any_tables_come_to_an_end(
        a: Option<u16>, b: Option<u16>, types in any::<[Option<u8>; 2]>(), values in any::<[u16; 2]>(), smi: Option<u8>,
    ) {
        let kind = |kind: Option<u8>| kind.map(|kind| kind % 8);
        let tables = Tables {
            pm1a_control_port: a,
            pm1b_control_port: b,
            sleep_s5_type: kind(types[0]),
            sleep_s5_type_b: kind(types[1]),
            acpi_enable: smi.map(|value| SmiCommand { port: 0xb2, value }),
            ..Tables::new()
        };
        let held: Vec<_> = [a, b].into_iter().flatten().zip(values.map(u32::from)).collect();
        let machine = powered_off(&tables, Model::with(&held));
        prop_assert!(machine.milliseconds <= 4000);
        let named = [a, b, smi.map(|_| 0xb2)].map(|port| port.map(Location::Port));
        prop_assert!(machine.written.iter().all(|(at, _, value)| named.contains(&Some(*at)) && *value <= 0xffff));
    }
}
