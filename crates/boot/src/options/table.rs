// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of options.

use super::values;
use super::wanted::Options;

/// One option: everything that parsing, messages and documentation need.
#[derive(Debug)]
pub struct OptionSpec {
    /// Name before the `=`.
    pub name: &'static str,
    /// Accepted values after it, for people.
    pub accepted: &'static str,
    /// The value that stands for leaving the option out.
    pub default: &'static str,
    /// Effect, for people.
    pub what: &'static str,
    /// Values that are accepted.
    pub examples: &'static [&'static str],
    /// Takes a value over; `None` refuses it and changes nothing.
    pub(crate) apply: fn(&mut Options, &str) -> Option<()>,
}

/// Every option of the image that operators run. The test image has [`crate::self_tests::SELF_TEST_OPTION`] beside
/// them.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "log",
        accepted: "error, warn, info, debug or trace",
        default: "info",
        what: "the least important level that is logged",
        examples: &["error", "warn", "info", "debug", "trace"],
        apply: |options, value| values::level(value).map(|level| options.log = level),
    },
    OptionSpec {
        name: "log-buffer",
        accepted: "<KiB> or <KiB of the boot CPU>,<KiB of each other>, from 4 to 16384",
        default: "64,16",
        what: "how much log is kept: the newest records of each CPU that fit",
        examples: &["4", "256", "1024,4", "16384,16384"],
        apply: |options, value| values::log_buffer(value).map(|buffer| options.log_buffer = buffer),
    },
    OptionSpec {
        name: "console",
        accepted: "ttyS0[,<baud>[n8]][,byte or ,fifo] with a baud that divides 115200; byte, fifo, or none",
        default: "ttyS0,115200n8,fifo",
        what: "where the log is printed: the first serial port, byte by byte (the baseline) or by its FIFO, or nowhere",
        examples: &["ttyS0", "ttyS0,9600", "ttyS0,115200n8,fifo", "ttyS0,byte", "byte", "fifo", "none"],
        apply: |options, value| values::console(value).map(|console| options.console = console),
    },
    OptionSpec {
        name: "apic",
        accepted: "auto, xapic or x2apic",
        default: "auto",
        what: "how the local APIC is driven: by itself, through memory, through MSRs",
        examples: &["auto", "xapic", "x2apic"],
        apply: |options, value| values::apic(value).map(|mode| options.apic = mode),
    },
    OptionSpec {
        name: "panic",
        accepted: "spin, halt, reboot:<seconds up to 3600> or exit",
        default: "halt",
        what: "what follows a panic of the host: spin (the baseline), halt, reset, or the lab's debug exit",
        examples: &["spin", "halt", "reboot:0", "reboot:3600", "exit"],
        apply: |options, value| values::panic(value).map(|action| options.panic = action),
    },
    OptionSpec {
        name: "cpus",
        accepted: "all or a number from 1 to 1024",
        default: "all",
        what: "CPUs to use at most",
        examples: &["all", "1", "1024"],
        apply: |options, value| values::cpus(value).map(|cpus| options.cpus = cpus),
    },
    OptionSpec {
        name: "cpu",
        accepted: "all, or numbers from 0 to 1023 and rising ranges of them, joined by commas: 0-3,8",
        default: "all",
        what: "which CPUs to use from the start, by number; 0, which boots, always is",
        examples: &["all", "0", "0-3,8", "1023"],
        apply: |options, value| values::cpu(value).map(|list| options.cpu = list),
    },
    OptionSpec {
        name: "smp",
        accepted: "serial, parallel or park",
        default: "park",
        what: "how the other CPUs are brought up: one by one (the baseline), all at once, or, where the image \
               before has parked them, from their mailboxes (else all at once)",
        examples: &["serial", "parallel", "park"],
        apply: |options, value| value.parse().ok().map(|smp| options.smp = smp),
    },
    OptionSpec {
        name: "kick",
        accepted: "early or late",
        default: "early",
        what: "when the other CPUs are ordered to start: as soon as they can be, or right before they are waited \
               for",
        examples: &["early", "late"],
        apply: |options, value| value.parse().ok().map(|kick| options.kick = kick),
    },
    OptionSpec {
        name: "tsc",
        accepted: "auto, skip or measure",
        default: "auto",
        what: "whether the CPUs' clocks are compared: unless proven needless, never, or always",
        examples: &["auto", "skip", "measure"],
        apply: |options, value| value.parse().ok().map(|tsc| options.tsc = tsc),
    },
    OptionSpec {
        name: "verify",
        accepted: "sha256, early or none",
        default: "early",
        what: "when an image that is to replace this one is checked: when it is staged and again while no guest runs \
               (the baseline), when it is staged, locked, or never (not on a host with keys)",
        examples: &["sha256", "early", "none"],
        apply: |options, value| value.parse().ok().map(|verify| options.verify = verify),
    },
    OptionSpec {
        name: "frames",
        accepted: "eager, deferred or extents",
        default: "extents",
        what: "how account is kept of memory: a record per frame, all written at boot (the baseline) or, but for those \
               needed, once guests run; or a record per extent",
        examples: &["eager", "deferred", "extents"],
        apply: |options, value| value.parse().ok().map(|policy| options.frames = policy),
    },
    OptionSpec {
        name: "hvo",
        accepted: "on or off",
        default: "on",
        what: "with a record per frame: whether those of a huge frame's tail are never written",
        examples: &["on", "off"],
        apply: |options, value| values::switch(value).map(|is_on| options.hvo = is_on),
    },
    OptionSpec {
        name: "huge-frames",
        accepted: "none, or 1G:<number> and 2M:<number>, joined by a comma, up to 1048576 of each",
        default: "none",
        what: "huge frames that are set aside for guests, as many on each NUMA node",
        examples: &["none", "1G:500", "2M:16", "1G:4,2M:512"],
        apply: |options, value| value.parse().ok().map(|frames| options.huge_frames = frames),
    },
    OptionSpec {
        name: "bad-memory",
        accepted: "none, or up to 8 addresses 0x<hexadecimal> and ranges of them, last address included, joined by \
                   commas",
        default: "none",
        what: "damaged memory: its frames are never used",
        examples: &["none", "0x12345678", "0x40000000-0x401fffff,0x7f000"],
        apply: |options, value| value.parse().ok().map(|bad| options.bad_memory = bad),
    },
    OptionSpec {
        name: "pci",
        accepted: "all, lazy, or allow: and up to 16 of a place 00:1f.3, vendor:device 8086:100e or 8086:*, class:02 \
                   or class:0200, joined by commas",
        default: "lazy",
        what: "which PCI functions are probed: all before the guests run (the baseline), all once they run, or only \
               those named, before the guests run",
        examples: &["all", "lazy", "allow:00:1f.3", "allow:0001:00:1f.3,8086:100e,1af4:*,class:02,class:0108"],
        apply: |options, value| value.parse().ok().map(|filter| options.pci = filter),
    },
    OptionSpec {
        name: "pmu",
        accepted: "soft or hardware",
        default: "soft",
        what: "what guests' performance counters count with: the time that they run, or the CPU's own counters \
               where they can be used",
        examples: &["soft", "hardware"],
        apply: |options, value| value.parse().ok().map(|choice| options.pmu = choice),
    },
    OptionSpec {
        name: "mitigations",
        accepted: "auto or off",
        default: "auto",
        what: "whether speculation vulnerabilities are mitigated: each that the CPU has, or none, so that exits cost \
               as little as they can",
        examples: &["auto", "off"],
        apply: |options, value| value.parse().ok().map(|mode| options.mitigations = mode),
    },
    OptionSpec {
        name: "smt",
        accepted: "auto, on or off",
        default: "auto",
        what: "which threads of a core run guests: all, or only the first; auto is off, and on with mitigations=off",
        examples: &["auto", "on", "off"],
        apply: |options, value| value.parse().ok().map(|smt| options.smt = smt),
    },
    OptionSpec {
        name: "vpmu",
        accepted: "reprogram or direct",
        default: "direct",
        what: "what follows when a guest changes what its performance counters count: each change releases an event of \
               the CPU's and creates one (the baseline), or events are kept, and changes go to their counters",
        examples: &["reprogram", "direct"],
        apply: |options, value| value.parse().ok().map(|policy| options.vpmu = policy),
    },
    OptionSpec {
        name: "update-limit",
        accepted: "auto or milliseconds from 1 to 10000",
        default: "auto",
        what: "how long guests may stand still in an update before it is rolled back: auto is 5, and 2000 above a \
               hypervisor or an emulator, which may keep a CPU away for that long",
        examples: &["auto", "1", "5", "10000"],
        apply: |options, value| values::update_limit(value).map(|limit| options.update_limit = limit),
    },
    OptionSpec {
        name: "guests",
        accepted: "auto or none",
        default: "auto",
        what: "which guests start with the host: those with `autostart` in the bundle, or none",
        examples: &["auto", "none"],
        apply: |options, value| values::guests(value).map(|start| options.guests = start),
    },
    OptionSpec {
        name: "restart-after-guests",
        accepted: "a number from 1 to 1000000",
        default: "1",
        what: "when no guest is left running, restart warm until so many images have run",
        examples: &["1", "2", "1000000"],
        apply: |options, value| values::generations(value).map(|count| options.restart_after_guests = count),
    },
    OptionSpec {
        name: "measure",
        accepted: "none, or log, hash and log-storm, joined by commas",
        default: "none",
        what: "what the host measures of itself for the benches: what a log record costs, what hashing costs; or the \
               load for a measurement, 400 kB of log from all CPUs while guests run",
        examples: &["none", "log", "hash", "log-storm", "log,hash"],
        apply: |options, value| values::measurements(value).map(|measurements| options.measurements = measurements),
    },
];
