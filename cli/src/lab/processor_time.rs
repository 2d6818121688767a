// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of this machine's processors a process has taken.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Ticks of the kernel's accounting per second, for programs (proc(5), `USER_HZ`: 100 on every x86 Linux).
const TICKS_PER_SECOND: u64 = 100;
/// Where user and system time stand behind the name, counted from 0 (proc(5), fields 14 and 15; the state is field 3).
const USER_TIME: usize = 11;

/// User and system time of all threads of process `pid`, those that have ended included; to 10 ms.
pub fn processor_time(pid: u32) -> Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid} is gone"))?;
    of(&text).with_context(|| format!("the kernel's account of process {pid} is not understood: {text:?}"))
}

/// The name stands in parentheses and may hold any character, parentheses and blanks too.
fn of(text: &str) -> Option<Duration> {
    let (_, behind_name) = text.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(USER_TIME);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let ticks = ticks()?.checked_add(ticks()?)?;
    Some(Duration::from_millis(ticks.checked_mul(1000 / TICKS_PER_SECOND)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_added() {
        let text = "77 (a) (b c) S 1 2 3 0 -1 4194304 100 0 0 0 250 31 7 9 20 0 3 0 1 2 3";
        assert_eq!(of(text), Some(Duration::from_millis(2810)));
        assert_eq!(of("77 (short) S 1"), None);
    }

    #[test]
    fn this_process_has_an_account_and_nobody_has_none() {
        assert!(processor_time(std::process::id()).is_ok());
        assert!(processor_time(u32::MAX).is_err());
    }
}
