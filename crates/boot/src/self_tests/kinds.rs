// SPDX-License-Identifier: MIT OR Apache-2.0
//! The self-tests: ways in which the host fails, or waits, on purpose, each with its name.

/// A fault or a flood of output on purpose, to test the host's reaction.
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
    /// The last CPU does not park when the host restarts for the first time.
    UnresponsiveAtParking,
    /// The last CPU does not leave its mailbox after the first restart.
    StuckInMailbox,
    /// A staged image is written to before it is entered, in the first image.
    SpoilStaged,
    /// Idle CPUs probe PCI functions for ever; nothing crashes.
    PciStorm,
    /// An `edu` device of QEMU's writes to memory of the host's, if nothing keeps it from that; nothing crashes.
    Dma,
    /// Functions that guests reset never come back; nothing crashes.
    NeverReady,
    /// A write to a register that the CPU refuses; nothing crashes.
    RefusedRegister,
    /// Records from every context, and a storm of them; nothing crashes.
    Log,
    /// A panic in an interrupt handler.
    PanicInInterrupt,
    /// An NMI that no handler expects.
    Nmi,
    /// An interrupt of a vector that is no one's.
    UnexpectedInterrupt,
    /// A panic while a record is being logged.
    PanicInLog,
    /// A panic while the heap is locked.
    PanicInHeap,
    /// A panic while the report of another is being printed.
    PanicInReport,
    /// CPUs 0 and 1 panic at once.
    PanicOnTwo,
    /// A panic while CPU 1 has interrupts masked.
    PanicBesideMasked,
    /// A panic while CPU 1 takes neither interrupts nor NMIs.
    PanicBesideUnresponsive,
    /// A panic when events are asked for over the control channel.
    PanicWhenAsked,
    /// The firmware's table of CPUs is damaged before it is read.
    Madt(MadtDamage),
    /// A CPU stops for good while it comes up.
    Stop {
        /// Its number; the boot CPU's is 0 and never stops.
        cpu: u32,
        /// Phase in which the others wait for it.
        phase: StopPhase,
    },
    /// The image that the first one would replace itself by fails.
    Update {
        /// Kind of the fault.
        fault: UpdateFault,
        /// Step of the fault.
        step: UpdateStep,
    },
    /// A step of the host's end fails, once the end has come to it.
    End {
        /// Kind of the fault.
        fault: EndFault,
        /// Step of the fault.
        step: EndStep,
    },
    /// CPUs wait on their way between two images in an update, while NMIs arrive.
    UpdateWait {
        /// At this fault point, from 1 on ([`SelfTest::UPDATE_POINTS`]); `None`: at each in turn, one for each update.
        point: Option<u8>,
    },
    /// CPUs wait in the blackout of each update, in the new image, until the interrupt of a guest's PCI function is
    /// pending.
    UpdateWaitForInterrupt,
    /// The image that the first one is replaced by hears nothing on its control line, and sends nothing.
    UpdateBreaksLine,
}

/// Ways in which a step of the host's end can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndFault {
    /// It panics.
    Panic,
    /// It reads memory that is not mapped.
    Exception,
    /// It never comes to its end, interrupts masked.
    Hang,
}

/// Steps of the host's end, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStep {
    /// The other CPUs are stopped.
    Stop,
    /// The report.
    Report,
    /// The epitaph for the next host.
    Epitaph,
    /// The log is printed to its end.
    Flush,
    /// The control channel's last words.
    LastWords,
    /// The hypervisor below is notified.
    Notify,
    /// Resting, or the action that `panic=` asks for.
    Rest,
}

impl EndFault {
    /// Each with its word.
    pub const NAMED: [(&'static str, Self); 3] =
        [("panic", Self::Panic), ("exception", Self::Exception), ("hang", Self::Hang)];
}

impl EndStep {
    /// Each with its word.
    pub const NAMED: [(&'static str, Self); 7] = [
        ("stop", Self::Stop),
        ("report", Self::Report),
        ("epitaph", Self::Epitaph),
        ("flush", Self::Flush),
        ("last-words", Self::LastWords),
        ("notify", Self::Notify),
        ("rest", Self::Rest),
    ];
}

/// Ways in which an image on trial can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateFault {
    /// It panics.
    Panic,
    /// It reads memory that is not mapped.
    Exception,
    /// It runs in circles.
    Hang,
    /// It overflows its stack.
    StackOverflow,
    /// It finds a vCPU's state damaged, while it restores.
    Damage,
    /// It runs in circles with interrupts masked, on every CPU that comes so far.
    Freeze,
    /// It would go on with another state of a vCPU than was saved.
    Wrong,
}

/// Steps of an image on trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateStep {
    /// It has not yet built anything, guests running.
    Begin,
    /// It has prepared itself, guests running.
    Prepare,
    /// Its last CPU has come to it with its guests.
    Arrive,
    /// Its last CPU is about to restore guests.
    Restore,
    /// Its last CPU has restored them, and is about to state this.
    Meet,
}

impl SelfTest {
    /// Fault points on a CPU's way to a new image and back, in their order.
    pub const UPDATE_POINTS: [&'static str; 13] = [
        "there-start",
        "there-gdt",
        "there-task",
        "there-idt",
        "there-tables",
        "there-gs",
        "there-enter",
        "back-start",
        "back-gs",
        "back-tables",
        "back-gdt",
        "back-idt",
        "back-task",
    ];

    /// Those that are named by a word alone; the others take parameters.
    pub const NAMED: [(&'static str, Self); 25] = [
        ("exception", Self::Exception),
        ("pagefault", Self::PageFault),
        ("stack-overflow", Self::StackOverflow),
        ("write-to-code", Self::WriteToCode),
        ("panic", Self::Panic),
        ("log", Self::Log),
        ("panic-in-interrupt", Self::PanicInInterrupt),
        ("nmi", Self::Nmi),
        ("unexpected-interrupt", Self::UnexpectedInterrupt),
        ("panic-in-log", Self::PanicInLog),
        ("panic-in-heap", Self::PanicInHeap),
        ("panic-in-report", Self::PanicInReport),
        ("panic-on-two", Self::PanicOnTwo),
        ("panic-beside-masked", Self::PanicBesideMasked),
        ("panic-beside-unresponsive", Self::PanicBesideUnresponsive),
        ("panic-when-asked", Self::PanicWhenAsked),
        ("unresponsive-at-parking", Self::UnresponsiveAtParking),
        ("stuck-in-mailbox", Self::StuckInMailbox),
        ("spoil-staged", Self::SpoilStaged),
        ("pci-storm", Self::PciStorm),
        ("refused-register", Self::RefusedRegister),
        ("dma", Self::Dma),
        ("never-ready", Self::NeverReady),
        ("update:wait:interrupt", Self::UpdateWaitForInterrupt),
        ("update:breaks-line", Self::UpdateBreaksLine),
    ];
}

/// Ways in which a table of CPUs can be bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadtDamage {
    /// There is none.
    Missing,
    /// It ends within its second entry.
    Truncated,
    /// All CPUs have the identifier of the first.
    Duplicate,
    /// The second CPU has an identifier that no CPU has, the third one that means all.
    Absurd,
}

/// Phase of a stop in which the others wait for a CPU.
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
