// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a bus and its functions that is handed over to the next image.

use std::vec;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Port(u8, AccessSize, u32),
    Enhanced(u64, AccessSize, u64),
    Memory(u64, AccessSize, u64),
}

fn any_size() -> impl Strategy<Value = AccessSize> {
    prop_oneof![Just(AccessSize::Byte), Just(AccessSize::Word), Just(AccessSize::Dword), Just(AccessSize::Qword)]
}

fn any_step() -> impl Strategy<Value = Step> {
    let address = (0u32..0x1000).prop_map(|address| Step::Port(0, DWORD, 0x8000_0000 | address));
    let port = (0u8..10, any_size(), any::<u32>()).prop_map(|(offset, size, value)| Step::Port(offset, size, value));
    let offset = prop_oneof![0u64..0x110, 0x8000u64..0x8070, any::<u64>()];
    let enhanced = (offset, any_size(), any::<u64>());
    let memory = (prop_oneof![0u64..0x10, 0x800u64..0x840, 0xc00u64..0xc10], any_size(), any::<u64>());
    prop_oneof![
        1 => address,
        1 => port,
        1 => enhanced.prop_map(|(offset, size, value)| Step::Enhanced(offset, size, value)),
        2 => memory.prop_map(|(offset, size, value)| Step::Memory(offset, size, value)),
    ]
}

/// Returns what a guest sees of a step.
fn take(lab: &mut Lab, step: &Step) -> (u64, Vec<crate::devices::InterruptMessage>) {
    let seen = match *step {
        Step::Port(offset, size, value) => {
            lab.write_port(offset, size, value);
            lab.read_port(offset, size)
        }
        Step::Enhanced(offset, size, value) => {
            lab.write_enhanced(offset, size, value);
            lab.read_enhanced(offset, size)
        }
        Step::Memory(offset, size, value) => {
            let address = u64::from(lab.config(0x10)) + offset;
            lab.write(Space::Memory, address, size, value);
            lab.read(Space::Memory, address, size).unwrap_or(0)
        }
    };
    (seen, lab.world.outputs.take_messages().collect())
}

/// The states of the bus and of all functions.
fn saved(lab: &Lab) -> Vec<Vec<u8>> {
    let of = |device: &dyn Device| {
        let mut bytes = vec![0; device.state_bytes()];
        let used = device.save(&mut bytes).expect("there is room");
        assert_eq!(used, bytes.len());
        assert_eq!(device.save(&mut vec![0; used - 1]), Err(Full));
        bytes
    };
    let functions = lab.devices.iter().map(|device| of(&*device.lock()));
    core::iter::once(of(&lab.bus)).chain(functions).collect()
}

fn restored(states: &[Vec<u8>]) -> Result<Lab, StateError> {
    let mut lab = Lab::with_probes(1);
    lab.bus.restore(1, &states[0])?;
    for (device, state) in lab.devices.iter().zip(&states[1..]) {
        let mut device = device.lock();
        let version = device.state_version();
        device.restore(version, state)?;
    }
    lab.bus.place();
    Ok(lab)
}

#[test]
fn a_state_of_another_machine_is_refused() {
    let refused = |change: fn(&mut Vec<Vec<u8>>)| {
        let mut states = saved(&Lab::with_probes(1));
        change(&mut states);
        restored(&states).map(drop).map_err(|error| error.field)
    };
    assert_eq!(refused(|_| ()), Ok(()));
    assert_eq!(refused(|states| states[0][0] = 1), Err("pci.address"));
    assert_eq!(refused(|states| states[1][0] = 1), Err("pci.functions"), "another slot");
    assert_eq!(refused(|states| states[1][8] = 0), Err("pci.functions.config"), "another vendor");
    assert_eq!(refused(|states| states[1][12] = 7), Ok(()), "the command register");
    assert_eq!(refused(|states| states[1].push(0)), Err("pci.functions"), "nothing is behind the host bridge");
    assert_eq!(refused(|states| states[2].truncate(300)), Err("pci.functions"));
    assert_eq!(refused(|states| states[2][264 + 12] = 2), Err("pci.functions.msix"), "vector control");
    assert_eq!(refused(|states| states[2][264 + 640 + 5] = 1), Err("pci.functions.msix"), "vector 40 is pending");
    assert_eq!(refused(|states| states[2].truncate(264 + 640 + 8 + 4)), Err("probe"));
}

#[test]
fn a_read_only_register_byte_is_compared_wherever_it_is() {
    for byte in 0..256 {
        let mut states = saved(&Lab::with_probes(1));
        // Behind the slot and its padding.
        states[1][8 + byte] ^= 0x80;
        // Of the host bridge's registers a guest writes only bits 0 to 2 of the command register.
        assert_eq!(
            restored(&states).map(drop).map_err(|error| error.field),
            Err("pci.functions.config"),
            "byte {byte}"
        );
    }
}

#[test]
fn a_function_is_after_a_reset_as_it_was_after_power_on() {
    let mut lab = Lab::with_probes(1);
    let fresh = saved(&lab);
    [(0x10, u32::MAX), (4, 7), (0x58, u32::MAX)]
        .into_iter()
        .for_each(|(register, value)| lab.set_config(register, value));
    take(&mut lab, &Step::Memory(0, DWORD, 5));
    take(&mut lab, &Step::Memory(0x800, DWORD, 0xfee0_0000));
    assert_ne!(saved(&lab), fresh);
    lab.devices.iter().for_each(|device| device.lock().reset());
    assert_eq!(saved(&lab), fresh);
}

proptest! {
    #[test]
    fn a_restored_bus_behaves_the_same(
        before in prop::collection::vec(any_step(), 0..32),
        after in prop::collection::vec(any_step(), 0..32),
    ) {
        let mut lab = Lab::with_probes(1);
        lab.set_config(0x10, 0xc000_0000);
        lab.set_config(4, 6);
        for step in &before {
            take(&mut lab, step);
        }
        let mut next = restored(&saved(&lab)).unwrap();
        for step in &after {
            prop_assert_eq!(take(&mut lab, step), take(&mut next, step));
        }
        prop_assert_eq!(saved(&lab), saved(&next));
    }

    #[test]
    fn a_hostile_state_is_refused_or_can_go_on(
        changes in prop::collection::vec((0usize..3, any::<prop::sample::Index>(), any::<u8>()), 1..6),
        steps in prop::collection::vec(any_step(), 0..16),
    ) {
        let mut states = saved(&Lab::with_probes(1));
        for (device, at, value) in changes {
            let at = at.index(states[device].len());
            states[device][at] = value;
        }
        if let Ok(mut lab) = restored(&states) {
            for step in &steps {
                take(&mut lab, step);
            }
            prop_assert!(restored(&saved(&lab)).is_ok());
        }
    }
}
