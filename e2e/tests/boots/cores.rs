// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core file of a whole Linux, opened by the kernel's own debugger.

use std::time::Duration;

use anyhow::{Result, ensure};
use baton::config::Guest;
use baton::size::Size;
use e2e::crash;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder, linux};

use super::Rule;

/// Those that want crash and a kernel's symbols.
pub const CRASH_LONG_RULES: &[Rule] =
    &[("crash_finds_symbols_log_and_memory_of_a_kernel_in_its_core", crash_finds_symbols_log_and_memory)];

/// Tens of MiB come over a serial line.
const LIMIT: Duration = Duration::from_secs(600);

/// The test accepts that crash 8.0.2 finds no task of this kernel but the idle one: that is crash's limit, not the
/// file's, since gdb finds them.
fn crash_finds_symbols_log_and_memory() -> Result<()> {
    let guest = linux("debian", Kernel::V6_1, "wait")?;
    let cmdline = format!("{} nokaslr", guest.cmdline);
    let mut host = Recipe::new().guest(Guest { cmdline, memory: Size::mebibytes(96), ..guest }).start()?;
    host.limit(LIMIT);
    host.greets("debian")?;
    let folder = folder()?;
    let core = folder.path().join("debian.core");
    let dumped = baton::dump::dump(&mut host.client()?, "debian", 1, &core, |_, _| (), &|| false)?;
    ensure!(dumped.mappings > 0, "{dumped:?}");
    // The kernel's first page, which it translates by its own page tables; `nokaslr` leaves it there.
    let output = crash::ask(&core, "sys\np linux_banner\nvtop ffffffff81000000\nlog")?;
    for expected in ["RELEASE: 6.1.0-", "\"Linux version 6.1.0-", "ffffffff81000000  1000000", "Command line: "] {
        ensure!(output.contains(expected), "no {expected:?} in the output of crash:\n{output}");
    }
    host.powers_off()
}
