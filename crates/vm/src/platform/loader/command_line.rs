// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of command lines.

use super::error::LoadError;

/// Refuses a command line longer than `limit_bytes` (terminator not counted) or with a zero byte in it.
pub(super) fn check_command_line(command_line: &[u8], limit_bytes: usize) -> Result<(), LoadError> {
    if command_line.len() > limit_bytes {
        return Err(LoadError::CommandLineTooLong { bytes: command_line.len(), limit_bytes });
    }
    match command_line.iter().position(|&byte| byte == 0) {
        Some(offset) => Err(LoadError::CommandLineHasZero { offset }),
        None => Ok(()),
    }
}
