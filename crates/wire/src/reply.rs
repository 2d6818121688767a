// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's replies.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{Challenge, ControlKey, Event, LogRecord};

mod capture;
mod cpu;
mod disk;
mod dump;
mod info;
mod iommu;
mod net;
mod pci;
mod perf;
mod profile;
mod timeline;
mod update;

pub use capture::{CAPTURED_HEAD_BYTES, CapturePage, CapturedFrame, MAX_CAPTURED_BYTES};
pub use cpu::{CpuInfo, CpuState, CpuVcpu};
pub use disk::{DiskInfo, DiskTransfers};
pub use dump::{DescriptorTable, MAX_MEMORY_BYTES, MemoryRange, SegmentRegister, VcpuRegisters};
pub use info::{
    ApicMode, ConsoleOutput, ExitCount, ExitKind, HostInfo, RestartReport, Verify, Virtualization, VmInfo, VmState,
    Vulnerability,
};
pub use iommu::{IommuKind, IommuUnit};
pub use net::{NetDrops, NetFrames, NetPort};
pub use pci::{PciCost, PciFunction, PciPolicy, PciProgress, PciRange, PciSurvey, PciVirtualFunctions};
pub use perf::{CpuPerf, GuestTicks, PerfCounter, PerfEvent, PerfState, VcpuPerf};
pub use profile::{MAX_PROFILE_WORDS, ProfilePage};
pub use timeline::{TimelinePage, TimelinePlace, TimelinePoint};
pub use update::{MAX_UPDATE_STEPS, UpdateReport, UpdateSteps};

/// A file from which machines start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileInfo {
    /// Its name: in the bundle, or the digits of its SHA-256.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// True if it was sent, and can be removed.
    pub is_sent: bool,
    /// True if a machine or the host needs it.
    pub is_needed: bool,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The request's number.
    pub id: u32,
    /// The result.
    pub result: Result<ReplyBody, Refusal>,
}

