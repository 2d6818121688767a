// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host and its machines, as it reports them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// The host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HostInfo {
    /// Baton's version, as `0.1.0`.
    pub version: String,
    /// Bytes of the running image in memory.
    pub image_bytes: u64,
    /// CPUs in use.
    #[serde(rename = "processors")]
    pub cpus: u32,
    /// All memory the firmware reported as usable.
    pub memory_total_bytes: u64,
    /// Memory that has no owner.
    pub memory_free_bytes: u64,
    /// Memory that Baton needs for itself: image, tables, stacks, heap. Guests' memory is not in it.
    pub host_overhead_bytes: u64,
    /// Since the host was entered.
    pub uptime_ns: u64,
    /// Virtualization extension of the CPU.
    pub virtualization: Virtualization,
    /// Optional features of it that the CPU has, by the manual's names ("nrips", "flush-by-asid", …).
    pub features: Vec<String>,
    /// Mode of the local APICs.
    pub apic_mode: ApicMode,
    /// Time stamp counter's frequency.
    pub tsc_hz: u64,
    /// Images that have run since the machine was powered on, this one included.
    pub generation: u64,
    /// Build of the running image, as `git describe` prints it; empty where its note gives none.
    pub build: String,
    /// The running image's security version (`handover::image::SECURITY_VERSION`).
    pub security_version: u32,
    /// True if the host goes to images of a lower one where the operator asks for it.
    pub permits_downgrade: bool,
    /// The oldest hand-over version that the running image writes.
    pub oldest_handover: u32,
    /// The newest.
    pub newest_handover: u32,
    /// Public keys, one of which must have signed the images and bundles that are sent; none: no signature is required.
    pub trusted_keys: Vec<String>,
    /// NMIs that no one claimed, since this image started.
    pub unclaimed_nmis: u64,
    /// Interrupts of vectors that are no one's, since this image started.
    pub unexpected_interrupts: u64,
    /// The last one's vector.
    pub last_unexpected_vector: Option<u8>,
    /// Short form of the key that signed the running image, as the image before has checked it; `None` where it is not
    /// signed, where a loader started it, and where images are not checked.
    #[serde(default)]
    pub signer: Option<String>,
}

/// The host's exposure to one speculation vulnerability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Vulnerability {
    /// Name of its file in Linux's `/sys/devices/system/cpu/vulnerabilities`.
    pub name: String,
    /// The file's text in Linux's terms: "Not affected", "Vulnerable: …", "Mitigation: …".
    pub status: String,
}

/// Report of a warm restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RestartReport {
    /// Images that have run since the machine was powered on, the new one included.
    pub generation: u64,
    /// The old image's version.
    pub old_version: String,
    /// The new image's.
    pub new_version: String,
    /// From the first stop of a machine until the new image answers.
    #[serde(rename = "host_gap_ns")]
    pub host_blackout_ns: u64,
    /// From the first stop of a machine until the first one starts again; `None` where none does.
    #[serde(rename = "machine_gap_ns")]
    pub machine_blackout_ns: Option<u64>,
    /// CPUs in use.
    #[serde(rename = "processors")]
    pub cpus: u32,
    /// CPUs that were in use before and are not now.
    #[serde(rename = "processors_lost")]
    pub cpus_lost: u32,
    /// Time of the image's check.
    pub verify: Verify,
    /// Bytes of it that were hashed before a machine was stopped.
    pub bytes_hashed_before: u64,
    /// Duration in nanoseconds, waiting not counted.
    pub hashing_before_ns: u64,
    /// Bytes of it that were hashed while no machine ran.
    #[serde(rename = "bytes_hashed_in_gap")]
    pub bytes_hashed_in_blackout: u64,
    /// Duration in nanoseconds.
    #[serde(rename = "hashing_in_gap_ns")]
    pub hashing_in_blackout_ns: u64,
    /// Build of the old image; empty where that is not known.
    pub old_build: String,
    /// Build of the new image.
    pub new_build: String,
    /// Short form of the key that signed the new image, as in [`HostInfo::signer`].
    #[serde(default)]
    pub signer: Option<String>,
}

/// Time at which an image that replaces the running one is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// Before machines stop, and once more while none runs.
    Sha256,
    /// Before machines stop; its memory is locked from then on.
    Early,
    /// Never.
    None,
}

