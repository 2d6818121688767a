// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agent's tasks by the kernel command line: `agent=TASK,TASK,…`, each done in turn.
//!
//! | task | effect |
//! |---|---|
//! | `poweroff`, `reboot`, `panic` | the machine ends that way |
//! | `shell` | a busybox shell on the console; the next task follows when it ends |
//! | `memtest` | a pattern over most of the free memory, written and read back |
//! | `pvpanic` | loads the drivers by which a panic is reported to the host |
//! | `drivers` | loads the drivers that the lab has added to the initial file system |
//! | `poll:MS` | user space polls the clock, yielding now and then, for so many milliseconds |
//! | `mix:MS` | one thread more than CPUs: computing, system calls, memory, short sleeps |
//! | `compute:MS` | keeps the CPU busy for so many milliseconds |
//! | `churn:MS` | every CPU writes and reads patterns, for ever; a line every so many milliseconds reports how that goes |
//! | `locks:MS` | every CPU contends for one spinlock of the kernel for so long |
//! | `pipe:ROUNDS` | two threads on the first two CPUs wake each other by pipes, so many times |
//! | `heartbeat:MS[:COUNT]` | a numbered line every so many milliseconds, COUNT times or for ever |
//! | `stress:MS` | every CPU computes, interrupts the others, and wakes its neighbour, for so long |
//! | `replug:TIMES` | every CPU but the first is taken offline and online, so many times, while others compute |
//! | `steal` | prints the stolen time of the machine's CPUs |
//! | `backtrace` | makes the kernel show what every CPU does, by NMI |
//! | `disk:MIB` | writes and verifies so much of the first NVMe or virtio disk for ever, beside the tasks that follow |
//! | `sriov:N` | enables so many virtual functions (SR-IOV) of the first network card that can have any |
//! | `nvme-sriov:N` | enables so many of the first NVMe controller, gives them queues and interrupts, has them online |
//! | `plugged:MIB` | writes and verifies so much of each NVMe disk that comes, until it is gone, for ever, beside the tasks that follow |
//! | `reset:TIMES` | resets the function of the first NVMe disk, so many times, while others use it |
//! | `reads:DEPTH:MS` | reads blocks of the first NVMe disk at random places for so long, DEPTH at a time, and prints how many |
//! | `packets:OWN:TO:PORT` | sends datagrams in frames of 64 bytes from the first network card, which gets the address OWN, as many as there can be, for ever, beside the tasks that follow |
//! | `bulk:OWN:TO:PORT` | the same by one TCP connection |
//! | `sink:OWN:PORT` | drops datagrams and connections to a port of the first network card, which gets the address OWN, for ever, beside the tasks that follow |
//! | `stream:OWN:TO:PORT` | sends a numbered datagram each millisecond from the first network card, which gets the address OWN, for ever, beside the tasks that follow |
//! | `echo:[OWN:]TO:PORT` | verifies what a TCP connection sends back, for ever, beside the tasks that follow; the first network card gets the address OWN |
//! | `serve:OWN:PORT` | gives the first network card the address OWN, and sends back what TCP connections send, for ever, beside the tasks that follow |
//! | `vsock-echo:CID:PORT` | the same as `echo` over a virtio socket |
//! | `vsock-serve:PORT` | the same as `serve` over virtio sockets |
//! | `vsock-crowd:CID:PORT:TIMES` | opens so many connections over virtio sockets, prints how many there are, and closes them |
//! | `pin:CPU` | the tasks that follow are done on this CPU |
//! | `queues:MS` | prints the queues of the first network card, and their interrupts, every so many milliseconds, for ever, beside the tasks that follow |
//! | `hwrng:MS` | reads the entropy device every so many milliseconds, for ever, beside the tasks that follow |
//! | `flags` | prints the features of the first CPU |
//! | `dmi:MS` | prints what the SMBIOS tables state every so many milliseconds, for ever, beside the tasks that follow |
//! | `power-key`, `power-key:ignore` | powers off when the power button is pressed, or prints that alone, beside the tasks that follow |
//! | `hvc:MS` | a numbered line on the second console every so many milliseconds, and an answer to each line typed there, for ever, beside the tasks that follow |
//! | `print:ttyS0:KIB`, `print:hvc0:KIB` | prints so many KiB on a console |
//! | `wait` | nothing, for ever |
//!
//! After the last task, and with none, the machine powers off, unless a disk or a network card is in use for ever.

