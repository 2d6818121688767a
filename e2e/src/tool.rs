// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tool as a program. The test program plays it: started with [`PLAYS_TOOL`] set it is `baton`, so that what is tested
//! is what these sources say and not what was built before.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use tempfile::TempDir;

use crate::place::built;

/// The variable that makes the test program the tool.
const PLAYS_TOOL: &str = "BATON_E2E_PLAYS_TOOL";

/// Runs as the tool, if that is wanted.
pub fn play() -> Option<ExitCode> {
    std::env::var_os(PLAYS_TOOL)?;
    Some(match baton::commands::run(baton::args::Cli::parse()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("baton: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// An operator with a folder and running hosts of their own.
pub struct Operator {
    folder: TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub struct Said {
    /// Its exit status.
    pub status: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { status: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Said {
    /// The command's output, where it ended well.
    pub fn well(self) -> Result<String> {
        ensure!(self.status == Some(0), "the tool ended with {self:?}");
        Ok(self.out)
    }
}

impl Operator {
    /// An operator with a `host.toml`: one Linux guest, `debian`, whose agent does `tasks`.
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
        Ok(Self { folder })
    }

    /// The operator's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the tool to its end.
    pub fn says(&self, arguments: &[&str]) -> Result<Said> {
        self.types("", arguments)
    }

    /// The same with `input` typed.
    pub fn types(&self, input: &str, arguments: &[&str]) -> Result<Said> {
        let mut child = self.command(arguments)?.spawn()?;
        let mut stdin = child.stdin.take().context("piped")?;
        stdin.write_all(input.as_bytes())?;
        drop(stdin);
        Ok(child.wait_with_output()?.into())
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).current_dir(self.folder.path()).env(PLAYS_TOOL, "1");
        command.env("XDG_RUNTIME_DIR", self.folder.path()).env("BATON_IMAGE", built("baton.elf")?);
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
        let _ = self.says(&["down", "--timeout", "0"]);
    }
}

/// Whether a process of this number runs (a zombie does not).
pub fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}
