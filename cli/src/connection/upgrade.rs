// SPDX-License-Identifier: MIT OR Apache-2.0
//! HTTP's upgrade of a connection to `baton serve` to the control channel's own protocol.

use std::io::{Read, Write};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use serde::Deserialize;
use wire::{Refusal, RefusalCode};

/// The protocol's name in the header `Upgrade`.
const PROTOCOL: &str = "baton-control";
/// The time limit for each wait of the upgrade, and of the handshake before it.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The longest head of an answer, and the longest body of a refusal.
const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_BODY_BYTES: usize = 64 << 10;

/// Asks a service for the line to the host of this name, or to its only one; `authority` is the service's own name.
///
/// # Errors
/// The service's reason; a refusal is a [`Refusal`].
pub(super) fn upgrade(stream: &mut (impl Read + Write), authority: &str, name: Option<&str>) -> Result<()> {
    let path = name.map_or("/api/v1/control".to_owned(), |name| format!("/api/v1/hosts/{name}/control"));
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.flush()?;
    let head = head_of(stream)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    match status {
        Some(101) => Ok(()),
        Some(status) => Err(refused(stream, &head, status)),
        None => bail!("it speaks no HTTP; is it `baton serve`?"),
    }
}

/// Reads the head of an answer, and nothing behind it.
fn head_of(stream: &mut impl Read) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if head.len() >= MAX_HEAD_BYTES || stream.read(&mut byte)? == 0 {
            bail!("it sends no answer of HTTP; is it `baton serve`?");
        }
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The body of a refusal.
#[derive(Deserialize)]
struct Reason {
    message: String,
}

/// Reads why the service refuses.
fn refused(stream: &mut impl Read, head: &str, status: u16) -> anyhow::Error {
    let length = head.lines().filter_map(|line| line.split_once(':'));
    let length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.filter_map(|(_, length)| length.trim().parse().ok()).next().unwrap_or(0);
    let mut body = vec![0; MAX_BODY_BYTES.min(length)];
    let read = stream.read_exact(&mut body).ok();
    let reason: Option<Reason> = read.and_then(|()| serde_json::from_slice(&body).ok());
    match (status, reason) {
        (403, Some(Reason { message })) => {
            Refusal { code: RefusalCode::Denied, reason: message, hint: String::new() }.into()
        }
        (404, None) => anyhow!("it has no control channel; is it `baton serve` of this release?"),
        (_, Some(Reason { message })) => anyhow!(message),
        (status, None) => anyhow!("it answers with HTTP's status {status}; is it `baton serve` of this release?"),
    }
}

#[cfg(test)]
#[path = "upgrade_tests.rs"]
mod tests;