/// The body of a successful reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyBody {
    /// The order was carried out.
    Done,
    /// To [`crate::RequestBody::Info`].
    Info(HostInfo),
    /// To [`crate::RequestBody::VmList`].
    Vms {
        /// A page of them, in the bundle's order.
        vms: Vec<VmInfo>,
        /// First index of the next page; `None` after the last one.
        next_index: Option<u32>,
    },
    /// To [`crate::RequestBody::VmLayout`]: where there is memory, by rising address.
    Layout(Vec<MemoryRange>),
    /// To [`crate::RequestBody::VmRegisters`].
    Registers(Box<VcpuRegisters>),
    /// To [`crate::RequestBody::VmMemory`]. What lies before `gpa` and what lies between the last byte and `next_gpa`
    /// is zero.
    Memory {
        /// Guest-physical address of the first byte.
        gpa: u64,
        /// At most [`MAX_MEMORY_BYTES`]; may be none.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
        /// Number of repetitions of the bytes, one behind the other.
        times: u32,
        /// Ask from here on; the end asked for if there is no more.
        next_gpa: u64,
    },
    /// To [`crate::RequestBody::Log`].
    Log {
        /// A page of them, of all CPUs in the order of time; empty where there are none yet.
        records: Vec<LogRecord<'static>>,
        /// Ask from here on: a place in the order of time, which only the host understands.
        next_sequence: u64,
    },
    /// To [`crate::RequestBody::Events`].
    Events {
        /// A page of them, oldest first; empty where there are none yet.
        events: Vec<Event>,
        /// Ask from here on.
        next_sequence: u64,
    },
    /// To [`crate::RequestBody::CpuList`].
    Cpus {
        /// A page of them, by number.
        cpus: Vec<CpuInfo>,
        /// First index of the next page; `None` after the last one.
        next_index: Option<u32>,
    },
    /// To [`crate::RequestBody::Epitaph`].
    Epitaph {
        /// A page of its lines: why, registers, backtrace, the end of the log. Empty where there is no epitaph.
        lines: Vec<String>,
        /// First line of the next page; `None` after the last one.
        next_line: Option<u32>,
        /// Start of an image that replaced the one before without firmware, in nanoseconds. Records of the log from
        /// before it ([`crate::LogRecord::time_ns`]) are of the images before.
        log_until_ns: Option<u64>,
    },
    /// To [`crate::RequestBody::Restart`], from the new image.
    Restarted(RestartReport),
    /// To [`crate::RequestBody::Timeline`].
    Timeline(TimelinePage),
    /// To [`crate::RequestBody::PciList`].
    PciFunctions {
        /// Progress of the survey.
        survey: PciSurvey,
        /// A page of them, in the order in which they were found.
        functions: Vec<PciFunction>,
        /// First index of the next page; `None` after the last one.
        next_index: Option<u32>,
    },
    /// To [`crate::RequestBody::UploadBegin`] and [`crate::RequestBody::UploadData`].
    Received {
        /// Bytes of the file that have arrived: the offset of the next piece.
        next_offset: u64,
    },
    /// To [`crate::RequestBody::Update`].
    Updated(UpdateReport),
    /// To [`crate::RequestBody::VmPerf`].
    Perf {
        /// Time of the request, in nanoseconds since the host started: older figures were taken for another request.
        asked_ns: u64,
        /// The latest figures that have been taken; `None` where there are none yet.
        latest: Option<Box<VcpuPerf>>,
    },
    /// To [`crate::RequestBody::ProfileBegin`] and [`crate::RequestBody::ProfileRead`].
    Profile(ProfilePage),
    /// To [`crate::RequestBody::CpuPerf`].
    CpuPerf {
        /// Time of the request, in nanoseconds since the host started: older figures were taken for another request.
        asked_ns: u64,
        /// The latest figures that have been taken; `None` where there are none yet.
        latest: Option<CpuPerf>,
    },
    /// To [`crate::RequestBody::Vulnerabilities`]: all of them; none where the host does not run guests.
    Vulnerabilities(Vec<Vulnerability>),
    /// To [`crate::RequestBody::Iommus`]: all of them, in the order of firmware's table.
    Iommus(Vec<IommuUnit>),
    /// To [`crate::RequestBody::PciAssign`] and [`crate::RequestBody::PciRelease`].
    PciAssignment {
        /// Address of the function: segment, bus, device, function.
        place: (u16, u8, u8, u8),
        /// Name of the guest that it was assigned to, or released from.
        guest: String,
        /// The progress of the change.
        progress: PciProgress,
    },
    /// To [`crate::RequestBody::NetList`].
    NetPorts {
        /// A page of them, network by network.
        ports: Vec<NetPort>,
        /// First index of the next page; `None` after the last one.
        next_index: Option<u32>,
    },
    /// To [`crate::RequestBody::SessionBegin`].
    Challenge(Challenge),
    /// To [`crate::RequestBody::ControlKeys`]: all of them.
    ControlKeys(Vec<ControlKey>),
    /// To [`crate::RequestBody::Config`].
    Config {
        /// At most [`crate::MAX_PAGE_BYTES`].
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
        /// The length of all of it.
        total_bytes: u32,
    },
    /// To [`crate::RequestBody::FileList`].
    Files {
        /// A page of them.
        files: Vec<FileInfo>,
        /// First index of the next page; `None` after the last one.
        next_index: Option<u32>,
    },
    /// To [`crate::RequestBody::DiskList`].
    Disks {
        /// A page of them, guest by guest.
        disks: Vec<DiskInfo>,
        /// First index of the next page; `None` after the last one.
        next_index: Option<u32>,
    },
    /// To [`crate::RequestBody::CaptureBegin`] and [`crate::RequestBody::CaptureRead`].
    Capture(CapturePage),
    /// To [`crate::RequestBody::VmSaved`].
    Saved {
        /// At most [`crate::MAX_PAGE_BYTES`].
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
        /// The length of all of it; 0 while the CPUs that hold the machine are still at it: ask again.
        total_bytes: u32,
    },
}

/// The reason why a request was not carried out; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// For programs.
    pub code: RefusalCode,
    /// The reason, for people. At most [`crate::MAX_REASON_BYTES`].
    pub reason: String,
    /// The remedy, for people; may be empty. At most [`crate::MAX_REASON_BYTES`].
    pub hint: String,
}

/// Kinds of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalCode {
    /// No virtual machine has that name.
    UnknownVm,
    /// The machine is not in a state where that can be done.
    WrongState,
    /// The request makes no sense (too many bytes, …).
    Invalid,
    /// There is not enough of something (memory, CPUs).
    Exhausted,
    /// The host could not do it; the log has more.
    Failed,
    /// The connection itself is in error (a broken frame, another version, no session where one is needed).
    Protocol,
    /// The client's key may not do that, or is not known.
    Denied,
    /// A reason that this side does not know: the host is newer. No host sends it.
    Unknown,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        if !self.hint.is_empty() {
            write!(f, "; {}", self.hint)?;
        }
        Ok(())
    }
}

impl core::error::Error for Refusal {}
