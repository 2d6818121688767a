// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton up`: a host in an emulator, from its start to its end.

use anyhow::Result;
use baton::config::Config;
use rustix::process::setsid;

use super::detach;
use super::session::Session;
use crate::args::UpArgs;

pub(super) fn run(args: &UpArgs) -> Result<u8> {
    let config = Config::load(&args.config)?;
    if args.detach {
        return detach::run(args);
    }
    if args.background {
        // The terminal that started us may close.
        setsid()?;
    }
    Ok(Session::start(&config, &args.lab)?.run(|_, _| ()).process_status())
}
