// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of a host's configuration while the host runs: whether one is possible, and the configuration after it.

use alloc::string::String;
use alloc::vec::Vec;
use core::{fmt, mem};

use crate::error::Problem;
use crate::guest::{GuestConfig, OnPanic};
use crate::manifest::Manifest;
use crate::read::{check, decode_manifest};
use crate::write::encode_manifest;

/// Settings of a guest that change while the host runs. What is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// [`GuestConfig::weight`].
    pub weight: Option<u32>,
    /// [`GuestConfig::on_panic`].
    pub on_panic: Option<OnPanic>,
    /// [`GuestConfig::autostart`].
    pub autostart: Option<bool>,
    /// [`GuestConfig::vcpus`]; while the guest does not run.
    pub vcpus: Option<u32>,
    /// [`GuestConfig::memory_bytes`], or [`GuestConfig::assured_bytes`] of a guest with memory on demand; while the
    /// guest does not run.
    pub memory_bytes: Option<u64>,
    /// [`GuestConfig::cap_percent`].
    pub cap_percent: Option<u32>,
    /// The memory that the guest sees, of which it is assured as much as now; as much as that: it has all of it at its
    /// start. While the guest does not run.
    pub memory_max_bytes: Option<u64>,
}

/// The reason why a configuration cannot be changed so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Nothing is to be changed.
    Nothing,
    /// It can be changed only while the guest does not run.
    Runs(&'static str),
    /// The new guest's description is not one guest.
    NotOne,
    /// A guest that is added to a running host cannot have this.
    Unsupported(&'static str),
    /// The configuration would name a file that the host does not have.
    NoFile(String),
    /// It would have a device on a network that the host does not have.
    NoNetwork(String),
    /// The configuration would not be possible.
    Problem(Problem),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("no setting is named"),
            Self::Runs(what) => write!(f, "{what} changes only while the guest does not run"),
            Self::NotOne => f.write_str("the description is not one guest"),
            Self::Unsupported(what) => write!(f, "a guest that is added to a running host has no {what}"),
            Self::NoFile(name) => write!(f, "the host has no file {name}"),
            Self::NoNetwork(name) => write!(f, "the host has no network {name:?}"),
            Self::Problem(problem) => problem.fmt(f),
        }
    }
}

impl Settings {
    /// Returns the configuration with these settings.
    ///
    /// # Errors
    /// A setting that is not possible, or not while the guest runs.
    pub fn apply(&self, to: &GuestConfig, runs: bool) -> Result<GuestConfig, Refused> {
        let Self { weight, on_panic, autostart, vcpus, memory_bytes, cap_percent, memory_max_bytes } = *self;
        if *self == Self::default() {
            return Err(Refused::Nothing);
        }
        let memory = memory_bytes.or(memory_max_bytes);
        let at_start = [(vcpus.is_some(), "the number of vCPUs"), (memory.is_some(), "the size of memory")];
        if let Some((_, what)) = at_start.into_iter().find(|(is_named, _)| runs && *is_named) {
            return Err(Refused::Runs(what));
        }
        let mut config = to.clone();
        config.weight = weight.unwrap_or(to.weight);
        config.on_panic = on_panic.unwrap_or(to.on_panic);
        config.autostart = autostart.unwrap_or(to.autostart);
        config.cap_percent = cap_percent.unwrap_or(to.cap_percent);
        config.vcpus = vcpus.unwrap_or(to.vcpus);
        let assured_bytes = memory_bytes.or(to.assured_bytes).unwrap_or(to.memory_bytes);
        let seen_bytes = memory_max_bytes.or(to.assured_bytes.map(|_| to.memory_bytes)).unwrap_or(assured_bytes);
        config.memory_bytes = seen_bytes;
        config.assured_bytes = (assured_bytes != seen_bytes).then_some(assured_bytes);
        let bad = |reason| Refused::Problem(Problem::BadGuest { guest: config.name.clone(), reason });
        check::guest(&config).map_err(bad)?;
        Ok(config)
    }
}

