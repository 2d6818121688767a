// SPDX-License-Identifier: MIT OR Apache-2.0
//! An operator with a host.toml, an image and a runtime folder of their own.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::Pid;
use tempfile::TempDir;

use super::emulator::BEHAVIOUR;

pub struct Operator {
    folder: TempDir,
    behaviour: String,
}

/// The result of a command.
pub struct Outcome {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self { status: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Operator {
    /// Returns an operator with a host of this `behaviour`.
    pub fn new(behaviour: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
        write("vmlinuz", "a kernel");
        write("baton.elf", "an image");
        write(
            "host.toml",
            "[host]\nmemory = \"1GiB\"\n\
             [[guest]]\nname = \"debian\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n",
        );
        Self { folder, behaviour: behaviour.to_owned() }
    }

    /// Runs `baton` with arguments in the operator's folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton-dev"));
        command.args(arguments).current_dir(self.folder.path());
        command.env("XDG_RUNTIME_DIR", self.folder.path()).env("BATON_IMAGE", "baton.elf").env_remove("RUST_BACKTRACE");
        command.env(BEHAVIOUR, &self.behaviour);
        command.env("BATON_QEMU", std::env::current_exe().expect("this program"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.command(arguments).output().expect("started").into()
    }

    /// Runs `baton` with `input` on standard input.
    pub fn types(&self, input: &str, arguments: &[&str]) -> Outcome {
        let mut child = self.start(self.command(arguments).stdin(Stdio::piped()));
        child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("written");
        child.wait_with_output().expect("ended").into()
    }

    pub fn start(&self, command: &mut Command) -> Child {
        command.spawn().expect("started")
    }

    /// Returns the socket of the host in the background.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("baton/default/control.sock")
    }

    /// Writes a shell script into a folder of programs, which it returns.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let folder = self.folder.path().join("bin");
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("executable");
        folder
    }

    /// Returns whether there is a file in the operator's folder.
    pub fn has(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }

    /// Returns the output of a host in the background.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("baton/default/up.log")).unwrap_or_default()
    }

    /// Returns the process id of the running host's emulator.
    pub fn emulator(&self) -> Pid {
        let pids = fs::read_to_string(self.folder.path().join("baton/default/pids")).expect("a host runs");
        let emulator = pids.split_whitespace().nth(1).and_then(|pid| pid.parse().ok());
        emulator.and_then(Pid::from_raw).expect("the emulator's number")
    }

    /// Returns the files of hosts in the operator's folders.
    pub fn left_behind(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("baton/default")).expect("a folder");
        let mut names: Vec<_> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // Whatever a failed rule left running.
        let _ = self.command(&["down", "--yes", "--timeout", "0"]).stderr(Stdio::null()).output();
    }
}
