// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: `name=value` words parted by blanks, parsed into typed [`Options`].
//!
//! [`OPTIONS`] is the one list of what there is; parsing, error messages and the documentation all come from it. A word
//! that is unknown or malformed becomes a [`Complaint`] and is otherwise ignored: a wrong option must not stop the host.
//! An option given twice counts as given last.

mod complaint;
mod memory;
mod nearest;
mod processor_list;
mod table;
mod values;

use core::fmt;
use core::str::FromStr;

use arrayvec::ArrayVec;
use klog::Level;
use seal::Verify;

pub use complaint::{Complaint, Complaints, MAXIMUM_COMPLAINTS};
pub use memory::{BadMemory, FramePolicy, HugeFrames, MAXIMUM_BAD_RANGES};
pub use processor_list::{NUMBERS, ProcessorList};
pub use table::{OPTIONS, OptionSpec};

/// Self-tests that one command line can ask for.
pub const MAXIMUM_SELF_TESTS: usize = 8;

/// What the operator wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `log`: the least important level that is logged.
    pub log: Level,
    /// `log-buffer`: how much log is kept.
    pub log_buffer: LogBuffer,
    /// `console`: where the log is printed.
    pub console: Console,
    /// `apic`: how the local APIC is driven.
    pub apic: ApicMode,
    /// `panic`: what follows a panic of the host.
    pub panic: PanicAction,
    /// `cpus`: processors to use at most; `None` is all.
    pub cpus: Option<u32>,
    /// `cpu`: which processors to use, by number; `None` is all.
    pub cpu: Option<ProcessorList>,
    /// `smp`: how the other processors are brought up.
    pub smp: Smp,
    /// `kick`: when the other processors are told to start.
    pub kick: KickTime,
    /// `tsc`: what is done to make sure that all clocks agree.
    pub tsc: TscSync,
    /// `verify`: when an image that is to replace this one is checked.
    pub verify: Verify,
    /// `frames`: how account is kept of who owns which frames.
    pub frames: FramePolicy,
    /// `hvo`: the records of a huge frame's tail are never written.
    pub hvo: bool,
    /// `huge-frames`: huge frames that are set aside for guests.
    pub huge_frames: HugeFrames,
    /// `bad-memory`: memory that must not be used.
    pub bad_memory: BadMemory,
    /// `pci`: which PCI functions are probed, and when.
    pub pci: pci::Filter,
    /// `pmu`: what guests' events are counted with.
    pub pmu: pmu::Choice,
    /// `vpmu`: what it costs when a guest changes what its performance counters count.
    pub vpmu: pmu::Policy,
    /// `update-limit`: how long guests may stand still in an update before it is rolled back.
    pub update_limit: UpdateLimit,
    /// `guests`: which guests start with the host.
    pub guests: GuestStart,
    /// `restart-after-guests`: when no guest is left running, the host restarts warm until this generation.
    pub restart_after_guests: u64,
    /// `selftest`: ways to fail or to be loud on purpose, in this order.
    pub self_tests: ArrayVec<SelfTest, MAXIMUM_SELF_TESTS>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            log: Level::Info,
            log_buffer: LogBuffer::DEFAULT,
            console: Console::Serial { baud: 115_200, transmit: Transmit::Fifo },
            apic: ApicMode::Auto,
            panic: PanicAction::Halt,
            cpus: None,
            cpu: None,
            smp: Smp::Park,
            kick: KickTime::Early,
            tsc: TscSync::Auto,
            verify: Verify::Early,
            frames: FramePolicy::Extents,
            hvo: true,
            huge_frames: HugeFrames::default(),
            bad_memory: BadMemory::default(),
            pci: pci::Filter::Lazy,
            pmu: pmu::Choice::Soft,
            vpmu: pmu::Policy::Direct,
            update_limit: UpdateLimit::Auto,
            guests: GuestStart::Auto,
            restart_after_guests: 1,
            self_tests: ArrayVec::new(),
        }
    }
}

