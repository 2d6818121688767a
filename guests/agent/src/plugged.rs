// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks that come while the kernel runs, and go: each is written and verified until it is gone.

use crate::disk::{Use, open_direct};
use crate::log;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(20);
const REPORT_INTERVAL: Duration = Duration::from_millis(500);
/// A disk is gone at most so long after a failed access.
const GONE_LIMIT: Duration = Duration::from_secs(5);

/// Writes and verifies so many blocks of each NVMe disk that is there, for ever, beside the tasks that follow.
pub fn start(blocks: u64) {
    thread::spawn(move || {
        let mut number = 0;
        loop {
            match find() {
                Some(path) => {
                    follow(number, &path, blocks);
                    number += 1;
                }
                None => sleep(POLL_INTERVAL),
            }
        }
    });
}

/// The first disk: `/dev/nvme0n1`, or another controller's.
fn find() -> Option<PathBuf> {
    let mut names: Vec<String> =
        fs::read_dir("/dev").ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let name = names.into_iter().find(|name| is_disk(name))?;
    Some(Path::new("/dev").join(name))
}

/// Returns whether a device's name is that of the first namespace of an NVMe controller.
fn is_disk(name: &str) -> bool {
    let number = name.strip_prefix("nvme").and_then(|rest| rest.strip_suffix("n1"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Uses a disk until it is gone.
fn follow(number: u64, path: &Path, blocks: u64) {
    let disk = match open_direct(path) {
        Ok(disk) => disk,
        // Its driver is not done, or it has gone at once.
        Err(_) => return sleep(POLL_INTERVAL),
    };
    log!("plugged {number}: {}", path.display());
    let (mut use_of_disk, mut reported) = (Use::new(&disk, blocks.max(1)), Instant::now());
    loop {
        if let Err(error) = use_of_disk.try_step() {
            return report_end(number, path, &error);
        }
        if reported.elapsed() >= REPORT_INTERVAL {
            log!("plugged {number}: {}", use_of_disk.report());
            reported = Instant::now();
        }
    }
}

/// Accesses of a disk that is gone fail. Those of another one must not.
fn report_end(number: u64, path: &Path, error: &str) {
    let end = Instant::now() + GONE_LIMIT;
    while path.exists() && Instant::now() < end {
        sleep(POLL_INTERVAL);
    }
    match path.exists() {
        true => log!("plugged {number}: WRONG: {error}"),
        false => log!("plugged {number}: gone"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_the_first_namespace_of_a_controller() {
        assert!(is_disk("nvme0n1") && is_disk("nvme12n1"));
        for other in ["nvme0", "nvme0n2", "nvme0n1p1", "nvme-fabrics", "nvmen1", "nvme0c0n1", "sda"] {
            assert!(!is_disk(other), "{other}");
        }
    }
}
