// SPDX-License-Identifier: MIT OR Apache-2.0
//! All CPUs busy with each other: a machine that loses or delays interrupts between CPUs would not survive that.
//!
//! On each CPU, bound to it, run three threads: one computes and checks what it has computed, one makes all
//! others pass a memory barrier (membarrier(2), private and expedited: an interrupt to every CPU that runs this
//! process), and one passes a ball to the next CPU's by a futex, which wakes it up where it sleeps.

use crate::log;
use rustix::thread::futex::{self, Flags};
use rustix::thread::{
    CpuSet, MembarrierCommand, Timespec, membarrier, sched_getaffinity, sched_getcpu, sched_setaffinity,
};
use std::fmt::Display;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time for which a thread waits for the ball before it counts as lost: a starved CPU is slow, but not that slow.
const BALL_LOST_AFTER: Duration = Duration::from_secs(30);
/// Interval at which it checks meanwhile whether all is over.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Counts of all threads.
#[derive(Default)]
struct Counts {
    rounds: AtomicU64,
    barriers: AtomicU64,
    passes: AtomicU64,
    wrong: AtomicU64,
}

/// Stresses every CPU for so long, and prints the outcome.
pub fn run(time: Duration) {
    let cpus = match cpus() {
        Ok(cpus) => cpus,
        Err(error) => return log!("stress: WRONG: {error}"),
    };
    let start = Instant::now();
    let counts = Counts::default();
    let complaints = on_all(&cpus, start + time, &counts);
    let [rounds, barriers, passes, wrong] =
        [&counts.rounds, &counts.barriers, &counts.passes, &counts.wrong].map(|count| count.load(Ordering::Relaxed));
    complaints.iter().for_each(|complaint| log!("stress: WRONG: {complaint}"));
    if wrong != 0 || rounds == 0 || barriers == 0 || passes == 0 {
        log!("stress: WRONG: {wrong} wrong of {rounds} rounds, {barriers} barriers, {passes} passes");
    }
    let count = cpus.len();
    let ms = start.elapsed().as_millis();
    log!("stress: {count} CPUs, {rounds} rounds, {barriers} barriers, {passes} passes in {ms} ms");
}

/// The CPUs that this process may run on.
pub fn cpus() -> Result<Vec<usize>, String> {
    let set = sched_getaffinity(None).map_err(|error| format!("sched_getaffinity: {error}"))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Binds the calling thread to a CPU.
pub fn bind(cpu: usize) -> Result<(), String> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|error| format!("thread cannot be bound to {cpu}: {error}"))?;
    let at = sched_getcpu();
    if at == cpu { Ok(()) } else { Err(format!("thread bound to {cpu} runs on {at}")) }
}

fn on_all(cpus: &[usize], end: Instant, counts: &Counts) -> Vec<String> {
    let complaint = |what: &str, error: &dyn Display| format!("{what}: {error}");
    if let Err(error) = membarrier(MembarrierCommand::RegisterPrivateExpedited) {
        return vec![complaint("membarrier", &error)];
    }
    // One ball for each neighbourhood of two: even numbers are the first's turn.
    let balls: Vec<AtomicU32> = cpus.iter().map(|_| AtomicU32::new(0)).collect();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (place, &cpu) in cpus.iter().enumerate() {
            let next = cpus[(place + 1) % cpus.len()];
            let ball = &balls[place];
            threads.push(scope.spawn(move || bind(cpu).map(|()| compute(end, counts))));
            threads.push(scope.spawn(move || bind(cpu).and_then(|()| barriers(end, counts))));
            threads.push(scope.spawn(move || bind(cpu).and_then(|()| pass(ball, 0, end, counts))));
            threads.push(scope.spawn(move || bind(next).and_then(|()| pass(ball, 1, end, counts))));
        }
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("thread panicked".into())));
        ended.filter_map(Result::err).collect()
    })
}

/// Returns whether a thread that has done so much may end: its time is over, and it has done something. A CPU that is
/// shared may have come to it late.
fn is_over(end: Instant, done: u64) -> bool {
    Instant::now() >= end && done > 0
}

fn compute(end: Instant, counts: &Counts) {
    let sum = || (0..10_000_u64).fold(0_u64, |sum, step| black_box(sum.rotate_left(7) ^ step.wrapping_mul(sum | 1)));
    let right = sum();
    let mut done = 0;
    while !is_over(end, done) {
        done += 1;
        if sum() != right {
            counts.wrong.fetch_add(1, Ordering::Relaxed);
        }
        counts.rounds.fetch_add(1, Ordering::Relaxed);
    }
}

fn barriers(end: Instant, counts: &Counts) -> Result<(), String> {
    let mut done = 0;
    while !is_over(end, done) {
        done += 1;
        membarrier(MembarrierCommand::PrivateExpedited).map_err(|error| format!("membarrier: {error}"))?;
        counts.barriers.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Passes the ball whenever its number is of this parity.
fn pass(ball: &AtomicU32, parity: u32, end: Instant, counts: &Counts) -> Result<(), String> {
    let (mut had_at, mut done) = (Instant::now(), 0);
    while !is_over(end, done) {
        let number = ball.load(Ordering::Acquire);
        if number % 2 == parity {
            ball.store(number.wrapping_add(1), Ordering::Release);
            let _ = futex::wake(ball, Flags::PRIVATE, 1);
            counts.passes.fetch_add(1, Ordering::Relaxed);
            done += 1;
            had_at = Instant::now();
        } else if had_at.elapsed() > BALL_LOST_AFTER {
            return Err(format!("ball {number} never came"));
        } else {
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(CHECK_INTERVAL.subsec_nanos()) };
            // It has changed, another thread has woken this one, or the time is over: the loop checks again in each
            // case.
            let _ = futex::wait(ball, Flags::PRIVATE, number, Some(&timeout));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
