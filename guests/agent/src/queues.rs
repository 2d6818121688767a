// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queues of the first network card, and the interrupts of those that receive.

use crate::log;
use std::fs;
use std::path::Path;
use std::thread::{self, sleep};
use std::time::Duration;

const QUEUES: &str = "/sys/class/net/eth0/queues";
const INTERRUPTS: &str = "/proc/interrupts";
/// In the name of a queue's interrupt, before its number (`virtnet_find_vqs` of Linux).
const RECEIVE: &str = "-input.";

/// Prints them at every period, for ever, beside the tasks that follow.
pub fn start(period: Duration) {
    thread::spawn(move || {
        for number in 0_u64.. {
            let (receive, send) = (count(Path::new(QUEUES), "rx-"), count(Path::new(QUEUES), "tx-"));
            let interrupts = received(&fs::read_to_string(INTERRUPTS).unwrap_or_default());
            log!("queues {number} rx={receive} tx={send} interrupts={interrupts:?}");
            sleep(period);
        }
    });
}

/// The entries of a folder that begin so.
fn count(folder: &Path, prefix: &str) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)).count()
}

/// For each queue that receives, the interrupts on all CPUs.
fn received(interrupts: &str) -> Vec<u64> {
    let of_queues = interrupts.lines().filter(|line| line.contains(RECEIVE));
    let counts = of_queues.map(|line| line.split_ascii_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok()));
    counts.map(Iterator::sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_of_receive_queues_are_added_up_over_all_cpus() {
        let text = "           CPU0       CPU1\n  4:         12          1   IO-APIC   4-edge  ttyS0\n 25:          7          30   PCI-MSIX-0000:00:14.0   \
                    1-edge      virtio0-input.0\n 26:          9          0   PCI-MSIX-0000:00:14.0   2-edge      \
                    virtio0-output.0\n 27:          0          5   PCI-MSIX-0000:00:14.0   3-edge      virtio0-input.1\n";
        assert_eq!(received(text), [37, 5]);
        assert!(received("").is_empty());
    }

    #[test]
    fn entries_are_counted_by_their_beginnings() {
        assert_eq!(count(Path::new("/proc/self"), "statu"), 1);
        assert_eq!(count(Path::new("/nowhere"), ""), 0);
    }
}
