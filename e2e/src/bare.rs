// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host without the broker: its control channel as QEMU hands it out, for those that speak no protocol.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use baton::client::Client;
use lab::Process;
use tempfile::TempDir;
use wire::{HostInfo, Refusal, RefusalCode, RequestBody, Subscription, VmInfo};

use crate::recipe::Recipe;

/// Longest time for QEMU to connect, and for the host to boot.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Longest time for the host to answer once it is up.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// A running host and the only end of its control channel.
pub struct BareHost {
    socket: UnixStream,
    client: Client,
    _process: Process,
    _folder: TempDir,
}

impl BareHost {
    /// Starts a host, and waits until it answers.
    pub fn start(recipe: &Recipe) -> Result<Self> {
        Self::start_as(recipe, |command| command)
    }

    /// The same on a machine that has no COM1.
    pub fn start_without_com1(recipe: &Recipe) -> Result<Self> {
        Self::start_as(recipe, |command| {
            let mut changed = Command::new(command.get_program());
            changed.args(
                command.get_args().map(|argument| if argument == "chardev:log" { "none".as_ref() } else { argument }),
            );
            changed
        })
    }

    fn start_as(recipe: &Recipe, change: impl FnOnce(Command) -> Command) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("com2");
        let listener = UnixListener::bind(&path)?;
        let machine = recipe.machine(folder.path(), Some(&recipe.bundle()?))?;
        let process = Process::spawn_emulator(change(machine.command(&path)?), |_| ())?;
        let socket = accept(&listener)?;
        let client = Client::over(socket.try_clone()?);
        let mut host = Self { socket, client, _process: process, _folder: folder };
        host.wait_for_answer()?;
        Ok(host)
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.socket.write_all(bytes)?)
    }

    /// The connection to the host.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Asks a good question.
    pub fn info(&mut self) -> Result<HostInfo> {
        self.client.info()
    }

    /// Asks for what is sent unasked.
    pub fn subscribe(&mut self, wanted: Subscription) -> Result<()> {
        self.client.subscribe(wanted)
    }

    /// The first guest.
    pub fn first_vm(&mut self) -> Result<VmInfo> {
        let vms = self.client.vms()?;
        vms.into_iter().next().ok_or_else(|| anyhow::anyhow!("there are no guests"))
    }

    /// Sends what is no request; returns the host's reason for refusing it.
    ///
    /// The refusal answers no request (its number is 0), so it is what the next question comes back with.
    pub fn refusal_of(&mut self, bytes: &[u8]) -> Result<Refusal> {
        self.send(bytes)?;
        self.client.send(RequestBody::Info)?;
        match self.client.answer(ANSWER_LIMIT)?.result {
            Ok(_) => bail!("what is no request was not refused"),
            Err(refusal) => {
                ensure!(refusal.code == RefusalCode::Protocol, "refused for another reason: {refusal}");
                Ok(refusal)
            }
        }
    }

    /// Sends all that the host sends back to it for so long, beginning with garbage; returns the number of its frames.
    pub fn echo(&mut self, time: Duration) -> Result<usize> {
        let (end, mut frames, mut bytes) = (Instant::now() + time, 0, [0; 4096]);
        self.send(b"garbage\0")?;
        while Instant::now() < end {
            self.socket.set_read_timeout(Some(Duration::from_millis(50)))?;
            let Ok(count) = self.socket.read(&mut bytes) else { continue };
            frames += bytes[..count].iter().filter(|&&byte| byte == 0).count();
            self.send(&bytes[..count])?;
        }
        self.socket.set_read_timeout(None)?;
        Ok(frames)
    }

    /// Drops answers that are still on their way, until the host answers a question of now.
    pub fn drain_answers(&mut self) -> Result<()> {
        let end = Instant::now() + ANSWER_LIMIT;
        while Instant::now() < end {
            if self.client.request_within(ANSWER_LIMIT, RequestBody::Info).is_ok() {
                return Ok(());
            }
        }
        bail!("the host refuses good questions as well")
    }

    /// Asks until the host answers: bytes that are sent before it has set its port up are lost.
    fn wait_for_answer(&mut self) -> Result<()> {
        let end = Instant::now() + START_LIMIT;
        while Instant::now() < end {
            self.send(&[0])?;
            if self.client.request_within(Duration::from_millis(500), RequestBody::Info).is_ok() {
                return Ok(());
            }
        }
        bail!("the host did not answer within {START_LIMIT:?}")
    }
}

fn accept(listener: &UnixListener) -> Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let end = Instant::now() + START_LIMIT;
    loop {
        match listener.accept() {
            Ok((socket, _)) => return Ok(socket),
            Err(_) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error.into()),
        }
    }
}
