// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

const MEMINFO: &str = "MemTotal:         493240 kB\nMemFree:          447128 kB\nMemAvailable:     440320 kB\n";
const CPUINFO: &str = "processor\t: 0\nmodel name\t: QEMU TCG CPU\n\nprocessor\t: 1\nmodel name\t: QEMU TCG CPU\n";

#[test]
fn memory_is_reported_in_mebibytes() {
    assert_eq!(memory(MEMINFO), "481 MiB, 430 MiB available");
    assert_eq!(memory("nonsense"), "unknown");
}

#[test]
fn a_size_that_is_no_number_is_unknown() {
    assert_eq!(kibibytes("MemTotal: lots kB", "MemTotal"), None);
    assert_eq!(kibibytes("MemTotal: 18446744073709551615 kB", "MemTotal"), None);
    assert_eq!(kibibytes("MemTotal: 5", "MemTotal"), None);
}

#[test]
fn stolen_time_is_of_all_cpus_in_milliseconds() {
    assert_eq!(stolen("cpu  1 2 3 4 5 6 7 80 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n"), Some(800));
    assert_eq!(stolen("cpu0 1 2 3 4 5 6 7 8 9 10\n"), None);
    assert_eq!(stolen("cpu  1 2 3"), None);
}

#[test]
fn every_cpu_counts() {
    assert_eq!(field(CPUINFO, "processor").count(), 2);
    assert_eq!(field(CPUINFO, "model name").next(), Some("QEMU TCG CPU"));
}

#[test]
fn uptime_has_microseconds() {
    let (seconds, fraction) = uptime().split_once('.').map(|(s, f)| (s.to_owned(), f.to_owned())).unwrap();
    assert!(seconds.parse::<u64>().is_ok());
    assert_eq!(fraction.len(), 6);
}
