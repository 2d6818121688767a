// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operator's tool.

use std::any::Any;
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

use baton::args::Cli;
use baton::commands;
use clap::Parser as _;

/// As of a process that SIGPIPE has ended.
const READER_HAS_GONE: u8 = 141;

fn main() -> ExitCode {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        if !says_that_nobody_reads(info.payload()) {
            usual(info);
        }
    }));
    match panic::catch_unwind(|| commands::run(Cli::parse())) {
        Ok(Ok(status)) => ExitCode::from(status),
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
