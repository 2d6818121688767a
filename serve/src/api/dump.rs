// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's memory and registers as a core file: first in a file of the service, then on its way to the client. A
//! client that goes ends it.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use baton::client::{Client, NotFound};
use futures_util::stream::unfold;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::orders::{answered, written};
use super::{App, ErrorBody, Refused};
use crate::access::Peer;
use crate::host::Failure;

/// Bytes of the file in a piece, and pieces that wait for the client.
const PIECE_BYTES: usize = 64 << 10;
const PIECES: usize = 4;

/// Set when the client has gone.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[utoipa::path(post, path = "/api/v1/hosts/{host}/guests/{guest}/dump",
    params(("host" = String, Path), ("guest" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody), (status = 503, body = ErrorBody)))]
/// Get a guest's memory and registers as a core file; one that runs pauses meanwhile (role operate)
pub(super) async fn dump(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Path((host, guest)): Path<(String, String)>,
) -> Result<Response, Refused> {
    let host = app.host(&host)?.clone();
    let number = written(&app, &peer, &host, "guest-dump", &guest)?;
    let gone = Gone(Arc::default());
    let (is_gone, name) = (gone.0.clone(), guest.clone());
    let submitted = host.submit(move |client| core(client, &name, &is_gone));
    let writing = tokio::spawn(async move {
        let result = match submitted {
            Ok(answer) => {
                answer.await.unwrap_or_else(|_| Err(anyhow::anyhow!("the line was lost"))).map_err(Failure::Host)
            }
            Err(failure) => Err(failure),
        };
        let result = result.map_err(Refused::from);
        answered(&app, number, &result);
        result
    });
    let written = writing.await.unwrap_or_else(|error| Err(Refused::failed(format!("the dump has failed: {error}"))));
    let (folder, file) = written?;
    drop(gone);
    let bytes = file.metadata().map_err(|error| Refused::failed(error.to_string()))?.len();
    let pieces = unfold(pieces(folder, file), |mut pieces| async move { Some((pieces.recv().await?, pieces)) });
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_LENGTH, bytes.to_string()),
        // A guest's name has letters, digits, '-', '_' and '.' only.
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{guest}.core\"")),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Writes the core into a folder that goes with the answer.
fn core(client: &mut Client, name: &str, is_gone: &AtomicBool) -> Result<(TempDir, File)> {
    let vms = client.vms()?;
    let vcpus = vms.iter().find(|vm| vm.name == name).map(|vm| vm.vcpus);
    let vcpus = vcpus.ok_or_else(|| NotFound(format!("there is no virtual machine {name:?}")))?;
    let folder = tempfile::tempdir().context("no folder for the core file")?;
    let path = folder.path().join("core");
    baton::dump::dump(client, name, vcpus, &path, |_, _| {}, &|| is_gone.load(Ordering::Relaxed))?;
    let file = File::open(&path)?;
    Ok((folder, file))
}

/// Reads a file in pieces, as fast as they are taken.
fn pieces(folder: TempDir, mut file: File) -> mpsc::Receiver<std::io::Result<Bytes>> {
    let (sender, receiver) = mpsc::channel(PIECES);
    tokio::task::spawn_blocking(move || {
        let _folder = folder;
        loop {
            let mut piece = vec![0; PIECE_BYTES];
            let read = file.read(&mut piece).map(|count| {
                piece.truncate(count);
                Bytes::from(piece)
            });
            // A client that finds fewer bytes than announced knows that the file could not be read.
            let (is_end, is_error) = (read.as_ref().is_ok_and(Bytes::is_empty), read.is_err());
            if is_end || sender.blocking_send(read).is_err() || is_error {
                return;
            }
        }
    });
    receiver
}
