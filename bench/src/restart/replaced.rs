// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running stock Linux that is replaced by kexec: by Baton, and by the same Linux.

use std::fs;

use anyhow::Result;
use baton::image::linux;
use lab::initramfs::{self, Next};
use lab::{Lab, Machine, RunDir};

use super::hosted::{self, STARTED, milliseconds, wait_line};
use crate::setup::temporary_folder;
use crate::{Context, guest_boot};

/// The line of /init before its kexec (`guests/kexec/init.sh`).
const GOING: &str = "kexec-init: going";
const KERNEL: &str = "target/kernels/6.12/vmlinuz";

/// The kernel that replaces the running Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follower {
    Baton,
    Linux,
}

/// Milliseconds from Linux's last line to the first guest's start, or to the next Linux's /init.
pub(super) fn measure(context: &Context, follower: Follower) -> Result<f64> {
    let folder = temporary_folder()?;
    let (next, sign) = next(context, follower)?;
    let base = fs::read(context.made("target/guests/kexec.cpio")?)?;
    let initramfs = folder.path().join("initramfs");
    fs::write(&initramfs, initramfs::for_kexec(&base, &next)?)?;
    let machine = Machine {
        bundle: Some(initramfs),
        cmdline: "console=ttyS0".to_owned(),
        ..hosted::machine(context, context.made(KERNEL)?)
    };
    let mut lab = Lab::start(&machine, RunDir::take_at(&folder.path().join("run"))?)?;
    let from = wait_line(&mut lab, context.timeout, GOING)?;
    Ok(milliseconds(wait_line(&mut lab, context.timeout, sign)?.saturating_sub(from)))
}

/// Returns the kernel that follows, and the line by which it shows that it runs.
fn next(context: &Context, follower: Follower) -> Result<(Next, &'static str)> {
    match follower {
        Follower::Baton => {
            let kernel = linux::bzimage(&fs::read(&context.image)?)?;
            Ok((Next { kernel, initrd: hosted::bundle_bytes(context)?, cmdline: String::new() }, STARTED))
        }
        Follower::Linux => {
            let kernel = fs::read(context.made(KERNEL)?)?;
            let initrd = fs::read(context.made("target/guests/initramfs.cpio")?)?;
            let cmdline = guest_boot::COMMAND_LINE.to_owned();
            Ok((Next { kernel, initrd, cmdline }, guest_boot::MARKER))
        }
    }
}
