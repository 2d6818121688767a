// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of hashing an image (`measure=hash`): ticks for some bytes, by each engine that the CPU has. In an emulator
//! that counts instructions, ticks are instructions.

use alloc::vec;

use seal::{Digest, Sha256};

use crate::arch::cpu;
use crate::arch::sha256::Engine;

/// Hashed at a time: whole blocks.
const BYTES: usize = 64 * 1024;
/// Times that each engine is measured: odd, so that one is the median.
const MEASURED: usize = 5;

/// Measures, and logs the result.
pub fn measure() {
    let message = vec![0x5a; BYTES];
    let mut digests: [Option<Digest>; 2] = [None; 2];
    for (engine, digest) in Engine::available().zip(&mut digests) {
        let mut ticks = [0; MEASURED];
        for slot in &mut ticks {
            let began = cpu::tsc();
            let mut hash = Sha256::new(engine);
            hash.update(&message);
            *digest = Some(hash.finish());
            *slot = cpu::tsc().wrapping_sub(began);
        }
        sort::ascending(&mut ticks);
        log::info!("hash-cost: {} {BYTES} {}", engine.name(), ticks[MEASURED / 2]);
    }
    match digests {
        [Some(one), Some(other)] if one != other => log::error!("hash-cost: the engines disagree"),
        _ => log::info!("hash-cost: done"),
    }
}
