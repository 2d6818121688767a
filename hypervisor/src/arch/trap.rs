// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceptions and interrupts of the host: the IDT, the stubs, and who gets what.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::mem::offset_of;

use super::descriptor::InterruptStack;
use super::hooks::HOOKS;
use super::percpu::PerCpu;
use super::{apic, cpu, ending, machine_check, sampling, serial, strays};

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

/// Vectors of the host's interrupts.
pub mod vector {
    /// The non-maskable interrupt.
    pub const NMI: u8 = 2;
    /// A machine check.
    pub const MACHINE_CHECK: u8 = 18;
    /// The local APIC's timer.
    pub const TIMER: u8 = 0x40;
    /// Another CPU has work for this one.
    pub const WAKE: u8 = 0x41;
    /// A vCPU of this one has mail.
    pub const KICK: u8 = 0x43;
    /// The control channel's UART.
    pub const CONTROL_UART: u8 = 0x42;
    /// The log's self-test.
    pub const LOG_SELF_TEST: u8 = 0x4e;
    /// A self-test wants its handler to fail.
    pub const SELF_TEST: u8 = 0x4f;
    /// The console's UART has room.
    pub const CONSOLE_UART: u8 = 0x44;
    /// A performance counter of a guest's has overflowed.
    pub const COUNTERS: u8 = 0x46;
    /// Rights of the host's memory have changed.
    pub const FORGET: u8 = 0x45;
    /// The host has ended: stop. Of a higher class than all others, so that none in service holds it back.
    pub const STOP: u8 = 0xe0;
    /// A UART has something for the owner of the host's end.
    pub const END_UART: u8 = 0xe1;
    /// Spurious: no end of interrupt.
    pub const SPURIOUS: u8 = 0xff;
}

/// The registers that the stubs leave on the stack, lowest address first.
#[repr(C)]
#[allow(missing_docs)]
pub struct TrapFrame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rcx: u64,
    pub rax: u64,
    pub vector: u64,
    pub error_code: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}

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

/// Fills the IDT, and loads it nowhere: for an image on trial, whose traps are the old image's.
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

/// CR2, for a page fault's dump.
pub fn fault_address() -> u64 {
    let address;
    // SAFETY: reading CR2 has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack, preserves_flags)) };
    address
}

