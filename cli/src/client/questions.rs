// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions to a host, page by page.

use anyhow::{Context as _, Result, bail};
use bundle::Manifest;
use wire::{
    ControlKey, CpuInfo, DiskInfo, Event, FileInfo, HostInfo, IommuUnit, LogRecord, NetPort, PciFunction, PciSurvey,
    ReplyBody, RequestBody, TimelinePage, TimelinePlace, VmInfo, Vulnerability,
};

use super::{Client, unexpected};

/// Records asked for at a time.
const PAGE_LIMIT: u16 = 256;
/// Attempts to read a configuration that changes meanwhile.
const TRIES: usize = 5;

/// The data that the host before this one left in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous {
    /// Its epitaph, line by line; empty if it left none.
    pub lines: Vec<String>,
    /// If this image replaced it: the time before which the log's records are the old image's.
    pub log_until_ns: Option<u64>,
}

impl Client {
    /// Returns the host's description.
    pub fn info(&mut self) -> Result<HostInfo> {
        match self.request(RequestBody::Info)? {
            ReplyBody::Info(info) => Ok(info),
            other => bail!(unexpected(&other)),
        }
    }

    /// Returns the host's state for each speculation vulnerability.
    pub fn vulnerabilities(&mut self) -> Result<Vec<Vulnerability>> {
        match self.request(RequestBody::Vulnerabilities)? {
            ReplyBody::Vulnerabilities(rows) => Ok(rows),
            other => bail!(unexpected(&other)),
        }
    }

    /// Returns the keys that open sessions.
    pub fn control_keys(&mut self) -> Result<Vec<ControlKey>> {
        match self.request(RequestBody::ControlKeys)? {
            ReplyBody::ControlKeys(keys) => Ok(keys),
            other => bail!(unexpected(&other)),
        }
    }

    /// Returns a list that comes by pages: `ask` is the request for the page from an index on, `read` takes its items
    /// and the index of the next page out of the reply.
    fn pages<T>(
        &mut self,
        ask: impl Fn(u32) -> RequestBody,
        mut read: impl FnMut(ReplyBody) -> Result<(Vec<T>, Option<u32>)>,
    ) -> Result<Vec<T>> {
        let (mut all, mut from_index) = (Vec::new(), 0);
        loop {
            let (items, next) = read(self.request(ask(from_index))?)?;
            all.extend(items);
            match next {
                Some(next) if next > from_index => from_index = next,
                _ => return Ok(all),
            }
        }
    }

    /// Returns every virtual machine.
    pub fn vms(&mut self) -> Result<Vec<VmInfo>> {
        self.pages(
            |from_index| RequestBody::VmList { from_index },
            |reply| match reply {
                ReplyBody::Vms { vms, next_index } => Ok((vms, next_index)),
                other => bail!(unexpected(&other)),
            },
        )
    }

    /// Returns every CPU.
    pub fn cpus(&mut self) -> Result<Vec<CpuInfo>> {
        self.pages(
            |from_index| RequestBody::CpuList { from_index },
            |reply| match reply {
                ReplyBody::Cpus { cpus, next_index } => Ok((cpus, next_index)),
                other => bail!(unexpected(&other)),
            },
        )
    }

    /// Returns every PCI function that the host has found so far, and the progress of its discovery.
    pub fn pci(&mut self) -> Result<(PciSurvey, Vec<PciFunction>)> {
        let mut last = None;
        let functions = self.pages(
            |from_index| RequestBody::PciList { from_index },
            |reply| match reply {
                ReplyBody::PciFunctions { survey, functions, next_index } => {
                    last = Some(survey);
                    Ok((functions, next_index))
                }
                other => bail!(unexpected(&other)),
            },
        )?;
        Ok((last.context("the host has sent no survey")?, functions))
    }

    /// Returns every port of the networks between guests.
    pub fn net_ports(&mut self) -> Result<Vec<NetPort>> {
        self.pages(
            |from_index| RequestBody::NetList { from_index },
            |reply| match reply {
                ReplyBody::NetPorts { ports, next_index } => Ok((ports, next_index)),
                other => bail!(unexpected(&other)),
            },
        )
    }

