// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test subject for a profiler: three functions whose shares of its time are known.
//!
//! `shares MS` computes for so many milliseconds, in rounds of 5, 3 and 2 parts of the same work, and prints by the
//! clock what each part took of all of them, and how many rounds there were:
//!
//! ```text
//! shares: half=0.5003 third=0.2999 fifth=0.1998 rounds=2210 ms=1000
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Steps of one part.
const STEPS: u64 = 20_000;

/// The work: each step waits for the one before it.
#[inline(always)]
fn work(parts: u64) -> u64 {
    let mut value = black_box(1_u64);
    for _ in 0..parts * STEPS {
        value = value.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(7) ^ 0x1405_7b7e;
    }
    black_box(value)
}

#[inline(never)]
fn half() -> u64 {
    work(5)
}

#[inline(never)]
fn third() -> u64 {
    work(3)
}

#[inline(never)]
fn fifth() -> u64 {
    work(2)
}

fn main() {
    let milliseconds = std::env::args().nth(1).and_then(|digits| digits.parse().ok()).unwrap_or(1000);
    let limit = Duration::from_millis(milliseconds);
    let start = Instant::now();
    let (mut took, mut rounds) = ([Duration::ZERO; 3], 0_u64);
    while start.elapsed() < limit {
        for (part, function) in took.iter_mut().zip([half as fn() -> u64, third, fifth]) {
            let before = Instant::now();
            black_box(function());
            *part += before.elapsed();
        }
        rounds += 1;
    }
    let all: Duration = took.iter().sum();
    let [half, third, fifth] = took.map(|part| part.as_secs_f64() / all.as_secs_f64());
    let ms = start.elapsed().as_millis();
    println!("shares: half={half:.4} third={third:.4} fifth={fifth:.4} rounds={rounds} ms={ms}");
}
