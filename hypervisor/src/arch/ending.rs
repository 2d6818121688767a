// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's part of the end of the host: stopping the other CPUs, resting, notifying pvpanic, interrupts
//! of the UARTs for the owner of the end, and the memory that outlasts a reset.
//!
//! Nothing here allocates, logs or waits for a lock.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use endstate::epitaph::EPITAPH_BYTES;
use endstate::{Ending, PVPANIC_PORT, Rest, Stopper, pvpanic_event};
use iommu::{Interrupt, Signal, Spare};
use units::{PhysAddr, PhysRange};

use super::address::DIRECT_MAP;
use super::ioapic::IoApic;
use super::iommu::SpareEntry;
use super::trap::vector;
use super::{apic, cpu, percpu, port, timer};

/// The address of the epitaph: right below the image, where neither firmware nor the loaders that Baton knows put
/// anything. The address is the same in every version, so that the next Baton finds what this one left.
pub const EPITAPH: PhysAddr = PhysAddr(0x20_0000 - EPITAPH_BYTES as u64);
/// One step of the delay loop: as long as Linux's.
const DELAY_STEP_US: u64 = 100_000;
const KNOWN: u32 = 1 << 31;
const LEVEL: u32 = 1 << 30;
const ACTIVE_LOW: u32 = 1 << 29;

/// The CPU that ends the host, if any does, and those that have stopped.
pub static ENDING: Ending = Ending::new();
/// The epitaph's memory is mapped and has no other user.
static HAS_EPITAPH: AtomicBool = AtomicBool::new(false);
/// Inputs of COM1 and COM2: flags, I/O APIC, input.
static UART_INPUTS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
/// The message that sends their interrupts when the host ends, where interrupts are remapped.
static UART_SPARES: [SpareEntry; 2] = [const { SpareEntry::none() }; 2];

/// Returns whether the host has begun to end.
pub fn is_under_way() -> bool {
    ENDING.owner().is_some()
}

/// The architecture hook: what a CPU does that has nothing left to do, until the next interrupt or for a step.
pub fn rest(rest: Rest) {
    match rest {
        Rest::Halt => cpu::wait_for_interrupt(),
        Rest::Spin => {
            cpu::take_pending_interrupts();
            timer::delay_us(DELAY_STEP_US);
        }
    }
}

/// The other CPUs, for [`endstate::stop_others`].
pub struct Others;

impl Stopper for Others {
    fn now(&mut self) -> u64 {
        cpu::tsc()
    }

    fn pause(&mut self) {
        cpu::pause();
    }

    fn interrupt(&mut self, cpu: u32) {
        // One that cannot be sent is not answered, and named.
        let _ = percpu::of(cpu).map(|other| apic::try_send(other.apic_id, vector::STOP));
    }

    fn nmi(&mut self, cpu: u32) {
        let _ = percpu::of(cpu).map(|other| apic::send_nmi(other.apic_id));
    }
}

/// An NMI for every CPU but `me`, with no answer waited for: stopping them has failed.
pub fn nmi_all_others(me: u32) {
    percpu::indices().filter(|&cpu| cpu != me).for_each(|cpu| Others.nmi(cpu));
}

/// Silences the calling CPU's own interrupt sources, and ends all interrupts in service: none holds another one back.
pub fn quiet_this_cpu() {
    timer::clear_alarm();
    apic::mask_all();
    apic::end_all_interrupts();
}

/// The calling CPU's timer wakes it at `tsc`.
pub fn wake_at(tsc: u64) {
    timer::prepare_this_cpu();
    timer::set_alarm(tsc);
}

/// Notifies the monitor of this machine, where it is a virtual one with such a device.
pub fn notify_pvpanic() {
    // SAFETY: on a PC nothing else lives at this port; reading it reports the events that the device knows.
    let supported = unsafe { port::read_u8(PVPANIC_PORT) };
    if let Some(event) = pvpanic_event(supported) {
        // SAFETY: the device is there and knows the event; the host has ended.
        unsafe { port::write_u8(PVPANIC_PORT, event) };
    }
}

/// Notes where COM1 (0) or COM2 (1) interrupts; `spare` is its entry for the end of the host, where its interrupts are
/// remapped.
pub fn note_uart_input(
    uart: usize,
    (chip, input): (usize, u32),
    is_level: bool,
    is_active_low: bool,
    spare: Option<Spare>,
) {
    UART_SPARES.get(uart).into_iter().for_each(|kept| kept.keep(spare));
    let flags = KNOWN | if is_level { LEVEL } else { 0 } | if is_active_low { ACTIVE_LOW } else { 0 };
    if let (Some(place), true) = (UART_INPUTS.get(uart), chip < 256 && input < 256) {
        place.store(flags | (chip as u32) << 8 | input, Ordering::Relaxed);
    }
}

/// Both UARTs interrupt the calling CPU from here on. All other CPUs have stopped, so no other one drives the chips.
pub fn route_uarts_here() {
    for (place, spare) in UART_INPUTS.iter().zip(&UART_SPARES) {
        let line = place.load(Ordering::Relaxed);
        if line & KNOWN != 0 {
            let is_level = line & LEVEL != 0;
            let interrupt = Interrupt { vector: vector::END_UART, destination: apic::id(), is_level };
            let entry = spare.redirect(Signal::Interrupt(interrupt), line & ACTIVE_LOW != 0);
            IoApic::alone((line >> 8 & 0xff) as usize).set(line & 0xff, entry);
        }
    }
}

/// The epitaph's memory as a range of frames: to be reserved before any memory is given away.
pub fn epitaph_frames() -> PhysRange {
    PhysRange::from_start(EPITAPH, EPITAPH_BYTES as u64).unwrap_or_else(|| unreachable!("it lies below the image"))
}

/// Permits use of the epitaph's memory from here on: it is reserved, and the host's page tables show it.
pub fn allow_epitaph() {
    HAS_EPITAPH.store(true, Ordering::Release);
}

/// Runs `with` on the epitaph's memory, where there is any: at boot, on one CPU, and by the owner of the end.
pub fn with_epitaph<T>(with: impl FnOnce(&mut [u8]) -> T) -> Option<T> {
    HAS_EPITAPH.load(Ordering::Acquire).then(|| {
        let start = (DIRECT_MAP + EPITAPH.0) as *mut u8;
        // SAFETY: the frames are reserved and mapped in the direct map (`allow_epitaph`); the boot CPU is alone
        // when it checks, and later only the one CPU that owns the end comes here.
        with(unsafe { core::slice::from_raw_parts_mut(start, EPITAPH_BYTES) })
    })
}
