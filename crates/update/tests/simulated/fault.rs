// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults in an update.

/// A step of the new image on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Its first instruction.
    Arrive,
    /// Before it restores guests.
    Restore,
    /// After that, before it reports so.
    Meet,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It loops with interrupts masked.
    Hangs,
    /// It gives the CPU up, or raises an exception.
    Fails,
    /// An interrupt of the old image takes the CPU once; the new image then goes on.
    Interrupted,
}

/// One fault; CPUs by their places in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// None.
    None,
    /// The CPU finds no room for what it saves.
    SaveFails(usize),
    /// The new image fails on the CPU.
    NewImage(usize, Step, Kind),
    /// It hangs at this step on every CPU.
    AllHang(Step),
    /// The first interrupts sent to the CPU are lost: their number.
    InterruptsLost(usize, u32),
    /// The first NMIs sent to the CPU are lost: their number.
    NmisLost(usize, u32),
    /// The CPU never leaves its guest.
    Stuck(usize),
    /// An NMI that no CPU of this update has sent comes to the CPU at some time.
    StrayNmi(usize),
    /// The CPU is in system management mode from this time on, for this duration.
    Smi(usize, u64, u64),
}

pub const STEPS: [Step; 3] = [Step::Arrive, Step::Restore, Step::Meet];
pub const KINDS: [Kind; 3] = [Kind::Hangs, Kind::Fails, Kind::Interrupted];

/// Returns each fault that the CPU `at` can have and that ends.
pub fn faults_of(at: usize) -> Vec<Fault> {
    let of_new_image = STEPS.iter().flat_map(|step| KINDS.map(|kind| Fault::NewImage(at, *step, kind)));
    let others = [
        Fault::SaveFails(at),
        Fault::InterruptsLost(at, 1),
        Fault::InterruptsLost(at, 2),
        Fault::NmisLost(at, 1),
        Fault::StrayNmi(at),
        Fault::Smi(at, 1, 6),
    ];
    of_new_image.chain(others).collect()
}
