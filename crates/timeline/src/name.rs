// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of spans and instants. A number is never given another meaning, and a new name never an old number, so that
//! rings outlive the release that wrote them.

/// Meaning of a record's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Nothing: it is 0.
    Nothing,
    /// A CPU's number.
    Cpu,
    /// A guest's place in the bundle.
    Guest,
    /// Number of the image since the machine was powered on.
    Generation,
    /// A number of things.
    Count,
}

macro_rules! names {
    ($($number:literal $name:ident($argument:ident) $text:literal,)*) => {
        /// Name of a span or an instant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Name { $(#[doc = $text] $name = $number,)* }

        impl Name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name for people.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Returns the meaning of its argument.
            pub const fn argument(self) -> Argument {
                match self { $(Self::$name => Argument::$argument,)* }
            }
        }
    };
}

names! {
    // The boot, in its order.
    1 FirstInstruction(Generation) "first instruction",
    2 Entry(Nothing) "entry, first page tables",
    3 StartInfo(Nothing) "start info",
    4 Console(Nothing) "console",
    5 ResetOthers(Nothing) "INIT to the others",
    6 Firmware(Nothing) "ACPI tables",
    7 Frames(Nothing) "frames",
    8 PageTables(Nothing) "page tables",
    9 Heap(Nothing) "heap",
    10 OwnData(Nothing) "local APIC, own tables",
    11 Clock(Nothing) "clock calibration",
    12 PrepareOthers(Count) "stacks and tables of the others",
    13 Kick(Count) "kick",
    14 Interrupts(Nothing) "interrupt controllers",
    15 Virtualization(Nothing) "virtualization",
    16 Bundle(Nothing) "bundle",
    17 AwaitOthers(Nothing) "wait for the others",
    18 GiveBack(Nothing) "old image's memory given back",
    19 Guests(Count) "guests' places",
    20 Boot(Generation) "boot",
    21 HostReady(Generation) "host ready",
    22 Log(Nothing) "log rings",
    23 SelfTests(Nothing) "self-tests",
    24 PciProbe(Nothing) "PCI functions probed",
    25 PciKnown(Count) "PCI functions known",
    26 FrameRecords(Nothing) "nodes, huge frames, records",

    // Each other CPU on its way.
    30 FirstSign(Cpu) "wake-up",
    31 Initialisation(Cpu) "initialisation",
    32 TscSync(Cpu) "clock compared",
    33 GoingOnline(Cpu) "going online",
    34 Online(Cpu) "online",
    35 Offline(Cpu) "offline",

    // Guests.
    40 GuestLoad(Guest) "guest loaded",
    41 GuestFiles(Guest) "guest's files checked",
    42 GuestMemory(Guest) "guest's memory",
    43 GuestKernel(Guest) "guest's kernel placed",
    44 GuestTables(Guest) "guest's machine",
    45 FirstGuestInstruction(Guest) "first guest instruction",
    46 GuestStarted(Guest) "guest started",
    47 GuestEnded(Guest) "guest ended",
    48 GuestFailed(Guest) "guest failed",
    49 GuestPaused(Guest) "guest paused",
    50 GuestResumed(Guest) "guest resumed",
    51 GuestUnwell(Guest) "guest panicked or hung",

    // A restart, first in the image that leaves, then in the one that comes.
    60 Stage(Generation) "restart: staged",
    61 Park(Nothing) "restart: others park",
    62 FlushLog(Nothing) "restart: log printed",
    63 WriteRecord(Nothing) "restart: record written",
    64 SwitchPages(Generation) "restart: switch",
    65 Parked(Cpu) "parked",
    66 Adopt(Generation) "restart: record read",
    67 GuestsStopped(Generation) "restart: guests stopped",

    // An update, on each CPU; the image that goes on records the steps that both images do in turn.
    70 UpdatePrepare(Generation) "update: new image prepares itself",
    71 UpdateBlackout(Generation) "update: blackout",
    72 UpdateSave(Generation) "update: all stop, guests saved",
    73 UpdateWaitSaved(Generation) "update: wait until all are saved",
    74 UpdateCross(Generation) "update: to the new image",
    75 UpdateRestore(Generation) "update: guests restored",
    76 UpdateWaitRestored(Generation) "update: wait until all are restored",
    77 UpdateEnter(Generation) "update: back to the guests",
    78 UpdateSettle(Generation) "update: settled beside the guests",
    79 UpdateRolledBack(Generation) "update: blackout, rolled back",
}

impl Name {
    /// The one with this number, if this release knows it.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|name| *name as u16 == number)
    }
}
