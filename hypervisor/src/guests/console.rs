// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ends of a guest's console: the guest's vCPUs hold one, the control channel the other.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use heapless::spsc::{Consumer, Producer, Queue};
use spin::Mutex;
use wire::ConsoleOutput;

use crate::arch::cpu;
use crate::arch::percpu::{self, BOOT_CPU};

/// Console output that waits for the control channel.
pub const OUTPUT_BYTES: usize = 16 * 1024;
/// Console input that waits for the guest.
pub const INPUT_BYTES: usize = 4 * 1024;
/// Console bytes after which the control channel is woken, whatever the guest does.
pub(super) const OUTPUT_BATCH: u32 = 4096;
/// At most this often is the control channel woken for a line.
pub(super) const WAKE_INTERVAL_US: u64 = 5_000;
/// So long after it has found output, the control channel checks once more: for a line that came too soon after another
/// to wake it, of a guest that then never waits.
pub const RECHECK_US: u64 = 2 * WAKE_INTERVAL_US;

/// The console as the guest's vCPUs hold it.
pub struct GuestConsole {
    pub(super) output: Producer<'static, u8>,
    pub(super) input: Consumer<'static, u8>,
    /// Input that came before that in `input`.
    pub(super) typed: VecDeque<u8>,
    /// Output that the control channel has not been informed of.
    pub(super) waiting: u32,
    pub(super) last_wake_tsc: u64,
    pub(super) written: ConsoleOutput,
}

/// The console as the control channel holds it.
pub struct ControlEnds {
    /// Output that came before that in `output`.
    pub(super) backlog: VecDeque<u8>,
    /// The guest's output.
    output: Consumer<'static, u8>,
    /// The operator's input.
    pub input: Producer<'static, u8>,
}

/// Every console that was ever made. Its queues live for ever, so that the next guest gets it once its own is gone.
static CONSOLES: Mutex<Vec<Arc<Console>>> = Mutex::new(Vec::new());

/// A guest's console.
pub struct Console {
    /// The guest's end.
    pub(super) guest: Mutex<GuestConsole>,
    /// The control channel's.
    pub(super) control: Mutex<ControlEnds>,
}

impl Console {
    /// An empty console that no other guest has.
    pub fn obtain() -> Arc<Self> {
        let mut consoles = CONSOLES.lock();
        if let Some(console) = consoles.iter().find(|console| Arc::strong_count(console) == 1) {
            console.clear();
            return console.clone();
        }
        let (guest, control) = ends();
        let console = Arc::new(Self { guest: Mutex::new(guest), control: Mutex::new(control) });
        consoles.push(console.clone());
        console
    }

    fn clear(&self) {
        let (mut guest, mut control) = (self.guest.lock(), self.control.lock());
        while guest.next_typed().is_some() {}
        while control.next_byte().is_some() {}
        (guest.waiting, guest.written) = (0, ConsoleOutput::default());
    }
}

/// Both ends of an empty console.
fn ends() -> (GuestConsole, ControlEnds) {
    let (output, output_end) = queue::<OUTPUT_BYTES>();
    let (input, input_end) = queue::<INPUT_BYTES>();
    let console = GuestConsole {
        output,
        input: input_end,
        typed: VecDeque::new(),
        waiting: 0,
        last_wake_tsc: 0,
        written: ConsoleOutput::default(),
    };
    (console, ControlEnds { backlog: VecDeque::new(), output: output_end, input })
}

impl GuestConsole {
    /// The next byte that was typed.
    pub(super) fn next_typed(&mut self) -> Option<u8> {
        self.typed.pop_front().or_else(|| self.input.dequeue())
    }

    pub(super) fn wake_control(&mut self) {
        self.waiting = 0;
        self.last_wake_tsc = cpu::tsc();
        percpu::wake(BOOT_CPU);
    }
}

impl ControlEnds {
    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        self.backlog.len() + self.output.len()
    }

    /// The oldest that waits.
    pub fn next_byte(&mut self) -> Option<u8> {
        self.backlog.pop_front().or_else(|| self.output.dequeue())
    }

    /// Returns what waits, all in one place; where more may come.
    pub(super) fn gather(&mut self) -> &VecDeque<u8> {
        while let Some(byte) = self.output.dequeue() {
            self.backlog.push_back(byte);
        }
        &self.backlog
    }
}

/// A queue that lives for ever.
fn queue<const BYTES: usize>() -> (Producer<'static, u8>, Consumer<'static, u8>) {
    let queue: &'static mut Queue<u8, BYTES> = Box::leak(Box::new(Queue::new()));
    queue.split()
}