/// How much log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBuffer {
    /// The boot processor's, which logs most, in KiB.
    pub boot_kib: u32,
    /// Each other processor's, in KiB.
    pub other_kib: u32,
}

impl LogBuffer {
    /// The boot, and some hundred records of each processor.
    pub const DEFAULT: Self = Self { boot_kib: 64, other_kib: 16 };

    /// Bytes for the boot processor.
    pub const fn boot_bytes(self) -> u64 {
        self.boot_kib as u64 * 1024
    }

    /// Bytes for each other processor.
    pub const fn other_bytes(self) -> u64 {
        self.other_kib as u64 * 1024
    }
}

/// Where the log is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Console {
    /// Nowhere; it is still kept and can be read through the control channel.
    None,
    /// The first serial port (COM1), 8 bits, no parity.
    Serial {
        /// Bits per second; divides 115,200.
        baud: u32,
        /// How the bytes get there.
        transmit: Transmit,
    },
}

/// How a serial port is given bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// One after the other, each waited for: the baseline.
    Byte,
    /// As many at once as its FIFO holds.
    Fifo,
}

/// How the local APIC is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApicMode {
    /// x2APIC where there is one.
    Auto,
    /// Through memory.
    XApic,
    /// Through MSRs; where the processor has no x2APIC, through memory after all.
    X2Apic,
}

/// What follows a panic of the host, after its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanicAction {
    /// The processor that failed spins in delays: the baseline.
    Spin,
    /// Processors halt, the report stays readable.
    Halt,
    /// The machine is reset.
    Reboot {
        /// After this time.
        after_seconds: u32,
    },
    /// The lab's debug-exit port ends the emulator.
    Exit,
}

/// How the other processors are brought up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smp {
    /// One after the other, each waited for: the baseline.
    Serial,
    /// All are woken, then waited for.
    Parallel,
    /// Those that the image before has parked are adopted; where none are, as [`Smp::Parallel`].
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

/// When the other processors are told to start. Serially, each is when it is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KickTime {
    /// As soon as they can be: they wake while the boot goes on.
    Early,
    /// When nothing is left to do but wait for them: the baseline.
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

/// What is done to make sure that all time stamp counters agree.
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

/// An option does not take this value; [`OPTIONS`] says what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownValue;

impl fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the option does not take this value")
    }
}

impl core::error::Error for UnknownValue {}

/// How long guests may stand still in an update before it is rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateLimit {
    /// 5 ms; 2 s where a hypervisor or an emulator is below, which may keep a processor away for that long.
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

/// Which guests start with the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestStart {
    /// Those that the bundle says should.
    Auto,
    /// None: the operator starts them.
    None,
}

/// A way to crash or to be loud on purpose, to see what the host makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfTest {
    /// An undefined instruction.
    Exception,
    /// A read of an address that is not mapped.
    PageFault,
    /// A recursion into the guard page.
    StackOverflow,
    /// A write to the host's own code.
    WriteToCode,
    /// A panic.
    Panic,
    /// The last processor does not park when the host restarts for the first time.
    DeafAtParking,
    /// The last processor does not leave its mailbox after the first restart.
    StuckInMailbox,
    /// A staged image is written to before it is entered, in the first image.
    SpoilStaged,
    /// What hashing an image costs; nothing crashes.
    HashCost,
    /// Idle processors probe PCI functions for ever; nothing crashes.
    PciStorm,
    /// Records from every context, and a storm of them; nothing crashes.
    Log,
    /// What a record costs; nothing crashes.
    LogCost,
    /// 400 kB of log from all processors while guests run.
    LogStorm,
    /// A panic in an interrupt handler.
    PanicInInterrupt,
    /// An NMI that nobody expects.
    Nmi,
    /// A panic while a record is being logged.
    PanicInLog,
    /// A panic while the heap is locked.
    PanicInHeap,
    /// A panic while the report of another is being printed.
    PanicInReport,
    /// Processors 0 and 1 panic at once.
    PanicOnTwo,
    /// A panic while processor 1 has interrupts masked.
    PanicBesideMasked,
    /// A panic while processor 1 takes neither interrupts nor NMIs.
    PanicBesideDeaf,
    /// A panic when events are asked for over the control channel.
    PanicWhenAsked,
    /// The firmware's table of processors is damaged before it is read.
    Madt(MadtDamage),
    /// A processor stops for good while it comes up.
    Stop {
        /// Its number; the boot processor's is 0 and never stops.
        processor: u32,
        /// What it is waited for then.
        phase: StopPhase,
    },
    /// The image that the first one would replace itself by fails.
    Update {
        /// How.
        fault: UpdateFault,
        /// When.
        step: UpdateStep,
    },
}

