// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients and their roles: the permissions of a Unix socket's file decide which clients may connect, TLS clients have
//! the role of their certificate's name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
pub use wire::Role;

#[cfg(test)]
mod tests;

/// The client of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name in the audit log: the certificate's, or the user's number.
    pub who: String,
    /// Its role; `None` if its certificate has none.
    pub role: Option<Role>,
    /// The way by which it came.
    pub over: Over,
}

/// The way by which a client came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// A Unix socket.
    Unix,
    /// TCP on a loopback address, without TLS.
    Loopback,
    /// TLS.
    Tls,
}

/// The file that `--access` names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Access {
    /// The service's certificates (PEM), its own first.
    pub certificate: PathBuf,
    /// The key of the first one (PEM).
    pub key: PathBuf,
    /// Certificates (PEM) of the authorities that sign clients' certificates.
    pub authority: PathBuf,
    /// The role of each name (subjectAltName, DNS).
    #[serde(default)]
    pub roles: BTreeMap<String, Role>,
}

impl Access {
    /// Reads the file. Its paths are relative to its folder.
    ///
    /// # Errors
    /// It cannot be read, or has a key or a role that there is not.
    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let mut access: Self = toml::from_str(&text).with_context(|| path.display().to_string())?;
        ensure!(
            !access.roles.is_empty(),
            "{}: no client has a role; add [roles] with a line NAME = \"read\", \"operate\" or \"update\"",
            path.display()
        );
        let folder = path.parent().unwrap_or(Path::new("."));
        for file in [&mut access.certificate, &mut access.key, &mut access.authority] {
            *file = folder.join(&*file);
        }
        Ok(access)
    }

    /// Returns the client of a certificate with these names: the name with the greatest role counts.
    pub fn peer<'n>(&self, names: impl Iterator<Item = &'n str>) -> Peer {
        let mut first = None;
        let mut best: Option<(Role, &str)> = None;
        for name in names {
            first = first.or(Some(name));
            let role = self.roles.get(name).copied();
            best = best.max(role.map(|role| (role, name)));
        }
        let who = best.map(|(_, name)| name).or(first).unwrap_or("a certificate without a name");
        Peer { who: who.to_owned(), role: best.map(|(role, _)| role), over: Over::Tls }
    }
}

/// A request's headers that a browser sets and a page cannot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender<'r> {
    /// `Host`.
    pub host: Option<&'r str>,
    /// `Origin`.
    pub origin: Option<&'r str>,
    /// `Sec-Fetch-Site`.
    pub site: Option<&'r str>,
}

/// Refuses a request that a page of another site has a browser send. `is_order`: it changes something.
///
/// # Errors
/// The reason, with a hint.
pub fn check_sender(over: Over, is_order: bool, sender: Sender<'_>) -> Result<(), String> {
    let host = sender.host.unwrap_or_default();
    // A name that another site has pointed at this machine (DNS rebinding).
    if over != Over::Tls && !is_local(host) {
        return Err(format!("the request is for {host:?}; use localhost as the host's name"));
    }
    let is_foreign = sender.site.is_some_and(|site| !matches!(site, "same-origin" | "none"))
        || sender.origin.is_some_and(|origin| origin.split_once("://").is_none_or(|(_, place)| place != host));
    match is_order && is_foreign {
        true => Err("the request comes from a page of another site; send it from this service's page".to_owned()),
        false => Ok(()),
    }
}

/// Returns whether a `Host` header names this machine: `baton` is for clients of the Unix socket.
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name, "localhost" | "127.0.0.1" | "[::1]" | "baton")
}
