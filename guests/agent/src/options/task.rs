// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that the agent can do.

use crate::flood::Traffic;
use crate::power_key::Answer;
use crate::print::Console;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Power off.
    PowerOff,
    /// Reboot.
    Reboot,
    /// Make the kernel panic.
    Panic,
    /// A shell on the console.
    Shell,
    /// Write a pattern over most of the free memory and read it back.
    MemoryTest,
    /// Load the drivers of pvpanic.
    PanicDrivers,
    /// Load the drivers that the lab has added.
    Drivers,
    /// Poll the clock from user space.
    Poll(Duration),
    /// A bit of everything at once.
    Mix(Duration),
    /// Keep the CPU busy.
    Compute(Duration),
    /// Keep every CPU at work, and report at every period how that goes.
    Churn(Duration),
    /// Keep every CPU contending for one lock of the kernel.
    Locks(Duration),
    /// Have two CPUs wake each other, so often.
    Pipe(u64),
    /// A numbered line at every period.
    Heartbeat {
        /// Time between lines.
        period: Duration,
        /// Number of repetitions; `None` is for ever.
        count: Option<u64>,
    },
    /// Keep all CPUs busy with each other.
    Stress(Duration),
    /// Switch CPUs off and on, so often.
    Replug(u64),
    /// Print how long the machine's CPUs were others'.
    Steal,
    /// Keep the kernel's messages but errors off the console, where they cut programs' lines in two.
    Quiet,
    /// Make the kernel show what every CPU does.
    Backtrace,
    /// Write and verify so many MiB of a disk, for ever, beside the tasks that follow.
    Disk(u64),
    /// Write and verify so many MiB of each disk that comes, for ever, beside the tasks that follow.
    Plugged(u64),
    /// Enable so many virtual functions of the first function that can have any.
    VirtualFunctions(u64),
    /// Enable so many virtual functions of the first NVMe controller, and have them online.
    NvmeFunctions(u32),
    /// Reset a disk's function, so often.
    Reset(u64),
    /// Read blocks of a disk at random places.
    Reads {
        /// Reads at a time.
        depth: u64,
        /// Length.
        time: Duration,
    },
    /// Send datagrams, for ever, beside the tasks that follow.
    Stream {
        /// The network card's address.
        own: Ipv4Addr,
        /// The receiver.
        to: SocketAddrV4,
    },
    /// Send as much as there can be, for ever, beside the tasks that follow.
    Flood {
        /// The traffic.
        traffic: Traffic,
        /// The network card's address.
        own: Ipv4Addr,
        /// The receiver.
        to: SocketAddrV4,
    },
    /// Drop what comes to a port, for ever, beside the tasks that follow.
    Sink(SocketAddrV4),
    /// Verify what a TCP connection sends back, for ever, beside the tasks that follow.
    Echo {
        /// The network card's address, unless it has one.
        own: Option<Ipv4Addr>,
        /// The other end.
        to: SocketAddrV4,
    },
    /// Send back what TCP connections send, for ever, beside the tasks that follow.
    Serve(SocketAddrV4),
    /// Verify what a virtio socket sends back, for ever, beside the tasks that follow.
    VsockEcho {
        /// The other end's context identifier.
        cid: u32,
        /// Its port.
        port: u32,
    },
    /// Send back what arrives at a port by virtio sockets, for ever, beside the tasks that follow.
    VsockServe(u32),
    /// Open connections over virtio sockets, and close them.
    VsockCrowd {
        /// The other end's context identifier.
        cid: u32,
        /// Its port.
        port: u32,
        /// Their number.
        times: u64,
    },
    /// Read the entropy device at every period, for ever, beside the tasks that follow.
    Random(Duration),
    /// Do the tasks that follow on this CPU.
    Pin(usize),
    /// Print a network card's queues and their interrupts at every period, for ever, beside the tasks that follow.
    Queues(Duration),
    /// Print the features of the first CPU.
    Flags,
    /// Print what the SMBIOS tables state at every period, for ever, beside the tasks that follow.
    Dmi(Duration),
    /// Wait for the power button, for ever, beside the tasks that follow.
    PowerKey(Answer),
    /// Use the second console at every period, for ever, beside the tasks that follow.
    SecondConsole(Duration),
    /// Print so many KiB on a console.
    Print(Console, u64),
    /// Sleep for ever.
    Wait,
}

impl Task {
    /// Returns whether the task goes on, for ever, while those that follow it are done.
    pub fn goes_on(self) -> bool {
        matches!(
            self,
            Self::Disk(_)
                | Self::Plugged(_)
                | Self::Stream { .. }
                | Self::Flood { .. }
                | Self::Sink(_)
                | Self::Echo { .. }
                | Self::Serve(_)
                | Self::VsockEcho { .. }
                | Self::VsockServe(_)
                | Self::Random(_)
                | Self::Queues(_)
                | Self::Dmi(_)
                | Self::PowerKey(_)
                | Self::SecondConsole(_)
        )
    }
}
