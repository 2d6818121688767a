// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole guest that another image hands over: its policy, a vCPU, its devices. What is accepted must be
//! able to go on and to be handed over again, the same.

use std::sync::Arc;

use handover::block::{self, HEAD_BYTES};
use handover::image::Reader;
use handover::state::{BlockState, Console, CpuidLeaf, Devices, Late, PciFunction, Policy, Vcpu};
use handover::{BlockMut, OLDEST_VERSION, Owner, VERSION};
use vm::cpu::cpuid::{CpuidConfig, CpuidTable};
use vm::cpu::kvmclock::TscScale;
use vm::machine::{Cpu, Machine, MachineConfig, check_area};
use vm::testing::{FakeHost, FakeMemory, FakeVcpu};
use zerocopy::{FromZeros, IntoBytes};

use crate::input::Input;
use crate::machine::{host_cpuid, next};

const MEMORY_BYTES: usize = 0x1_0000;
const OWNER: Owner = Owner { guest: 1, vcpu: 0 };

/// One guest's hand-over state, less its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HandOver {
    policy: Policy,
    leaves: Vec<u8>,
    vcpu: Vcpu,
    devices: Devices,
    tail: Vec<u8>,
    /// The hand-over version of the form of `devices`.
    version: u32,
}

/// A guest's state in which the input has changed what it likes, or blocks of anything.
pub fn guest_states(data: &[u8]) {
    let mut input = Input(data);
    if input.bool() {
        return blocks(&mut input);
    }
    let mut hand_over = fresh(&mut input);
    for _ in 0..input.u8() & 0xf {
        change(&mut hand_over, &mut input);
    }
    area(&hand_over, &mut input);
    let Some((machine, mut vcpu, mut cpu)) = opened(&hand_over) else { return };
    let mut host = FakeHost::default();
    while !input.is_empty() {
        let exit = next(&mut vcpu, &mut input, machine.memory());
        let _ = machine.context(&mut vcpu, &mut cpu, &mut host).handle(exit);
        host.tsc = host.tsc.wrapping_add(input.number());
        machine.context(&mut vcpu, &mut cpu, &mut host).alarm();
        machine.context(&mut vcpu, &mut cpu, &mut host).prepare_entry();
        if input.bool() {
            vcpu.injected = None;
        }
    }
    let after = saved(&machine, &vcpu, &cpu, hand_over.version);
    // XCR0 and PAT of the fake CPU are whatever the input states; a real one's are checked as they are written.
    if let Some((machine, vcpu, cpu)) = opened(&after) {
        assert_eq!(saved(&machine, &vcpu, &cpu, hand_over.version), after, "restored and saved again");
    }
}

fn fresh(input: &mut Input<'_>) -> HandOver {
    let config = MachineConfig {
        vcpus: 1 + u32::from(input.u8() & 3),
        cpuid: CpuidTable::new(&host_cpuid, &CpuidConfig { vcpus: 2, tsc_khz: 3_000_000, apic_timer_khz: 3_000_000 }),
        scale: TscScale::from_hz(3_000_000_000).expect("3 GHz is a frequency"),
        boot_unix_ns: input.u64(),
        has_debug_exit: input.bool(),
    };
    let machine = Machine::new(FakeMemory::new(MEMORY_BYTES), config);
    let vcpu = FakeVcpu { xcr0: 1, ..FakeVcpu::default() };
    let cpu = Cpu::new(0, true, input.number(), 1, Arc::default());
    let version = if input.bool() { VERSION } else { OLDEST_VERSION };
    saved(&machine, &vcpu, &cpu, version)
}

fn saved(machine: &Machine<FakeMemory>, vcpu: &FakeVcpu, cpu: &Cpu, version: u32) -> HandOver {
    let (mut policy, mut leaves) = (Policy::new_zeroed(), vec![0; 128 * size_of::<CpuidLeaf>()]);
    let used = machine.save_policy(&mut policy, &mut leaves).expect("no guest has more leaves");
    leaves.truncate(used);
    let mut state = Vcpu::new_zeroed();
    machine.save_vcpu(vcpu, cpu, &mut state);
    machine.save_mailbox(0, &mut state);
    let (mut devices, mut tail) = (Devices::new_zeroed(), vec![0; machine.devices_tail_bytes()]);
    let used = machine.save_devices(&mut devices, &mut tail, Reader::of(version)).expect("there is room");
    tail.truncate(used);
    HandOver { version, policy, leaves, vcpu: state, devices, tail }
}

fn opened(hand_over: &HandOver) -> Option<(Machine<FakeMemory>, FakeVcpu, Cpu)> {
    let memory = FakeMemory::new(MEMORY_BYTES);
    let machine =
        Machine::adopt(memory, &hand_over.policy, &hand_over.leaves).map_err(|error| error.to_string()).ok()?;
    let (mut vcpu, mut cpu) = (FakeVcpu::default(), Cpu::new(0, true, 0, 0, Arc::default()));
    machine.restore_vcpu(&hand_over.vcpu, &mut vcpu, &mut cpu).map_err(|error| error.to_string()).ok()?;
    machine.restore_devices(&hand_over.devices, &hand_over.tail).map_err(|error| error.to_string()).ok()?;
    Some((machine, vcpu, cpu))
}

fn change(hand_over: &mut HandOver, input: &mut Input<'_>) {
    let bytes = match input.u8() % 5 {
        0 => hand_over.policy.as_mut_bytes(),
        1 => &mut hand_over.leaves[..],
        2 => hand_over.devices.as_mut_bytes(),
        3 => &mut hand_over.tail[..],
        _ => hand_over.vcpu.as_mut_bytes(),
    };
    let at = usize::from(input.u16()) % bytes.len().max(1);
    for byte in bytes.iter_mut().skip(at).take(usize::from(input.u8() & 7)) {
        *byte = input.u8();
    }
}

/// The area of extended registers that belongs to this state.
fn area(hand_over: &HandOver, input: &mut Input<'_>) {
    let mut area = vec![0; usize::from(input.u16() & 0xfff)];
    area.iter_mut().for_each(|byte| *byte = input.u8());
    if let Err(error) = check_area(&hand_over.vcpu.extended, &area, input.number(), usize::from(input.u16())) {
        drop(error.to_string());
    }
}

/// Blocks of any bytes, and of any bytes behind a good header.
fn blocks(input: &mut Input<'_>) {
    let mut bytes = input.take(2 * HEAD_BYTES).to_vec();
    bytes.resize(HEAD_BYTES + size_of::<PciFunction>(), 0x55);
    let _ = block::identify(&bytes);
    any_block::<Policy>(&bytes);
    any_block::<Vcpu>(&bytes);
    any_block::<Late>(&bytes);
    let mut begun = BlockMut::<Console>::begin(&mut bytes, OWNER, VERSION).expect("it is large enough");
    let (console, tail) = begun.parts().expect("it was begun");
    (console.output_bytes, console.input_bytes) = (input.u32().into(), u32::from(input.u8()).into());
    let tail_bytes = usize::from(input.u16()) % tail.len();
    begun.finish(tail_bytes).expect("there are as many");
    let (console, tail) = block::open::<Console>(&bytes, OWNER).expect("it was finished");
    assert!(console.split(tail).is_none_or(|(output, input)| output.len() + input.len() == tail_bytes));
}

fn any_block<T: BlockState>(bytes: &[u8]) {
    if let Err(error) = block::open::<T>(bytes, OWNER) {
        drop(error.to_string());
    }
}