extern "C" fn dispatch(frame: &mut TrapFrame) {
    match frame.vector as u8 {
        vector::NMI | vector::STOP if ending::is_under_way() => (HOOKS.stop_cpu)(frame),
        // A profile's; the log's self-test's; or sent to the CPU that is still in an image that all leave again.
        vector::NMI if sampling::takes_nmi(frame) || (HOOKS.claims_nmi)() => {
            super::switch_pages::trial::note_nmi(frame);
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
        vector::SELF_TEST => panic!("self-test, in an interrupt handler"),
        number => {
            match number {
                vector::TIMER | vector::COUNTERS => {
                    PerCpu::current().timer_fired.store(true, core::sync::atomic::Ordering::Relaxed)
                }
                vector::LOG_SELF_TEST => (HOOKS.log_self_test)(),
                vector::KICK if PerCpu::current().holds_one.load(core::sync::atomic::Ordering::Relaxed) => {}
                vector::CONSOLE_UART => {
                    serial::note_com1_interrupt();
                    PerCpu::current().work_pending.store(true, core::sync::atomic::Ordering::Relaxed)
                }
                vector::FORGET => super::lock::interrupted(),
                vector::WAKE | vector::CONTROL_UART | vector::KICK => {
                    if number == vector::CONTROL_UART {
                        serial::note_com2_interrupt();
                    }
                    PerCpu::current().work_pending.store(true, core::sync::atomic::Ordering::Relaxed)
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

/// Return addresses up the frame-pointer chain from `frame`, nearest first, at most `into.len()`; returns how many.
/// `stack` is one, mapped.
pub fn backtrace(frame_pointer: u64, stack: core::ops::Range<u64>, into: &mut [u64]) -> usize {
    profile::walk::walk(frame_pointer, stack, &read_stack, into)
}

/// A quadword of a stack: for a walk, which asks only for what is on the stack that it is given, aligned.
pub fn read_stack(at: u64) -> u64 {
    // SAFETY: stacks are mapped; see above.
    unsafe { *(at as *const u64) }
}

/// Up to 16 bytes of the image's code from `rip` on; nothing outside it.
pub fn code_bytes(rip: u64) -> &'static [u8] {
    use super::address::{text_end, text_start};
    if !(text_start()..text_end()).contains(&rip) {
        return &[];
    }
    let bytes = (text_end() - rip).min(16) as usize;
    // SAFETY: inside the image's code, which is mapped readable and never changes.
    unsafe { core::slice::from_raw_parts(rip as *const u8, bytes) }
}

/// The frame pointer here and now.
pub fn frame_pointer() -> u64 {
    let value;
    // SAFETY: reading a register.
    unsafe { asm!("mov {}, rbp", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// The general purpose registers here and now, in [`endstate::epitaph::REGISTERS`]' order; RIP is the caller's.
#[inline(never)]
pub fn registers_here() -> endstate::epitaph::Registers {
    let mut values = [0_u64; 22];
    // SAFETY: every register is only read, and stored into the array; CR2 may be read at any time. The stack is used
    // for the flags alone.
    unsafe {
        asm!(
            "mov [{into} + 8], rsp", "pushfq", "pop qword ptr [{into} + 16]",
            "mov [{into} + 40], rax", "mov [{into} + 48], rbx", "mov [{into} + 56], rcx", "mov [{into} + 64], rdx",
            "mov [{into} + 72], rsi", "mov [{into} + 80], rdi", "mov [{into} + 88], rbp", "mov [{into} + 96], r8",
            "mov [{into} + 104], r9", "mov [{into} + 112], r10", "mov [{into} + 120], r11", "mov [{into} + 128], r12",
            "mov [{into} + 136], r13", "mov [{into} + 144], r14", "mov [{into} + 152], r15",
            "mov {scratch}, cs", "mov [{into} + 24], {scratch}", "mov {scratch}, ss", "mov [{into} + 32], {scratch}",
            "mov {scratch}, cr2", "mov [{into} + 160], {scratch}", "lea {scratch}, [rip]", "mov [{into}], {scratch}",
            into = in(reg) values.as_mut_ptr(), scratch = out(reg) _,
        );
    }
    values
}

/// A trap's registers, in the same order.
pub fn registers_of(f: &TrapFrame) -> endstate::epitaph::Registers {
    [
        f.rip,
        f.rsp,
        f.rflags,
        f.cs,
        f.ss,
        f.rax,
        f.rbx,
        f.rcx,
        f.rdx,
        f.rsi,
        f.rdi,
        f.rbp,
        f.r8,
        f.r9,
        f.r10,
        f.r11,
        f.r12,
        f.r13,
        f.r14,
        f.r15,
        fault_address(),
        f.error_code,
    ]
}

/// Raises the exception that a self-test asks for.
pub fn provoke(which: Provocation) {
    match which {
        // SAFETY: an exception is what is wanted.
        Provocation::InvalidOpcode => unsafe { asm!("ud2", options(nomem, nostack)) },
        Provocation::PageFault => {
            // SAFETY: nothing is mapped there: an exception is what is wanted.
            let value: u64 = unsafe { core::ptr::read_volatile(0xdead_0000 as *const u64) };
            log::error!("unmapped memory could be read: {value:#x}");
        }
        Provocation::StackOverflow => {
            deepen(0);
        }
        Provocation::WriteToCode => {
            let code = super::address::text_start() as *mut u8;
            // SAFETY: the page is read-only: an exception is what is wanted.
            unsafe { core::ptr::write_volatile(code, 0) };
            log::error!("code could be written");
        }
    }
    cpu::pause();
}

/// Ways to make the host fail on purpose (`selftest=`).
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum Provocation {
    InvalidOpcode,
    PageFault,
    StackOverflow,
    WriteToCode,
}

#[allow(unconditional_recursion, reason = "the stack is meant to overflow")]
#[inline(never)]
fn deepen(depth: u64) -> u64 {
    let room = [depth; 64];
    core::hint::black_box(&room);
    deepen(depth + 1) + core::hint::black_box(room)[3]
}
