// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages for a client that it has not asked for one by one: from the service's news and its consoles.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::select;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use wire::{Frame, MAX_CONSOLE_BYTES, Stream, Subscription};

use super::{Outgoing, encoded};
use crate::host::{Follower, Host, News};

/// The newest bytes of a console that a client gets at first: as many as a host keeps for its next subscriber.
const FIRST_BYTES: u64 = 8 << 10;

/// The messages that a client wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Their kinds.
    pub kinds: Subscription,
    /// The guests whose consoles it wants; `None`: all.
    pub only: Option<Vec<String>>,
}

/// Passes log records and events on while the client wants them. One that reads slowly loses the oldest; it can ask for
/// them by their numbers.
pub(super) async fn news(mut news: Receiver<Arc<News>>, host: Arc<str>, wants: watch::Receiver<Wanted>, out: Outgoing) {
    loop {
        let news = match news.recv().await {
            Ok(news) => news,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let wanted = wants.borrow().kinds;
        let stream = match &*news {
            News::Log(of, record) if wanted.log && *of == host => Stream::Log(record.record.clone()),
            News::Event(of, event) if wanted.events && *of == host => Stream::Event(Cow::Borrowed(&event.record)),
            _ => continue,
        };
        if out.send(encoded(&Frame::Stream(stream))).await.is_err() {
            return;
        }
    }
}

/// Passes the output of guests on while the client wants it; meanwhile the host sends it.
pub(super) async fn consoles(host: Arc<Host>, mut wants: watch::Receiver<Wanted>, out: Outgoing) {
    loop {
        let Ok(wanted) = wants.wait_for(|wanted| wanted.kinds.consoles).await.map(|wanted| wanted.clone()) else {
            return;
        };
        let follower = host.follow(wanted.only.clone());
        let changed = wants.wait_for(|now| *now != wanted);
        select(pin!(follow(follower, &out)), pin!(changed)).await;
    }
}

/// Passes output on until the client takes none any more.
async fn follow(mut follower: Follower, out: &Outgoing) {
    let mut places: BTreeMap<String, u64> = BTreeMap::new();
    loop {
        for (guest, end) in follower.consoles().ends().into_iter().filter(|(guest, _)| follower.has(guest)) {
            let place = places.entry(guest.clone()).or_insert(end.saturating_sub(FIRST_BYTES));
            while let Some((bytes, end, lost)) = follower.consoles().read_bytes(&guest, *place) {
                if lost > 0 {
                    let mark = format!("\r\n[baton serve: {lost} bytes of this guest's output were lost]\r\n");
                    send(out, &guest, mark.as_bytes()).await;
                }
                if !send(out, &guest, &bytes).await {
                    return;
                }
                *place = end;
            }
        }
        follower.changed().await;
    }
}

/// Sends a guest's output; returns whether the client is still there.
async fn send(out: &Outgoing, guest: &str, bytes: &[u8]) -> bool {
    for piece in bytes.chunks(MAX_CONSOLE_BYTES) {
        let stream = Stream::Console { name: Cow::Borrowed(guest), bytes: Cow::Borrowed(piece) };
        if out.send(encoded(&Frame::Stream(stream))).await.is_err() {
            return false;
        }
    }
    true
}
