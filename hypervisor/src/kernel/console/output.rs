// SPDX-License-Identifier: MIT OR Apache-2.0
//! Printing the log on COM1, a fill of its FIFO at a time.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spin::{Mutex, Once};
use uart::{Found, Interrupts, Patience, Policy};

use super::log::{Drain, LINE_BYTES};
use crate::arch::percpu::PerCpu;
use crate::arch::serial::{self, Uart};
use crate::arch::{cpu, timer};

/// The interval between polls of a UART that cannot interrupt: about a FIFO's time on the wire.
const POLL_US: u64 = 1400;
/// The interval between polls of one that can: an interrupt that is lost would leave the log waiting for good.
const INTERRUPT_LOST_US: u64 = 200_000;
/// The time for which the output's lock is tried before printing without it: many times what its holder does at a time.
const LOCK_PATIENCE_US: u64 = 250_000;
/// The same for a report, which only a self-test waits for.
const REPORT_PATIENCE_US: u64 = 20_000_000;

/// The UART and what is printed on it: held by the CPU that prints.
pub static OUTPUT: Mutex<Output> = Mutex::new(Output::new());
/// The UART that was found at COM1, for code that must print without the lock.
pub static FOUND: Once<(Found, Policy)> = Once::new();
/// Loops print; loggers do not.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);
/// The UART's interrupt reaches a CPU.
static IS_ROUTED: AtomicBool = AtomicBool::new(false);
/// The time of the next poll of the UART, in TSC ticks; 0 while nothing waits for it.
static NEXT_POLL: AtomicU64 = AtomicU64::new(0);
/// Nothing was left to print.
static IS_DONE: AtomicBool = AtomicBool::new(false);
/// The longest stretch of printing with interrupts masked: port accesses, and ticks.
static LONGEST_ACCESSES: AtomicU64 = AtomicU64::new(0);
static LONGEST_TICKS: AtomicU64 = AtomicU64::new(0);
/// All of them together.
static SPENT_TICKS: AtomicU64 = AtomicU64::new(0);

/// The UART, how far the log has been printed, and the line that is under way.
pub struct Output {
    pub uart: Uart,
    pub drain: Drain,
    line: [u8; LINE_BYTES],
    /// Bytes of the line.
    used: usize,
    /// Of these, sent.
    sent: usize,
}

/// The outcome of a [`step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing is left to print.
    Done,
    /// The UART has taken something, and may take more.
    More,
    /// The UART takes no more for now.
    Full,
    /// Another CPU is printing.
    Busy,
}

/// From now on the CPUs' loops print. `is_routed`: the UART's interrupt reaches one of them.
pub fn run(is_routed: bool) {
    IS_ROUTED.store(is_routed, Ordering::Relaxed);
    if is_routed {
        OUTPUT.lock().uart.watch(Interrupts::TRANSMITTER_EMPTY);
    }
    IS_RUNNING.store(true, Ordering::Release);
}

/// A record was logged. Early in the boot it is printed here and now; the CPU that finds another at that leaves it to
/// that one.
pub fn recorded() {
    if IS_RUNNING.load(Ordering::Relaxed) {
        if IS_DONE.load(Ordering::Relaxed) {
            IS_DONE.store(false, Ordering::Relaxed);
        }
        PerCpu::current().calls.for_work();
    } else if let Some(mut output) = OUTPUT.try_lock() {
        output.print(Patience::USUAL);
    }
}

/// Prints as much as follows one sample of the UART: at most a fill of its FIFO. The caller opens interrupts before the
/// next.
pub fn step() -> Step {
    if !IS_RUNNING.load(Ordering::Acquire) {
        return Step::Done;
    }
    let Some(mut output) = OUTPUT.try_lock() else { return Step::Busy };
    if serial::take_com1_interrupt() {
        output.uart.interrupted();
    }
    // Before the check, so that a CPU that logs behind it finds the mark and takes it away.
    IS_DONE.store(true, Ordering::SeqCst);
    let (began, accesses) = (cpu::tsc(), output.accesses());
    let step = output.fill();
    LONGEST_ACCESSES.fetch_max(output.accesses() - accesses, Ordering::Relaxed);
    let ticks = cpu::tsc().wrapping_sub(began);
    LONGEST_TICKS.fetch_max(ticks, Ordering::Relaxed);
    SPENT_TICKS.fetch_add(ticks, Ordering::Relaxed);
    NEXT_POLL.store(if step == Step::Full { began + poll_interval() } else { 0 }, Ordering::Relaxed);
    if step != Step::Done {
        IS_DONE.store(false, Ordering::Relaxed);
    }
    step
}

