// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk under constant use: blocks written past the page cache, and read back.

use crate::log;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::Path;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// The first of these that is there: an NVMe disk, or a virtio one.
const DEVICES: [&str; 2] = ["/dev/nvme0n1", "/dev/vda"];
/// Resets the function that the disk is.
const RESET: &str = "/sys/class/nvme/nvme0/device/reset";
/// Longest wait for the disk: its driver finds it in its own time.
const DEVICE_LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of a block, and what the address of its memory is a multiple of (O_DIRECT in open(2)).
pub const BLOCK_BYTES: usize = 4096;
const BLOCK_WORDS: u64 = (BLOCK_BYTES / 8) as u64;

/// Writes and verifies so many MiB of the disk for ever, beside the tasks that follow.
pub fn start(mebibytes: u64) {
    thread::spawn(move || match open() {
        Ok(disk) => run(&disk, blocks(mebibytes)),
        Err(error) => log!("disk: WRONG: {} cannot be opened: {error}", device()),
    });
}

/// Resets the disk's function so many times, while its driver has it: the driver starts the disk again.
pub fn reset(times: u64) {
    let mut slowest = Duration::ZERO;
    for _ in 0..times {
        let began = Instant::now();
        if let Err(error) = fs::write(RESET, "1") {
            return log!("reset: WRONG: {RESET}: {error}");
        }
        slowest = slowest.max(began.elapsed());
    }
    log!("reset: {times} times, slowest_ms={}", slowest.as_millis());
}

/// Opens the disk past the page cache, once its driver has found it.
pub fn open() -> io::Result<File> {
    let end = Instant::now() + DEVICE_LIMIT;
    while !Path::new(device()).exists() && Instant::now() < end {
        sleep(POLL_INTERVAL);
    }
    open_direct(Path::new(device()))
}

fn device() -> &'static str {
    DEVICES.into_iter().find(|path| Path::new(path).exists()).unwrap_or(DEVICES[0])
}

/// Opens a disk past the page cache.
pub fn open_direct(path: &Path) -> io::Result<File> {
    let direct = OFlags::DIRECT.bits() as i32;
    OpenOptions::new().read(true).write(true).custom_flags(direct).open(path)
}

/// Blocks of so many MiB.
pub fn blocks(mebibytes: u64) -> u64 {
    (mebibytes << 20) / BLOCK_BYTES as u64
}

fn run(disk: &File, blocks: u64) {
    log!("disk: {blocks} blocks of {}", device());
    let (mut use_of_disk, mut reported, mut beat) = (Use::new(disk, blocks.max(1)), Instant::now(), 0_u64);
    loop {
        use_of_disk.step();
        if reported.elapsed() >= REPORT_INTERVAL {
            log!("disk {beat} {}", use_of_disk.report());
            (reported, beat) = (Instant::now(), beat + 1);
        }
    }
}

/// The state of the blocks. A round writes all of them and then reads all of them.
pub struct Use<'disk, F> {
    disk: &'disk F,
    blocks: u64,
    /// Twice the blocks are a round.
    steps: u64,
    memory: Vec<u8>,
    written: u64,
    verified: u64,
    wrong: u64,
    errors: u64,
    slowest: Duration,
}

impl<'disk, F: FileExt> Use<'disk, F> {
    /// Of so many blocks of a disk, at least one.
    pub fn new(disk: &'disk F, blocks: u64) -> Self {
        let memory = vec![0; 2 * BLOCK_BYTES];
        let slowest = Duration::ZERO;
        Self { disk, blocks, steps: 0, memory, written: 0, verified: 0, wrong: 0, errors: 0, slowest }
    }

    /// Writes or verifies the next block; what goes wrong is counted and printed.
    fn step(&mut self) {
        if let Err(error) = self.try_step() {
            log!("disk: WRONG: {error}");
        }
    }

    /// Writes or verifies the next block.
    pub fn try_step(&mut self) -> Result<(), String> {
        let (round, place) = (self.steps / (2 * self.blocks), self.steps % (2 * self.blocks));
        let (block, is_write) = (place % self.blocks, place < self.blocks);
        self.steps += 1;
        let memory = aligned(&mut self.memory);
        let (offset, start) = (block * BLOCK_BYTES as u64, Instant::now());
        let done = if is_write {
            fill(memory, round, block);
            self.disk.write_all_at(memory, offset)
        } else {
            memory.fill(0);
            self.disk.read_exact_at(memory, offset)
        };
        self.slowest = self.slowest.max(start.elapsed());
        match done {
            Err(error) => {
                self.errors += 1;
                return Err(format!("block {block}: {error}"));
            }
            Ok(()) if is_write => self.written += 1,
            Ok(()) if holds(memory, round, block) => self.verified += 1,
            Ok(()) => {
                self.wrong += 1;
                return Err(format!("block {block} of round {round} is another"));
            }
        }
        Ok(())
    }

    /// The counts so far, and the slowest access since the report before.
    pub fn report(&mut self) -> String {
        let slowest = std::mem::take(&mut self.slowest).as_micros();
        let Self { written, verified, wrong, errors, .. } = self;
        format!("written={written} verified={verified} wrong={wrong} errors={errors} slowest_us={slowest}")
    }
}

/// Returns the block at a multiple of its size, in memory of twice that size.
pub fn aligned(memory: &mut [u8]) -> &mut [u8] {
    let from = memory.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
    &mut memory[from..from + BLOCK_BYTES]
}

/// A value for every word of every block in every round (multiplication by an odd constant is one to one).
fn word(round: u64, block: u64, word: u64) -> u64 {
    (round << 40).wrapping_add(block * BLOCK_WORDS + word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Writes the values of a block.
pub fn fill(memory: &mut [u8], round: u64, block: u64) {
    let words = memory.as_chunks_mut::<8>().0.iter_mut();
    (0..).zip(words).for_each(|(place, bytes)| *bytes = word(round, block, place).to_le_bytes());
}

/// Returns whether a block has its values.
pub fn holds(memory: &[u8], round: u64, block: u64) -> bool {
    let mut words = (0..).zip(memory.as_chunks::<8>().0);
    words.all(|(place, bytes)| u64::from_le_bytes(*bytes) == word(round, block, place))
}

#[cfg(test)]
mod tests;
