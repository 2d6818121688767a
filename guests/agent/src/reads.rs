// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many blocks of 4 KiB the disk reads at random places, past the page cache, with so many reads under way: each is
//! a thread's.

use crate::disk::{self, BLOCK_BYTES, aligned};
use crate::log;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

/// Reads for so long, and prints lines before and after that.
pub fn run(depth: u64, time: Duration) {
    match disk::open().and_then(|disk| Ok((blocks(&disk)?, disk))) {
        Ok((blocks, disk)) => {
            log!("reads begin depth={depth}");
            let start = Instant::now();
            let counts = read_with(&disk, blocks, depth, |_| start.elapsed() >= time);
            let (count, errors) = (counts.done, counts.errors);
            log!("reads depth={depth} us={} count={count} errors={errors}", start.elapsed().as_micros());
        }
        Err(error) => log!("reads: WRONG: the disk cannot be read: {error}"),
    }
}

fn blocks(mut disk: &File) -> io::Result<u64> {
    Ok((disk.seek(SeekFrom::End(0))? / BLOCK_BYTES as u64).max(1))
}

/// Reads that have succeeded, and those that have failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    done: u64,
    errors: u64,
}

/// Reads with so many threads, each until `is_over` is true for the number of its reads.
fn read_with<F: FileExt + Sync>(disk: &F, blocks: u64, depth: u64, is_over: impl Fn(u64) -> bool + Sync) -> Counts {
    let is_over = &is_over;
    thread::scope(|scope| {
        let start = |seed| scope.spawn(move || read_until(disk, blocks, seed, is_over));
        let readers: Vec<_> = (1..=depth).map(start).collect();
        let counts = readers.into_iter().filter_map(|reader| reader.join().ok());
        counts.fold(Counts::default(), |sum, one| Counts { done: sum.done + one.done, errors: sum.errors + one.errors })
    })
}

fn read_until<F: FileExt>(disk: &F, blocks: u64, seed: u64, is_over: &impl Fn(u64) -> bool) -> Counts {
    let (mut memory, mut state, mut counts) = (vec![0; 2 * BLOCK_BYTES], seed, Counts::default());
    while !is_over(counts.done + counts.errors) {
        let block = next(&mut state) % blocks;
        match disk.read_exact_at(aligned(&mut memory), block * BLOCK_BYTES as u64) {
            Ok(()) => counts.done += 1,
            Err(_) => counts.errors += 1,
        }
    }
    counts
}

/// Marsaglia's generator "xorshift64" (Xorshift RNGs, 2003): never 0 where `state` was not.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// The places that were read; the last block cannot be.
    struct Disk(Mutex<Vec<u64>>);

    const BLOCKS: u64 = 8;

    impl FileExt for Disk {
        fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
            assert_eq!((bytes.len(), bytes.as_ptr().addr() % BLOCK_BYTES), (BLOCK_BYTES, 0));
            self.0.lock().unwrap().push(offset);
            if offset == (BLOCKS - 1) * BLOCK_BYTES as u64 { Err(io::Error::other("bad")) } else { Ok(bytes.len()) }
        }

        fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
            unreachable!("it is only read")
        }
    }

    #[test]
    fn whole_blocks_of_all_of_the_disk_are_read_and_failures_counted() {
        let disk = Disk(Mutex::default());
        let counts = read_with(&disk, BLOCKS, 3, |reads| reads == 200);
        let places = disk.0.into_inner().unwrap();
        assert_eq!((counts.done + counts.errors, places.len()), (600, 600));
        let failed = places.iter().filter(|&&place| place == (BLOCKS - 1) * BLOCK_BYTES as u64).count();
        assert_eq!(counts.errors, failed as u64);
        let mut read = places;
        read.sort_unstable();
        read.dedup();
        let all: Vec<u64> = (0..BLOCKS).map(|block| block * BLOCK_BYTES as u64).collect();
        assert_eq!(read, all);
    }
}
