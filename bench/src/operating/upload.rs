// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image on a serial line. The tool's own client sends it to a host in the lab, as it is and packed, and all bytes
//! that it writes are counted. The time is modelled from them: ten bits a byte. It is not waited for, since the
//! sender's direction is never idle on a real line: eight pieces are under way.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context as _, Result};
use baton::client::Client;
use baton::connection::Line;
use lab::What;
use wire::{RequestBody, UploadKind};

use super::super::report::{Figure, Report};
use super::super::setup::HostSetup;
use super::{Context, MEMORY};

/// Bits a second of a host's COM2.
const BAUD: u32 = 115_200;
/// Bits of a byte on the line.
const BITS_PER_BYTE: f64 = 10.0;

pub(super) fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    context.step("operating: an image is sent, as it is and packed");
    let file = fs::read(&context.image).with_context(|| format!("{} is gone", context.image.display()))?;
    let mut host = HostSetup::new(MEMORY).start(context)?;
    host.wait(context.timeout, "the host's first answer", |what| matches!(what, What::Ready).then_some(()))?;
    let socket = host.lab.dir().control_socket();
    let mut packed = 0.0;
    for (variant, packs) in [("as it is", false), ("packed", true)] {
        let bytes = sent(UnixStream::connect(&socket)?, packs, &file)?;
        report.figure(Figure::measured(variant, "bytes_on_the_line", "bytes", [bytes as f64]))?;
        let seconds = bytes as f64 * BITS_PER_BYTE / f64::from(BAUD) / (file.len() as f64 / f64::from(1 << 20));
        packed = report.figure(Figure::modelled(variant, "upload_s_per_mib", "s", [seconds]))?;
    }
    report.modelled_goal("upload_s_per_mib", packed)
}

/// Sends the file, and returns the bytes that the client has written.
fn sent(broker: UnixStream, packs: bool, file: &[u8]) -> Result<u64> {
    let (ours, theirs) = UnixStream::pair()?;
    let counted = Arc::new(AtomicU64::new(0));
    let (count, mut from, mut to) = (counted.clone(), theirs.try_clone()?, broker.try_clone()?);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            count.fetch_add(bytes as u64, Ordering::Relaxed);
            if to.write_all(&buffer[..bytes]).is_err() {
                return;
            }
        }
    });
    let (mut back, mut answers) = (broker, theirs);
    thread::spawn(move || std::io::copy(&mut back, &mut answers));
    let mut client = Client::on(Line::over(ours));
    if !packs {
        client.pack_nothing();
    }
    client.upload(UploadKind::Image, file, |_| {})?;
    let bytes = counted.load(Ordering::Relaxed);
    client.order(RequestBody::UploadDrop)?;
    Ok(bytes)
}
