// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log at the end of the host: read and printed without a lock, whichever CPU was writing or printing when the host
//! failed.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use klog::{Copied, Level, Memory as _, Merge, Merged, Reach, Record};
use spin::Mutex;
use uart::{Interrupts, Patience};
use wire::LogRecord;

use super::log::{self, CpuCursors, Drain, LINE_BYTES, ring, to_wire};
use super::output::{patiently, spare};
use crate::arch::cpu_local::cpu_local;
use crate::arch::serial::Uart;

cpu_local! {
    /// Position up to which the CPU's ring has been read.
    static READ: AtomicU64 = AtomicU64::new(0);
}

/// The record that is read, off the small stacks that a host may end on. The owner of the end alone reads.
static READER: Mutex<Copied> = Mutex::new(Copied::new());

static SPARE: Mutex<Spare> = Mutex::new(Spare { drain: Drain::new(), line: [0; LINE_BYTES] });
/// The end of the host has found the output's lock held for good.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// The memory that printing takes without the output, off the small stacks that a host may end on.
struct Spare {
    drain: Drain,
    line: [u8; LINE_BYTES],
}

/// Logs and prints though another CPU (or this one, before it failed) may hold the output's lock: it is tried a
/// bounded time, then done without. For the end of the host only.
pub fn emergency(text: fmt::Arguments<'_>) {
    log::write(Level::Error, "panic", text);
    match if IS_LOST.load(Ordering::Relaxed) { None } else { patiently() } {
        Some(mut output) => {
            output.drain.read_everything();
            output.print(Patience::LAST_WORDS);
        }
        None => {
            IS_LOST.store(true, Ordering::Relaxed);
            print_beside();
        }
    }
}

/// The holder of the lock has stopped or is this CPU: printing through a second handle on the same UART can at
/// worst mix two lines.
fn print_beside() {
    let (Some(mut uart), Some(mut spare)) = (spare(), SPARE.try_lock()) else { return };
    let Spare { drain, line } = &mut *spare;
    drain.read_everything();
    while let Some(bytes) = drain.next_line(line) {
        uart.send(&line[..bytes], Patience::LAST_WORDS);
    }
}

/// Prints what is left, and waits a bounded time until it has left the machine.
pub fn flush_for_the_end() {
    print_beside();
    if let Some(mut uart) = spare() {
        uart.drain(Patience::LAST_WORDS);
    }
}

/// Shows every line of the log, the oldest first.
pub fn log_lines(visit: &mut dyn FnMut(&dyn fmt::Display)) {
    read(&mut |record| visit(&record));
}

/// Shows the record with this place in the order of all records that are kept, if there is one.
pub fn first_record_from(place: u64, visit: &mut dyn FnMut(LogRecord<'_>)) {
    let mut next = 0;
    read(&mut |record| {
        if next == place {
            visit(to_wire(&record));
        }
        next += 1;
    });
}

/// Prints the log from its beginning; it is not logged again.
pub fn print_log_again() {
    let Some(mut uart) = spare() else { return };
    read(&mut |record| {
        let _ = write!(Printer(&mut uart), "{record}\r\n");
    });
}

/// The console as a source of keys, interrupting for each; `None` where the log is printed nowhere.
pub fn keys() -> Option<Uart> {
    let mut uart = spare()?;
    uart.watch(Interrupts::RECEIVED);
    Some(uart)
}

fn read(visit: &mut dyn FnMut(Record<'_>)) {
    let Some(mut copied) = READER.try_lock() else { return };
    let cursors = CpuCursors(&READ);
    cursors.restart();
    let mut merge = Merge::new(cursors);
    while let Some(found) = merge.next(ring, Reach::Everything, &mut copied) {
        if let Merged::Record { ring: index } = found
            && let Some(ring) = ring(index)
        {
            visit(copied.record(index as u32, ring.clock()));
        }
    }
}

struct Printer<'a>(&'a mut Uart);

impl Write for Printer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.send(text.as_bytes(), Patience::LAST_WORDS);
        Ok(())
    }
}
