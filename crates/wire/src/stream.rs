// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages that the host sends unasked to the subscriber.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// One thing that happened. The sender borrows text and bytes, the receiver owns them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stream<'a> {
    /// A record was logged.
    Log(LogRecord<'a>),
    /// An event occurred.
    Event(Cow<'a, Event>),
    /// A machine wrote to its console.
    Console {
        /// Name of the machine.
        name: Cow<'a, str>,
        /// Its output: at most [`crate::MAX_CONSOLE_BYTES`], in order, cut anywhere.
        #[serde(serialize_with = "serde_bytes::serialize", deserialize_with = "owned_bytes")]
        bytes: Cow<'a, [u8]>,
    },
}

/// A receiver owns what it received.
fn owned_bytes<'a, 'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'a, [u8]>, D::Error> {
    serde_bytes::deserialize(deserializer).map(Cow::<[u8]>::Owned)
}

/// One record of the host's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogRecord<'a> {
    /// Counted from 0 by each CPU; a hole means that records were overwritten before they were read.
    pub sequence: u64,
    /// Time in nanoseconds since the host started.
    pub time_ns: u64,
    /// The CPU that logged it.
    #[serde(rename = "processor")]
    pub cpu: u32,
    /// Its level.
    pub level: Level,
    /// The part of the host that logged it.
    pub module: Cow<'a, str>,
    /// Its message, without line end; at most [`crate::MAX_TEXT_BYTES`].
    pub text: Cow<'a, str>,
}

/// Level of a log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        })
    }
}

/// Something that an operator needs to know of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// Counted from 0; a hole means that events were overwritten before they were read.
    pub sequence: u64,
    /// Time in nanoseconds since the host started.
    pub time_ns: u64,
    /// The event.
    pub kind: EventKind,
}