impl Manifest {
    /// Returns its content as the archive's first entry has it.
    pub fn to_content(&self) -> Vec<u8> {
        encode_manifest(self)
    }

    /// Reads the content of an archive's first entry.
    ///
    /// # Errors
    /// It is damaged, or states what is not possible.
    pub fn from_content(content: &[u8]) -> Result<Self, Problem> {
        let manifest = decode_manifest(content)?;
        check::manifest(&manifest)?;
        Ok(manifest)
    }

    /// Reads the description of a guest for [`add`](Self::add). What it needs of other guests is checked there.
    ///
    /// # Errors
    /// It is damaged, or a guest in it states what is not possible.
    pub fn addition_from_content(content: &[u8]) -> Result<Self, Problem> {
        let addition = decode_manifest(content)?;
        for guest in &addition.guests {
            check::guest(guest).map_err(|reason| Problem::BadGuest { guest: guest.name.clone(), reason })?;
        }
        Ok(addition)
    }

    /// Adds the one guest that `addition` describes; its files are among this manifest's, and its devices on networks
    /// of this manifest's with the names that `addition` gives them. Returns the guest.
    ///
    /// # Errors
    /// Why that is not possible. Nothing has changed.
    pub fn add(&mut self, addition: Self) -> Result<GuestConfig, Refused> {
        let named = addition.host.networks;
        let [mut guest] = <[GuestConfig; 1]>::try_from(addition.guests).map_err(|_| Refused::NotOne)?;
        let unsupported = [
            (!guest.functions.is_empty(), "PCI functions; assign them with `baton pci assign`"),
            (guest.control().is_some(), "control of the host: give it to a guest that starts with the host"),
        ];
        if let Some((_, what)) = unsupported.into_iter().find(|(has, _)| *has) {
            return Err(Refused::Unsupported(what));
        }
        let is_there = |name: &&String| self.files.iter().any(|file| file.name == **name);
        if let Some(name) = guest.files().find(|name| !is_there(name)) {
            return Err(Refused::NoFile(name.clone()));
        }
        for nic in &mut guest.nics {
            let name = named.get(nic.network as usize).map(|network| network.name.as_str()).unwrap_or_default();
            let index = self.host.networks.iter().position(|network| network.name == name);
            nic.network = index.ok_or_else(|| Refused::NoNetwork(name.into()))? as u32;
        }
        self.guests.push(guest.clone());
        match check::manifest(self) {
            Ok(()) => Ok(guest),
            Err(problem) => {
                self.guests.pop();
                Err(Refused::Problem(problem))
            }
        }
    }

    /// Removes the guest of this name, if it is there.
    ///
    /// # Errors
    /// Another guest needs it. Nothing has changed.
    pub fn remove(&mut self, name: &str) -> Result<(), Refused> {
        let Some(at) = self.guests.iter().position(|guest| guest.name == name) else { return Ok(()) };
        let removed = self.guests.remove(at);
        check::manifest(self).map_err(|problem| {
            self.guests.insert(at, removed);
            Refused::Problem(problem)
        })
    }

    /// Returns the manifest without the files that no guest needs.
    #[must_use]
    pub fn with_needed_files(mut self) -> Self {
        let mut files = mem::take(&mut self.files);
        files.retain(|file| self.needs(&file.name));
        self.files = files;
        self
    }

    /// Returns whether a guest, or the host itself, needs the file of this name.
    pub fn needs(&self, name: &str) -> bool {
        self.host.image.as_deref() == Some(name)
            || self.guests.iter().flat_map(GuestConfig::files).any(|needed| needed == name)
    }
}

impl GuestConfig {
    /// Returns the files that it names.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        [&self.kernel].into_iter().chain(&self.initrd).chain(&self.modules)
    }
}
