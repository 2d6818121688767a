// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of options that are chosen from a few.

use core::str::FromStr;

use super::word::UnknownValue;

/// Size of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBuffer {
    /// The boot CPU's, which logs most, in KiB.
    pub boot_kib: u32,
    /// Each other CPU's, in KiB.
    pub other_kib: u32,
}

impl LogBuffer {
    /// The boot, and some hundred records of each CPU.
    pub const DEFAULT: Self = Self { boot_kib: 64, other_kib: 16 };

    /// Bytes for the boot CPU.
    pub const fn boot_bytes(self) -> u64 {
        self.boot_kib as u64 * 1024
    }

    /// Bytes for each other CPU.
    pub const fn other_bytes(self) -> u64 {
        self.other_kib as u64 * 1024
    }
}

/// Output of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Console {
    /// Nowhere; it is still kept and can be read through the control channel.
    None,
    /// The first serial port (COM1), 8 bits, no parity.
    Serial {
        /// Bits per second; divides 115,200.
        baud: u32,
        /// Way in which the bytes are transmitted.
        transmit: Transmit,
    },
}

/// Way in which a serial port is given bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// One after the other, each waited for: the baseline.
    Byte,
    /// As many at once as its FIFO holds.
    Fifo,
}

/// Mode of the local APIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApicMode {
    /// x2APIC where there is one.
    Auto,
    /// Through memory.
    XApic,
    /// Through MSRs; where the CPU has no x2APIC, through memory after all.
    X2Apic,
}

/// Action after a panic of the host and its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanicAction {
    /// The CPU that failed spins in delays: the baseline.
    Spin,
    /// CPUs halt, the report stays readable.
    Halt,
    /// The machine is reset.
    Reboot {
        /// After this time.
        after_seconds: u32,
    },
    /// The lab's debug-exit port ends the emulator.
    Exit,
}

/// Way in which the other CPUs are brought up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smp {
    /// One after the other, each waited for: the baseline.
    Serial,
    /// All are woken, then waited for.
    Parallel,
    /// Those that the previous image has parked are adopted; where none are, as [`Smp::Parallel`].
    Park,
}

impl FromStr for Smp {
    type Err = UnknownValue;

    fn from_str(value: &str) -> Result<Self, UnknownValue> {
        match value {
            "serial" => Ok(Self::Serial),
            "parallel" => Ok(Self::Parallel),
            "park" => Ok(Self::Park),
            _ => Err(UnknownValue),
        }
    }
}

/// Time at which the other CPUs are ordered to start. Serially, each is ordered right before the wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KickTime {
    /// As soon as they can be: they wake while the boot goes on.
    Early,
    /// Once nothing is left to do but wait for them: the baseline.
    Late,
}

impl FromStr for KickTime {
    type Err = UnknownValue;

    fn from_str(value: &str) -> Result<Self, UnknownValue> {
        match value {
            "early" => Ok(Self::Early),
            "late" => Ok(Self::Late),
            _ => Err(UnknownValue),
        }
    }
}

/// Way in which all time stamp counters are made to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TscSync {
    /// They are compared unless that is proven needless.
    Auto,
    /// Nothing.
    Skip,
    /// They are compared.
    Measure,
}

impl FromStr for TscSync {
    type Err = UnknownValue;

    fn from_str(value: &str) -> Result<Self, UnknownValue> {
        match value {
            "auto" => Ok(Self::Auto),
            "skip" => Ok(Self::Skip),
            "measure" => Ok(Self::Measure),
            _ => Err(UnknownValue),
        }
    }
}

/// The longest blackout of an update before it is rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateLimit {
    /// 5 ms; 2 s where a hypervisor or an emulator is below, which may keep a CPU away for that long.
    Auto,
    /// So long.
    Milliseconds(u32),
}

impl UpdateLimit {
    /// In microseconds; `is_virtual`: a hypervisor or an emulator is below.
    pub const fn us(self, is_virtual: bool) -> u64 {
        match self {
            Self::Auto if is_virtual => 2_000_000,
            Self::Auto => 5_000,
            Self::Milliseconds(milliseconds) => milliseconds as u64 * 1000,
        }
    }
}

/// Guests that start with the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestStart {
    /// Those that the bundle marks for it.
    Auto,
    /// None: the operator starts them.
    None,
}
