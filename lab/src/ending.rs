// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a lab machine.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use wire::exit_code::ExitCode;

use super::bochs::POWER_OFF;

/// The end of a lab machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The host reported success.
    Success,
    /// The machine powered itself off.
    PoweredOff,
    /// The machine was reset: the lab ends it then.
    Reset,
    /// The host reported a failure.
    Failed,
    /// The host panicked.
    Panicked,
    /// The emulator ended by itself, with this status and these last lines.
    Emulator {
        /// Its exit status.
        status: i32,
        /// The last lines of its standard error.
        output: String,
    },
    /// The emulator was killed by this signal.
    Killed {
        /// The signal's number.
        signal: i32,
    },
}

impl Ending {
    /// Returns the meaning of an emulator's exit status, and of the cause that QEMU's monitor has reported.
    pub fn of(status: ExitStatus, cause: Option<&str>, emulator_lines: &[String]) -> Self {
        let Some(status) = status.code() else {
            return Self::Killed { signal: status.signal().unwrap_or_default() };
        };
        match ExitCode::from_process_status(status) {
            Some(ExitCode::Success) => Self::Success,
            Some(ExitCode::Failed) => Self::Failed,
            Some(ExitCode::Panicked) => Self::Panicked,
            None if status == 0 && cause == Some("guest-reset") => Self::Reset,
            None if status == 0 && !cause.is_some_and(|cause| cause.starts_with("host-")) => Self::PoweredOff,
            None if emulator_lines.iter().any(|line| line == POWER_OFF) => Self::PoweredOff,
            None => Self::Emulator { status, output: emulator_lines.join("; ") },
        }
    }

    /// Returns whether the machine ended without a failure.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Success | Self::PoweredOff)
    }

    /// Returns the tool's exit status for this ending.
    pub fn process_status(&self) -> u8 {
        match self {
            Self::Success | Self::PoweredOff => 0,
            Self::Failed | Self::Reset | Self::Emulator { .. } => 1,
            Self::Panicked => 3,
            Self::Killed { signal } => 128 + (*signal & 0x7f) as u8,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => write!(f, "the host ended well"),
            Self::PoweredOff => write!(f, "the host powered off"),
            Self::Reset => write!(f, "the machine was reset, as by a triple fault of the host"),
            Self::Failed => write!(f, "the host reports a failure; its last lines report which"),
            Self::Panicked => write!(f, "the host panicked; its last lines report where"),
            Self::Emulator { status, output } => write!(f, "the emulator failed with status {status}: {output}"),
            Self::Killed { signal } => write!(f, "the emulator was ended by signal {signal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(status: i32) -> Ending {
        Ending::of(ExitStatus::from_raw(status << 8), None, &["qemu: bad".to_owned()])
    }

    #[test]
    fn the_hosts_own_codes_are_distinguished_from_the_emulators() {
        assert_eq!(
            [33, 0, 35, 37].map(ending),
            [Ending::Success, Ending::PoweredOff, Ending::Failed, Ending::Panicked]
        );
        assert_eq!(ending(1), Ending::Emulator { status: 1, output: "qemu: bad".to_owned() });
        assert_eq!(Ending::of(ExitStatus::from_raw(9), None, &[]), Ending::Killed { signal: 9 });
        assert_eq!(Ending::of(ExitStatus::from_raw(1 << 8), None, &[POWER_OFF.to_owned()]), Ending::PoweredOff);
    }

    #[test]
    fn a_status_of_zero_has_a_cause() {
        let of = |cause| Ending::of(ExitStatus::from_raw(0), Some(cause), &["terminating on signal 15".to_owned()]);
        assert_eq!((of("guest-shutdown"), of("guest-reset")), (Ending::PoweredOff, Ending::Reset));
        let ended = Ending::Emulator { status: 0, output: "terminating on signal 15".to_owned() };
        assert_eq!(of("host-signal"), ended);
        assert!(!ended.is_good() && !Ending::Reset.is_good());
    }

    #[test]
    fn only_good_endings_are_status_zero() {
        for status in [0, 1, 33, 35, 37] {
            assert_eq!(ending(status).is_good(), ending(status).process_status() == 0);
        }
    }
}
