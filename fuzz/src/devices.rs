// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices: any accesses; afterwards each must be restorable from its own state.

use vm::addr::{AccessSize, Gpa};
use vm::devices::bus::Bus;
use vm::devices::cmos::Cmos;
use vm::devices::debug_exit::DebugExit;
use vm::devices::device::{At, Device};
use vm::devices::hot_plug::HotPlug;
use vm::devices::ioapic::Ioapic;
use vm::devices::lapic::{Lapic, MSR_X2APIC_FIRST};
use vm::devices::pci::{ConfigAccess, Configured as _, Endpoint, Slot};
use vm::devices::power::{Power, PowerRegister};
use vm::devices::pvpanic::Pvpanic;
use vm::devices::serial::{FIFO_BYTES, Serial};
use vm::devices::{DeliveryMode, Destination, GuestTsc, InterruptMessage};
use vm::testing::{FakeWorld, Probe};

use crate::input::Input;

/// Accesses to one device, which the first byte chooses.
pub fn devices(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() & 7 {
        0 => drive_lapic(Lapic::new(input.u32(), true), &mut input),
        1 => drive_ioapic(Ioapic::new(input.u8()), &mut input),
        2 => drive_serial(Serial::new(), &mut input),
        3 => drive_cmos(Cmos::new(), &mut input),
        4 if input.bool() => drive_pci(Probe::in_slot(Slot(8)), &mut input),
        4 => drive_bus(&mut input),
        5 => drive_power(Power::new(), &mut input),
        6 => drive_pvpanic(Pvpanic::new(), &mut input),
        _ => drive_debug_exit(DebugExit::new(), &mut input),
    }
}

fn size(input: &mut Input<'_>) -> AccessSize {
    input.choose(&[AccessSize::Byte, AccessSize::Word, AccessSize::Dword, AccessSize::Qword])
}

pub fn drive_lapic(mut lapic: Lapic, input: &mut Input<'_>) {
    let mut now = GuestTsc(0);
    while !input.is_empty() {
        match input.u8() % 12 {
            0 => now = GuestTsc(now.0.wrapping_add(input.number())),
            1 => drop(lapic.read_mmio(input.u16(), now)),
            2 | 3 => drop(lapic.write_mmio(u16::from(input.u8()) << 4, input.number() as u32, now)),
            4 => drop(lapic.read_msr(MSR_X2APIC_FIRST + u32::from(input.u8()), now)),
            5 | 6 => drop(lapic.write_msr(MSR_X2APIC_FIRST + u32::from(input.u8() & 0x3f), input.number(), now)),
            7 => drop(lapic.set_apic_base(0xfee0_0000 | u64::from(input.u8()) << 8)),
            8 => drop(lapic.accept(&message(input))),
            9 => {
                let pending = lapic.pending();
                assert_eq!(lapic.acknowledge(), pending);
            }
            10 => drop(lapic.end_of_interrupt()),
            _ => drop(lapic.set_tsc_deadline(input.number(), now)),
        }
        lapic.expire_timer(now);
        lapic.set_task_priority(lapic.task_priority());
        assert!(lapic.timer_deadline().is_none_or(|deadline| deadline > now || now.0 == u64::MAX));
    }
    assert_eq!(Lapic::from_state(lapic.state()).as_ref(), Ok(&lapic));
}

fn message(input: &mut Input<'_>) -> InterruptMessage {
    let (mode, vector, is_level) = (DeliveryMode::from_bits(input.u8()), input.u8(), input.bool());
    InterruptMessage { destination: Destination::All, mode: mode.unwrap_or(DeliveryMode::Fixed), vector, is_level }
}

pub fn drive_ioapic(mut ioapic: Ioapic, input: &mut Input<'_>) {
    let mut delivered = |_: InterruptMessage| {};
    while !input.is_empty() {
        match input.u8() % 4 {
            0 => {
                ioapic.write(0, input.u8().into(), &mut delivered);
                ioapic.write(0x10, input.u32(), &mut delivered);
            }
            1 => drop((ioapic.read(input.u16()), ioapic.read(0x10))),
            2 => drop(ioapic.set_line(input.u8() & 31, input.bool())),
            _ => ioapic.write(input.u16(), input.u32(), &mut delivered),
        }
    }
    assert_eq!(Ioapic::from_state(ioapic.state()).as_ref(), Ok(&ioapic));
}

pub fn drive_serial(mut serial: Serial, input: &mut Input<'_>) {
    while !input.is_empty() {
        match input.u8() % 3 {
            0 => drop(serial.read(input.u8())),
            1 => serial.write(input.u8() & 0xf, input.u8(), &mut |_| {}),
            _ => {
                let had_room = serial.room() > 0;
                assert_eq!(serial.receive(input.u8()).is_ok(), had_room);
            }
        }
        serial.interrupt_line();
        assert!(serial.room() <= FIFO_BYTES);
    }
    assert_eq!(Serial::from_state(serial.state()).as_ref(), Ok(&serial));
}

pub fn drive_cmos(mut cmos: Cmos, input: &mut Input<'_>) {
    while !input.is_empty() {
        let now = input.number();
        match input.bool() {
            true => cmos.write(input.u8() & 3, input.u8(), now),
            false => drop(cmos.read(input.u8() & 3, now)),
        }
    }
    assert_eq!(Cmos::from_state(cmos.state()).as_ref(), Ok(&cmos));
}

