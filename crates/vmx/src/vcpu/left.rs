// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a run of the guest, for the caller.

use vm::exit::Exit;

/// The way in which the world switch came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By an exit, or by an entry that failed like one.
    Exit,
    /// VMLAUNCH or VMRESUME failed: the VMCS has the number of the error (VMfailValid), or there is none.
    Failed,
}

/// The guest's run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The guest's machine answers it.
    For(Exit),
    /// A physical NMI, which the exit has taken: the host's handler is to be called.
    ForNmi,
    /// It has been answered: the guest goes on.
    GoesOn,
}
