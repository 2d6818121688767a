// SPDX-License-Identifier: MIT OR Apache-2.0
//! The key `vsock` of guests: their identifiers, and which of them may connect to which.

use bundle::{ControlRights, ControlRole, GuestConfig, GuestControl, Manifest, VsockConfig, limits};
use serde::Deserialize;
use toml::de::{DeTable, DeValue};

use super::read::{Section, choice, list, number, text};
use crate::suggest::did_you_mean;

/// The sockets of the guests, in the file's order.
#[derive(Default)]
pub(super) struct Sockets {
    guests: Vec<(String, Option<Wanted>)>,
    /// The guests of the host beside them, with their identifiers.
    others: Vec<(String, Option<u32>)>,
}

/// The sockets that a guest wants.
struct Wanted {
    at: usize,
    cid: Option<u32>,
    peers: Vec<String>,
    control: Option<GuestControl>,
}

/// A right that no role includes.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Right {
    /// Typing into guests' consoles.
    Console,
    /// Reading guests' memory and registers.
    Dump,
    /// Assigning PCI functions.
    Devices,
}

impl Sockets {
    /// Sockets beside those of a host's guests.
    pub fn beside(host: &Manifest) -> Self {
        let cid = |guest: &GuestConfig| guest.vsock.as_ref().map(|vsock| vsock.cid);
        let others = host.guests.iter().map(|guest| (guest.name.clone(), cid(guest))).collect();
        Self { guests: Vec::new(), others }
    }

    /// Reads the sockets that the next guest wants.
    pub fn note(&mut self, section: &mut Section<'_, '_>, owner: &str) {
        let wanted = section.placed("vsock", keys);
        let wanted = wanted.and_then(|(keys, at)| keys.map(|keys| wanted_by(section.item(keys, at), at)));
        self.guests.push((owner.to_owned(), wanted));
    }

    /// Returns the sockets of each guest. One that names no identifier gets the lowest that is free.
    pub fn assign(&self, root: &Section<'_, '_>) -> Vec<Option<VsockConfig>> {
        let mut cids = Vec::new();
        let is_others = |cid: u32| self.others.iter().any(|(_, other)| *other == Some(cid));
        for (owner, wanted) in &self.guests {
            let cid = wanted.as_ref().and_then(|wanted| wanted.cid);
            let is_taken = |cid: &u32| cids.contains(&Some(*cid)) || is_others(*cid);
            if let (Some(cid), Some(wanted)) = (cid.filter(is_taken), wanted) {
                let message =
                    format_args!("guest {owner:?}: vsock: another guest has the cid {cid}; change one of them");
                root.complain(Some(wanted.at), message);
            }
            cids.push(cid);
        }
        for number in 0..cids.len() {
            if self.guests[number].1.is_some() && cids[number].is_none() {
                cids[number] = limits::CIDS.clone().find(|cid| !cids.contains(&Some(*cid)) && !is_others(*cid));
            }
        }
        let config = |(number, (owner, wanted)): (usize, &(String, Option<Wanted>))| {
            let wanted = wanted.as_ref()?;
            let peers = wanted.peers.iter().filter_map(|peer| self.peer(root, (owner, wanted.at), peer, &cids));
            Some(VsockConfig { cid: cids[number]?, peers: peers.collect(), control: wanted.control })
        };
        self.guests.iter().enumerate().map(config).collect()
    }

    /// Returns all guests with their identifiers, once those are assigned: the file's, then the host's.
    pub fn all<'a>(&'a self, configs: &'a [Option<VsockConfig>]) -> impl Iterator<Item = (&'a str, Option<u32>)> {
        self.with(configs.iter().map(|config| config.as_ref().map(|config| config.cid)))
    }

    /// The same with the identifiers of the file's guests.
    fn with<'a>(
        &'a self,
        cids: impl Iterator<Item = Option<u32>> + 'a,
    ) -> impl Iterator<Item = (&'a str, Option<u32>)> {
        let own = self.guests.iter().map(|(owner, _)| owner.as_str()).zip(cids);
        own.chain(self.others.iter().map(|(owner, cid)| (owner.as_str(), *cid)))
    }

    /// Returns the identifier of a guest that another one names.
    fn peer(
        &self,
        root: &Section<'_, '_>,
        (owner, at): (&str, usize),
        name: &str,
        cids: &[Option<u32>],
    ) -> Option<u32> {
        let complain = |message: String| {
            root.complain(Some(root.place_of(name, at)), format_args!("guest {owner:?}: vsock: peers: {message}"));
        };
        let all = || self.with(cids.iter().copied());
        let Some((_, cid)) = all().find(|(other, _)| *other == name) else {
            let suggestion = did_you_mean(name, all().map(|(name, _)| name));
            let hint = if suggestion.is_empty() { "; add a [[guest]] with this name" } else { suggestion.as_str() };
            complain(format!("there is no guest {name:?}{hint}"));
            return None;
        };
        if name == owner {
            complain("a guest reaches itself without the host; remove its own name".to_owned());
            return None;
        }
        if cid.is_none() {
            complain(format!("the guest {name:?} has no sockets; add `vsock = true` to it"));
        }
        cid
    }
}

/// Returns the keys of a guest's sockets; `None` where it has none.
fn keys<'i>(value: &DeValue<'i>) -> Result<Option<DeTable<'i>>, String> {
    match value {
        DeValue::Boolean(is_wanted) => Ok(is_wanted.then(DeTable::new)),
        DeValue::Table(table) => Ok(Some(table.clone())),
        _ => Err("is neither true nor a table; write true or { peers = [\"…\"] }".to_owned()),
    }
}

/// Returns the requests that a guest may send to the host.
fn control(keys: &mut Section<'_, '_>) -> Option<GuestControl> {
    let role = keys.placed("control", choice::<ControlRole>);
    let words = keys.placed("rights", list(choice::<Right>));
    if let (None, Some((_, at))) = (&role, &words) {
        keys.complain(Some(*at), "rights without a role do nothing; write control = \"read\" beside them");
    }
    let (role, at) = role?;
    if role == ControlRole::Revoked {
        keys.complain(Some(at), "no guest is revoked; leave control out");
    }
    let words = words.map(|(words, _)| words).unwrap_or_default();
    let has = |right| words.contains(&right);
    let rights = ControlRights { console: has(Right::Console), dump: has(Right::Dump), devices: has(Right::Devices) };
    Some(GuestControl { role, rights })
}

fn wanted_by(mut keys: Section<'_, '_>, at: usize) -> Wanted {
    let cid = keys.optional("cid", number(limits::CIDS.clone()));
    let mut peers = keys.optional("peers", list(text)).unwrap_or_default();
    peers.sort_unstable();
    peers.dedup();
    let control = control(&mut keys);
    keys.finish();
    Wanted { at, cid, peers, control }
}
