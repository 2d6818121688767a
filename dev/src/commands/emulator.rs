// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that becomes a host's emulator. The kernel ends it when its `baton up` ends, however that ends: a tool
//! that was killed cannot end anything itself. A watcher beside the two would have to outlive both.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use lab::explain_start;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Becomes the emulator. The signal survives that (prctl(2), PR_SET_PDEATHSIG); it comes when the thread ends that
/// started us: `up` starts its emulator in its first thread, which lasts as long as the process.
pub(super) fn run(parent: i32, command: &[OsString]) -> Result<u8> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .context("the kernel does not end processes with their parents")?;
    if getppid().map(|parent| parent.as_raw_pid()) != Some(parent) {
        bail!("its `baton up` has ended");
    }
    let (program, arguments) = command.split_first().context("no emulator is named")?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| explain_start(program))
}