/// A function alone: what is accepted by its registers, MSI and MSI-X can be restored.
pub fn drive_pci(mut function: Endpoint<Probe>, input: &mut Input<'_>) {
    let mut world = FakeWorld::default();
    while !input.is_empty() {
        let (size, kind) = (size(input), input.u8());
        let (offset, value) = (u64::from(input.u16() & 0xfff), input.u64() & size.mask());
        let at = At { range: kind >> 6, offset, size };
        match kind & 7 {
            0..=3 => config(&mut function, input.u8(), kind & 1 != 0, (size, value), &mut world),
            4 => drop(Device::read(&mut function, at, &mut world.context())),
            5 => function.raise_pending(&mut world.outputs),
            _ => Device::write(&mut function, at, value, &mut world.context()),
        }
        drop(world.outputs.take_messages());
    }
    let mut state = vec![0; function.state_bytes()];
    let used = function.save(&mut state).expect("there is room");
    assert_eq!(Probe::in_slot(Slot(8)).restore(function.state_version(), &state[..used]), Ok(()));
}

fn config(
    function: &mut Endpoint<Probe>,
    register: u8,
    is_write: bool,
    (size, value): (AccessSize, u64),
    world: &mut FakeWorld,
) {
    let Some(access) = ConfigAccess::enhanced(8 << 12 | u64::from(register), size) else { return };
    match is_write {
        true => function.write_config(access, value, &mut world.context()),
        false => drop(function.read_config(access, &mut world.context())),
    }
}

/// From this port on the input is a step of the host's.
const HOSTS: u16 = 0xff00;
/// A device that comes and goes.
const PLUGGED: u8 = 3;

/// All devices of a machine behind their ports and addresses, two functions, which the input moves, and a third, which
/// comes and goes.
fn drive_bus(input: &mut Input<'_>) {
    let (mut bus, mut world) = (Bus::new(true), FakeWorld::default());
    [8, 16].into_iter().for_each(|slot| drop(bus.attach_function(Probe::in_slot(Slot(slot))).expect("it is free")));
    while !input.is_empty() {
        let (size, is_port, is_write) = (size(input), input.bool(), input.bool());
        let found = if is_port {
            let port = input.u16();
            if port >= HOSTS {
                plug(&bus, port, &mut world);
                continue;
            }
            bus.find_port(port, size)
        } else {
            let page = input.choose(&[0xfec0_0000, 0xe000_8000, 0xe001_0000, 0]);
            let address = if page == 0 { input.number() } else { page + u64::from(input.u8()) };
            bus.find_memory(Gpa(address), size)
        };
        let Some((device, at)) = found.and_then(|place| bus.device(place)) else { continue };
        let mut device = device.lock();
        match is_write {
            true => device.write(at, input.u64() & size.mask(), &mut world.context()),
            false => drop(device.read(at, &mut world.context())),
        }
        drop(device);
        drop((world.outputs.take_lines(), world.outputs.take_messages(), world.outputs.take_request()));
    }
}

/// The host lets a function come or go, asks the guest for one, or presses the power button.
fn plug(bus: &Bus, step: u16, world: &mut FakeWorld) {
    let (slot, mut controller) = (Slot::of_device(PLUGGED), bus.hot_plug().lock());
    match step % 7 {
        0 => drop(bus.plug(Probe::in_slot(slot))),
        1 => drop(bus.unplug(slot)),
        2 => controller.check((step >> 3) as u8 & 0x1f, &mut world.outputs),
        3 => controller.request((step >> 3) as u8 & 0x1f, &mut world.outputs),
        4 => controller.remove((step >> 3) as u8 & 0x1f, &mut world.outputs),
        5 => bus.power_button().lock().press(&mut world.outputs),
        _ => drop(controller.take_ejected()),
    }
    assert_eq!(HotPlug::from_state(controller.state()).as_ref(), Ok(&*controller));
    drop((world.outputs.take_lines(), world.outputs.take_messages(), world.outputs.take_request()));
}

pub fn drive_power(mut power: Power, input: &mut Input<'_>) {
    while !input.is_empty() {
        let Some(register) = PowerRegister::at_port(input.choose(&[0x600, 0x601, 0xcf9, 0xcfa])) else { continue };
        power.write(register, input.u8());
        power.read(register);
    }
    assert_eq!(Power::from_state(power.state()).as_ref(), Ok(&power));
}

fn drive_pvpanic(mut pvpanic: Pvpanic, input: &mut Input<'_>) {
    while !input.is_empty() {
        let event = pvpanic.write(input.u8());
        assert!(event.is_none() || event == pvpanic.last_event());
    }
    assert_eq!(Pvpanic::from_state(pvpanic.state()).as_ref(), Ok(&pvpanic));
}

fn drive_debug_exit(mut device: DebugExit, input: &mut Input<'_>) {
    while !input.is_empty() {
        let size = size(input);
        if let Some(code) = device.write(input.u8() & 1, size, input.u32()) {
            assert_eq!(code.status() & 1, 1);
        }
    }
    assert_eq!(DebugExit::from_state(device.state()).as_ref(), Ok(&device));
}
