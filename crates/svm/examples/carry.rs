// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of handing a vCPU and its guest's devices from one image to the next, without the machine: one step, repeated a
//! given number of times, for a counter of instructions (`docs/bench.md`, "Live update").
//!
//! `carry STEP TIMES`, where the step is `nothing`, `save`, `restore`, `save-devices` or `restore-devices`.

use std::hint::black_box;
use std::sync::Arc;

use handover::block::{HEAD_BYTES, open};
use handover::image::Reader;
use handover::state::{BlockState, Devices, Vcpu as VcpuState};
use handover::{BlockMut, Owner, VERSION};
use svm::vcpu::Tables;
use svm::{Features, Vcpu, Vmcb};
use vm::cpu::cpuid::{CpuidConfig, CpuidResult, CpuidTable};
use vm::cpu::kvmclock::TscScale;
use vm::machine::{Cpu, Machine, MachineConfig};
use vm::testing::FakeMemory;
use vm::vcpu::{EntryState, VcpuState as _};

/// XSAVE's standard format with x87, SSE, AVX, AVX-512 and PKRU.
const AREA_BYTES: usize = 2696;
const OWNER: Owner = Owner { guest: 0, vcpu: 0 };

struct Guest {
    machine: Machine<FakeMemory>,
    vcpu: Vcpu<Box<Vmcb>>,
    cpu: Cpu,
}

fn guest() -> Guest {
    let host = |leaf: u32, _: u32| match leaf {
        0xd => CpuidResult { eax: 7, ebx: 832, ecx: 832, edx: 0 },
        _ => CpuidResult { eax: 0x8000_0021, ebx: 0x6874_7541, ecx: u32::MAX, edx: u32::MAX },
    };
    let config = MachineConfig {
        vcpus: 8,
        cpuid: CpuidTable::new(&host, &CpuidConfig { vcpus: 8, tsc_khz: 3_000_000, apic_timer_khz: 3_000_000 }),
        scale: TscScale::from_hz(3_000_000_000).expect("3 GHz is a frequency"),
        boot_unix_ns: 0,
        has_debug_exit: false,
    };
    let tables = Tables { io_map: 0x1000, msr_map: 0x4000, nested_root: 0x6000 };
    let entry = EntryState::at_startup_page(0);
    Guest {
        machine: Machine::new(FakeMemory::new(0x1000), config),
        vcpu: Vcpu::new(Box::new(Vmcb::zeroed()), Features::default(), 1, tables, &entry),
        cpu: Cpu::new(0, true, 0, 0, Arc::default()),
    }
}

fn save(guest: &Guest, block: &mut BlockMut<'_, VcpuState>) {
    let (state, _) = block.parts().expect("it was begun");
    guest.machine.save_vcpu(&guest.vcpu, &guest.cpu, state);
    guest.machine.save_mailbox(0, state);
    block.finish(AREA_BYTES).expect("there is room");
}

fn save_devices(guest: &Guest, block: &mut BlockMut<'_, Devices>) {
    let (state, tail) = block.parts().expect("it was begun");
    let used = guest.machine.save_devices(state, tail, Reader::of(VERSION)).expect("there is room");
    block.finish(used).expect("there is room");
}

fn restore(guest: &mut Guest, bytes: &[u8]) {
    let (state, _) = open::<VcpuState>(bytes, OWNER).expect("it was finished");
    guest.machine.restore_vcpu(&state, &mut guest.vcpu, &mut guest.cpu).expect("it was saved");
}

fn restore_devices(guest: &Guest, bytes: &[u8]) {
    let (state, tail) = open::<Devices>(bytes, OWNER).expect("it was finished");
    guest.machine.restore_devices(&state, tail).expect("it was saved");
}

fn begin<T: BlockState>(bytes: &mut [u8]) -> BlockMut<'_, T> {
    BlockMut::begin(bytes, OWNER, VERSION).expect("it is large enough")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (step, times) = (arguments.next().unwrap_or_default(), arguments.next().and_then(|times| times.parse().ok()));
    let (mut guest, times) = (guest(), times.unwrap_or(1u32));
    guest.vcpu.set_xcr0(1);
    let (mut bytes, mut device_bytes) = (vec![0; 2 * HEAD_BYTES], vec![0; 2 * HEAD_BYTES]);
    save(&guest, &mut begin(&mut bytes));
    save_devices(&guest, &mut begin(&mut device_bytes));
    match step.as_str() {
        "nothing" => (0..times).for_each(|_| _ = black_box(&guest)),
        "save" => {
            let mut block = begin(&mut bytes);
            (0..times).for_each(|_| save(black_box(&guest), &mut block));
        }
        "save-devices" => {
            let mut block = begin(&mut device_bytes);
            (0..times).for_each(|_| save_devices(black_box(&guest), &mut block));
        }
        "restore" => (0..times).for_each(|_| restore(black_box(&mut guest), black_box(&bytes))),
        "restore-devices" => (0..times).for_each(|_| restore_devices(black_box(&guest), black_box(&device_bytes))),
        other => panic!("'{other}' is no step: nothing, save, restore, save-devices, restore-devices"),
    }
}