mod task;
mod unknown;

pub use self::task::Task;
pub use self::unknown::UnknownTask;

use crate::flood::Traffic;
use crate::power_key::Answer;
use crate::print::Console;
use rustix::thread::CpuSet;
use std::net::SocketAddrV4;
use std::time::Duration;

/// The most reads at a time: each has a thread.
const MOST_READS: u64 = 256;

/// The tasks that a kernel command line names, in order. The last `agent=` counts, as with the kernel's own options.
pub fn tasks(command_line: &str) -> Result<Vec<Task>, UnknownTask> {
    let list = command_line.split_ascii_whitespace().rev().find_map(|word| word.strip_prefix("agent=")).unwrap_or("");
    list.split(',').filter(|word| !word.is_empty()).map(task).collect()
}

fn task(word: &str) -> Result<Task, UnknownTask> {
    let mut parts = word.split(':');
    let parsed = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("poweroff"), None, ..) => Some(Task::PowerOff),
        (Some("reboot"), None, ..) => Some(Task::Reboot),
        (Some("panic"), None, ..) => Some(Task::Panic),
        (Some("shell"), None, ..) => Some(Task::Shell),
        (Some("memtest"), None, ..) => Some(Task::MemoryTest),
        (Some("wait"), None, ..) => Some(Task::Wait),
        (Some("pvpanic"), None, ..) => Some(Task::PanicDrivers),
        (Some("drivers"), None, ..) => Some(Task::Drivers),
        (Some("poll"), Some(time), None, _) => milliseconds(time).map(Task::Poll),
        (Some("mix"), Some(time), None, _) => milliseconds(time).map(Task::Mix),
        (Some("steal"), None, ..) => Some(Task::Steal),
        (Some("quiet"), None, ..) => Some(Task::Quiet),
        (Some("backtrace"), None, ..) => Some(Task::Backtrace),
        (Some("stress"), Some(time), None, _) => milliseconds(time).map(Task::Stress),
        (Some("replug"), Some(times), None, _) => times.parse().ok().map(Task::Replug),
        (Some("pin"), Some(cpu), None, _) => cpu.parse().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU).map(Task::Pin),
        (Some("queues"), Some(time), None, _) => milliseconds(time).map(Task::Queues),
        (Some("hwrng"), Some(time), None, _) => milliseconds(time).map(Task::Random),
        (Some("power-key"), None, ..) => Some(Task::PowerKey(Answer::PowerOff)),
        (Some("power-key"), Some("ignore"), None, _) => Some(Task::PowerKey(Answer::Ignore)),
        (Some("flags"), None, ..) => Some(Task::Flags),
        (Some("dmi"), Some(time), None, _) => milliseconds(time).map(Task::Dmi),
        (Some("hvc"), Some(time), None, _) => milliseconds(time).map(Task::SecondConsole),
        (Some("print"), Some("ttyS0"), Some(count), None) => print(Console::Serial, count),
        (Some("print"), Some("hvc0"), Some(count), None) => print(Console::Second, count),
        (Some("compute"), Some(time), None, _) => milliseconds(time).map(Task::Compute),
        (Some("locks"), Some(time), None, _) => milliseconds(time).map(Task::Locks),
        (Some("pipe"), Some(rounds), None, _) => rounds.parse().ok().map(Task::Pipe),
        (Some("churn"), Some(time), None, _) => milliseconds(time).map(Task::Churn),
        (Some("heartbeat"), Some(time), count, None) => heartbeat(time, count),
        (Some("disk"), Some(mebibytes), None, _) => mebibytes.parse().ok().map(Task::Disk),
        (Some("plugged"), Some(mebibytes), None, _) => mebibytes.parse().ok().map(Task::Plugged),
        (Some("sriov"), Some(number), None, _) => number.parse().ok().map(Task::VirtualFunctions),
        (Some("nvme-sriov"), Some(number), None, _) => number.parse().ok().map(Task::NvmeFunctions),
        (Some("reset"), Some(times), None, _) => times.parse().ok().map(Task::Reset),
        (Some("reads"), Some(depth), Some(time), None) => reads(depth, time),
        (Some("serve"), Some(own), Some(port), None) => address(own, port).map(Task::Serve),
        (Some("echo"), Some(to), Some(port), None) => address(to, port).map(|to| Task::Echo { own: None, to }),
        (Some("echo"), Some(own), Some(to), Some(port)) if parts.next().is_none() => echo(own, to, port),
        (Some("vsock-serve"), Some(port), None, _) => port.parse().ok().map(Task::VsockServe),
        (Some("vsock-echo"), Some(cid), Some(port), None) => vsock_echo(cid, port),
        (Some("vsock-crowd"), Some(cid), Some(port), Some(times)) if parts.next().is_none() => crowd(cid, port, times),
        (Some("sink"), Some(own), Some(port), None) => address(own, port).map(Task::Sink),
        (Some("packets"), Some(own), Some(to), Some(port)) if parts.next().is_none() => {
            flood(Traffic::Packets, own, to, port)
        }
        (Some("bulk"), Some(own), Some(to), Some(port)) if parts.next().is_none() => {
            flood(Traffic::Bulk, own, to, port)
        }
        (Some("stream"), Some(own), Some(to), Some(port)) if parts.next().is_none() => stream(own, to, port),
        _ => None,
    };
    parsed.ok_or_else(|| UnknownTask(word.to_owned()))
}

