// SPDX-License-Identifier: MIT OR Apache-2.0
//! The refusal of a task, with those that there are.

use std::fmt;

/// A task the agent does not know or cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTask(pub(super) String);

impl fmt::Display for UnknownTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "agent={}: no such task; known are poweroff, reboot, panic, shell, memtest, pvpanic, drivers, poll:MS, \
             mix:MS, compute:MS, churn:MS, heartbeat:MS[:COUNT], stress:MS, replug:TIMES, steal, backtrace, \
             disk:MIB, plugged:MIB, reset:TIMES, reads:DEPTH:MS, stream:OWN:TO:PORT, packets:OWN:TO:PORT, \
             bulk:OWN:TO:PORT, sink:OWN:PORT, echo:[OWN:]TO:PORT, serve:OWN:PORT, \
             vsock-echo:CID:PORT, vsock-serve:PORT, vsock-crowd:CID:PORT:TIMES, hwrng:MS, flags, dmi:MS, power-key[:ignore], hvc:MS, print:ttyS0:KIB, \
             print:hvc0:KIB and wait, separated by commas",
            self.0
        )
    }
}
