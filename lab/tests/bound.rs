// SPDX-License-Identifier: MIT OR Apache-2.0
//! An emulator ends with the process that started it, even by SIGKILL. This program plays the test, the process that is
//! killed, and what stands between that and the emulator, so it has a main of its own.

use std::env;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lab::{Process, bound};

/// The variable that makes this program the one that is killed.
const IS_KILLED: &str = "BATON_TEST_IS_KILLED";
const LIMIT: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    if let Some(status) = bound::play() {
        return status;
    }
    match env::var_os(IS_KILLED) {
        Some(_) => start_and_wait(),
        None => an_emulator_ends_with_a_process_that_is_killed(),
    }
    ExitCode::SUCCESS
}

/// Starts what stands for an emulator, prints its process id, and waits.
fn start_and_wait() {
    let mut emulator = Command::new("sleep");
    emulator.arg("1000");
    let mut emulator = Process::spawn_emulator(emulator, |_| ()).expect("started");
    println!("{}", emulator.pid());
    emulator.wait();
}

fn an_emulator_ends_with_a_process_that_is_killed() {
    let mut command = Command::new(env::current_exe().expect("this program"));
    let mut killed = command.env(IS_KILLED, "1").stdout(Stdio::piped()).spawn().expect("started");
    let emulator = first_line(killed.stdout.take().expect("piped")).expect("the emulator's process id");
    until("the emulator runs", || name_of(&emulator).as_deref() == Some("sleep"));
    killed.kill().expect("killed");
    killed.wait().expect("ended");
    until("the emulator has ended", || name_of(&emulator).is_none());
}

fn first_line(out: impl io::Read) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// The program that a process runs; none of one that has ended, waited for or not.
fn name_of(process: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (name, state) = stat.split_once(" (")?.1.rsplit_once(") ")?;
    (!state.starts_with('Z')).then(|| name.to_owned())
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "within {LIMIT:?} it did not come to this: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
