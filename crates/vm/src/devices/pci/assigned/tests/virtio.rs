// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capabilities by which a virtio driver finds its registers.

use std::vec;

use super::*;

/// Makes a virtio network card of the function: registers in range 2, and a capability of each type up to 5.
pub(super) fn make_virtio(physical: &mut FakePhysical) {
    physical.set(0x00, 0x1041_1af4);
    let common = [(0xc0, 0x0110_d009), (0xc4, 2), (0xc8, 0), (0xcc, 0x1000)];
    let notifications = [(0xd0, 0x0214_e409), (0xd4, 2), (0xd8, 0x1000), (0xdc, 0x400), (0xe0, 4)];
    let status = [(0xe4, 0x0310_8409), (0xe8, 2), (0xec, 0x1400), (0xf0, 1)];
    let device = [(0x84, 0x0410_f409), (0x88, 2), (0x8c, 0x1f80), (0x90, 0x80), (0xf4, 0x0514_0009)];
    let all = common.into_iter().chain(notifications).chain(status).chain(device);
    all.for_each(|(register, value)| physical.set(register, value));
}

fn probed(change: impl FnOnce(&mut FakePhysical)) -> Result<Description, (u16, Reason)> {
    let mut physical = FakePhysical::new(0, &FakeAddressSpace::new(MEMORY_BYTES));
    make_virtio(&mut physical);
    change(&mut physical);
    Description::probe(name(), &mut physical, None).map_err(|problem| (problem.register, problem.reason))
}

fn structures(change: impl FnOnce(&mut FakePhysical)) -> [Option<(u8, u32, u32)>; 4] {
    let places = probed(change).expect("it is good").virtio.places;
    places.map(|place| place.map(|place| (place.bar, place.offset, place.bytes)))
}

const COMMON: Option<(u8, u32, u32)> = Some((2, 0, 0x1000));
const OTHERS: [Option<(u8, u32, u32)>; 3] = [Some((2, 0x1000, 0x400)), Some((2, 0x1400, 1)), Some((2, 0x1f80, 0x80))];

#[test]
fn a_driver_finds_the_registers_where_the_device_has_them() {
    let mut lab = Lab::bare();
    let mut physical = FakePhysical::new(0, &lab.space);
    make_virtio(&mut physical);
    let description = Description::probe(name(), &mut physical, None).expect("it is good");
    physical.is_sealed = true;
    lab.attach(description, physical);
    let (mut shown, mut next) = (Vec::new(), lab.config(0, 0x34) as u64);
    while next != 0 {
        let head = lab.config(0, next);
        if head & 0xff == 0x09 {
            let words: Vec<u32> =
                (1..u64::from(head >> 18 & 0x3f)).map(|word| lab.config(0, next + 4 * word)).collect();
            lab.set_config(0, next + 4, 5);
            assert_eq!(lab.config(0, next + 4), words[0], "it is read only");
            shown.push((head >> 24, words));
        }
        next = u64::from(head >> 8 & 0xff);
    }
    let all =
        [(1, vec![2, 0, 0x1000]), (2, vec![2, 0x1000, 0x400, 4]), (3, vec![2, 0x1400, 1]), (4, vec![2, 0x1f80, 0x80])];
    assert_eq!(shown, all, "all but the access by way of configuration space");
}

#[test]
fn the_first_of_a_type_counts_and_reserved_ranges_are_ignored() {
    assert_eq!(structures(|_| ()), [COMMON, OTHERS[0], OTHERS[1], OTHERS[2]]);
    assert_eq!(structures(|p| p.config[0xe7] = 1), [COMMON, OTHERS[0], None, OTHERS[2]], "a second of type 1");
    assert_eq!(structures(|p| p.set(0xc4, 6)), [None, OTHERS[0], OTHERS[1], OTHERS[2]]);
    assert_eq!(structures(|p| p.config[0xc3] = 0), [None, OTHERS[0], OTHERS[1], OTHERS[2]]);
    assert_eq!(structures(|p| p.set(0x00, 0x1041_8086)), [None; 4], "another vendor's own capabilities are hidden");
    assert_eq!(structures(|p| p.set(0x00, 0x1080_1af4)), [None; 4], "no virtio function");
}

#[test]
fn registers_outside_of_their_range_and_capabilities_in_each_other_are_refused() {
    let refused = |change: fn(&mut FakePhysical)| probed(change).expect_err("it is refused");
    assert_eq!(refused(|p| p.set(0xcc, 0x2001)), (0xc0, Reason::RegistersOutside));
    assert_eq!(refused(|p| p.set(0xc8, 0xffff_fff0)), (0xc0, Reason::RegistersOutside));
    assert_eq!(refused(|p| p.set(0xec, 0x2000)), (0xe4, Reason::RegistersOutside));
    assert_eq!(refused(|p| p.set(0xd4, 5)), (0xd0, Reason::RegistersOutside), "there is no such range");
    assert_eq!(refused(|p| p.set(0xcc, 0)), (0xc0, Reason::RegistersOutside), "no registers");
    let link = |p: &mut FakePhysical, from: usize, to: u8| {
        p.config[from] = to;
        p.set(to.into(), 0x0110_0009);
    };
    assert_eq!(probed(|p| link(p, 0xc1, 0xcc)).expect_err("overlap"), (0xcc, Reason::CapabilityOverlap(0xc0)));
    assert_eq!(probed(|p| link(p, 0xf5, 0xf8)).expect_err("cut off"), (0xf8, Reason::CapabilityCutOff));
}