impl fmt::Display for Verify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sha256 => "sha256",
            Self::Early => "early",
            Self::None => "none",
        })
    }
}

/// The CPU extension that runs guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Virtualization {
    /// None that Baton can use; guests cannot run.
    None,
    /// AMD's, with nested paging.
    Svm,
    /// Intel's, with extended page tables.
    Vmx,
}

/// The host's local APICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ApicMode {
    /// Memory-mapped.
    XApic,
    /// Through model-specific registers.
    X2Apic,
}

/// One virtual machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VmInfo {
    /// Its name in the bundle.
    pub name: String,
    /// Its state.
    pub state: VmState,
    /// vCPUs.
    pub vcpus: u32,
    /// Memory it sees.
    pub memory_bytes: u64,
    /// The host's CPU of each virtual one, in order; empty where none is assigned.
    #[serde(rename = "processors")]
    pub cpus: Vec<u32>,
    /// Time at which it entered this state, in nanoseconds since the host started.
    pub since_ns: u64,
    /// Since when a vCPU of it gets only a sliver of time, because it spins; in nanoseconds since the host
    /// started.
    pub throttled_since_ns: Option<u64>,
    /// Exits since it was started, all kinds together.
    pub exits_total: u64,
    /// The same by kind; kinds that never came are left out.
    pub exits: Vec<ExitCount>,
    /// The reason for its state, where there is more to report. At most [`crate::MAX_REASON_BYTES`].
    pub reason: Option<String>,
    /// Its console's output since the image started.
    #[serde(default)]
    pub console: ConsoleOutput,
    /// The part of its memory that it has now; `None`: all of it, or it does not run.
    #[serde(default)]
    pub resident_bytes: Option<u64>,
}

/// Output of a guest's console.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConsoleOutput {
    /// Bytes that the guest wrote.
    pub bytes: u64,
    /// Bytes of them that found no room, because nothing reads the line fast enough: they are lost.
    pub lost_bytes: u64,
}

/// State of a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VmState {
    /// Its memory is being filled.
    Loading,
    /// Its CPUs run.
    Running,
    /// Its CPUs are halted by the operator.
    Paused,
    /// It has ended, or was not started yet.
    Stopped,
    /// It could not be started or resumed; its reason states why.
    Failed,
    /// Its kernel has panicked, as it reported or as was seen from outside; its CPUs may still run.
    Panicked,
    /// One of its CPUs spins with interrupts off; the others may be well.
    Hung,
}

impl VmState {
    /// The states of a guest that has ended: it can be started.
    pub const ENDED: &'static [Self] = &[Self::Stopped, Self::Failed];
    /// The states of a guest that can be stopped and reset.
    pub const ALIVE: &'static [Self] = &[Self::Loading, Self::Running, Self::Paused, Self::Panicked, Self::Hung];
    /// The states of a guest that can be paused.
    pub const CAN_PAUSE: &'static [Self] = &[Self::Running, Self::Panicked, Self::Hung];
    /// The states of a guest that can be resumed: one that is not well may be held.
    pub const CAN_RESUME: &'static [Self] = &[Self::Paused, Self::Panicked, Self::Hung];
    /// The states in which a guest's power button can be pressed.
    pub const CAN_SHUT_DOWN: &'static [Self] = &[Self::Running];

    /// Returns whether the guest has ended, or was not started yet.
    pub fn has_ended(self) -> bool {
        Self::ENDED.contains(&self)
    }
}

impl fmt::Display for VmState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Loading => "loading",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::Hung => "hung",
        })
    }
}

/// Number of exits of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExitCount {
    /// Kind of the exit.
    pub kind: ExitKind,
    /// Number of exits.
    pub count: u64,
}

/// The reason why a CPU left its guest: `vm::exit::Exit` as the exit statistics count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ExitKind {
    Cpuid,
    MsrRead,
    MsrWrite,
    Port,
    MemoryFault,
    Halt,
    InterruptWindow,
    HostInterrupt,
    HostNmi,
    Hypercall,
    Xsetbv,
    AbsentInstruction,
    CacheFlush,
    Shutdown,
    EntryRefused,
    Unknown,
}
