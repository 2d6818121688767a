// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probing: the registers that are read of the hardware, and functions that are refused.

use std::string::ToString;

use super::*;
use crate::devices::pci::{Bar, MsixPlace};

fn physical() -> FakePhysical {
    FakePhysical::new(0, &FakeAddressSpace::new(MEMORY_BYTES))
}

/// The register and the reason for which a changed function is refused.
fn refused(change: impl FnOnce(&mut FakePhysical)) -> (u16, Reason) {
    let mut physical = physical();
    change(&mut physical);
    let problem = Description::probe(name(), &mut physical, None).expect_err("it is refused");
    assert!(problem.to_string().starts_with("0000:01:00.0: register 0x"), "{problem}");
    let is_untouched = physical.is_gone || physical.requests == 0;
    assert!(is_untouched || physical.get(4) & 0b100 == 0, "it does not master the bus");
    (problem.register, problem.reason)
}

#[test]
fn a_function_is_described_by_its_registers() {
    let mut physical = physical();
    let before = physical.config;
    let description = Description::probe(name(), &mut physical, Some(PIN)).unwrap();
    let range = |bar, address| Some(Range { bar, address });
    assert_eq!(description.identity.vendor, 0x1234);
    assert_eq!((description.identity.class, description.identity.subsystem), (0x0108_0203, 0x5678));
    assert_eq!(
        description.ranges,
        [
            range(Bar::Memory64 { bytes: 0x4000, is_prefetchable: false }, 0x38_8000_4000),
            None,
            range(Bar::Memory32 { bytes: 0x2000 }, 0xfe00_2000),
            range(Bar::Memory32 { bytes: 0x100 }, 0xfe00_0100),
            range(Bar::Io { ports: 32 }, 0xc0a0),
            None,
        ]
    );
    let place = MsixPlace { bar: 0, pending_bar: 0, vectors: 40, table: 0x2000, pending: 0x3000 };
    assert_eq!((description.msi, description.msix, description.line), (Some(2), Some(place), Some(PIN)));
    assert!(description.has_power && description.has_express && description.has_reset);
    assert_eq!(physical.get(4), 0x0010_0403, "it decodes, does not master the bus, and does not use INTx");
    assert_eq!(physical.config[8..], before[8..], "each register is as it was");
}

#[test]
fn a_list_that_loops_strays_or_overlaps_is_refused() {
    assert_eq!(refused(|p| p.config[0xc1] = 0x50), (0x50, Reason::CapabilityLoop));
    assert_eq!(refused(|p| p.config[0x41] = 0x40), (0x40, Reason::CapabilityLoop));
    assert_eq!(refused(|p| p.config[0xc1] = 0x10), (0x10, Reason::StrayCapability));
    assert_eq!(refused(|p| (p.config[0xb1], p.config[0xb5]) = (0xb4, 0)), (0xb4, Reason::CapabilityOverlap(0xb0)));
    assert_eq!(refused(|p| p.config[0xc0] = 0x11), (0xc0, Reason::CapabilityTwice(0x11)));
    assert_eq!(refused(|p| (p.config[0xc1], p.config[0xf8]) = (0xf8, 0x11)), (0xf8, Reason::CapabilityCutOff));
}

#[test]
fn an_msi_x_table_that_cannot_be_is_refused() {
    assert_eq!(refused(|p| p.set(0xb4, 0x3f00)), (0xb4, Reason::TableOutside));
    assert_eq!(refused(|p| p.set(0xb4, 0xffff_fff8)), (0xb4, Reason::TableOutside));
    assert_eq!(refused(|p| p.set(0xb4, 1)), (0xb4, Reason::TableOutside), "the upper half of a register");
    assert_eq!(refused(|p| p.set(0xb4, 4)), (0xb4, Reason::TableOutside), "ports");
    assert_eq!(refused(|p| p.set(0xb8, 7)), (0xb4, Reason::TableOutside), "no such register");
    assert_eq!(refused(|p| p.set(0xb8, 0x4000)), (0xb8, Reason::PendingOutside));
    assert_eq!(refused(|p| p.set(0xb8, 0x2000)), (0xb8, Reason::PendingInTable));
    assert_eq!(refused(|p| p.set(0xb8, 0x2278)), (0xb8, Reason::PendingInTable));
    assert_eq!(refused(|p| p.set(0x50, 0x018c_7005)), (0x50, Reason::MsiVectors));
}

#[test]
fn a_range_that_cannot_be_is_refused() {
    assert_eq!(refused(|p| p.masks[2] = 0xffff_a000), (0x18, Reason::RangeSize));
    assert_eq!(refused(|p| p.masks[4] = 0xffff_f000), (0x20, Reason::RangeSize));
    assert_eq!(refused(|p| p.set(0x18, 0x2)), (0x18, Reason::UnknownRange));
    assert_eq!(refused(|p| p.set(0x24, 0x4)), (0x24, Reason::HalfRange));
    assert_eq!(refused(|p| p.set(0x18, 0)), (0x18, Reason::RangeNotPlaced));
    assert_eq!(refused(|p| p.set(0x20, 0xfffe_0001)), (0x20, Reason::RangeNotPlaced));
    assert_eq!(refused(|p| p.masks[2] |= 0x2), (0x18, Reason::RangeChanges), "its flags can be written");
}

