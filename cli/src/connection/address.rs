// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses of hosts, as `--connect` and `BATON_CONNECT` state them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;
use wire::VSOCK_PORT;

use super::Identity;
use crate::suggest::did_you_mean;

/// The rate of a host's COM2 in bits a second.
pub const DEFAULT_BAUD: u32 = 115_200;
/// The CID of all machines ("any"), to which no client can connect.
const ANY_CID: u32 = u32::MAX;
/// The CID of the machine below a guest.
const CID_BELOW: u32 = 2;
const SCHEMES: [&str; 8] = ["lab", "unix", "tty", "tcp", "serve", "https", "vsock", "ssh"];

/// The place where a host is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host that `baton up` started, by its name.
    Lab(String),
    /// A Unix socket: an emulator's serial port, or one that a broker shares.
    Unix(PathBuf),
    /// A serial port of this machine.
    Tty {
        /// The device.
        device: PathBuf,
        /// Bits a second.
        baud: u32,
    },
    /// A TCP port that passes a serial line's bytes.
    Tcp {
        /// Its name or address.
        host: String,
        /// Its port.
        port: u16,
    },
    /// A host of the service (`baton serve`) on this machine.
    Serve {
        /// Its Unix socket.
        path: PathBuf,
        /// The host's name there, unless it is the only one.
        name: Option<String>,
    },
    /// A host of a service (`baton serve`), by TLS.
    Https {
        /// The service's name or address, as its certificate has it.
        host: String,
        /// Its port.
        port: u16,
        /// The host's name there, unless it is the only one.
        name: Option<String>,
        /// The client's certificate; not part of the text.
        identity: Identity,
    },
    /// A port of a virtual machine or of the machine below.
    Vsock {
        /// The machine's context identifier.
        cid: u32,
        /// Its port.
        port: u32,
    },
    /// A machine on which `baton` runs, by ssh.
    Ssh {
        /// `[user@]host`.
        host: String,
        /// Its port, unless ssh's configuration states it.
        port: Option<u16>,
        /// The host's address from there; without one, that machine's default.
        from_there: Option<Box<Address>>,
    },
}

impl Address {
    /// Returns whether this is the machine below the guest in which the client runs: what the client sends is copied
    /// from memory to memory.
    pub fn is_below(&self) -> bool {
        matches!(self, Self::Vsock { cid: CID_BELOW, .. })
    }
}

/// A text that is no address of a host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no address of a host: {reason}")]
pub struct BadAddress {
    text: String,
    reason: String,
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        parse(text).map_err(|reason| BadAddress { text: text.to_owned(), reason })
    }
}

fn parse(text: &str) -> Result<Address, String> {
    let Some((scheme, rest)) = text.split_once(':') else { return Err(without_scheme(text)) };
    if text.chars().any(char::is_control) {
        return Err("it has control characters; write it on one line".to_owned());
    }
    match scheme {
        "lab" if rest.is_empty() => Err("it has no name; write lab:NAME".to_owned()),
        "lab" => Ok(Address::Lab(rest.to_owned())),
        "unix" if rest.is_empty() => Err("it has no path; write unix:PATH".to_owned()),
        "unix" => Ok(Address::Unix(rest.into())),
        "tty" => tty(rest),
        "tcp" => {
            const FORM: &str = "write tcp:HOST:PORT, with an IPv6 address in brackets";
            port_of(rest, FORM).map(|(host, port)| Address::Tcp { host, port })
        }
        "serve" => serve(rest),
        "https" => https(rest),
        "vsock" => vsock(rest),
        "ssh" => ssh(rest),
        _ => {
            let hint = did_you_mean(scheme, SCHEMES);
            Err(format!("there is no scheme {scheme:?}, only {}{hint}", SCHEMES.join(", ")))
        }
    }
}

fn without_scheme(text: &str) -> String {
    let path = Path::new(text);
    let meant = match text {
        _ if path.starts_with("/dev") => format!("tty:{text}"),
        _ if path.is_absolute() => format!("unix:{text}"),
        _ => format!("lab:{text}"),
    };
    format!("it begins with no scheme ({}); perhaps {meant} is meant", SCHEMES.join(", "))
}

fn tty(rest: &str) -> Result<Address, String> {
    let (device, baud) = match rest.rsplit_once(',') {
        Some((device, baud)) => match baud.parse() {
            Ok(baud) if baud > 0 => (device, baud),
            _ => return Err(format!("{baud:?} is no rate in bits a second; write tty:DEVICE,115200")),
        },
        None => (rest, DEFAULT_BAUD),
    };
    if device.is_empty() {
        return Err("it has no device; write tty:/dev/ttyS0".to_owned());
    }
    Ok(Address::Tty { device: device.into(), baud })
}

/// Reads HOST:PORT.
fn port_of(rest: &str, form: &str) -> Result<(String, u16), String> {
    let (host, port) = rest.rsplit_once(':').ok_or_else(|| format!("it has no port; {form}"))?;
    let port = port.parse().ok().filter(|&port| port != 0).ok_or_else(|| format!("{port:?} is no port; {form}"))?;
    Ok((host_name(host).ok_or_else(|| format!("{host:?} is no host; {form}"))?, port))
}