fn heartbeat(time: &str, count: Option<&str>) -> Option<Task> {
    let count = match count {
        Some(digits) => Some(digits.parse().ok()?),
        None => None,
    };
    milliseconds(time).map(|period| Task::Heartbeat { period, count })
}

fn reads(depth: &str, time: &str) -> Option<Task> {
    let depth = depth.parse().ok().filter(|depth| (1..=MOST_READS).contains(depth))?;
    milliseconds(time).map(|time| Task::Reads { depth, time })
}

fn stream(own: &str, to: &str, port: &str) -> Option<Task> {
    Some(Task::Stream { own: own.parse().ok()?, to: address(to, port)? })
}

fn echo(own: &str, to: &str, port: &str) -> Option<Task> {
    Some(Task::Echo { own: Some(own.parse().ok()?), to: address(to, port)? })
}

fn flood(traffic: Traffic, own: &str, to: &str, port: &str) -> Option<Task> {
    Some(Task::Flood { traffic, own: own.parse().ok()?, to: address(to, port)? })
}

fn vsock_echo(cid: &str, port: &str) -> Option<Task> {
    Some(Task::VsockEcho { cid: cid.parse().ok()?, port: port.parse().ok()? })
}

fn crowd(cid: &str, port: &str, times: &str) -> Option<Task> {
    Some(Task::VsockCrowd { cid: cid.parse().ok()?, port: port.parse().ok()?, times: times.parse().ok()? })
}

fn address(to: &str, port: &str) -> Option<SocketAddrV4> {
    Some(SocketAddrV4::new(to.parse().ok()?, port.parse().ok()?))
}

fn print(console: Console, kibibytes: &str) -> Option<Task> {
    kibibytes.parse().ok().map(|kibibytes| Task::Print(console, kibibytes))
}

fn milliseconds(digits: &str) -> Option<Duration> {
    digits.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests;
