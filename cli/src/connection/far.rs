// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line through another machine: ssh runs `baton relay` there, which copies bytes between its standard streams and
//! the line.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

use super::address::Address;
use super::line::{Keeper, Line};

/// The time limit for the far side to open its line: the operator may have to type a password.
const OPEN_TIMEOUT: Duration = Duration::from_secs(120);
/// Statuses of ssh: the shell there has found no program, ssh itself has failed.
const NO_PROGRAM: i32 = 127;
const NO_CONNECTION: i32 = 255;

/// The ssh process.
struct Ssh {
    child: Child,
    host: String,
}

/// Runs `baton relay` on a machine, and waits until its line is open.
///
/// # Errors
/// ssh cannot be started or fails, or the far side reports that its line cannot be opened.
pub(super) fn open(host: &str, port: Option<u16>, from_there: Option<&Address>, baud: u32) -> Result<Line> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new("ssh");
    command.arg("-T").args(port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
    command.arg("--").arg(host).arg(far_command(from_there));
    command.stdin(OwnedFd::from(theirs.try_clone()?)).stdout(OwnedFd::from(theirs)).stderr(Stdio::inherit());
    let child = command.spawn().context("ssh cannot be started; install it (Debian: openssh-client)")?;
    // The command has a copy of the other end, which would keep the line open after ssh's end.
    drop(command);
    ours.set_nonblocking(true)?;
    let line = Line::over(ours).with_baud(baud).kept_by(Ssh { child, host: host.to_owned() });
    wait_for_first_byte(line, host)
}

/// Returns the command as a shell there reads it.
fn far_command(from_there: Option<&Address>) -> String {
    let quoted = |address: &Address| format!("'{}'", address.to_string().replace('\'', r"'\''"));
    from_there.map_or("baton relay".to_owned(), |address| format!("baton relay --connect {}", quoted(address)))
}

/// Waits for the delimiter that the relay sends once its line is open.
fn wait_for_first_byte(mut line: Line, host: &str) -> Result<Line> {
    let deadline = Instant::now() + OPEN_TIMEOUT;
    while Instant::now() < deadline {
        if !line.wait(false, deadline)?.to_read {
            continue;
        }
        match line.read(&mut [0])? {
            Some(0) => {}
            Some(_) => return Ok(line),
            None => {
                let reason = line.ending().unwrap_or_else(|| "it has ended".to_owned());
                return Err(anyhow!("{host} opens no line to a host: {reason}"));
            }
        }
    }
    bail!("{host} did not open a line within {} s; try `ssh {host} baton info`", OPEN_TIMEOUT.as_secs())
}

impl Keeper for Ssh {
    fn ending(&mut self) -> Option<String> {
        let status = self.child.wait().ok()?;
        Some(match status.code() {
            Some(NO_PROGRAM) => format!("there is no `baton` in the path of {}; install it there", self.host),
            Some(NO_CONNECTION) => format!("ssh could not connect; try `ssh {}`", self.host),
            Some(code) => format!("`baton relay` there ended with status {code}; its message is above"),
            None => format!("ssh was ended ({status})"),
        })
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_far_address_as_one_word() {
        let address: Address = "unix:/tmp/it's $(here)".parse().expect("an address");
        assert_eq!(far_command(Some(&address)), r"baton relay --connect 'unix:/tmp/it'\''s $(here)'");
        assert_eq!(far_command(None), "baton relay");
    }
}