/// Returns whether nothing was left to print when a CPU last checked.
pub fn is_done() -> bool {
    IS_DONE.load(Ordering::Relaxed)
}

/// Returns when the UART is to be polled, in TSC ticks, if something waits for it.
pub fn next_poll() -> Option<u64> {
    let at = NEXT_POLL.load(Ordering::Relaxed);
    (at != 0).then_some(at)
}

/// Returns whether the calling CPU is the one to poll now: the next poll is later, so that no CPU sets an alarm in the
/// past.
pub fn take_due_poll() -> bool {
    let Some(at) = next_poll() else { return false };
    let now = cpu::tsc();
    let next = now + poll_interval();
    at <= now && NEXT_POLL.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

fn poll_interval() -> u64 {
    timer::us_to_ticks(if IS_ROUTED.load(Ordering::Relaxed) { INTERRUPT_LOST_US } else { POLL_US })
}

/// Prints all that is left, and waits a bounded time until it has left the machine, which is about to end.
pub fn flush() {
    if let Some(mut output) = patiently() {
        output.uart.retry();
        output.print(Patience::LAST_WORDS);
        output.uart.drain(Patience::LAST_WORDS);
    }
}

/// Prints all that is left while guests go on, so that little is left for [`hand_over`].
pub fn print_ahead() {
    if let Some(mut output) = patiently() {
        output.print(Patience::USUAL);
    }
}

/// Prints the remaining records before the image leaves, and disables the UART's interrupts. Records stay unprinted if
/// another CPU does not release the lock.
pub fn hand_over() {
    if let Some(mut output) = patiently() {
        output.print(Patience::USUAL);
        output.uart.watch(Interrupts::empty());
    }
}

/// Logs what printing has cost.
pub fn report() {
    // The printer may be a CPU that an emulator does not run for a while.
    let Some(output) = timer::try_for(REPORT_PATIENCE_US, || OUTPUT.try_lock()) else { return };
    let (uart, counters) = (&output.uart, output.uart.counters());
    let room = uart.found().map_or(0, |found| found.depth.bytes());
    drop(output);
    ::log::info!(
        "printing: {} bytes, {} status reads, {} drops, {} ns spent; interrupts off for {} accesses at most, {} ns; a \
         fill is {}",
        counters.bytes,
        counters.status_reads,
        counters.drops,
        timer::ticks_to_ns(SPENT_TICKS.load(Ordering::Relaxed)),
        LONGEST_ACCESSES.load(Ordering::Relaxed),
        timer::ticks_to_ns(LONGEST_TICKS.load(Ordering::Relaxed)),
        room + 1,
    );
}

/// A second handle on COM1, as it was found; `None` where the log is printed nowhere.
pub fn spare() -> Option<Uart> {
    FOUND.get().map(|&(found, policy)| Uart::adopt(serial::com1_ports(), found, policy))
}

pub fn patiently() -> Option<spin::MutexGuard<'static, Output>> {
    timer::try_for(LOCK_PATIENCE_US, || OUTPUT.try_lock())
}

impl Output {
    const fn new() -> Self {
        Self { uart: serial::com1(), drain: Drain::new(), line: [0; LINE_BYTES], used: 0, sent: 0 }
    }

    /// Makes sure that the line under way has something left; `false` if nothing is left to print, or there is no UART.
    fn has_more(&mut self) -> bool {
        if self.sent == self.used {
            self.sent = 0;
            self.used = self.uart.found().and_then(|_| self.drain.next_line(&mut self.line)).unwrap_or(0);
        }
        self.sent < self.used
    }

    fn fill(&mut self) -> Step {
        if !self.has_more() {
            return Step::Done;
        }
        let taken = self.uart.offer(&self.line[self.sent..self.used]);
        self.sent += taken;
        if taken == 0 { Step::Full } else { Step::More }
    }

    /// Prints all records. Those for a dropped UART stay unprinted.
    pub fn print(&mut self, patience: Patience) {
        while self.has_more() {
            let bytes = &self.line[self.sent..self.used];
            let (wanted, sent) = (bytes.len(), self.uart.send(bytes, patience));
            self.sent += sent;
            if sent < wanted {
                break;
            }
        }
    }

    fn accesses(&self) -> u64 {
        let counters = self.uart.counters();
        counters.status_reads + counters.bytes
    }
}
