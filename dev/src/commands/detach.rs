// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton up --detach`: the same program once more, in a session of its own; done once the host answers.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use baton::client::Client;
use baton::running;
use lab::rundir::log_path;
use rustix::process::{Pid, Signal, kill_process};

use super::DONE;
use crate::args::UpArgs;

/// Longest time for a host to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// The interval between two requests to it.
const INTERVAL: Duration = Duration::from_millis(50);
/// Longest time for the background part to end once it has closed a connection.
const LAST_MOMENTS: Duration = Duration::from_secs(5);
/// Lines of the log in the error for a host that does not answer.
const TAIL_LINES: usize = 20;

pub(super) fn run(args: &UpArgs) -> Result<u8> {
    let name = &args.lab.name;
    if running::pids_of(name).is_some() {
        bail!("the host {name:?} runs already; end it with `baton down`, or choose another name with --name");
    }
    let log = log_path(name)?;
    let mut child = spawn(&log)?;
    match wait_for_answer(name, &mut child) {
        Ok(()) => {
            println!("host {name:?} runs in the background; its output goes to {}", log.display());
            Ok(DONE)
        }
        Err(error) => {
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            let _ = child.wait();
            bail!("{error:#}; the end of {}:\n{}", log.display(), tail(&log))
        }
    }
}

/// Starts this program with the same arguments, `--background` instead of `--detach`.
fn spawn(log: &Path) -> Result<Child> {
    let output = File::create(log).with_context(|| format!("{} cannot be written", log.display()))?;
    let program = env::current_exe().context("the path of this program is unknown")?;
    let child = Command::new(program)
        .args(background_arguments(env::args_os().skip(1)))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn();
    child.context("the background part cannot be started")
}

fn background_arguments(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_detach = |argument: &OsString| argument == "--detach" || argument == "-d";
    arguments.map(|argument| if is_detach(&argument) { "--background".into() } else { argument }).collect()
}

fn wait_for_answer(name: &str, child: &mut Child) -> Result<()> {
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            bail!("the host ended before it answered ({})", describe(status));
        }
        if running::pids_of(name).is_some() && answers(name, child)? {
            return Ok(());
        }
        thread::sleep(INTERVAL);
    }
    bail!("the host did not answer within {} s", ANSWER_TIMEOUT.as_secs())
}

/// Sends one request; a broker that is not there yet is no error.
fn answers(name: &str, child: &mut Child) -> Result<bool> {
    let Ok(mut client) = running::control_socket_of(name).and_then(|path| Client::connect(&path)) else {
        return Ok(false);
    };
    let question = client.request_within(ANSWER_TIMEOUT, wire::RequestBody::Info);
    if question.is_err() && ends_soon(child)? {
        // The caller's loop reports how it ended.
        return Ok(false);
    }
    question.map(|_| true)
}

/// Returns whether the background part ends within moments: it closes its connections before it is gone.
fn ends_soon(child: &mut Child) -> Result<bool> {
    let deadline = Instant::now() + LAST_MOMENTS;
    while Instant::now() < deadline {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        thread::sleep(INTERVAL);
    }
    Ok(false)
}

fn describe(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("status {code}"))
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_part_gets_the_same_arguments() {
        let arguments = ["up", "host.toml", "-d", "--cpus", "2"].map(OsString::from);
        let expected = ["up", "host.toml", "--background", "--cpus", "2"].map(OsString::from);
        assert_eq!(background_arguments(arguments.into_iter()), expected);
    }
}
