// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that wait for each other: at a lock of the kernel, and asleep.

use crate::{log, machine};
use rustix::thread::{CpuSet, futex, sched_setaffinity};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::{Duration, Instant};

/// Threads that sleep in one list of the kernel's. It is searched under a spinlock.
const SLEEPERS: usize = 64;
const SLEEPER_STACK_BYTES: usize = 64 << 10;
const UNTIL_ASLEEP: Duration = Duration::from_millis(200);
/// The sleepers' kind, and one that none of them has.
const SLEEP: NonZeroU32 = NonZeroU32::new(1).unwrap();
const NONE: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// Has every CPU search for a sleeper that is not there (FUTEX_WAKE_BITSET): most of its time it holds the spinlock of
/// the sleepers' list, or waits for it.
pub fn locks(time: Duration) {
    let word: &'static AtomicU32 = Box::leak(Box::default());
    for _ in 0..SLEEPERS {
        let sleep = || {
            let _ = futex::wait_bitset(word, futex::Flags::PRIVATE, 0, None, SLEEP);
        };
        drop(thread::Builder::new().stack_size(SLEEPER_STACK_BYTES).spawn(sleep));
    }
    thread::sleep(UNTIL_ASLEEP);
    let start = Instant::now();
    let search = || futex::wake_bitset(word, futex::Flags::PRIVATE, 1, NONE).is_ok();
    let count = || (0_u64..).take_while(|_| start.elapsed() < time && search()).count();
    let operations: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..machine::cpus()).map(|_| scope.spawn(count)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    log!("locks: {operations} operations in {} ms", start.elapsed().as_millis());
}

/// A byte goes to a thread on another CPU and back: each time both CPUs wake from idling, unless they poll.
fn exchange(rounds: u64) -> io::Result<Duration> {
    let (mut question, asks) = io::pipe()?;
    let (answer, mut answers) = io::pipe()?;
    let answering = thread::spawn(move || {
        run_on(1)?;
        (0..rounds).try_for_each(|_| pass_on(&mut question, &mut answers))
    });
    run_on(0)?;
    let took = ask(rounds, asks, answer)?;
    answering.join().unwrap_or(Ok(()))?;
    Ok(took)
}

fn ask(rounds: u64, mut asks: PipeWriter, mut answer: PipeReader) -> io::Result<Duration> {
    let start = Instant::now();
    for _ in 0..rounds {
        asks.write_all(&[1])?;
        answer.read_exact(&mut [0])?;
    }
    Ok(start.elapsed())
}

fn pass_on(from: &mut PipeReader, to: &mut PipeWriter) -> io::Result<()> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    to.write_all(&byte)
}

/// Binds the calling thread to a CPU.
fn run_on(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// Prints how long such rounds take.
pub fn pipe(rounds: u64) {
    match exchange(rounds) {
        Ok(took) => log!("pipe: {rounds} rounds in {} us", took.as_micros()),
        Err(error) => log!("pipe: WRONG: {error}"),
    }
}
