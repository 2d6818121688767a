// SPDX-License-Identifier: MIT OR Apache-2.0
mod interrupts;
mod ranges;
mod states;

use proptest::prelude::*;

use super::*;
use crate::devices::pci::{Bar, Behind, Endpoint, Function, Nothing, Unfit};
use crate::testing::{FakeWorld, Probe};

const DWORD: AccessSize = AccessSize::Dword;
/// The slot of the first probe.
const FIRST: Slot = Slot(1 << 3);

/// A bus with the host bridge and probes.
struct Lab {
    bus: PciBus,
    devices: Vec<Arc<Mutex<dyn Device>>>,
    world: FakeWorld,
}

impl Lab {
    fn new() -> Self {
        Self::with_probes(0)
    }

    /// With so many probes, in devices 1 and following.
    fn with_probes(probes: u8) -> Self {
        let mut lab = Self { bus: PciBus::new(), devices: Vec::new(), world: FakeWorld::default() };
        assert!(lab.insert(Endpoint::new(Slot::HOST_BRIDGE, Function::host_bridge(), Nothing)));
        (1..=probes).for_each(|device| assert!(lab.insert(Probe::in_slot(Slot(device << 3)))));
        lab
    }

    fn insert(&mut self, function: Endpoint<impl Behind + 'static>) -> bool {
        let slot = function.slot();
        let shared = Arc::new(Mutex::new(function));
        self.devices.push(shared.clone());
        self.bus.insert(slot, self.devices.len() - 1, shared)
    }

    fn read_port(&mut self, offset: u8, size: AccessSize) -> u64 {
        self.bus.read(At { range: 0, offset: offset.into(), size }, &mut self.world.context())
    }

    fn write_port(&mut self, offset: u8, size: AccessSize, value: u32) {
        self.bus.write(At { range: 0, offset: offset.into(), size }, value.into(), &mut self.world.context());
    }

    fn read_enhanced(&mut self, offset: u64, size: AccessSize) -> u64 {
        self.bus.read(At { range: 1, offset, size }, &mut self.world.context())
    }

    fn write_enhanced(&mut self, offset: u64, size: AccessSize, value: u64) {
        self.bus.write(At { range: 1, offset, size }, value & size.mask(), &mut self.world.context());
    }

    fn select(&mut self, address: u32) {
        self.write_port(0, DWORD, 0x8000_0000 | address);
    }

    /// The first probe's register.
    fn config(&mut self, register: u64) -> u32 {
        self.read_enhanced(u64::from(FIRST.0) << 12 | register, DWORD) as u32
    }

    fn set_config(&mut self, register: u64, value: u32) {
        self.write_enhanced(u64::from(FIRST.0) << 12 | register, DWORD, value.into());
    }

    fn find(&self, space: Space, address: u64, size: AccessSize) -> Option<(usize, At)> {
        match self.bus.find(space, address, size)? {
            (Reach::Fixed(device), at) => Some((device, at)),
            (Reach::Plugged(slot), _) => panic!("nothing was plugged into {slot:?}"),
        }
    }

    /// The value at an address that a function decodes.
    fn read(&mut self, space: Space, address: u64, size: AccessSize) -> Option<u64> {
        let (device, at) = self.find(space, address, size)?;
        Some(self.devices[device].lock().read(at, &mut self.world.context()) & size.mask())
    }

    /// False if no function decodes the address.
    fn write(&mut self, space: Space, address: u64, size: AccessSize, value: u64) -> bool {
        let Some((device, at)) = self.find(space, address, size) else { return false };
        self.devices[device].lock().write(at, value & size.mask(), &mut self.world.context());
        true
    }
}

#[test]
fn the_host_bridge_is_found_through_the_ports() {
    let mut lab = Lab::new();
    lab.select(0);
    assert_eq!(lab.read_port(4, DWORD), 0x0008_1b36);
    lab.select(8);
    assert_eq!(lab.read_port(4, DWORD), 0x0600_0000);
    assert_eq!(lab.read_port(7, AccessSize::Byte), 0x06);
    assert_eq!(lab.read_port(6, AccessSize::Word), 0x0600);
}

#[test]
fn the_host_bridge_is_found_in_memory() {
    let mut lab = Lab::new();
    assert_eq!(lab.read_enhanced(0, DWORD), 0x0008_1b36);
    assert_eq!(lab.read_enhanced(2, AccessSize::Word), 0x0008);
    assert_eq!(lab.read_enhanced(8, AccessSize::Qword), 0x0600_0000);
}

