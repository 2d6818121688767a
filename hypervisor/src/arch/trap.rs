// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceptions and interrupts of the host: the IDT, the stubs, and the dispatch.

mod frame;
mod inspect;
pub mod vector;

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::mem::offset_of;

pub use self::frame::TrapFrame;
pub use self::inspect::{
    backtrace, code_bytes, fault_address, frame_pointer, read_stack, registers_here, registers_of,
};
use super::descriptor::InterruptStack;
use super::hooks::HOOKS;
use super::percpu::PerCpu;
use super::{apic, device_vectors, ending, fault, line_inputs, machine_check, sampling, serial, strays};

global_asm!(
    include_str!("registers.S"),
    include_str!("trap.S"),
    dispatch = sym dispatch,
    machine_check = const vector::MACHINE_CHECK,
    frame_rsp = const offset_of!(TrapFrame, rsp),
    frame_bytes = const size_of::<TrapFrame>(),
    mcg_status = const mca::MCG_STATUS,
);

// The copy of a #MC's frame begins at a multiple of 16 bytes, as the CPU's does: so it ends at one.
const _: () = assert!(size_of::<TrapFrame>().is_multiple_of(16));

unsafe extern "C" {
    static trap_stubs: u8;
}

/// #GP.
const GENERAL_PROTECTION: u8 = 13;

/// One gate (AMD APM vol. 2, section 4.8.4).
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Gate {
    low: u64,
    high: u64,
}

#[repr(C, align(4096))]
struct Table(UnsafeCell<[Gate; 256]>);

// SAFETY: written by the boot CPU before any other runs, then only read by CPUs.
unsafe impl Sync for Table {}

static IDT: Table = Table(UnsafeCell::new([Gate { low: 0, high: 0 }; 256]));

/// Fills the IDT for the boot CPU's first steps: every trap on the current stack.
pub fn prepare() {
    prepare_gates();
    load();
}

/// Fills the IDT, and loads it nowhere. For an image on trial: its traps are the old image's.
pub fn prepare_gates() {
    fill(|_| 0);
}

/// Gives #DF, NMI and #MC stacks of their own; every CPU has them from now on.
pub fn use_interrupt_stacks() {
    fill(|vector| match vector {
        8 => InterruptStack::DoubleFault as u64 + 1,
        2 => InterruptStack::Nmi as u64 + 1,
        18 => InterruptStack::MachineCheck as u64 + 1,
        _ => 0,
    });
}

fn fill(interrupt_stack: impl Fn(u64) -> u64) {
    const PRESENT_INTERRUPT_GATE: u64 = 0x8e00 << 32;
    const CODE_SELECTOR: u64 = 8 << 16;
    for vector in 0..256 {
        let handler = stub_of(vector);
        let low = (handler & 0xffff)
            | CODE_SELECTOR
            | interrupt_stack(vector) << 32
            | PRESENT_INTERRUPT_GATE
            | (handler & 0xffff_0000) << 32;
        // SAFETY: only the boot CPU runs, and it takes no interrupt meanwhile; an exception here would be fatal
        // either way. The index is below 256.
        unsafe { (*IDT.0.get())[vector as usize] = Gate { low, high: handler >> 32 } };
    }
}

/// Returns where the vector leads to.
fn stub_of(vector: u64) -> u64 {
    (&raw const trap_stubs) as u64 + vector * 16
}

/// Loads the IDT on the calling CPU.
pub fn load() {
    #[repr(C, packed)]
    struct Register {
        limit: u16,
        base: u64,
    }
    let register = Register { limit: 256 * 16 - 1, base: IDT.0.get() as u64 };
    // SAFETY: the table lives for ever and each gate leads to a stub.
    unsafe { asm!("lidt [{}]", in(reg) &register, options(readonly, nostack, preserves_flags)) };
}

/// Ends the machine's run by a triple fault: a PC resets then. Halts where that does nothing.
pub fn shut_down() -> ! {
    let nothing = [0_u8; 10];
    // SAFETY: with an empty IDT the exception cannot be delivered, nor the double fault that follows; nothing runs
    // after this.
    unsafe { asm!("lidt [{}]", "ud2", "2:", "cli", "hlt", "jmp 2b", in(reg) &nothing, options(noreturn)) };
}

