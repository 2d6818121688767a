// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two devices whose INTx lines are one on the host: each interrupt comes once, by the line of the device that raised
//! it, whether the other one interrupts at the same time, is idle, or has its line disabled.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use tiny::answers::{Wrong, expect, expect_that};
use tiny::{cpu, print};

use crate::clock::{self, Waiting, pause};
use crate::config::{BAR, BUS_MASTER, Function, MEMORY, NO_INTX};
use crate::device::{EDU, RANGE_BYTES, Register};
use crate::interrupts::{self, hook_lines};
use crate::request::Request;

/// Longest wait for an interrupt, and for one too many.
const LIMIT_MS: u32 = 3000;
const AFTERWARDS_MS: u32 = 100;
/// Rounds between two lines of output.
const REPORT: usize = 100;
/// Interrupts of each device in a round.
const OF_A_ROUND: u64 = 3;

/// A device.
struct Shared {
    /// The address of its registers.
    registers: AtomicU64,
    /// The pin by which its first interrupt came; 0 until it does. A bare machine has the same one for both.
    pin: AtomicU8,
    came: AtomicU32,
}

static DEVICES: [Shared; 2] =
    [const { Shared { registers: AtomicU64::new(0), pin: AtomicU8::new(0), came: AtomicU32::new(0) } }; 2];
/// Interrupts by a line whose device had raised none.
static STRAY: AtomicU32 = AtomicU32::new(0);

impl Shared {
    fn read(&self, register: Register) -> u32 {
        cpu::read_memory(self.registers.load(Ordering::Acquire) + register as u64)
    }

    fn write(&self, register: Register, value: u32) {
        cpu::write_memory(self.registers.load(Ordering::Acquire) + register as u64, value);
    }

    fn came(&self) -> u32 {
        self.came.load(Ordering::Acquire)
    }

    /// Acknowledges what it states as the cause, if its line leads to this pin. Returns whether there was one.
    fn serve(&self, pin: u8) -> bool {
        let own = self.pin.load(Ordering::Relaxed);
        let causes = if own == 0 || own == pin { self.read(Register::InterruptStatus) } else { 0 };
        if causes != 0 {
            self.pin.store(pin, Ordering::Relaxed);
            self.write(Register::AcknowledgeInterrupt, causes);
            self.came.fetch_add(1, Ordering::Release);
        }
        causes != 0
    }
}

/// So many rounds: the first device, the second one, both at once, and each with the other's line disabled.
pub fn by_shared_line(request: &Request<'_>) -> Result<(), Wrong> {
    let functions = start(request)?;
    for round in 1..=request.count {
        [&[0][..], &[1], &[0, 1]].into_iter().try_for_each(each_comes)?;
        functions[1].change_command(0, NO_INTX);
        each_comes(&[0])?;
        functions[1].change_command(NO_INTX, 0);
        functions[0].change_command(0, NO_INTX);
        each_comes(&[1])?;
        functions[0].change_command(NO_INTX, 0);
        if round % REPORT == 0 {
            print!("edu: shared: rounds={round}\n");
        }
    }
    pause(AFTERWARDS_MS);
    interrupts::end_line();
    let (came, stray) = (DEVICES.each_ref().map(Shared::came), STRAY.load(Ordering::Acquire));
    print!("edu: shared: n={} came={} and {} stray={stray}\n", request.count, came[0], came[1]);
    expect("stray interrupts", 0, stray.into(), 0)?;
    came.into_iter().try_for_each(|came| expect("interrupts", 0, came.into(), OF_A_ROUND * request.count as u64))
}

/// Finds both, places their ranges one behind the other, and lets their lines interrupt.
fn start(request: &Request<'_>) -> Result<[Function; 2], Wrong> {
    let first = request.edu.function;
    let second = first.next(EDU).ok_or(Wrong::new("second edu on bus", first.bus.into(), 0))?;
    hook_lines(&HANDLERS);
    for (index, function) in [first, second].into_iter().enumerate() {
        let address = request.edu.address + index as u32 * RANGE_BYTES;
        function.change_command(MEMORY, 0);
        function.write(BAR, address);
        DEVICES[index].registers.store(address.into(), Ordering::Release);
        function.change_command(NO_INTX, MEMORY | BUS_MASTER);
    }
    Ok([first, second])
}

/// A handler knows its pin only if it is the pin's own.
const HANDLERS: [fn(u64); 8] = [
    |_| handle(16),
    |_| handle(17),
    |_| handle(18),
    |_| handle(19),
    |_| handle(20),
    |_| handle(21),
    |_| handle(22),
    |_| handle(23),
];

fn handle(pin: u8) {
    let served = DEVICES.iter().filter(|device| device.serve(pin)).count();
    if served == 0 {
        STRAY.fetch_add(1, Ordering::Relaxed);
    }
}

/// These raise an interrupt at once, and each comes.
fn each_comes(raising: &[usize]) -> Result<(), Wrong> {
    let before = DEVICES.each_ref().map(Shared::came);
    raising.iter().for_each(|index| DEVICES[*index].write(Register::RaiseInterrupt, 1));
    raising.iter().try_for_each(|&index| {
        let is_there = clock::wait(Waiting::Running, LIMIT_MS, || DEVICES[index].came() != before[index]);
        expect_that("interrupt of device", index as u64, before[index].into(), is_there)
    })
}
