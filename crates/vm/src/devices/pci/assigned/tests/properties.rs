// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for every behaviour of a guest: the model panics where it reaches what it must not.

use super::*;

/// Most requests to the host that come of one access: every range unmapped and mapped again, all vectors opened, the
/// command register, the way to interrupt.
const MOST_REQUESTS: u32 = 2 * 3 * 6 * 2 + 40 + 4;

#[derive(Clone, Debug)]
pub enum Step {
    Config(u64, u64, AccessSize, u64),
    Read(u64, AccessSize),
    Write(u64, AccessSize, u64),
    Raise(usize, Raised),
    End(u8),
    FinishReset(usize, bool),
    Vanish(usize),
}

fn any_size() -> impl Strategy<Value = AccessSize> {
    prop_oneof![Just(AccessSize::Byte), Just(AccessSize::Word), Just(DWORD), Just(AccessSize::Qword)]
}

/// An address that is interesting to move ranges to, or to access.
fn any_address() -> impl Strategy<Value = u64> {
    let base = prop_oneof![
        Just(HIGH),
        Just(HIGH + 0x4000),
        Just(0xc000_0000),
        Just(0xdfff_c000),
        Just(0xfec0_0000),
        Just(1 << 32),
        Just(!0x3fff),
        any::<u64>(),
    ];
    (base, prop_oneof![Just(0u64), 0x1ff8u64..0x3020, 0u64..0x4000])
        .prop_map(|(base, offset)| base.wrapping_add(offset))
}

fn any_config() -> impl Strategy<Value = Step> {
    let anything = (0u64..3, 0u64..0x108, any_size(), any::<u64>());
    let command = (0u64..2, 0u64..0x800).prop_map(|(function, value)| (function, 4, AccessSize::Word, value));
    let wide = (0u64..2, any_address()).prop_map(|(function, to)| (function, 0x10, AccessSize::Qword, to));
    let narrow = (0u64..2, any_address()).prop_map(|(function, to)| (function, 0x18, DWORD, to));
    let msix = (0u64..2, any::<u32>()).prop_map(|(function, value)| (function, MSIX, DWORD, value.into()));
    let msi = (0u64..2, any::<u32>()).prop_map(|(function, value)| (function, MSI, DWORD, value.into()));
    let reset = (0u64..2, any::<u32>()).prop_map(|(function, value)| (function, DEVICE_CONTROL, DWORD, value.into()));
    let any = prop_oneof![2 => anything, 4 => command, 4 => wide, 2 => narrow, 2 => msix, 1 => msi, 1 => reset];
    any.prop_map(|(function, register, size, value)| Step::Config(function, register, size, value))
}

pub fn any_step() -> impl Strategy<Value = Step> {
    let raised = prop_oneof![Just(Raised::Line), (0u16..44).prop_map(Raised::Vector)];
    let entry = (0u64..660, any_size(), prop_oneof![Just(0u64), Just(0xfee0_0000), any::<u64>()]);
    prop_oneof![
        8 => any_config(),
        2 => (any_address(), any_size()).prop_map(|(address, size)| Step::Read(address, size)),
        2 => (any_address(), any_size(), any::<u64>()).prop_map(|(address, size, value)| Step::Write(address, size, value)),
        3 => entry.prop_map(|(offset, size, value)| Step::Write(HIGH + 0x2000 + offset, size, value)),
        3 => (0usize..2, raised).prop_map(|(function, raised)| Step::Raise(function, raised)),
        1 => any::<u8>().prop_map(Step::End),
        1 => (0usize..2, prop::bool::weighted(0.9)).prop_map(|(function, is_done)| Step::FinishReset(function, is_done)),
    ]
}

/// Takes a step, and returns what the guest sees of it.
pub fn take(lab: &mut Lab, step: &Step) -> (u64, Vec<crate::devices::InterruptMessage>) {
    let seen = match *step {
        Step::Config(function, register, size, value) => {
            let address = layout::ECAM.0 + (function + 1) * 0x8000 + register;
            lab.write(address, size, value);
            lab.read(address, size)
        }
        // Memory and mapped pages are accessed without an exit.
        Step::Read(address, _) | Step::Write(address, ..) if lab.space.lock().unwrap().at(address).is_some() => 0,
        Step::Read(address, size) => lab.read(address, size),
        Step::Write(address, size, value) => {
            lab.write(address, size, value);
            0
        }
        Step::Raise(function, raised) => {
            lab.with(function, |function, outputs| function.raise(raised, outputs));
            0
        }
        Step::End(vector) => {
            for device in lab.bus.lines_ended(vector) {
                device.lock().end_line(&mut lab.world.outputs);
            }
            lab.bus.apply_lines(&mut lab.world.outputs);
            0
        }
        Step::FinishReset(function, is_done) => {
            if lab.phase(function) == Phase::Resetting {
                lab.physical(function, FakePhysical::reset_is_over);
            }
            lab.with(function, |function, outputs| function.finish_reset(is_done, outputs));
            lab.bus.place_functions();
            0
        }
        Step::Vanish(function) => {
            lab.with(function, |function, outputs| function.vanish(outputs));
            lab.bus.place_functions();
            0
        }
    };
    (seen, lab.world.outputs.take_messages().collect())
}

fn check(lab: &mut Lab) {
    for function in &lab.functions {
        let mut function = function.lock();
        let windows: Windows = core::array::from_fn(|bar| function.window(bar));
        let phase = function.phase();
        let guests = function.parts().0.config()[4];
        let physical = function.physical();
        physical.check_mapped_in(&windows);
        assert_eq!(physical.get(4) & 0b11, 0b11, "the hardware decodes where the host has placed it");
        assert!(
            phase != Phase::Ready || physical.get(4) as u8 & 4 == guests & 4,
            "bus mastering is as the guest wants"
        );
    }
}

proptest! {
    #[test]
    fn a_guest_reaches_nothing_but_its_function(steps in prop::collection::vec(any_step(), 1..64)) {
        let mut lab = Lab::new(2);
        for step in &steps {
            let before = lab.physical(0, |p| p.requests) + lab.physical(1, |p| p.requests);
            take(&mut lab, step);
            let after = lab.physical(0, |p| p.requests) + lab.physical(1, |p| p.requests);
            prop_assert!(after - before <= MOST_REQUESTS, "{} requests by one access", after - before);
            check(&mut lab);
        }
        for function in 0..2 {
            take(&mut lab, &Step::Vanish(function));
        }
        prop_assert_eq!(lab.mapped(), []);
    }

    /// Each interrupt of an unmasked vector is a message, each of a masked one is one when it is unmasked.
    #[test]
    fn each_interrupt_is_counted_once(raised in prop::collection::vec((0u64..8, any::<bool>()), 0..64)) {
        let mut lab = Lab::new(1);
        lab.enable_at(0, HIGH);
        let entry = |vector: u64| HIGH + FakePhysical::TABLE + 16 * vector;
        for vector in 0..8 {
            lab.write(entry(vector), AccessSize::Qword, 0xfee0_0000);
            lab.write(entry(vector) + 8, AccessSize::Qword, 0x40 + vector);
        }
        lab.set_config(0, MSIX, 1 << 31);
        for (vector, is_masked) in raised {
            lab.write(entry(vector) + 12, DWORD, is_masked.into());
            lab.with(0, |function, outputs| function.raise(Raised::Vector(vector as u16), outputs));
            lab.write(entry(vector) + 12, DWORD, 0);
            prop_assert_eq!(lab.sent(), [0x40 + vector as u8]);
        }
    }
}