/// Serves an interrupt that came while an image on trial had the calling CPU: as if it came here and now. For
/// vectors without an error code.
pub fn deliver(vector: u8) {
    let stub = stub_of(u64::from(vector));
    // SAFETY: the stub finds the frame that the CPU would have pushed, keeps every register, and returns to the
    // label.
    unsafe {
        asm!(
            "mov {stack}, rsp",
            "and rsp, -16",
            "mov {place}, ss",
            "push {place}",
            "push {stack}",
            "pushfq",
            "mov {place}, cs",
            "push {place}",
            "lea {place}, [rip + 2f]",
            "push {place}",
            "jmp {stub}",
            "2:",
            stack = out(reg) _,
            place = out(reg) _,
            stub = in(reg) stub,
        );
    }
}

extern "C" fn dispatch(frame: &mut TrapFrame) {
    match frame.vector as u8 {
        vector::NMI | vector::STOP if ending::is_under_way() => (HOOKS.stop_cpu)(frame),
        // A profile's; the log's self-test's; or sent to the CPU that is still in an image that all leave again.
        vector::NMI if sampling::takes_nmi(frame) || (HOOKS.claims_nmi)() => {
            fault::point!(super::switch_pages::faults::note_nmi(frame));
            skip_halt(frame);
        }
        vector::NMI => {
            strays::note_nmi();
            skip_halt(frame);
        }
        GENERAL_PROTECTION if super::probe::takes(frame) => {}
        vector::MACHINE_CHECK if !ending::is_under_way() => match machine_check::in_host() {
            Ok(()) => skip_halt(frame),
            Err(fatal) => (HOOKS.machine_check)(frame, &fatal),
        },
        0..=31 => (HOOKS.exception)(frame),
        vector::SPURIOUS => {}
        // The CPU that rests only wants to be woken.
        _ if ending::is_under_way() => apic::end_of_interrupt(),
        #[cfg(feature = "faults")]
        vector::SELF_TEST => panic!("self-test, in an interrupt handler"),
        number => {
            match number {
                vector::TIMER | vector::COUNTERS => {
                    PerCpu::current().timer_fired.store(true, core::sync::atomic::Ordering::Relaxed)
                }
                #[cfg(feature = "faults")]
                vector::LOG_SELF_TEST => (HOOKS.log_self_test)(),
                vector::KICK if PerCpu::current().holds_one.load(core::sync::atomic::Ordering::Relaxed) => {}
                vector::CONSOLE_UART => {
                    serial::note_com1_interrupt();
                    PerCpu::current().calls.for_work()
                }
                vector::FLUSH_TLB => super::lock::interrupted(),
                vector::KICK => PerCpu::current().calls.for_choice(),
                vector::WAKE | vector::CONTROL_UART => {
                    if number == vector::CONTROL_UART {
                        serial::note_com2_interrupt();
                    }
                    PerCpu::current().calls.for_work()
                }
                device if device_vectors::VECTORS.contains(&device) => {
                    line_inputs::mask(device);
                    device_vectors::note(device);
                }
                stray => strays::note_interrupt(stray),
            }
            apic::end_of_interrupt();
        }
    }
}

/// An NMI that comes between STI and HLT ends STI's shadow: an interrupt that waits would be served before HLT, which
/// would then wait for the next one. So any CPU that was about to halt does not.
fn skip_halt(frame: &mut TrapFrame) {
    const HLT: u8 = 0xf4;
    if code_bytes(frame.rip).first() == Some(&HLT) {
        frame.rip += 1;
    }
}

/// The interrupted code never goes on: its stack is `to`'s, behind what it has there, interrupts masked.
pub fn divert(frame: &mut TrapFrame, to: extern "C" fn() -> !) {
    const INTERRUPTS: u64 = 1 << 9;
    const BACKWARDS: u64 = 1 << 10;
    frame.rip = to as usize as u64;
    // As a call leaves it: a return address below a multiple of 16.
    frame.rsp = (frame.rsp & !0xf) - 8;
    frame.rflags &= !(INTERRUPTS | BACKWARDS);
}
