// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a command to the end of its process: errors as people read them, and the exit status.

use std::any::Any;
use std::io::Write as _;
use std::panic::{self, PanicHookInfo, UnwindSafe};
use std::process::ExitCode;

use anyhow::Result;

use crate::output::{has_lost_its_reader, output};

/// The exit status of a process that SIGPIPE has ended.
const READER_HAS_GONE: u8 = 141;

/// Runs `command`, which returns the exit status, and reports its error.
pub fn run(command: impl FnOnce() -> Result<u8> + UnwindSafe) -> ExitCode {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        if !says_that_nobody_reads(info.payload()) {
            usual(info);
        }
    }));
    let run = || {
        let status = command()?;
        output().flush()?;
        anyhow::Ok(status)
    };
    match panic::catch_unwind(run) {
        Ok(Ok(status)) => ExitCode::from(status),
        Ok(Err(error)) if has_lost_its_reader(&error) => ExitCode::from(READER_HAS_GONE),
        Ok(Err(error)) => {
            eprintln!("baton: {error:#}");
            ExitCode::FAILURE
        }
        Err(payload) if says_that_nobody_reads(&*payload) => ExitCode::from(READER_HAS_GONE),
        Err(payload) => panic::resume_unwind(payload),
    }
}

/// `baton log | head` is nobody's fault: `println!` panics then, since SIGPIPE, which would end a broker, is ignored.
fn says_that_nobody_reads(payload: &(dyn Any + Send)) -> bool {
    let text = payload.downcast_ref::<String>().map_or("", String::as_str);
    text.starts_with("failed printing to stdout") && text.contains("(os error 32)")
}
