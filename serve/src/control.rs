// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control channel's own protocol, as the service carries it for the tool: frames over a connection of HTTP that
//! was upgraded.
//!
//! ```text
//! client ──► read ──► 64 requests ──► work ──► audit, role ──► the host's queue
//!        ◄── write ◄── 64 frames ◄───┴── streams ◄── news, consoles
//! ```
//!
//! The service is the host's only client. A request becomes a job of the host's queue; a subscription is answered here,
//! and its messages come from the service's own. Requests are not signed: the client's certificate states its role, and
//! the service signs with its own key.

mod naming;
mod streams;
mod work;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use wire::{Decoder, Frame, MAX_FRAME_BYTES, Refusal, RefusalCode, Request, Response, encode};

pub(crate) use self::naming::file as file_subject;
use self::streams::Wanted;
use self::work::Worker;
use crate::access::Peer;
use crate::host::Host;
use crate::service::Service;

/// The protocol's name, as a client asks for it in the header `Upgrade`.
pub const PROTOCOL: &str = "baton-control";
/// Requests of a client that wait for their turn, and frames that wait to be sent to it.
const WAITING: usize = 64;
/// The time after which a client that takes no byte is dropped.
const STUCK: Duration = Duration::from_secs(20);

/// A frame on its way to a client.
type Outgoing = mpsc::Sender<Vec<u8>>;

/// Serves a client over a connection, until it goes or the service ends.
pub async fn carry(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    service: Arc<Service>,
    peer: Peer,
    host: Arc<Host>,
) {
    let (reader, writer) = split(stream);
    let (sender, requests) = mpsc::channel(WAITING);
    let (out, frames) = mpsc::channel(WAITING);
    let (wanted, wants) = watch::channel(Wanted::default());
    let writing = tokio::spawn(write(writer, frames));
    let mut beside = JoinSet::new();
    beside.spawn(read(reader, sender, out.clone()));
    beside.spawn(streams::news(service.news.subscribe(), host.name.clone(), wants.clone(), out.clone()));
    beside.spawn(streams::consoles(host.clone(), wants, out.clone()));
    Worker::new(service, peer, host, wanted, out).work(requests).await;
    // With them the last senders of frames go: what is left is written.
    beside.shutdown().await;
    let _ = writing.await;
}

/// Reads requests. A frame that cannot be read ends the connection, with the reason: TCP damages none.
async fn read(mut reader: impl AsyncRead + Unpin, requests: mpsc::Sender<Request>, out: Outgoing) {
    let mut decoder = Box::<Decoder>::default();
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = reader.read(&mut buffer).await {
        let mut read = Vec::new();
        decoder.push(&buffer[..count], |frame| read.push(frame));
        for frame in read {
            let reason = match frame {
                Ok(Frame::Request(request)) => match requests.send(request).await {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                Ok(_) => "a client may send requests only".to_owned(),
                Err(error) => error.to_string(),
            };
            let refusal = Refusal { code: RefusalCode::Protocol, reason, hint: String::new() };
            let _ = out.send(encoded(&Frame::Response(Response { id: 0, result: Err(refusal) }))).await;
            return;
        }
    }
}

/// Writes frames; ends when no more can come, or the client takes none.
async fn write(mut writer: impl AsyncWrite + Unpin, mut frames: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut bytes) = frames.recv().await {
        // Frames that wait already go with it.
        while bytes.len() < 4 * MAX_FRAME_BYTES
            && let Ok(more) = frames.try_recv()
        {
            bytes.extend(more);
        }
        let written = timeout(STUCK, async {
            writer.write_all(&bytes).await?;
            writer.flush().await
        });
        if !matches!(written.await, Ok(Ok(()))) {
            return;
        }
    }
    let _ = timeout(STUCK, writer.shutdown()).await;
}

/// Returns a frame's bytes; one that does not fit becomes a refusal, which does.
fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut buffer = [0; MAX_FRAME_BYTES];
    match (encode(frame, &mut buffer), frame) {
        (Ok(bytes), _) => bytes.to_vec(),
        (Err(error), Frame::Response(Response { id, .. })) => {
            let refusal = Refusal { code: RefusalCode::Failed, reason: error.to_string(), hint: String::new() };
            let refused = Frame::Response(Response { id: *id, result: Err(refusal) });
            encode(&refused, &mut buffer).map(|bytes| bytes.to_vec()).unwrap_or_default()
        }
        // A part of a stream is at most as long as the host's own.
        (Err(_), _) => Vec::new(),
    }
}
