// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that are busy and well: what a host must never take for a panic.

use crate::{log, machine};
use std::fs;
use std::hint::{black_box, spin_loop};
use std::thread::{self, sleep, yield_now};
use std::time::{Duration, Instant};

/// Polls of the clock between two yields.
const POLLS_PER_YIELD: u32 = 10_000;
/// Bytes that the memory thread writes at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Polls the clock from user space, as a program does that waits for a packet.
pub fn poll(time: Duration) {
    let start = Instant::now();
    let mut yields = 0_u64;
    while start.elapsed() < time {
        for _ in 0..POLLS_PER_YIELD {
            black_box(start.elapsed());
            spin_loop();
        }
        yield_now();
        yields += 1;
    }
    log!("poll: {yields} yields in {} ms", start.elapsed().as_millis());
}

/// Computing, system calls, memory and short sleeps beside each other: one thread more than there are CPUs.
pub fn mix(time: Duration) {
    let start = Instant::now();
    let threads: Vec<_> = (0..machine::cpus() + 1)
        .map(|number| {
            thread::spawn(move || (0_u64..).take_while(|_| start.elapsed() < time).map(|_| one_piece(number)).count())
        })
        .collect();
    let pieces: usize = threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
    log!("mix: {pieces} pieces in {} ms", start.elapsed().as_millis());
}

fn one_piece(number: usize) {
    match number % 4 {
        0 => drop(fs::read_to_string("/proc/meminfo").and_then(|_| fs::read_dir("/proc"))),
        1 => drop(black_box((0..1_000_000_u64).fold(0, |sum, word| sum ^ word.wrapping_mul(0x9e37_79b9_7f4a_7c15)))),
        2 => drop(black_box(vec![number as u8 + 1; PIECE_BYTES])),
        _ => sleep(Duration::from_millis(1)),
    }
    // A kernel that copies is busy too: all that /dev/zero gives.
    if number.is_multiple_of(2)
        && let Ok(mut zero) = fs::File::open("/dev/zero")
    {
        use std::io::Read as _;
        let mut bytes = vec![1_u8; PIECE_BYTES];
        drop(zero.read_exact(&mut bytes));
        black_box(&bytes);
    }
}
