// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report: reason, place, backtrace, and the fate of the other CPUs. And the epitaph, which reports
//! the next host the same.
//!
//! Addresses of the backtrace are printed as ` #n 0x…`; the tool turns them into functions and lines from the image's
//! ELF file.

use core::fmt::{self, Write as _};
use core::sync::atomic::{AtomicU64, Ordering};

use arrayvec::{ArrayString, ArrayVec};
use endstate::epitaph::{self, Account, BACKTRACE_ADDRESSES, REGISTERS, Registers};
use endstate::{Action, HELP, StopOutcome};
use spin::Mutex;

use super::condition::{STOPPED_AT, action};
use crate::arch::ending::ENDING;
use crate::arch::percpu::my_number;
use crate::arch::stack::stack_around;
use crate::arch::{ending, timer, trap};
use crate::kernel::console::{self, emergency};

/// Longer than any reason of ours; a longer text of a panic is cut.
const SUMMARY_BYTES: usize = 512;
const PLACE_BYTES: usize = 128;

/// The cause of the end of the host.
pub struct Cause<'a> {
    /// In one line, without the place.
    pub summary: fmt::Arguments<'a>,
    /// The place in the source, or what else there is to report of it.
    pub place: Option<&'a dyn fmt::Display>,
    /// The registers then.
    pub registers: Registers,
    /// Bytes of code at the instruction that failed, where one did.
    pub code: Option<&'static [u8]>,
    /// The frame pointer at which the backtrace begins.
    pub frame_pointer: u64,
}

/// Written and read by the owner alone; tried, never waited for.
static STOP_OUTCOME: Mutex<Option<StopOutcome>> = Mutex::new(None);
static NOTED: Mutex<Option<Noted>> = Mutex::new(None);
/// For the key that prints them again.
static REGISTERS_THEN: [AtomicU64; REGISTERS.len()] = [const { AtomicU64::new(0) }; REGISTERS.len()];

impl Cause<'_> {
    /// Return addresses, nearest first; before them the failing instruction, where one failed.
    fn backtrace(&self) -> ArrayVec<u64, BACKTRACE_ADDRESSES> {
        let mut addresses = [0; BACKTRACE_ADDRESSES];
        let count = match stack_around(self.frame_pointer) {
            Some(stack) => trap::backtrace(self.frame_pointer, stack, &mut addresses),
            None => 0,
        };
        let instruction = self.code.map(|_| self.registers[0]);
        instruction.into_iter().chain(addresses[..count].iter().copied()).take(BACKTRACE_ADDRESSES).collect()
    }

    /// Returns what the first line of the backtrace is called: 0 for the failing instruction, 1 for a return address.
    fn first_number(&self) -> usize {
        usize::from(self.code.is_none())
    }
}

/// The first cause of the end of the host, kept while steps of its end may fail for other reasons.
#[derive(Clone, Copy)]
struct Noted {
    summary: ArrayString<SUMMARY_BYTES>,
    place: ArrayString<PLACE_BYTES>,
    registers: Registers,
    code: Option<&'static [u8]>,
    frame_pointer: u64,
}

/// Keeps why the host ends, as far as it fits.
pub(super) fn note(cause: &Cause<'_>) {
    let Some(mut kept) = NOTED.try_lock() else { return };
    let Cause { registers, code, frame_pointer, .. } = *cause;
    let mut noted = Noted { summary: ArrayString::new(), place: ArrayString::new(), registers, code, frame_pointer };
    let _ = noted.summary.write_fmt(cause.summary);
    let _ = cause.place.map(|place| write!(noted.place, "{place}"));
    *kept = Some(noted);
}

/// Runs `with` on what ended the host first. That is `cause` itself where it could not be noted.
pub(super) fn with_first(cause: &Cause<'_>, with: fn(&Cause<'_>)) {
    let Some(noted) = NOTED.try_lock().and_then(|noted| *noted) else { return with(cause) };
    let Noted { registers, code, frame_pointer, .. } = noted;
    let place = (!noted.place.is_empty()).then_some(&noted.place as &dyn fmt::Display);
    with(&Cause { summary: format_args!("{}", noted.summary), place, registers, code, frame_pointer });
}

