// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of a Linux guest that mean a fault of its machine.

/// Parts of lines that a healthy guest never prints.
const SUSPICIOUS: [&str; 22] = [
    "WARNING:",
    "BUG:",
    "kernel BUG",
    "Oops",
    "Call Trace",
    "unchecked MSR",
    "general protection",
    "divide error",
    "invalid opcode",
    "clocksource: timekeeping watchdog",
    "Marking clocksource",
    "unstable",
    "soft lockup",
    "hard LOCKUP",
    "blocked for more than",
    "rcu_preempt detected",
    "detected stalls",
    "nobody cared",
    "spurious",
    "APIC error",
    "[Firmware Bug]",
    "Kernel panic",
];

/// Two readings of the watchdog's own clock were too far apart for a verdict: an exit for each takes an emulator that
/// waits for the machine's cores that long. A clock that is wrong has another line.
const SLOW_MACHINE: &str = "wd-wd read-back delay";

/// The lines of a guest's console that mean that something is wrong with its machine.
pub fn suspicious(console: &str) -> Vec<&str> {
    let is_suspicious = |line: &&str| !line.contains(SLOW_MACHINE) && SUSPICIOUS.iter().any(|part| line.contains(part));
    console.lines().map(str::trim_end).filter(is_suspicious).collect()
}

/// The same of a guest with several CPUs. An emulated CPU has no invariant time stamp counter, and Linux distinguishes
/// it from others by this alone.
pub fn suspicious_of_several_cpus(console: &str) -> Vec<&str> {
    const EXPECTED: &str = "tsc: Marking TSC unstable due to TSCs unsynchronized";
    suspicious(console).into_iter().filter(|line| !line.ends_with(EXPECTED)).collect()
}

/// The clock source that the kernel has chosen.
pub fn clock_source(console: &str) -> Option<&str> {
    console.lines().rev().find_map(|line| line.trim_end().split_once("Switched to clocksource ")).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEALTHY: &str = "[ 0.5] pid_max: default: 32768\r\n[ 1.0] clocksource: Switched to clocksource tsc-early\r\n\
                           [ 2.0] clocksource: Switched to clocksource kvm-clock\r\n[ 2.1] Run /init as init \
                           process\r\n";

    #[test]
    fn a_healthy_guest_is_not_suspected() {
        assert_eq!(suspicious(HEALTHY), [""; 0]);
        assert_eq!(clock_source(HEALTHY), Some("kvm-clock"));
    }

    #[test]
    fn a_slow_machine_is_no_wrong_clock() {
        let watchdog = "[ 14.3] clocksource: timekeeping watchdog on CPU0: ";
        let delay = format!("{watchdog}kvm-clock wd-wd read-back delay of 84989ns");
        let wrong = format!("{watchdog}Marking clocksource 'kvm-clock' as unstable because the skew is too large:");
        assert_eq!(suspicious(&format!("{delay}\r\n{wrong}\r\n")), [wrong]);
    }

    #[test]
    fn a_warning_is_found_with_its_line() {
        let console = format!("{HEALTHY}[ 3.0] unchecked MSR access error: RDMSR from 0x122\r\n");
        assert_eq!(suspicious(&console), ["[ 3.0] unchecked MSR access error: RDMSR from 0x122"]);
    }
}