/// Ways in which an image on trial can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateFault {
    /// It panics.
    Panic,
    /// It reads what is not mapped.
    Exception,
    /// It runs in circles.
    Hang,
    /// It overflows its stack.
    StackOverflow,
    /// It finds a virtual processor's state damaged, while it restores.
    Damage,
    /// It runs in circles with interrupts masked, on every processor that comes so far.
    Freeze,
    /// It would go on with another state of a virtual processor than was saved.
    Wrong,
}

/// Steps of an image on trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateStep {
    /// It has not yet built anything, guests running.
    Begin,
    /// It has prepared itself, guests running.
    Prepare,
    /// Its last processor has come to it with its guests.
    Arrive,
    /// Its last processor is about to restore guests.
    Restore,
    /// Its last processor has restored them, and is about to say so.
    Meet,
}

impl SelfTest {
    /// Those that are named by a word alone; the others take parameters.
    pub const NAMED: [(&'static str, Self); 22] = [
        ("exception", Self::Exception),
        ("pagefault", Self::PageFault),
        ("stack-overflow", Self::StackOverflow),
        ("write-to-code", Self::WriteToCode),
        ("panic", Self::Panic),
        ("log", Self::Log),
        ("log-cost", Self::LogCost),
        ("log-storm", Self::LogStorm),
        ("panic-in-interrupt", Self::PanicInInterrupt),
        ("nmi", Self::Nmi),
        ("panic-in-log", Self::PanicInLog),
        ("panic-in-heap", Self::PanicInHeap),
        ("panic-in-report", Self::PanicInReport),
        ("panic-on-two", Self::PanicOnTwo),
        ("panic-beside-masked", Self::PanicBesideMasked),
        ("panic-beside-deaf", Self::PanicBesideDeaf),
        ("panic-when-asked", Self::PanicWhenAsked),
        ("deaf-at-parking", Self::DeafAtParking),
        ("stuck-in-mailbox", Self::StuckInMailbox),
        ("spoil-staged", Self::SpoilStaged),
        ("hash-cost", Self::HashCost),
        ("pci-storm", Self::PciStorm),
    ];
}

/// Ways in which a table of processors can be bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadtDamage {
    /// There is none.
    Missing,
    /// It ends within its second entry.
    Truncated,
    /// All processors have the identifier of the first.
    Duplicate,
    /// The second processor has an identifier that nobody has, the third one that means all.
    Absurd,
}

/// What a processor is waited for when it stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPhase {
    /// Its first sign of life.
    FirstSign,
    /// Its own tables.
    Initialisation,
    /// Its clock.
    TscSync,
    /// Work.
    Online,
}

impl Options {
    /// Parses a command line. Always gives options; what could not be used is in the complaints.
    pub fn parse(command_line: &str) -> (Self, Complaints<'_>) {
        let (mut options, mut complaints) = (Self::default(), Complaints::default());
        for word in command_line.split_ascii_whitespace() {
            if let Err(complaint) = options.apply(word) {
                complaints.add(complaint);
            }
        }
        (options, complaints)
    }

    fn apply<'a>(&mut self, word: &'a str) -> Result<(), Complaint<'a>> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let Some(option) = OPTIONS.iter().find(|option| option.name == name) else {
            return Err(Complaint::Unknown { word, nearest: nearest::name(name) });
        };
        let applied = value.and_then(|value| (option.apply)(self, value));
        applied.ok_or(Complaint::Malformed { option, value })
    }
}