/// Keeps how the others were stopped.
pub(super) fn note_stop_outcome(call: StopOutcome) {
    if let Some(mut place) = STOP_OUTCOME.try_lock() {
        *place = Some(call);
    }
}

/// Prints the report.
pub(super) fn print(cause: &Cause<'_>) {
    for (place, value) in REGISTERS_THEN.iter().zip(cause.registers) {
        place.store(value, Ordering::Relaxed);
    }
    emergency(cause.summary);
    if let Some(place) = cause.place {
        emergency(format_args!("{place}"));
    }
    print_registers();
    if let Some(code) = cause.code {
        emergency(format_args!("code at rip: {code:02x?}"));
    }
    for (index, address) in cause.backtrace().iter().enumerate() {
        emergency(format_args!(" #{} {address:#018x}", index + cause.first_number()));
    }
    print_others();
    match action() {
        Action::Spin => emergency(format_args!("end of report; this CPU spins; {HELP}")),
        Action::Halt => emergency(format_args!("end of report; all CPUs halt; {HELP}")),
        Action::Exit => emergency(format_args!("end of report; the lab's machine ends")),
        Action::Reboot { after_seconds } => {
            emergency(format_args!("end of report; the machine is reset in {after_seconds} s; {HELP}"));
        }
    }
}

/// The registers of the report.
pub(super) fn print_registers() {
    let v = |name: &str| {
        let place = REGISTERS.iter().position(|known| *known == name).and_then(|index| REGISTERS_THEN.get(index));
        place.map_or(0, |place| place.load(Ordering::Relaxed))
    };
    emergency(format_args!("rip {:016x} cs {:04x} rflags {:08x}", v("rip"), v("cs"), v("rflags")));
    emergency(format_args!("rsp {:016x} ss {:04x} cr2 {:016x}", v("rsp"), v("ss"), v("cr2")));
    for [a, b, c, d] in [["rax", "rbx", "rcx", "rdx"], ["rsi", "rdi", "rbp", "r8"], ["r9", "r10", "r11", "r12"]] {
        emergency(format_args!("{a:3} {:016x} {b:3} {:016x} {c:3} {:016x} {d:3} {:016x}", v(a), v(b), v(c), v(d)));
    }
    emergency(format_args!("r13 {:016x} r14 {:016x} r15 {:016x}", v("r13"), v("r14"), v("r15")));
}

/// Prints what became of the other CPUs.
fn print_others() {
    let call = STOP_OUTCOME.try_lock().and_then(|call| *call).unwrap_or_default();
    let failed_too = ENDING.failed_too();
    for (set, what) in [
        (call.by_interrupt.without(&failed_too), "stopped"),
        (failed_too, "failed too, and stopped"),
        (call.by_nmi.without(&failed_too), "stopped by an NMI, interrupts were masked"),
        (call.unresponsive, "NOT ANSWERING, it may still run"),
    ] {
        if !set.is_empty() {
            emergency(format_args!("CPU{} {set}: {what}", if set.count() == 1 { "" } else { "s" }));
        }
    }
}

/// Prints where each stopped CPU stood.
pub(super) fn print_where_stopped() {
    for cpu in ENDING.stopped().iter() {
        let Some((rip, rsp)) = STOPPED_AT.of(cpu) else { continue };
        let (rip, rsp) = (rip.load(Ordering::Relaxed), rsp.load(Ordering::Relaxed));
        emergency(format_args!("CPU {cpu} stopped at rip {rip:016x} rsp {rsp:016x}"));
    }
}

/// Leaves the epitaph for the next host.
pub(super) fn leave_epitaph(cause: &Cause<'_>) {
    let backtrace = cause.backtrace();
    let (separator, place): (_, &dyn fmt::Display) = cause.place.map_or((" ", &""), |place| (" ", place));
    let account = Account {
        host_version: env!("CARGO_PKG_VERSION"),
        uptime_ns: timer::uptime_ns(),
        cpu: my_number(),
        reason: format_args!("{}{separator}{place}", cause.summary),
        registers: Some(&cause.registers),
        backtrace: &backtrace,
    };
    // Memory that is too small is none: its size is a constant of ours.
    ending::with_epitaph(|page| epitaph::write(page, &account, |visit| console::log_lines(visit)).is_ok());
}
