// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

const DWORD: AccessSize = AccessSize::Dword;

fn select(bus: &mut PciBus, address: u32) {
    bus.write_port(0, DWORD, 0x8000_0000 | address);
}

#[test]
fn the_host_bridge_is_found_through_the_ports() {
    let mut bus = PciBus::new();
    select(&mut bus, 0);
    assert_eq!(bus.read_port(4, DWORD), 0x0008_1b36);
    select(&mut bus, 8);
    assert_eq!(bus.read_port(4, DWORD), 0x0600_0000);
    assert_eq!(bus.read_port(7, AccessSize::Byte), 0x06);
    assert_eq!(bus.read_port(6, AccessSize::Word), 0x0600);
}

#[test]
fn the_host_bridge_is_found_in_memory() {
    let bus = PciBus::new();
    assert_eq!(bus.read_enhanced(0, DWORD), 0x0008_1b36);
    assert_eq!(bus.read_enhanced(2, AccessSize::Word), 0x0008);
    assert_eq!(bus.read_enhanced(8, AccessSize::Qword), 0x0600_0000);
}

#[test]
fn the_address_reads_back_without_its_reserved_bits() {
    let mut bus = PciBus::new();
    bus.write_port(0, DWORD, 0xffff_ffff);
    assert_eq!(bus.read_port(0, DWORD), 0x80ff_fffc);
}

#[test]
fn a_narrow_access_to_the_address_port_is_not_for_pci() {
    let mut bus = PciBus::new();
    bus.write_port(1, AccessSize::Byte, 0x0e);
    bus.write_port(0, AccessSize::Word, 0x1234);
    assert_eq!(bus.read_port(0, DWORD), 0);
    assert_eq!(bus.read_port(1, AccessSize::Byte), 0xff);
}

#[test]
fn absent_functions_and_buses_read_as_all_ones() {
    let mut bus = PciBus::new();
    for address in [0x0800, 0x0100, 0x1_0000] {
        select(&mut bus, address);
        assert_eq!(bus.read_port(4, DWORD), 0xffff_ffff);
    }
    assert_eq!(bus.read_enhanced(0x1000, AccessSize::Word), 0xffff);
    assert_eq!(bus.read_enhanced(0x10_0000, AccessSize::Byte), 0xff);
}

#[test]
fn without_the_enable_bit_the_data_ports_are_nobodys() {
    let bus = PciBus::new();
    assert_eq!(bus.read_port(4, DWORD), 0xffff_ffff);
}

#[test]
fn there_is_no_extended_configuration_space() {
    let bus = PciBus::new();
    assert_eq!(bus.read_enhanced(0x100, DWORD), 0xffff_ffff);
    assert_eq!(bus.read_enhanced(0xfe, DWORD), 0xffff_0000);
}

#[test]
fn an_access_past_the_data_ports_reads_ones_there() {
    let mut bus = PciBus::new();
    select(&mut bus, 0);
    assert_eq!(bus.read_port(6, DWORD), 0xffff_0008);
    assert_eq!(bus.read_port(8, DWORD), 0xffff_ffff);
}

#[test]
fn only_writable_bits_change() {
    let mut bus = PciBus::new();
    select(&mut bus, 4);
    bus.write_port(4, DWORD, 0xffff_ffff);
    assert_eq!(bus.read_port(4, DWORD), 0x0000_0007);
    bus.write_enhanced(0, AccessSize::Qword, 0);
    assert_eq!(bus.read_enhanced(0, AccessSize::Qword), 0x0008_1b36);
}

#[test]
fn an_inserted_function_answers_in_its_slot() {
    let mut bus = PciBus::new();
    let mut function = Function::new(0x1af4, 0x1041, 0x02_0000);
    function.place(0x10, &0xc000_0000_u32.to_le_bytes());
    function.allow_writes(0x10, &0xffff_f000_u32.to_le_bytes());
    bus.insert(Slot(1 << 3), function);
    bus.write_enhanced(0x8010, DWORD, 0xffff_ffff);
    assert_eq!(bus.read_enhanced(0x8010, DWORD), 0xffff_f000);
    assert_eq!(bus.read_enhanced(0x8000, DWORD), 0x1041_1af4);
    assert!(PciBus::new().restore(bus.state()).is_err());
}

#[test]
fn a_state_of_another_machine_is_refused() {
    let refused = |change: fn(&mut PciState)| {
        let mut state = PciBus::new().state();
        change(&mut state);
        PciBus::from_state(state).map(drop).map_err(|error| error.field)
    };
    assert_eq!(refused(|state| state.address = 1), Err("pci.address"));
    assert_eq!(refused(|state| state.functions.clear()), Err("pci.functions"));
    assert_eq!(refused(|state| state.functions[0].slot = 1), Err("pci.functions"));
    assert_eq!(refused(|state| state.functions[0].config[0] = 0), Err("pci.functions.config"));
    assert_eq!(refused(|state| state.functions[0].config[4] = 7), Ok(()));
}

#[derive(Clone, Debug)]
enum Step {
    Port(u8, AccessSize, u32),
    Enhanced(u64, AccessSize, u64),
}

fn any_size() -> impl Strategy<Value = AccessSize> {
    prop_oneof![Just(AccessSize::Byte), Just(AccessSize::Word), Just(AccessSize::Dword), Just(AccessSize::Qword)]
}

fn any_step() -> impl Strategy<Value = Step> {
    let address = (0u32..0x200).prop_map(|address| Step::Port(0, DWORD, 0x8000_0000 | address));
    let port = (0u8..10, any_size(), any::<u32>()).prop_map(|(offset, size, value)| Step::Port(offset, size, value));
    let offset = prop_oneof![0u64..0x110, any::<u64>()];
    let enhanced = (offset, any_size(), any::<u64>());
    prop_oneof![address, port, enhanced.prop_map(|(offset, size, value)| Step::Enhanced(offset, size, value))]
}

fn take(bus: &mut PciBus, step: &Step) -> u64 {
    match *step {
        Step::Port(offset, size, value) => {
            bus.write_port(offset, size, value);
            u64::from(bus.read_port(offset, size))
        }
        Step::Enhanced(offset, size, value) => {
            bus.write_enhanced(offset, size, value);
            bus.read_enhanced(offset, size)
        }
    }
}

proptest! {
    #[test]
    fn a_restored_bus_behaves_the_same(
        before in prop::collection::vec(any_step(), 0..32),
        after in prop::collection::vec(any_step(), 0..32),
    ) {
        let mut bus = PciBus::new();
        for step in &before {
            take(&mut bus, step);
        }
        let mut restored = PciBus::from_state(bus.state()).unwrap();
        for step in &after {
            prop_assert_eq!(take(&mut bus, step), take(&mut restored, step));
        }
        prop_assert_eq!(bus, restored);
    }

    #[test]
    fn a_hostile_state_is_refused_or_harmless(
        address: u32, command: u8, slot in 0u8..2, at in 0usize..64, steps in prop::collection::vec(any_step(), 0..16),
    ) {
        let mut state = PciBus::new().state();
        state.address = address & 0x80ff_ffff;
        state.functions[0].slot = slot;
        state.functions[0].config[at] = command;
        if let Ok(mut bus) = PciBus::from_state(state) {
            for step in &steps {
                take(&mut bus, step);
                prop_assert!(PciBus::from_state(bus.state()).is_ok());
            }
        }
    }
}
