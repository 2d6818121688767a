// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever the bytes: a reason, or a machine that can run and can be saved again.

use handover::state::{Devices, Policy, Vcpu};
use prop::sample::Index;
use zerocopy::{FromZeros as _, IntoBytes as _};

use super::*;

/// The part of the saved state that is changed: structures and tails, of which the sums would be right.
#[derive(Clone, Copy, Debug)]
enum Place {
    Policy,
    Leaves,
    Vcpu,
    Devices,
    Functions,
}

fn places() -> impl Strategy<Value = Place> {
    prop::sample::select(&[Place::Policy, Place::Leaves, Place::Vcpu, Place::Devices, Place::Functions][..])
}

fn change(bytes: &mut [u8], at: Index, value: u8) {
    bytes[at.index(bytes.len())] = value;
}

fn contents<T: state::BlockState>(block: &[u8]) -> (T, Vec<u8>) {
    let (state, tail) = open::<T>(block, owner(0)).unwrap();
    (state, tail.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_changed_state_is_refused_or_can_run(
        before in prop::collection::vec(step(), 0..6),
        changes in prop::collection::vec((places(), any::<Index>(), any::<u8>()), 1..4),
        after in prop::collection::vec(step(), 0..6),
    ) {
        let mut lab = Lab::new();
        run(&mut lab, &before);
        let hand_over = lab.hand_over();
        let (mut policy, mut leaves) = contents::<Policy>(&hand_over.policy);
        let (mut vcpu, _) = contents::<Vcpu>(&hand_over.vcpu);
        let (mut devices, mut functions) = contents::<Devices>(&hand_over.devices);
        for (place, at, value) in changes {
            match place {
                Place::Policy => change(policy.as_mut_bytes(), at, value),
                Place::Leaves => change(&mut leaves, at, value),
                Place::Vcpu => change(vcpu.as_mut_bytes(), at, value),
                Place::Devices => change(devices.as_mut_bytes(), at, value),
                Place::Functions => change(&mut functions, at, value),
            }
        }
        let spoilt = HandOver {
            policy: block(0, VERSION, |into, tail| { *into = policy; tail[..leaves.len()].copy_from_slice(&leaves); leaves.len() }),
            vcpu: block(0, VERSION, |into, _| { *into = vcpu; 0 }),
            devices: block(0, VERSION, |into, tail| { *into = devices; tail[..functions.len()].copy_from_slice(&functions); functions.len() }),
            ..hand_over
        };
        if let Ok(mut lab) = Lab::opened(&spoilt, lab.host.clone()) {
            run(&mut lab, &after);
            let mut again = lab.carried();
            run(&mut again, &after);
        }
    }

    #[test]
    fn a_piece_of_anything_is_refused_or_can_run(
        piece in 0..5usize,
        seed in prop::collection::vec(any::<u8>(), 256),
        steps in prop::collection::vec(step(), 0..4),
    ) {
        let mut lab = Lab::new();
        let mut vcpu = Vcpu::new_zeroed();
        lab.machine.save_vcpu(&lab.vcpu, &lab.cpu, &mut vcpu);
        // One at a time: all of it at random would never pass the first check.
        let bytes = match piece {
            0 => vcpu.events.as_mut_bytes(),
            1 => vcpu.time.as_mut_bytes(),
            2 => vcpu.msrs.as_mut_bytes(),
            3 => vcpu.mail.as_mut_bytes(),
            _ => vcpu.lapic.as_mut_bytes(),
        };
        bytes.iter_mut().zip(&seed).for_each(|(byte, random)| *byte ^= random & random.rotate_left(4));
        if lab.machine.restore_vcpu(&vcpu, &mut lab.vcpu, &mut lab.cpu).is_ok() {
            run(&mut lab.carried(), &steps);
        }
    }
}

fn run(lab: &mut Lab, steps: &[super::super::properties::Step]) {
    for step in steps {
        let exit = lab.prepare(step);
        lab.handle(exit);
        lab.pass(step.ticks.into());
        lab.enter();
    }
}
