// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tool's requests to the host.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{Signed, TimelinePlace};

mod parts;
pub use parts::{Subscription, UpdateBy, UploadKind, VmSettings};

/// A question or an order, with the number its answer will carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the sender; comes back in [`crate::Response::id`].
    pub id: u32,
    /// The request.
    pub body: RequestBody,
}

/// A request. Virtual machines have their names in the bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestBody {
    /// The host's identity. Answered by [`crate::ReplyBody::Info`].
    Info,
    /// The virtual machines. Answered by [`crate::ReplyBody::Vms`].
    VmList {
        /// The first one requested, counted from 0 in the bundle's order.
        from_index: u32,
    },
    /// Start a stopped machine from its kernel.
    VmStart {
        /// Name of the machine.
        name: String,
    },
    /// Stop a machine at once, as if its power were cut.
    VmStop {
        /// Name of the machine.
        name: String,
    },
    /// Halt a machine's CPUs where they are.
    VmPause {
        /// Name of the machine.
        name: String,
    },
    /// Resume a paused machine.
    VmResume {
        /// Name of the machine.
        name: String,
    },
    /// Start a machine again from its kernel, in any state.
    VmReset {
        /// Name of the machine.
        name: String,
    },
    /// A paused machine's memory as it lies in its address space. Answered by [`crate::ReplyBody::Layout`].
    VmLayout {
        /// Name of the machine.
        name: String,
    },
    /// The registers of a paused machine's CPU. Answered by [`crate::ReplyBody::Registers`].
    VmRegisters {
        /// Name of the machine.
        name: String,
        /// Number of the vCPU.
        vcpu: u32,
    },
    /// A piece of a paused machine's memory. Answered by [`crate::ReplyBody::Memory`].
    VmMemory {
        /// Name of the machine.
        name: String,
        /// Guest-physical address of the first byte.
        from_gpa: u64,
        /// Guest-physical end address.
        to_gpa: u64,
    },
    /// Type on a machine's console.
    ConsoleInput {
        /// Name of the machine.
        name: String,
        /// At most [`crate::MAX_CONSOLE_BYTES`].
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// Records of the log. Answered by [`crate::ReplyBody::Log`].
    Log {
        /// First record, as [`crate::ReplyBody::Log`] reported; 0 is the oldest record there is.
        from_sequence: u64,
        /// The most records requested; fewer come where they would not fit a frame.
        limit: u16,
    },
    /// Events. Answered by [`crate::ReplyBody::Events`].
    Events {
        /// The first event requested; where it is gone, the oldest there is.
        from_sequence: u64,
        /// The most events requested; fewer come where they would not fit a frame.
        limit: u16,
    },
    /// Send these unasked from now on (replaces the subscription there was).
    Subscribe(Subscription),
    /// Stop every machine and power the host off.
    PowerOff,
    /// The host's CPUs. Answered by [`crate::ReplyBody::Cpus`].
    CpuList {
        /// The first one requested, by number.
        from_index: u32,
    },
    /// Take a CPU offline: its vCPUs move to others, then it halts. Answered once that is done.
    CpuOffline {
        /// Number of the CPU.
        index: u32,
    },
    /// Use a CPU (again): vCPUs that belong there move back. Answered once it takes work.
    CpuOnline {
        /// Number of the CPU.
        index: u32,
    },
    /// The log that the host before this one left in memory when it ended, or was replaced. Answered by
    /// [`crate::ReplyBody::Epitaph`].
    Epitaph {
        /// The first line requested, counted from 0.
        from_line: u32,
    },
    /// Replace the running image by the one in the bundle, without firmware; machines start again. Answered by the new
    /// image, with [`crate::ReplyBody::Restarted`]; a refusal comes from the old one, which runs on.
    Restart,
    /// The host's timeline. Answered by [`crate::ReplyBody::Timeline`].
    Timeline {
        /// First record; as [`crate::TimelinePage::next`] reported.
        from: TimelinePlace,
    },
    /// The host's PCI functions, as far as they are probed. Answered by [`crate::ReplyBody::PciFunctions`].
    PciList {
        /// The first one requested, in the order in which they were found.
        from_index: u32,
    },
    /// Set memory aside for a file that is about to be sent, or go on with the same file where it was left. Answered by
    /// [`crate::ReplyBody::Received`]. A file without progress for ten seconds is dropped, whole or not; a whole piece
    /// of memory after five minutes.
    UploadBegin {
        /// Kind of the file.
        kind: UploadKind,
        /// Its length.
        bytes: u64,
        /// Its SHA-256.
        #[serde(with = "serde_bytes")]
        sha256: [u8; 32],
    },
    /// The file's next bytes. Answered by [`crate::ReplyBody::Received`]; bytes that are not the next ones are passed
    /// over.
    UploadData {
        /// Their offset in the file, in bytes.
        offset: u64,
        /// At most [`crate::MAX_UPLOAD_BYTES`].
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// Drop the file that is being sent, or has been.
    UploadDrop,
    /// Restart as [`RequestBody::Restart`] does, with the file that has been sent: a bundle, with the image and the
    /// machines that it holds, or an image alone. A file that is refused stays until it is dropped.
    RestartUploaded,
    /// Replace the running image while machines run, by the one in the bundle or by the file that has been sent.
    /// Answered with [`crate::ReplyBody::Updated`].
    Update {
        /// Only try how far the new image comes while nothing has stopped, and keep the old one.
        is_dry_run: bool,
        /// By which image.
        by: UpdateBy,
    },
    /// Have the figures of a machine's CPU taken, where it is, without stopping it. Answered at once by
    /// [`crate::ReplyBody::Perf`], with what there is: ask again until that is new enough.
    VmPerf {
        /// Name of the machine.
        name: String,
        /// Number of the vCPU.
        vcpu: u32,
    },
    /// Begin a profile of the host itself; there is one at a time. Answered by [`crate::ReplyBody::Profile`]. One that
    /// no client asks for for five seconds ends, and so does one of an image that is to be replaced.
    ProfileBegin {
        /// The client that takes it: a number of the sender's choice.
        by: u32,
        /// Samples of each CPU per second; fewer are taken where that is too many.
        hz: u32,
    },
    /// Samples that have been taken. Answered by [`crate::ReplyBody::Profile`].
    ProfileRead {
        /// The client that takes it.
        by: u32,
        /// Take no more samples: the profile is over once there are none left to report.
        is_end: bool,
    },
    /// Have the host's own counters of a CPU read, where it is. Answered at once by
    /// [`crate::ReplyBody::CpuPerf`], with what there is: ask again until that is new enough. They are begun with the
    /// first question, and end after five seconds without one.
    CpuPerf {
        /// Number of the CPU.
        index: u32,
    },
    /// The next order to restart or to update, if it comes within ten seconds, may go to an image of a lower security
    /// version. Refused where the host's policy permits no downgrade.
    PermitDowngrade,
    /// Halt a machine's CPUs where they are, as [`RequestBody::VmPause`], for a client that reads it: it goes on
    /// by itself once its layout, registers and memory have not been asked for so long. A client that pauses or resumes
    /// it meanwhile decides from then on.
    VmHold {
        /// Name of the machine.
        name: String,
        /// Milliseconds without a question after which it goes on: at most [`crate::MAX_HOLD_MS`].
        ms: u32,
    },
    /// The host's exposure to speculation vulnerabilities. Answered by [`crate::ReplyBody::Vulnerabilities`].
    Vulnerabilities,
    /// Which IOMMUs has the host, and do they isolate? Answered by [`crate::ReplyBody::Iommus`].
    Iommus,
    /// Assign a PCI function to a guest: one that runs has it at once, another one from its next start on. Answered by
    /// [`crate::ReplyBody::PciAssignment`].
    PciAssign {
        /// Choice of the function: its address, or vendor and device, as `pci::Selector` reads it.
        function: String,
        /// Name of the guest.
        guest: String,
        /// Assign it even if nothing can reset it.
        without_reset: bool,
    },
    /// Release a PCI function from a guest. One that runs is asked to eject it. Answered by
    /// [`crate::ReplyBody::PciAssignment`].
    PciRelease {
        /// Choice of the function.
        function: String,
        /// Name of the guest; `None`: the one that has the function, or the only one that it is assigned to.
        guest: Option<String>,
        /// Take it from a guest that runs without asking that.
        is_forced: bool,
    },
    /// A piece as in [`RequestBody::UploadData`], packed: a part of an LZMA2 stream with a window of 256 KiB that the
    /// pieces before have begun, or that begins with it.
    UploadPacked {
        /// Offset of the piece in the file, in bytes.
        offset: u64,
        /// Its length, unpacked: at most [`crate::MAX_UNPACKED_BYTES`].
        bytes: u32,
        /// At most [`crate::MAX_PACKED_BYTES`].
        #[serde(with = "serde_bytes")]
        packed: Vec<u8>,
        /// It begins a stream.
        begins: bool,
    },
    /// The ports of the networks between guests. Answered by [`crate::ReplyBody::NetPorts`].
    NetList {
        /// The first one requested, network by network.
        from_index: u32,
    },
    /// Update as [`RequestBody::Update`] does; the new image returns to this one by itself unless
    /// [`RequestBody::Confirm`] comes in time.
    UpdateUnlessConfirmed {
        /// Only try how far the new image comes while nothing has stopped, and keep the old one.
        is_dry_run: bool,
        /// By which image.
        by: UpdateBy,
        /// The time after the new image has taken over: from 1 to [`crate::MAX_CONFIRM_SECONDS`].
        seconds: u32,
    },
    /// The running image is to stay. Refused where the host does not wait for that.
    Confirm,
    /// Press the power button of a machine that runs, which asks it to shut down. The answer does not wait for that.
    VmShutdown {
        /// Name of the machine.
        name: String,
    },
    /// Begin a session, for a host that takes signed requests. Answered by [`crate::ReplyBody::Challenge`].
    SessionBegin {
        /// The first eight bytes of the client's public key.
        #[serde(with = "serde_bytes")]
        key: [u8; 8],
    },
    /// A request within a session. Answered as the request that it holds.
    Signed(Signed),
    /// The keys that open sessions. Answered by [`crate::ReplyBody::ControlKeys`].
    ControlKeys,
    /// Take a control key's role away: its sessions end. This holds until the machine is reset, also across updates.
    RevokeControlKey {
        /// Its name.
        name: String,
    },
    /// The host's configuration now: a bundle's manifest. Answered by [`crate::ReplyBody::Config`].
    Config {
        /// Offset of the first byte requested.
        from_byte: u32,
    },
    /// Change settings of a machine. Those that its run does not take over are refused while it runs.
    VmSet {
        /// Name of the machine.
        name: String,
        /// The settings.
        settings: VmSettings,
    },
    /// Remove a machine that does not run from the host's configuration.
    VmDelete {
        /// Name of the machine.
        name: String,
    },
    /// Add a machine to the host's configuration. It does not start yet.
    VmCreate {
        /// A manifest with this machine alone; the files that it names are the host's.
        #[serde(with = "serde_bytes")]
        manifest: Vec<u8>,
    },
    /// The files from which machines start. Answered by [`crate::ReplyBody::Files`].
    FileList {
        /// The first one requested.
        from_index: u32,
    },
    /// Give back the memory of a file that was sent, and that no machine needs.
    FileRemove {
        /// Its name.
        name: String,
    },
    /// Send the console output of these machines from now on, and of no others, until the next
    /// [`RequestBody::Subscribe`]. A name of no machine counts once there is one. An update discards the choice: the
    /// new image sends the output of all.
    SubscribeConsoles {
        /// Names of the machines; none: no console.
        names: Vec<String>,
    },
    /// The disks behind servers in other guests. Answered by [`crate::ReplyBody::Disks`].
    DiskList {
        /// The first one requested, guest by guest.
        from_index: u32,
    },
    /// Begin to capture frames of a network between guests; there is one capture at a time. Answered by
    /// [`crate::ReplyBody::Capture`]. One that no client asks for for five seconds ends, and so does one of an image
    /// that is to be replaced.
    CaptureBegin {
        /// The client that takes it: a number of the sender's choice.
        by: u32,
        /// Name of the network.
        network: String,
        /// Name of the guest whose frames are captured, sent and received; `None`: all of the network.
        guest: Option<String>,
        /// The most bytes of a frame that are kept; larger than the host's limit: that.
        snap_bytes: u32,
    },
    /// Frames that have been captured. Answered by [`crate::ReplyBody::Capture`].
    CaptureRead {
        /// The client that takes it.
        by: u32,
        /// Capture no more frames: the capture is over once there are none left to report.
        is_end: bool,
    },
    /// The state of a paused machine but for its memory, as [`RequestBody::VmRestore`] takes it. Answered by
    /// [`crate::ReplyBody::Saved`]. From the first question on nothing reaches its network and socket devices until it
    /// goes on: once its state is there, its memory does not change any more.
    VmSaved {
        /// Name of the machine.
        name: String,
        /// Offset of the first byte requested.
        from_byte: u32,
    },
    /// Start a machine that does not run, from what was saved. It was sent before: the memory as
    /// [`UploadKind::Memory`], by rising address, in pieces as its layout has them; the state as [`UploadKind::File`].
    VmRestore {
        /// Name of the machine.
        name: String,
        /// Name of the state.
        state: String,
        /// The pieces of memory, by the digits of their SHA-256.
        memory: Vec<String>,
    },
}
