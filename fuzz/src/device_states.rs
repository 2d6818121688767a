// SPDX-License-Identifier: MIT OR Apache-2.0
//! States that another image hands over: whatever is accepted must be a state that the device can go on from.

use vm::cpu::kvmclock::{VcpuClock, VcpuClockState};
use vm::cpu::msr::{MsrState, PlainMsrs};
use vm::devices::StateError;
use vm::devices::cmos::{Cmos, CmosState};
use vm::devices::device::Device as _;
use vm::devices::ioapic::{Ioapic, IoapicState};
use vm::devices::lapic::{Lapic, LapicState, VectorSet};
use vm::devices::pci::{Endpoint, Slot};
use vm::devices::power::{Power, PowerState};
use vm::devices::serial::{Serial, SerialState};
use vm::testing::Probe;

use crate::devices::{drive_cmos, drive_ioapic, drive_lapic, drive_pci, drive_power, drive_serial};
use crate::input::Input;

/// A state of one device, which the first byte chooses, and accesses after it.
pub fn device_states(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() & 7 {
        0 => go_on(Lapic::from_state(lapic(&mut input)), drive_lapic, &mut input),
        1 => go_on(Ioapic::from_state(ioapic(&mut input)), drive_ioapic, &mut input),
        2 => go_on(Serial::from_state(serial(&mut input)), drive_serial, &mut input),
        3 => go_on(Cmos::from_state(cmos(&mut input)), drive_cmos, &mut input),
        4 => go_on(pci(&mut input), drive_pci, &mut input),
        5 => {
            let state = PowerState { sleep_control: input.u8(), reset_control: input.u8() };
            go_on(Power::from_state(state), drive_power, &mut input);
        }
        6 => clock(&mut input),
        _ => msrs(&mut input),
    }
}

fn go_on<T>(restored: Result<T, StateError>, drive: impl FnOnce(T, &mut Input<'_>), input: &mut Input<'_>) {
    match restored {
        Ok(device) => drive(device, input),
        Err(error) => drop(error.to_string()),
    }
}

fn vectors(input: &mut Input<'_>) -> VectorSet {
    VectorSet(core::array::from_fn(|_| input.number() & if input.bool() { !0xffff } else { u64::MAX }))
}

fn lapic(input: &mut Input<'_>) -> LapicState {
    let mut state = Lapic::new(input.u32(), input.bool()).state();
    let fields = input.u16();
    let is_set = |bit: u32| fields & 1 << bit != 0;
    if is_set(0) {
        state.apic_base = 0xfee0_0000 | u64::from(input.u8()) << 8;
    }
    if is_set(1) {
        (state.requested, state.in_service, state.trigger_mode) = (vectors(input), vectors(input), vectors(input));
    }
    if is_set(2) {
        (state.spurious, state.task_priority) = (input.u16().into(), input.u8());
    }
    if is_set(3) {
        state.local_vectors.iter_mut().for_each(|vector| *vector = input.number() as u32);
    }
    if is_set(4) {
        (state.timer_deadline, state.initial_count) = (input.number(), input.number() as u32);
    }
    if is_set(5) {
        (state.divide, state.interrupt_command) = (input.u8().into(), input.number());
    }
    if is_set(6) {
        (state.logical_destination, state.destination_format) = (input.u32(), input.number() as u32);
    }
    if is_set(7) {
        (state.error_status, state.errors_pending) = (input.u8().into(), input.u8().into());
    }
    state
}

fn ioapic(input: &mut Input<'_>) -> IoapicState {
    let mut state = Ioapic::new(0).state();
    (state.index, state.id, state.lines) = (input.u8(), input.u8(), input.number() as u32);
    while input.bool() {
        let pin = usize::from(input.u8()) % state.entries.len();
        state.entries[pin] = input.number();
    }
    state
}

fn serial(input: &mut Input<'_>) -> SerialState {
    let mut state = Serial::new().state();
    (state.fifo_control, state.interrupt_enable) = (input.u8(), input.u8());
    (state.line_control, state.modem_control, state.modem_changes) = (input.u8(), input.u8(), input.u8());
    (state.divisor, state.overrun, state.transmit_empty_pending) = (input.u16(), input.bool(), input.bool());
    let received = usize::from(input.u8()) % (state.received.capacity() + 1);
    state.received.extend(input.take(received).iter().copied());
    state
}

fn cmos(input: &mut Input<'_>) -> CmosState {
    let mut state = Cmos::new().state();
    (state.index, state.register_a, state.register_b) = (input.u8(), input.u8(), input.u8());
    (state.offset_seconds, state.held_time) = (input.number() as i64, input.array());
    state
}

/// A function with MSI and MSI-X, and state that the input has changed.
fn pci(input: &mut Input<'_>) -> Result<Endpoint<Probe>, StateError> {
    let mut function = Probe::in_slot(Slot(8));
    let mut state = vec![0; function.state_bytes()];
    let used = function.save(&mut state).expect("there is room");
    state.truncate(used);
    while input.bool() {
        let at = usize::from(input.u16()) % state.len();
        state[at] = input.u8();
    }
    state.truncate(state.len() - usize::from(input.u8() == 1));
    function.restore(function.state_version(), &state).map(|()| function)
}

fn clock(input: &mut Input<'_>) {
    let state = VcpuClockState { msr: input.number(), version: input.u32() };
    if let Ok(clock) = VcpuClock::from_state(&state) {
        assert_eq!(clock.state(), state);
    }
}

fn msrs(input: &mut Input<'_>) {
    let mut state = PlainMsrs::new(input.u32()).state();
    (state.mcg_status, state.misc_enable, state.hwcr) = (input.number(), input.number(), input.number());
    let state = MsrState { mtrr_default_type: input.number(), nb_cfg: input.number(), ..state };
    if let Ok(registers) = PlainMsrs::from_state(&state) {
        assert_eq!(registers.state(), state);
    }
}