fn https(rest: &str) -> Result<Address, String> {
    const FORM: &str = "write https://SERVICE:PORT/NAME, with the port at which `baton serve` listens";
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (service, name) = rest.split_once('/').map_or((rest, ""), |(service, name)| (service, name));
    let (host, port) = port_of(service, FORM)?;
    let name = name_there(name.trim_end_matches('/'), FORM)?;
    Ok(Address::Https { host, port, name, identity: Identity::default() })
}

/// Reads a host's name at a service; none if the text is empty.
fn name_there(text: &str, form: &str) -> Result<Option<String>, String> {
    match text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        true => Ok(Some(text.to_owned()).filter(|name| !name.is_empty())),
        false => Err(format!("{text:?} is no name of a host; {form}")),
    }
}

fn serve(rest: &str) -> Result<Address, String> {
    const FORM: &str = "write serve:PATH[,NAME], with the Unix socket at which `baton serve` listens";
    let (path, name) = rest.rsplit_once(',').unwrap_or((rest, ""));
    if path.is_empty() {
        return Err(format!("it has no path; {FORM}"));
    }
    Ok(Address::Serve { path: path.into(), name: name_there(name, FORM)? })
}

fn vsock(rest: &str) -> Result<Address, String> {
    const FORM: &str = "write vsock:CID[:PORT], two numbers; CID 2 is the machine below a guest";
    let Some((cid, port)) = rest.split_once(':') else {
        return vsock(&format!("{rest}:{VSOCK_PORT}"));
    };
    let number = |text: &str| text.parse().ok().filter(|&number| number != ANY_CID);
    match (number(cid), number(port)) {
        (Some(cid), Some(port)) => Ok(Address::Vsock { cid, port }),
        (None, _) => Err(format!("{cid:?} is no context identifier; {FORM}")),
        (_, None) => Err(format!("{port:?} is no port; {FORM}")),
    }
}

fn ssh(rest: &str) -> Result<Address, String> {
    const FORM: &str = "write ssh:[USER@]HOST[:PORT][/ADDRESS], as ssh:gateway/tty:/dev/ttyS1";
    let (far, from_there) = match rest.split_once('/') {
        Some((far, address)) => (far, Some(Box::new(parse(address)?))),
        None => (rest, None),
    };
    let (login, after_user) = match far.split_once('@') {
        Some((user, after)) => (format!("{user}@"), after),
        None => (String::new(), far),
    };
    let (name, port) = match after_user.rsplit_once(':') {
        Some((name, port)) if !after_user.ends_with(']') => {
            let port = port.parse().ok().filter(|&port| port != 0);
            (name, Some(port.ok_or_else(|| format!("{far:?} has no number as its port; {FORM}"))?))
        }
        _ => (after_user, None),
    };
    // ssh would take a name with a dash in front for an option.
    let name = host_name(name).filter(|_| !login.starts_with(['-', '@']));
    let name = name.ok_or_else(|| format!("{far:?} is no machine; {FORM}"))?;
    Ok(Address::Ssh { host: login + &name, port, from_there })
}

/// Returns a host's name or address, without the brackets of IPv6: a text in brackets has colons.
fn host_name(text: &str) -> Option<String> {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let is_possible = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.%".contains(&byte);
    let is_name = |text: &str| !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_possible);
    match inner {
        Some(inner) if inner.contains(':') && inner.split(':').all(|part| part.is_empty() || is_name(part)) => {
            Some(inner.to_owned())
        }
        None if is_name(text) => Some(text.to_owned()),
        _ => None,
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bracketed = |host: &str| if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        match self {
            Self::Lab(name) => write!(f, "lab:{name}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tty { device, baud } => write!(f, "tty:{},{baud}", device.display()),
            Self::Tcp { host, port } => write!(f, "tcp:{}:{port}", bracketed(host)),
            Self::Serve { path, name } => {
                // The last comma is before the name, even where there is none.
                write!(f, "serve:{},{}", path.display(), name.as_deref().unwrap_or_default())
            }
            Self::Https { host, port, name, .. } => {
                write!(f, "https://{}:{port}", bracketed(host))?;
                name.as_ref().map_or(Ok(()), |name| write!(f, "/{name}"))
            }
            Self::Vsock { cid, port } => write!(f, "vsock:{cid}:{port}"),
            Self::Ssh { host, port, from_there } => {
                let (user, name) = host.rsplit_once('@').map_or((None, &host[..]), |(user, name)| (Some(user), name));
                let user = user.map(|user| format!("{user}@")).unwrap_or_default();
                write!(f, "ssh:{user}{}", bracketed(name))?;
                port.map_or(Ok(()), |port| write!(f, ":{port}"))?;
                from_there.as_ref().map_or(Ok(()), |address| write!(f, "/{address}"))
            }
        }
    }
}