    /// Returns every disk behind a server in another guest.
    pub fn disks(&mut self) -> Result<Vec<DiskInfo>> {
        self.pages(
            |from_index| RequestBody::DiskList { from_index },
            |reply| match reply {
                ReplyBody::Disks { disks, next_index } => Ok((disks, next_index)),
                other => bail!(unexpected(&other)),
            },
        )
    }

    /// Returns the host's configuration.
    pub fn config(&mut self) -> Result<Manifest> {
        for _ in 0..TRIES {
            if let Ok(manifest) = Manifest::from_content(&self.config_content()?) {
                return Ok(manifest);
            }
        }
        bail!("the host's configuration changes while it is read, or this tool is too old for it")
    }

    fn config_content(&mut self) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        loop {
            let from_byte = u32::try_from(content.len()).context("the configuration is too long")?;
            match self.request(RequestBody::Config { from_byte })? {
                ReplyBody::Config { bytes, total_bytes } => {
                    let is_last = bytes.is_empty() || content.len() + bytes.len() >= total_bytes as usize;
                    content.extend(bytes);
                    if is_last {
                        return Ok(content);
                    }
                }
                other => bail!(unexpected(&other)),
            }
        }
    }

    /// Returns the files from which the host's guests start.
    pub fn files(&mut self) -> Result<Vec<FileInfo>> {
        self.pages(
            |from_index| RequestBody::FileList { from_index },
            |reply| match reply {
                ReplyBody::Files { files, next_index } => Ok((files, next_index)),
                other => bail!(unexpected(&other)),
            },
        )
    }

    /// Returns the host's IOMMUs.
    pub fn iommus(&mut self) -> Result<Vec<IommuUnit>> {
        match self.request(RequestBody::Iommus)? {
            ReplyBody::Iommus(units) => Ok(units),
            other => bail!(unexpected(&other)),
        }
    }

    /// Returns a page of the log from a place on (0: the oldest record), and the place where the next page begins.
    pub fn log(&mut self, from_sequence: u64) -> Result<(Vec<LogRecord<'static>>, u64)> {
        match self.request(RequestBody::Log { from_sequence, limit: PAGE_LIMIT })? {
            ReplyBody::Log { records, next_sequence } => Ok((records, next_sequence)),
            other => bail!(unexpected(&other)),
        }
    }

    /// Returns a page of the events, and the place where the next page begins.
    pub fn events(&mut self, from_sequence: u64) -> Result<(Vec<Event>, u64)> {
        match self.request(RequestBody::Events { from_sequence, limit: PAGE_LIMIT })? {
            ReplyBody::Events { events, next_sequence } => Ok((events, next_sequence)),
            other => bail!(unexpected(&other)),
        }
    }

    /// Returns the data that the host before this one left in memory.
    pub fn previous(&mut self) -> Result<Previous> {
        let mut lines = Vec::new();
        let mut from_line = 0;
        loop {
            match self.request(RequestBody::Epitaph { from_line })? {
                ReplyBody::Epitaph { lines: page, next_line, log_until_ns } => {
                    lines.extend(page);
                    match next_line {
                        Some(next) if next > from_line => from_line = next,
                        _ => return Ok(Previous { lines, log_until_ns }),
                    }
                }
                other => bail!(unexpected(&other)),
            }
        }
    }

    /// Returns every CPU's timeline, as it is now, in pages.
    pub fn timeline(&mut self) -> Result<Vec<TimelinePage>> {
        let (mut all, mut from) = (Vec::new(), TimelinePlace::default());
        loop {
            match self.request(RequestBody::Timeline { from })? {
                ReplyBody::Timeline(page) => {
                    let next = page.next;
                    all.push(page);
                    match next {
                        Some(next) if next > from => from = next,
                        _ => return Ok(all),
                    }
                }
                other => bail!(unexpected(&other)),
            }
        }
    }
}