/// A function with a range that is smaller when its size is asked for again.
struct Shrinking(FakePhysical);

impl Physical for Shrinking {
    fn read_config(&mut self, register: u16, size: AccessSize) -> u32 {
        self.0.read_config(register, size)
    }
    fn write_config(&mut self, register: u16, size: AccessSize, value: u32) {
        self.0.write_config(register, size, value);
        if register == 0x18 && value != u32::MAX {
            self.0.masks[2] = 0xffff_f000;
        }
    }
    fn read(&mut self, _: u8, _: u64, _: AccessSize) -> u64 {
        unreachable!()
    }
    fn write(&mut self, _: u8, _: u64, _: AccessSize, _: u64) {}
    fn map(&mut self, _: Piece) -> bool {
        false
    }
    fn unmap(&mut self, _: Piece) {}
    fn set_interrupts(&mut self, _: Interrupts) {}
    fn open_vector(&mut self, _: u16) {}
    fn identity(&self) -> HostIdentity {
        self.0.identity()
    }
    fn route(&self, vector: u16) -> Route {
        self.0.route(vector)
    }
    fn is_possible(&self, _: Route) -> bool {
        false
    }
    fn adopt(&mut self, _: Interrupts, _: &mut dyn Iterator<Item = (u16, Route)>) {}
    fn unmask(&mut self) {}
    fn reset(&mut self) -> bool {
        false
    }
}

#[test]
fn a_range_that_changes_its_size_is_refused() {
    let problem = Description::probe(name(), &mut Shrinking(physical()), None).expect_err("it is refused");
    assert_eq!(problem, Problem { function: name(), register: 0x18, reason: Reason::RangeChanges });
    let text = "0000:01:00.0: register 0x18: the range has another size at a second reading";
    assert_eq!(problem.to_string(), text);
}

#[test]
fn a_function_that_vanishes_at_any_moment_is_refused() {
    let mut whole = physical();
    Description::probe(name(), &mut whole, None).unwrap();
    for after in 0..whole.accesses {
        let mut physical = physical();
        physical.vanishes_after = after;
        assert!(Description::probe(name(), &mut physical, None).is_err(), "after {after} accesses");
    }
    assert_eq!(refused(|p| p.is_gone = true), (0, Reason::Vanished));
    assert_eq!(refused(|p| p.config[0x0e] = 1), (0x0e, Reason::NotEndpoint(1)));
}

#[test]
fn a_guest_sees_nothing_but_what_is_described() {
    let mut lab = Lab::new(1);
    assert_eq!(lab.config(0, 0), 0xabcd_1234);
    assert_eq!((lab.config(0, 8), lab.config(0, 0x2c)), (0x0108_0203, 0x5678_9abc));
    assert_eq!((lab.config(0, 0x30), lab.config(0, 0x3c)), (0, 0x100), "no ROM; INTA");
    assert_eq!(lab.config(0, 0x100), u32::MAX, "no extended configuration space");
    let (mut list, mut next) = (Vec::new(), lab.config(0, 0x34));
    while next != 0 {
        let capability = lab.config(0, next.into());
        list.push((u64::from(next), capability & 0xff));
        next = capability >> 8 & 0xff;
    }
    assert_eq!(list, [(POWER, 0x01), (EXPRESS, 0x10), (MSI, 0x05), (MSIX, 0x11)], "the vendor's own is hidden");
    assert_eq!(lab.config(0, EXPRESS) >> 16, 0x92, "an integrated endpoint without a link");
    assert_eq!((lab.config(0, MSIX + 4), lab.config(0, MSIX + 8)), (0x2000, 0x3000));
}

proptest! {
    #[test]
    fn any_registers_are_described_or_refused(
        changes in prop::collection::vec((0usize..256, any::<u8>()), 0..8),
        masks in prop::option::of(any::<[u32; 6]>()),
        vanishes_after in prop_oneof![Just(u32::MAX), 0u32..128],
        is_virtio: bool,
    ) {
        let mut physical = physical();
        if is_virtio {
            super::virtio::make_virtio(&mut physical);
        }
        changes.into_iter().for_each(|(at, value)| physical.config[at] = value);
        physical.masks = masks.unwrap_or(physical.masks);
        physical.vanishes_after = vanishes_after;
        let before = physical.config;
        let result = Description::probe(name(), &mut physical, Some(PIN));
        prop_assert!(physical.accesses < 256, "it ends");
        match result {
            Err(problem) => drop(problem.to_string()),
            Ok(description) => {
                prop_assert_eq!(&physical.config[8..], &before[8..]);
                let state = description.save(physical.identity());
                let identity = HostIdentity::from_saved(zerocopy::IntoBytes::as_bytes(&state));
                prop_assert_eq!(identity, Some(physical.identity()));
                prop_assert_eq!(Description::from_saved(zerocopy::IntoBytes::as_bytes(&state)), Ok(description));
                prop_assert!(space::build(&description).is_some());
            }
        }
    }
}
