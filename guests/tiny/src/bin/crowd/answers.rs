// SPDX-License-Identifier: MIT OR Apache-2.0
//! Received messages, compared with the expected ones.

use core::fmt;
use core::hint::spin_loop;
use tiny::interrupts::count_of;
use tiny::smp::{self, MOST};
use tiny::{apic, cpu};

/// Silence in polls after which nothing more is expected.
const QUIET: u32 = 40_000;

/// An answer that the architecture does not give.
pub struct Wrong {
    pub what: &'static str,
    pub item: u64,
    pub got: u64,
    pub wanted: u64,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:#x} gave {:#x}, not {:#x}", self.what, self.item, self.got, self.wanted)
    }
}

/// Right if a value is what it should be.
pub fn expect(what: &'static str, item: u64, got: u64, wanted: u64) -> Result<(), Wrong> {
    if got == wanted { Ok(()) } else { Err(Wrong { what, item, got, wanted }) }
}

/// Returns what each CPU has counted of a vector.
pub fn counts(vector: u8) -> [u32; MOST] {
    core::array::from_fn(|cpu| count_of(cpu, vector))
}

/// Sends a vector by this command, and sees that the CPUs of the set `wanted` get it once each, and no other
/// does.
pub fn reaches(what: &'static str, vector: u8, destination: u32, command: u32, wanted: u32) -> Result<(), Wrong> {
    let before = counts(vector);
    apic::send(destination, command | u32::from(vector));
    let got = || {
        let now = counts(vector);
        (0..MOST).fold(0, |set, at| set | u32::from(now[at] != before[at]) << at)
    };
    wait_with_interrupts(|| got() == wanted);
    quiet();
    expect(what, destination.into(), got().into(), wanted.into())?;
    let most = counts(vector).iter().zip(before).map(|(now, before)| now - before).max().unwrap_or(0);
    expect(what, destination.into(), most.into(), u64::from(wanted != 0))
}

/// Waits until it is there, interrupts let in, and returns whether it came.
pub fn wait_with_interrupts(is_there: impl Fn() -> bool) -> bool {
    cpu::interrupts_on();
    let came = smp::wait_until(is_there);
    cpu::interrupts_off();
    came
}

/// Waits for a while, interrupts let in.
pub fn quiet() {
    cpu::interrupts_on();
    (0..QUIET).for_each(|_| spin_loop());
    cpu::interrupts_off();
}

/// A set with all of these CPUs in it.
pub const fn all(cpus: usize) -> u32 {
    (1 << cpus) - 1
}
