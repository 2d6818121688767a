// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration, the files and the keys of a host that answers as a real one does.

use std::fs;
use std::path::Path;

use baton::bundle::addition;
use baton::config::Config;
use wire::{
    CapturePage, CapturedFrame, ControlKey, FileInfo, LogRecord, ProfilePage, Refusal, RefusalCode, ReplyBody,
    RequestBody, RestartReport, Role, UploadKind, Verify, VmState,
};

use super::fake::State;

/// The bytes of a page of the configuration.
const PAGE: usize = 100;

/// The configuration, files and keys of a host.
pub struct Own {
    /// A manifest.
    pub config: Vec<u8>,
    pub files: Vec<FileInfo>,
    pub keys: Vec<ControlKey>,
    /// Orders that change nothing here, in their order.
    pub orders: Vec<RequestBody>,
    /// True if guests shut down when their power button is pressed.
    pub shuts_down: bool,
}

impl Own {
    /// Returns those of a host with the file `vmlinuz` and the key `alice`.
    pub fn new(folder: &Path) -> Self {
        fs::write(folder.join("vmlinuz"), b"kernel").expect("written");
        let text = "[[network]]\nname='lan'\n[[guest]]\nname='web'\nkernel='vmlinuz'\nmemory='64MiB'\n\
                    [[guest.nic]]\nnetwork='lan'\n";
        let config = Config::parse(&folder.join("host.toml"), text).expect("good");
        let manifest = addition(&config.guests[0], &config.networks).expect("good").0;
        let file = FileInfo { name: "vmlinuz".to_owned(), bytes: 6, is_sent: false, is_needed: true };
        let key = ControlKey { name: "alice".to_owned(), key: [0; 32], role: Some(Role::Update), sessions: 1 };
        Self { config: manifest.to_content(), files: vec![file], keys: vec![key], orders: vec![], shuts_down: true }
    }

    /// Notes a file that is sent: it is there.
    pub fn announce(&mut self, kind: UploadKind, bytes: u64, sha256: &[u8; 32]) {
        let name: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        if kind == UploadKind::File && self.files.iter().all(|file| file.name != name) {
            self.files.push(FileInfo { name, bytes, is_sent: true, is_needed: false });
        }
    }
}

impl State {
    /// Carries out the requests for configuration, files, keys and counters, and those that change nothing here.
    pub fn configured(&mut self, body: RequestBody) -> Result<ReplyBody, Refusal> {
        Ok(match body {
            RequestBody::Config { from_byte } => {
                let (rest, total) = (&self.own.config[from_byte as usize..], self.own.config.len());
                let bytes = rest[..rest.len().min(PAGE)].to_vec();
                ReplyBody::Config { bytes, total_bytes: total as u32 }
            }
            RequestBody::FileList { .. } => ReplyBody::Files { files: self.own.files.clone(), next_index: None },
            RequestBody::ControlKeys => ReplyBody::ControlKeys(self.own.keys.clone()),
            RequestBody::Epitaph { .. } => {
                ReplyBody::Epitaph { lines: vec!["panic".to_owned()], next_line: None, log_until_ns: Some(8) }
            }
            RequestBody::ProfileBegin { .. } | RequestBody::ProfileRead { .. } => {
                ReplyBody::Profile(self.profile(body))
            }
            RequestBody::CaptureBegin { .. } | RequestBody::CaptureRead { .. } => {
                ReplyBody::Capture(self.capture(body))
            }
            RequestBody::FileRemove { ref name } => self.remove(&name.clone(), body)?,
            RequestBody::VmSet { ref name, .. } | RequestBody::VmDelete { ref name } => {
                self.note(&name.clone(), body)?
            }
            RequestBody::VmShutdown { ref name } => {
                let name = name.clone();
                self.note(&name, body)?;
                if self.own.shuts_down { self.set(&name, VmState::Running, VmState::Stopped)? } else { ReplyBody::Done }
            }
            RequestBody::UpdateUnlessConfirmed { is_dry_run, .. } => {
                self.own.orders.push(body);
                self.update(is_dry_run)?
            }
            RequestBody::Restart | RequestBody::RestartUploaded => {
                self.received = 0;
                self.info.generation += 1;
                self.own.orders.push(body);
                ReplyBody::Restarted(report(self.info.generation))
            }
            other => {
                self.own.orders.push(other);
                ReplyBody::Done
            }
        })
    }

    /// Returns a sample of an idle CPU at first, then two of the first guest, and no more.
    fn profile(&mut self, body: RequestBody) -> ProfilePage {
        let is_second = matches!(self.own.orders.last(), Some(RequestBody::ProfileBegin { .. }));
        let samples = match body {
            RequestBody::ProfileBegin { .. } => vec![0],
            _ if is_second => vec![1, 1],
            _ => vec![],
        };
        self.own.orders.push(body);
        ProfilePage { samples, ..ProfilePage::default() }
    }

    /// Returns no frame at first, then two, and no more.
    fn capture(&mut self, body: RequestBody) -> CapturePage {
        let is_second = matches!(self.own.orders.last(), Some(RequestBody::CaptureBegin { .. }));
        self.own.orders.push(body);
        let frame = CapturedFrame { time_ns: 5, sender: "web".to_owned(), bytes: 60, content: vec![7; 60] };
        CapturePage { seen: 2, lost: 0, frames: if is_second { vec![frame.clone(), frame] } else { vec![] } }
    }

    fn note(&mut self, name: &str, body: RequestBody) -> Result<ReplyBody, Refusal> {
        if self.guests.iter().all(|guest| guest.name != name) {
            return Err(refusal(RefusalCode::UnknownVm, format!("there is no machine {name}")));
        }
        self.own.orders.push(body);
        Ok(ReplyBody::Done)
    }

    fn remove(&mut self, name: &str, body: RequestBody) -> Result<ReplyBody, Refusal> {
        let Some(at) = self.own.files.iter().position(|file| file.name == name && file.is_sent) else {
            return Err(refusal(RefusalCode::Invalid, format!("{name} is not a file that was sent")));
        };
        self.own.files.remove(at);
        self.own.orders.push(body);
        Ok(ReplyBody::Done)
    }

    /// Adds a record to the log.
    pub fn log(&mut self, time_ns: u64, text: &'static str) {
        let first = self.log[0].clone();
        let sequence = self.log.len() as u64;
        self.log.push(LogRecord { sequence, time_ns, text: text.into(), ..first });
    }
}

fn refusal(code: RefusalCode, reason: String) -> Refusal {
    Refusal { code, reason, hint: "`baton vm list` shows those there are".to_owned() }
}

fn report(generation: u64) -> RestartReport {
    RestartReport {
        generation,
        old_version: "0.1.0".to_owned(),
        new_version: "0.2.0".to_owned(),
        host_blackout_ns: 3_250_000,
        machine_blackout_ns: None,
        cpus: 1,
        cpus_lost: 0,
        verify: Verify::Sha256,
        bytes_hashed_before: 0,
        hashing_before_ns: 0,
        bytes_hashed_in_blackout: 0,
        hashing_in_blackout_ns: 0,
        old_build: String::new(),
        new_build: String::new(),
        signer: None,
    }
}
