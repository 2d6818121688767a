// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages between the baton tool and the hypervisor.
//!
//! Both sides speak over a stream of bytes that may lose, add or garble some (a serial port; in the lab a Unix socket).
//! So every message travels in a frame that states its end, the version of this page that it follows, and whether it
//! arrived whole; a receiver that lost its place finds it again at the next delimiter.
//!
//! # A frame
//!
//! | bytes | content |
//! |---|---|
//! | 1 | [`VERSION`] of the message format |
//! | n | one [`Frame`], encoded as [`cbor`] states |
//! | 4 | CRC-32 (ISO HDLC, as zlib has it) of the bytes above, little endian |
//!
//! These bytes are stuffed with COBS (consistent overhead byte stuffing), which takes the zeroes out, and one zero byte
//! ends the frame. Nothing on the stream is longer than [`MAX_FRAME_BYTES`]. Empty frames mean nothing: a sender may
//! put a zero in front of its first frame to end any noise that was on the line before.
//!
//! The first byte, the checksum and the stuffing are the same in every version, so that a receiver can distinguish a
//! message of another version ([`FrameError::UnknownVersion`]) from a damaged one ([`FrameError::BadChecksum`]).
//!
//! # Growth
//!
//! Tool and host may be of different releases. A field is added at the end of its struct, with `#[serde(default)]`; a
//! variant at the end of its enumeration. So each side reads what it knows: a host refuses a request that it does not
//! know, by its number ([`FrameError::NewRequest`]), and a tool shows an event that it does not know as such
//! ([`EventKind::Unknown`]). A value that an older side must not miss is a new request. Nothing is removed or moved.
//! Rejected: an exchange of versions at the beginning of a connection, which would be wrong as soon as the host is
//! updated under it.
//!
//! # Requests and responses
//!
//! The tool sends [`Request`]s with a number of its choice; the host answers each with one [`Response`] of the same
//! number. What was subscribed to arrives in between as [`Stream`]. Everything of unbounded length (lists, logs) is
//! asked for in pages, see [`page`].
//!
//! Sending allocates nothing ([`encode`] writes into the caller's buffer, [`Stream`] borrows its text); receiving owns
//! what it received.
#![cfg_attr(not(feature = "openapi"), no_std)]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod decode;
mod encode;
pub mod exit_code;
mod frame;
pub mod frugal;
pub mod history;
pub mod page;
mod quota;
mod reply;
mod request;
mod role;
mod session;
mod signed;
mod stream;

pub use decode::{Decoder, FrameError};
pub use encode::{EncodeError, bounded, encode};
pub use frame::{
    Frame, MAX_CONFIRM_SECONDS, MAX_CONSOLE_BYTES, MAX_FRAME_BYTES, MAX_HOLD_MS, MAX_NAME_BYTES, MAX_PACKED_BYTES,
    MAX_PAGE_BYTES, MAX_REASON_BYTES, MAX_TEXT_BYTES, MAX_UNPACKED_BYTES, MAX_UPLOAD_BYTES, VERSION,
};
pub use quota::Quota;
pub use reply::{
    ApicMode, CAPTURED_HEAD_BYTES, CapturePage, CapturedFrame, ConsoleOutput, CpuInfo, CpuPerf, CpuState, CpuVcpu,
    DescriptorTable, DiskInfo, DiskTransfers, ExitCount, ExitKind, FileInfo, GuestTicks, HostInfo, IommuKind,
    IommuUnit, MAX_CAPTURED_BYTES, MAX_MEMORY_BYTES, MAX_PROFILE_WORDS, MAX_UPDATE_STEPS, MemoryRange, NetDrops,
    NetFrames, NetPort, PciCost, PciFunction, PciPolicy, PciProgress, PciRange, PciSurvey, PciVirtualFunctions,
    PerfCounter, PerfEvent, PerfState, ProfilePage, Refusal, RefusalCode, ReplyBody, Response, RestartReport,
    SegmentRegister, TimelinePage, TimelinePlace, TimelinePoint, UpdateReport, UpdateSteps, VcpuPerf, VcpuRegisters,
    Verify, Virtualization, VmInfo, VmState, Vulnerability,
};
pub use request::{Request, RequestBody, Subscription, UpdateBy, UploadKind, VmSettings};
pub use role::{Right, Role};
pub use session::ControlKey;
pub use signed::{Challenge, NONCE_BYTES, SESSION_IDLE_S, Signed, statement};
pub use stream::{Event, EventKind, Level, LogRecord, Stream};

/// The port of the host's virtio socket at which clients in guests reach the control channel.
pub const VSOCK_PORT: u32 = 9910;

#[cfg(test)]
mod tests;
