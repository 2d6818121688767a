// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identity of the machine, as the kernel reports it.

use rustix::system::{Uname, uname};
use rustix::time::{ClockId, clock_gettime};
use std::fs;

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Seconds since the kernel started, with microseconds.
pub fn uptime() -> String {
    let time = clock_gettime(ClockId::Boottime);
    format!("{}.{:06}", time.tv_sec, time.tv_nsec / 1000)
}

/// Bytes that programs can still have, without pushing others out.
pub fn available_memory() -> Option<u64> {
    kibibytes(&read("/proc/meminfo"), "MemAvailable")
}

/// CPUs that are in use.
pub fn cpus() -> usize {
    field(&read("/proc/cpuinfo"), "processor").count().max(1)
}

/// The features of the first CPU, as Linux names them.
pub fn flags() -> String {
    field(&read("/proc/cpuinfo"), "flags").next().unwrap_or("unknown").to_owned()
}

/// The greeting: system, CPUs, memory, clock.
pub fn greeting() -> String {
    let cpus = read("/proc/cpuinfo");
    format!(
        "Hello from a guest of Baton\n  system      {}\n  CPUs        {} ({})\n  memory      {}\n  clock       {}",
        system_name(&uname()),
        field(&cpus, "processor").count(),
        field(&cpus, "model name").next().unwrap_or("unnamed"),
        memory(&read("/proc/meminfo")),
        read(CLOCK_SOURCE).trim_end(),
    )
}

/// Milliseconds that the machine's CPUs wanted to run and others had them, by `/proc/stat`.
pub fn stolen_ms() -> Option<u64> {
    stolen(&read("/proc/stat"))
}

/// The eighth number of the line `cpu`, in ticks of 10 ms (Linux Documentation/filesystems/proc.rst).
fn stolen(stat: &str) -> Option<u64> {
    const MS_PER_TICK: u64 = 10;
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    line.split_ascii_whitespace().nth(7)?.parse::<u64>().ok()?.checked_mul(MS_PER_TICK)
}

fn system_name(names: &Uname) -> String {
    [names.sysname(), names.release(), names.version(), names.machine()].map(|name| name.to_string_lossy()).join(" ")
}

fn memory(meminfo: &str) -> String {
    match (kibibytes(meminfo, "MemTotal"), kibibytes(meminfo, "MemAvailable")) {
        (Some(total), Some(available)) => format!("{} MiB, {} MiB available", total >> 20, available >> 20),
        _ => "unknown".to_owned(),
    }
}

/// A field of `/proc/meminfo`, which gives KiB, in bytes.
fn kibibytes(meminfo: &str, name: &str) -> Option<u64> {
    let value = field(meminfo, name).next()?;
    value.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The values of every `name : value` line of that name.
fn field<'text>(text: &'text str, name: &'text str) -> impl Iterator<Item = &'text str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(move |(key, _)| key.trim() == name)
        .map(|(_, v)| v.trim())
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| format!("unknown ({path}: {error})"))
}

#[cfg(test)]
mod tests;