#[test]
fn the_address_reads_back_without_its_reserved_bits() {
    let mut lab = Lab::new();
    lab.write_port(0, DWORD, 0xffff_ffff);
    assert_eq!(lab.read_port(0, DWORD), 0x80ff_fffc);
}

#[test]
fn a_narrow_access_to_the_address_port_is_not_for_pci() {
    let mut lab = Lab::new();
    lab.write_port(1, AccessSize::Byte, 0x0e);
    lab.write_port(0, AccessSize::Word, 0x1234);
    assert_eq!(lab.read_port(0, DWORD), 0);
    assert_eq!(lab.read_port(1, AccessSize::Byte), 0xff);
}

#[test]
fn absent_functions_and_buses_read_as_all_ones() {
    let mut lab = Lab::new();
    for address in [0x0800, 0x0100, 0x1_0000] {
        lab.select(address);
        assert_eq!(lab.read_port(4, DWORD), 0xffff_ffff);
    }
    assert_eq!(lab.read_enhanced(0x1000, AccessSize::Word), 0xffff);
    assert_eq!(lab.read_enhanced(0x10_0000, AccessSize::Byte), 0xff);
}

#[test]
fn without_the_enable_bit_no_device_has_the_data_ports() {
    assert_eq!(Lab::new().read_port(4, DWORD), 0xffff_ffff);
}

#[test]
fn there_is_no_extended_configuration_space() {
    let mut lab = Lab::new();
    assert_eq!(lab.read_enhanced(0x100, DWORD), 0xffff_ffff);
    assert_eq!(lab.read_enhanced(0xfe, DWORD), 0xffff_0000);
}

#[test]
fn an_access_past_the_data_ports_reads_ones_there() {
    let mut lab = Lab::new();
    lab.select(0);
    assert_eq!(lab.read_port(6, DWORD), 0xffff_0008);
    assert_eq!(lab.read_port(8, DWORD), 0xffff_ffff);
}

#[test]
fn only_writable_bits_change() {
    let mut lab = Lab::new();
    lab.select(4);
    lab.write_port(4, DWORD, 0xffff_ffff);
    assert_eq!(lab.read_port(4, DWORD), 0x0000_0007);
    lab.write_enhanced(0, AccessSize::Qword, 0);
    assert_eq!(lab.read_enhanced(0, AccessSize::Qword), 0x0008_1b36);
}

#[test]
fn a_function_answers_in_its_slot_and_no_other_can_be_there() {
    let mut lab = Lab::with_probes(1);
    assert_eq!(lab.config(0), 0x7e57_1234);
    assert!(!lab.insert(Probe::in_slot(FIRST)));
    assert!(lab.insert(Probe::in_slot(Slot(FIRST.0 + 1))));
}

#[test]
fn the_capabilities_are_linked() {
    let mut lab = Lab::with_probes(1);
    assert_eq!(lab.config(4) >> 16, 1 << 4, "there are some");
    let msi = u64::from(lab.config(0x34));
    assert_eq!(lab.config(msi) & 0xff, 0x05);
    let msix = u64::from(lab.config(msi) >> 8 & 0xff);
    assert_eq!(lab.config(msix), 0x0027_0011, "MSI-X, 40 vectors, the last capability");
}

#[test]
fn what_no_function_can_have_is_refused() {
    let mut function = Function::new(1, 2, 3);
    for bar in [
        Bar::Io { ports: 2 },
        Bar::Io { ports: 512 },
        Bar::Memory32 { bytes: 8 },
        Bar::Memory32 { bytes: 48 },
        Bar::Memory64 { bytes: 1 << 63, is_prefetchable: false },
    ] {
        assert_eq!(function.add_bar(0, bar), Err(Unfit), "{bar:?}");
    }
    let wide = Bar::Memory64 { bytes: 16, is_prefetchable: false };
    assert_eq!(function.add_bar(5, wide), Err(Unfit), "the upper half has no register");
    function.add_bar(2, wide).unwrap();
    for index in [1, 2, 3, 6, usize::MAX - 1] {
        assert_eq!(function.add_bar(index, wide), Err(Unfit), "{index}");
    }
    assert_eq!(function.add_msi(6), Err(Unfit));
    assert_eq!(function.add_capability(9, &[0; 0xc0], &[]), Err(Unfit));
    assert_eq!(function.add_capability(9, &[0; 0xbe], &[]), Ok(0x40));
    assert_eq!(function.add_capability(9, &[], &[]), Err(Unfit));
}
