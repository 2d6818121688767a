// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each interrupt of the device is delivered exactly once, to a CPU that runs and to one that sleeps.

use core::sync::atomic::{AtomicU64, Ordering};

use tiny::answers::{Wrong, expect, expect_that};
use tiny::{cpu, print, smp, timing};

use crate::clock::{self, Waiting, pause};
use crate::device::{self, FACTORIAL_INTERRUPTS, Register};
use crate::interrupts::{self, PINS, came};
use crate::request::Request;

/// Longest wait for an interrupt, and for one too many.
const LIMIT_MS: u32 = 3000;
const AFTERWARDS_MS: u32 = 100;
/// A number whose factorial takes the device so long that the CPU sleeps when it is done.
const LONG_FACTORIAL: u32 = 100_000;
/// Ticks that another CPU waits before it raises, so that the first one sleeps.
const BEFORE_RAISING: u64 = 1_000_000;
/// Ticks of an interrupt with an unknown beginning.
const NO_TIME: u64 = 0;

/// By message.
pub fn by_message(request: &Request<'_>) -> Result<(), Wrong> {
    interrupts::use_messages(request.edu.function)?;
    all_came("msi", request)
}

/// By the INTx line and the I/O APIC, level-triggered.
pub fn by_line(request: &Request<'_>) -> Result<(), Wrong> {
    interrupts::use_line(request.edu.function);
    let result = all_came("intx", request);
    interrupts::end_line();
    let pin = interrupts::last_pin();
    print!("edu: intx: pin={pin}\n");
    result.and_then(|()| expect_that("pin of the line", pin.into(), 0, PINS.contains(&pin)))
}

/// The line stays asserted, and each end of its interrupt is followed by the next one, until the function is gone.
pub fn unserved(request: &Request<'_>) -> Result<(), Wrong> {
    const GONE: u32 = u32::MAX;
    const GONE_MS: u32 = 60_000;
    interrupts::stop_serving();
    interrupts::use_line(request.edu.function);
    device::write(Register::RaiseInterrupt, 1);
    let is_gone = || device::read(Register::Identification) == GONE;
    let went = clock::wait(Waiting::Running, GONE_MS, is_gone);
    print!("edu: unserved: came={}\n", came());
    expect_that("function that is gone", GONE.into(), device::read(Register::Identification).into(), went)
}

fn all_came(name: &str, request: &Request<'_>) -> Result<(), Wrong> {
    series(name, "running", request.count, raise_running)?;
    series(name, "halted", request.count, compute_halted)?;
    match request.cpus {
        1 => Ok(()),
        _ => series(name, "halted-by-cpu1", request.count, raise_halted),
    }
}

/// So many interrupts, one after the other. The time is what `raise` returns, 0 for none.
pub fn series(name: &str, state: &str, count: usize, raise: fn() -> Result<u64, Wrong>) -> Result<(), Wrong> {
    raise()?; // The first one finds nothing where it is wanted: caches, the emulator's translation.
    let (before, mut failure) = (came(), None);
    let (least, median) = timing::sample(count, || match failure {
        Some(_) => NO_TIME,
        None => one(raise).unwrap_or_else(|wrong| {
            failure = Some(wrong);
            NO_TIME
        }),
    });
    pause(AFTERWARDS_MS);
    let came = came() - before;
    match median {
        NO_TIME => print!("edu: {name} {state} n={count} came={came}\n"),
        _ => print!("edu: {name} {state} n={count} came={came} min={least} median={median}\n"),
    }
    failure.map_or(Ok(()), Err)?;
    expect("interrupts", count as u64, came.into(), count as u64)
}

/// One interrupt, and no more so far.
fn one(raise: fn() -> Result<u64, Wrong>) -> Result<u64, Wrong> {
    let expected = came() + 1;
    let ticks = raise()?;
    expect("interrupts", expected.into(), came().into(), expected.into()).map(|()| ticks)
}

/// The CPU that raises it executes instructions until it comes.
fn raise_running() -> Result<u64, Wrong> {
    let before = came();
    cpu::interrupts_on();
    let raised = cpu::ticks();
    device::write(Register::RaiseInterrupt, 1);
    cpu::interrupts_off();
    await_one(Waiting::Running, before)?;
    Ok(interrupts::last_ticks() - raised)
}

/// The device raises it when a factorial is computed; meanwhile the CPU sleeps. Nothing shows when that is.
fn compute_halted() -> Result<u64, Wrong> {
    let before = came();
    device::write(Register::Status, FACTORIAL_INTERRUPTS);
    device::write(Register::Factorial, LONG_FACTORIAL);
    let result = await_one(Waiting::Halted, before);
    device::write(Register::Status, 0);
    result.map(|()| NO_TIME)
}

/// Another CPU raises it while this one sleeps.
fn raise_halted() -> Result<u64, Wrong> {
    static RAISED: AtomicU64 = AtomicU64::new(0);
    let before = came();
    smp::give(1, |_| {
        let start = cpu::ticks();
        while cpu::ticks() - start < BEFORE_RAISING {}
        RAISED.store(cpu::ticks(), Ordering::Release);
        device::write(Register::RaiseInterrupt, 1);
    });
    await_one(Waiting::Halted, before)?;
    expect_that("CPU that raises", 1, 0, smp::wait_until(|| smp::is_done(1)))?;
    Ok(interrupts::last_ticks().saturating_sub(RAISED.load(Ordering::Acquire)))
}

/// Waits for the interrupt behind so many.
pub fn await_one(waiting: Waiting, before: u32) -> Result<(), Wrong> {
    let is_there = clock::wait(waiting, LIMIT_MS, || came() != before);
    expect_that("interrupt", u64::from(before) + 1, came().into(), is_there)
}
