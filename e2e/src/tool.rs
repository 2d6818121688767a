// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tool as a program. The test program plays it: started with [`PLAYS_TOOL`] set it is `baton`, so that what is
//! tested is what these sources contain and not what was built before.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use tempfile::TempDir;

use crate::place::{Build, built};

/// The variable that makes the test program the tool.
pub const PLAYS_TOOL: &str = "BATON_E2E_PLAYS_TOOL";

/// Runs as the tool, if that is wanted.
pub fn play() -> Option<ExitCode> {
    std::env::var_os(PLAYS_TOOL)?;
    Some(match dev::commands::run(dev::args::Cli::parse()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => baton::program::report(&error),
    })
}

/// An operator with a folder and running hosts of their own.
pub struct Operator {
    folder: TempDir,
    build: Build,
}

/// Result of a command.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit status.
    pub status: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { status: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Outcome {
    /// The command's output, where it ended well.
    pub fn well(self) -> Result<String> {
        ensure!(self.status == Some(0), "the tool ended with {self:?}");
        Ok(self.out)
    }
}

impl Operator {
    /// An operator with a `host.toml`: one Linux guest, `debian`, with an agent that does `tasks`.
    pub fn new(tasks: &str) -> Result<Self> {
        let (kernel, initrd) = (built("kernels/default/vmlinuz")?, built("guests/initramfs.cpio")?);
        Self::with(&format!(
            "[host]\nmemory = \"512MiB\"\n[[guest]]\nname = \"debian\"\nkernel = {kernel:?}\ninitrd = {initrd:?}\n\
             cmdline = \"console=ttyS0 agent={tasks}\"\nmemory = \"256MiB\"\n"
        ))
    }

    /// An operator with this `host.toml`.
    pub fn with(text: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("host.toml"), text)?;
        Ok(Self { folder, build: Build::Shipped })
    }

    /// The same with the test image, which takes `selftest=`.
    pub fn with_fault_points(mut self) -> Self {
        self.build = Build::WithFaultPoints;
        self
    }

    /// The operator's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the tool to its end.
    pub fn run(&self, arguments: &[&str]) -> Result<Outcome> {
        self.types("", arguments)
    }

    /// The same with `input` typed.
    pub fn types(&self, input: &str, arguments: &[&str]) -> Result<Outcome> {
        let mut child = self.command(arguments)?.spawn()?;
        let mut stdin = child.stdin.take().context("piped")?;
        stdin.write_all(input.as_bytes())?;
        drop(stdin);
        Ok(child.wait_with_output()?.into())
    }

    /// Returns what a guest's console shows until a line contains `text`. An error after `limit`, whether the guest is
    /// stops writing or keeps writing.
    pub fn console_until(&self, guest: &str, text: &str, limit: Duration) -> Result<String> {
        let end = Instant::now() + limit;
        let linger = limit.as_secs().to_string();
        let mut child = self.command(&["vm", "console", guest, "--linger", &linger])?.spawn()?;
        drop(child.stdin.take());
        let (mut shown, mut is_there) = (String::new(), false);
        for line in BufReader::new(child.stdout.take().context("piped")?).lines() {
            shown = shown + &line? + "\n";
            is_there = shown.contains(text);
            if is_there || Instant::now() > end {
                break;
            }
        }
        child.kill()?;
        child.wait()?;
        ensure!(is_there, "{guest} did not write {text:?} within {limit:?}: {shown}");
        Ok(shown)
    }

    /// The tool with these arguments, as a process that is still to be started.
    pub fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).current_dir(self.folder.path()).env(PLAYS_TOOL, "1");
        if arguments.first() == Some(&"up") {
            command.args(["--accel", "tcg-single"]);
        }
        command.env("XDG_RUNTIME_DIR", self.folder.path()).env("BATON_IMAGE", self.build.file()?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// The emulator's process id while a host called `name` runs.
    pub fn emulator(&self, name: &str) -> Option<u32> {
        let text = fs::read_to_string(self.folder.path().join("baton").join(name).join("pids")).ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // Whatever a failed test left running.
        let _ = self.run(&["down", "--yes", "--timeout", "0"]);
    }
}

/// Returns whether a process of this number runs (a zombie does not).
pub fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}