/// An event. `name` is the virtual machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum EventKind {
    /// The host answers.
    HostReady,
    /// The control channel received what is no message; it was dropped.
    Garbage { reason: String },
    /// The machine's first CPU enters its kernel.
    VmStarted { name: String },
    /// The machine has ended: it powered off, or was stopped.
    VmStopped { name: String, reason: String },
    /// The machine's CPUs are halted where they were.
    VmPaused { name: String },
    /// The machine resumes.
    VmResumed { name: String },
    /// The machine starts again.
    VmReset { name: String },
    /// The machine's kernel has panicked: it reported so, or it was seen from outside.
    VmPanicked { name: String },
    /// The machine could not be started or resumed.
    VmFailed { name: String, reason: String },
    /// The machine wrote `code` to its debug-exit port, and has ended.
    VmDebugExit { name: String, code: u32 },
    /// A CPU of the machine spins with interrupts off.
    VmHung { name: String, vcpu: u32 },
    /// A CPU of the machine that spins gets only a sliver of time from now on.
    VmThrottled { name: String, vcpu: u32 },
    /// A CPU of the machine that was reported to spin does something else, and gets all its time again.
    VmRecovered { name: String, vcpu: u32 },
    /// The machine is kept where it is until its memory has been fetched.
    VmHeld { name: String },
    /// A CPU of the host takes work.
    CpuOnline { index: u32 },
    /// A CPU of the host has given its work away and halted.
    CpuOffline { index: u32 },
    /// A CPU of the host did not come or go as it was asked to.
    CpuFailed { index: u32, reason: String },
    /// The host is about to be replaced; its machines stop, and this many images will have run.
    HostRestarts { generation: u64 },
    /// An image has taken over from the one before, machines running.
    HostUpdated { generation: u64 },
    /// An image took the place of another one: version and build of each, and a short form of the key that signed the
    /// new one.
    ImageReplaced {
        old: String,
        new: String,
        #[serde(default)]
        signer: Option<String>,
    },
    /// The hardware has reported an error on `cpu`: in how many polls of this bank since the last report.
    HardwareError { cpu: u32, bank: u32, status: u64, address: Option<u64>, is_corrected: bool, polls: u16 },
    /// An IOMMU has refused accesses of the PCI function at `place` (segment, bus, device, function): their number
    /// since the last event of this function; `reason` describes the first of them.
    AccessRefused { place: (u16, u8, u8, u8), refused: u64, reason: String },
    /// The PCI function at `place` was stopped: it makes no request any more, and `guest`, if one has it, does not see
    /// it any more until it starts again.
    FunctionStopped { place: (u16, u8, u8, u8), guest: Option<String>, reason: String },
    /// The PCI function at `place` has come to `guest` while that runs.
    FunctionAssigned { place: (u16, u8, u8, u8), guest: String },
    /// The PCI function at `place` has left `guest` while that runs: the guest has ejected it, or it was taken away.
    FunctionReleased { place: (u16, u8, u8, u8), guest: String, is_forced: bool },
    /// The image of this generation stays: a client has confirmed the update.
    UpdateConfirmed { generation: u64 },
    /// No client has confirmed the update to this generation in time: the host returns to the image before.
    UpdateReturns { generation: u64 },
    /// The host cannot return to the image before, and stays with this generation.
    UpdateStays { generation: u64, reason: String },
    /// A client's request was refused because it lacks a session, a role or a good signature. `key`: the name of the
    /// control key, where it is known.
    RequestDenied { key: Option<String>, reason: String },
    /// A control key was revoked, and its sessions have ended.
    KeyRevoked { key: String, by: Option<String> },
    /// An event that this side does not know: the host is newer. No host sends it.
    Unknown,
    /// The machine has been added to the host's configuration.
    VmCreated { name: String },
    /// The machine has been removed from the host's configuration.
    VmDeleted { name: String },
    /// Settings of the machine have changed.
    VmChanged { name: String },
    /// Any of these, as an image before has encoded it: nothing reads it here. The last one, since it has no number.
    #[serde(skip_deserializing)]
    Encoded(cbor::Raw),
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostReady => write!(f, "host ready"),
            Self::HostUpdated { generation } => write!(f, "host updated to generation {generation}"),
            Self::UpdateConfirmed { generation } => write!(f, "update to generation {generation} confirmed"),
            Self::UpdateReturns { generation } => {
                write!(f, "no client confirmed the update to generation {generation}: returning to the image before")
            }
            Self::UpdateStays { generation, reason } => {
                write!(f, "no client confirmed the update, but the host stays with generation {generation}: {reason}")
            }
            Self::RequestDenied { key: Some(key), reason } => write!(f, "control key {key}: {reason}"),
            Self::RequestDenied { key: None, reason } => write!(f, "control channel: {reason}"),
            Self::KeyRevoked { key, by: Some(by) } => write!(f, "control key {key} was revoked by {by}"),
            Self::KeyRevoked { key, by: None } => write!(f, "control key {key} was revoked"),
            Self::Unknown => write!(f, "an event that a newer release knows"),
            Self::Encoded(_) => write!(f, "an event of an image before"),
            Self::ImageReplaced { old, new, signer } => {
                write!(f, "image {old} was replaced by {new}")?;
                signer.as_ref().map_or(Ok(()), |signer| write!(f, ", signed by {signer}"))
            }
            Self::HostRestarts { generation } => write!(f, "host restarts as generation {generation}"),
            Self::Garbage { reason } => write!(f, "control channel: {reason}"),
            Self::VmCreated { name } => write!(f, "{name} created"),
            Self::VmDeleted { name } => write!(f, "{name} deleted"),
            Self::VmChanged { name } => write!(f, "{name} changed"),
            Self::VmStarted { name } => write!(f, "{name} started"),
            Self::VmStopped { name, reason } => write!(f, "{name} stopped: {reason}"),
            Self::VmPaused { name } => write!(f, "{name} paused"),
            Self::VmResumed { name } => write!(f, "{name} resumed"),
            Self::VmReset { name } => write!(f, "{name} reset"),
            Self::VmPanicked { name } => write!(f, "{name} panicked"),
            Self::VmFailed { name, reason } => write!(f, "{name} failed: {reason}"),
            Self::VmHung { name, vcpu } => write!(f, "{name} hangs: CPU {vcpu} spins with interrupts off"),
            Self::VmThrottled { name, vcpu } => write!(f, "{name} throttled: CPU {vcpu} only spins"),
            Self::VmRecovered { name, vcpu } => write!(f, "{name} recovered: CPU {vcpu} does not spin any more"),
            Self::VmHeld { name } => write!(f, "{name} is held for `baton vm dump {name}`"),
            Self::VmDebugExit { name, code } => write!(f, "{name} ended through its debug-exit port with {code:#x}"),
            Self::CpuOnline { index } => write!(f, "CPU {index} is online"),
            Self::CpuOffline { index } => write!(f, "CPU {index} is offline"),
            Self::CpuFailed { index, reason } => write!(f, "CPU {index}: {reason}"),
            Self::HardwareError { cpu, bank, status, address, is_corrected, polls } => {
                let how = if *is_corrected { "corrected" } else { "uncorrected" };
                write!(f, "cpu{cpu}: {how} hardware error in bank {bank}, status {status:#018x}")?;
                address.map_or(Ok(()), |address| write!(f, ", address {address:#x}"))?;
                if *polls > 1 { write!(f, ", found in {polls} polls since the last report") } else { Ok(()) }
            }
            Self::AccessRefused { place: (segment, bus, device, function), refused, reason } => {
                write!(f, "PCI {segment:04x}:{bus:02x}:{device:02x}.{function:x}: {reason}")?;
                if *refused > 1 { write!(f, "; {refused} accesses were refused") } else { Ok(()) }
            }
            Self::FunctionStopped { place: (segment, bus, device, function), guest, reason } => {
                write!(f, "PCI {segment:04x}:{bus:02x}:{device:02x}.{function:x}")?;
                guest.as_ref().map_or(Ok(()), |guest| write!(f, " of {guest}"))?;
                write!(f, " was stopped: {reason}")
            }
            Self::FunctionAssigned { place: (segment, bus, device, function), guest } => {
                write!(f, "PCI {segment:04x}:{bus:02x}:{device:02x}.{function:x} has come to {guest}")
            }
            Self::FunctionReleased { place: (segment, bus, device, function), guest, is_forced } => {
                let how = if *is_forced { "was taken from" } else { "was ejected by" };
                write!(f, "PCI {segment:04x}:{bus:02x}:{device:02x}.{function:x} {how} {guest}")
            }
        }
    }
}
