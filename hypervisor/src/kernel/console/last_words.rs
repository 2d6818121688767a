// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log at the end of the host: read and printed without a lock, whoever was writing or printing when the host
//! failed.

use core::fmt::{self, Write};

use klog::{Copied, Cursor, Memory as _, Merge, Merged, Reach, Record};
use spin::Mutex;
use uart::{Interrupts, Patience};
use wire::LogRecord;

use super::log::{ring, to_wire};
use super::{print_beside, spare};
use crate::arch::percpu::MAX_PROCESSORS;
use crate::arch::serial::Uart;

/// What reading the log takes, off the small stacks that a host may end on. The owner of the end alone reads.
struct Reader {
    merge: Merge<MAX_PROCESSORS>,
    copied: Copied,
}

static READER: Mutex<Reader> = Mutex::new(Reader { merge: Merge::new(), copied: Copied::new() });

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
    let Some(mut reader) = READER.try_lock() else { return };
    let Reader { merge, copied } = &mut *reader;
    (0..MAX_PROCESSORS).for_each(|index| merge.set_cursor(index, Cursor::start()));
    while let Some(found) = merge.next(ring, Reach::Everything, copied) {
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
