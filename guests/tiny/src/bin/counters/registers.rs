// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers: what is there, what is not, what may be written.

use tiny::answers::{Wrong, expect, expect_fault};
use tiny::attempt::{GENERAL_PROTECTION, attempt};
use tiny::counters::{COUNTS, Unit, WIDTH_MASK};
use tiny::{cpu, print, user};

/// Writes of `writes`.
const WRITES: u64 = 20_000;
/// An event that no CPU counts.
const NOTHING: u64 = 0xff;

/// Each register keeps what it can hold, and what is not there is a fault.
pub fn answer_as_in_the_manual(unit: &Unit) -> Result<(), Wrong> {
    for counter in 0..unit.counters() {
        for value in [0, 1, WIDTH_MASK, 0x1234_5678_9abc] {
            cpu::write_msr(unit.counter(counter), value);
            expect("counter", counter.into(), cpu::read_msr(unit.counter(counter)), value)?;
            expect("RDPMC of", counter.into(), unit.read(counter), value)?;
        }
        let select = NOTHING | COUNTS;
        cpu::write_msr(unit.select(counter), select);
        expect("select", counter.into(), cpu::read_msr(unit.select(counter)), select)?;
    }
    expect_fault("RDPMC of", 31, || cpu::read_counter(31))?;
    let absent = match unit {
        Unit::Intel => [unit.select(unit.counters()), 0x30c, 0x391, 0xc001_0200],
        Unit::Amd => [unit.select(unit.counters()), 0xc000_0304, 0x186, 0x38f],
    };
    for number in absent {
        expect_fault("read of", number.into(), || cpu::read_msr(number))?;
        expect_fault("write of", number.into(), || cpu::write_msr(number, 0))?;
    }
    match unit {
        Unit::Intel => reserved_bits_of_intels(),
        Unit::Amd => reserved_bits_of_amds(),
    }
}

/// At privilege level 3 RDPMC is a fault, until CR4 allows it; then it reads what is there and nothing else.
pub fn are_for_user_mode_if_allowed(unit: &Unit) -> Result<(), Wrong> {
    let absent = unit.counters();
    user::allow();
    for (counter, value) in [(0, 77), (absent - 1, WIDTH_MASK - 5)] {
        cpu::write_msr(unit.counter(counter), value);
        let read = |is_allowed: bool, counter: u32| {
            let others = cpu::cr4() & !cpu::CR4_PCE;
            cpu::set_cr4(others | if is_allowed { cpu::CR4_PCE } else { 0 });
            let read = user::read_counter(counter);
            cpu::set_cr4(others);
            // A fault's vector is reported as a value that no counter has.
            read.unwrap_or_else(|fault| !u64::from(fault.vector))
        };
        let fault = !u64::from(GENERAL_PROTECTION);
        expect("in user mode, not allowed, RDPMC of", counter.into(), read(false, counter), fault)?;
        expect("in user mode, allowed, RDPMC of", counter.into(), read(true, counter), value)?;
        expect("in user mode, allowed, RDPMC of", absent.into(), read(true, absent), fault)?;
        expect("in kernel mode RDPMC of", counter.into(), unit.read(counter), value)?;
    }
    Ok(())
}

fn reserved_bits_of_intels() -> Result<(), Wrong> {
    let reserved = [
        (0x186, 1 << 21),
        (0x186, 1 << 40),
        (0x4c1, 1 << 48),
        (0x309, 1 << 48),
        (0x38d, 1 << 2),
        (0x38d, 1 << 12),
        (0x38f, 1 << 40),
        (0x390, 1 << 50),
        (0x1d9, 1 << 20),
        (0x38e, 0),
    ];
    for (number, value) in reserved {
        expect_fault("reserved bits of", number.into(), || cpu::write_msr(number, value))?;
    }
    cpu::write_msr(0xc1, 0xffff_fff0);
    expect("a short write, sign-extended,", 0xc1, cpu::read_msr(0xc1), WIDTH_MASK - 0xf)
}

fn reserved_bits_of_amds() -> Result<(), Wrong> {
    const HOST_ONLY: u64 = 1 << 41;
    cpu::write_msr(0xc001_0200, HOST_ONLY | 1 << 63 | NOTHING);
    expect("bits that mean nothing", 0xc001_0200, cpu::read_msr(0xc001_0200), NOTHING)?;
    cpu::write_msr(0xc001_0004, 77);
    expect("the older name of", 0xc001_0201, cpu::read_msr(0xc001_0201), 77)
}

/// Writes that change something each time.
pub fn bear_a_storm_of_writes(unit: &Unit) -> Result<(), Wrong> {
    for write in 0..WRITES {
        let event = if write % 2 == 0 { unit.cycles() } else { NOTHING };
        cpu::write_msr(unit.select(0), event | COUNTS);
        cpu::write_msr(unit.control(), write & 1);
    }
    expect("control after", WRITES, cpu::read_msr(unit.control()), (WRITES - 1) & 1)
}

/// A guest that was given none has none. AMD's four legacy counters have no CPUID bit that hides them: they are there,
/// and count nothing.
pub fn are_absent() -> bool {
    let is_amd = cpu::cpuid(0)[1] == u32::from_le_bytes(*b"Auth");
    let registers = [0xc1, 0x186, 0x38f, 0x345, 0xc001_0200, 0xc000_0301];
    let is_absent = |number: u32| attempt(|| cpu::read_msr(number)).is_err();
    let counts_nothing = |number: u32| {
        attempt(|| {
            cpu::write_msr(number, 77);
            cpu::read_msr(number)
        }) == Ok(0)
    };
    let mut legacy = 0xc001_0000..=0xc001_0007;
    let are_absent = registers.into_iter().all(is_absent)
        && (if is_amd { legacy.all(counts_nothing) } else { legacy.all(is_absent) })
        && attempt(|| cpu::read_counter(0)).is_err();
    print!("counters: none: {}\n", if are_absent && Unit::find().is_none() { "ok" } else { "WRONG: there are some" });
    are_absent
}
