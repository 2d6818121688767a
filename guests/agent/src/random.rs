// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entropy device under constant use: what it gives is no repetition of what it gave.

use crate::log;
use std::fs::File;
use std::io::{self, Read};
use std::thread::{self, sleep};
use std::time::Duration;

const DEVICE: &str = "/dev/hwrng";
const BYTES: usize = 64;

/// Reads it for ever, beside the tasks that follow.
pub fn start(period: Duration) {
    thread::spawn(move || {
        if let Err(error) = File::open(DEVICE).and_then(|device| run(device, period)) {
            log!("hwrng: WRONG: {DEVICE}: {error}");
        }
    });
}

fn run(mut device: impl Read, period: Duration) -> io::Result<()> {
    let mut before = [0; BYTES];
    for number in 0_u64.. {
        before = next(&mut device, &before)?;
        log!("hwrng {number} ones={}", before.iter().map(|byte| byte.count_ones()).sum::<u32>());
        sleep(period);
    }
    Ok(())
}

/// The next bytes. Those of a good device differ from the ones before, and from any pattern, in about half of all bits.
fn next(device: &mut impl Read, before: &[u8; BYTES]) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    device.read_exact(&mut bytes)?;
    let differs = |other: &[u8; BYTES]| bytes.iter().zip(other).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    // Of 512 bits; beyond this lies one try in 10^20.
    let is_random = |bits: u32| (150..=362).contains(&bits);
    if is_random(differs(before)) && is_random(differs(&[0; BYTES])) {
        Ok(bytes)
    } else {
        Err(io::Error::other("its bytes are not random"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_repeat_or_have_a_pattern_are_found() {
        let mixed: Vec<u8> = (0..BYTES as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect();
        let good = next(&mut &mixed[..], &[0; BYTES]).expect("about half of the bits");
        assert!(next(&mut &mixed[..], &good).is_err(), "the same again");
        assert!(next(&mut &[0; BYTES][..], &good).is_err());
        assert!(next(&mut &mixed[1..], &[0; BYTES]).is_err(), "too few");
    }
}
