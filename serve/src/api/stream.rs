// SPDX-License-Identifier: MIT OR Apache-2.0
//! Server-sent events: news of the hosts, as they happen.
//!
//! | event | data |
//! |---|---|
//! | `host` | a [`crate::host::Status`]: one for each host at the beginning, then when a host was read or lost |
//! | `event` | `host`, and the event as `GET …/events` has it |
//! | `log` | `host`, and the record as `GET …/log` has it; only with `?log=true` |
//! | `update` | a [`crate::updates::Update`] with its progress |
//! | `lost` | `messages` that a client was too slow for |
//! | `end` | the `reason`: the service ends, and nothing follows |

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::future::{Either, select};
use futures_util::stream::{Stream, StreamExt as _, iter, unfold};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use utoipa::IntoParams;

use super::{App, ErrorBody, Refused};
use crate::ending::{Ending, Stage};
use crate::host::{Kept, News};

/// The choice of news.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// News of this host only.
    pub host: Option<String>,
    /// Records of logs, too.
    #[serde(default)]
    pub log: bool,
}

/// A record with its host.
#[derive(Serialize)]
struct Of<'n, T> {
    host: &'n str,
    #[serde(flatten)]
    record: &'n Kept<T>,
}

#[utoipa::path(get, path = "/api/v1/stream", params(Wanted),
    responses((status = 200, body = String, content_type = "text/event-stream",
        description = "Events `host`, `event`, `log`, `update`, `lost` and `end`, with JSON as their data"),
        (status = 404, body = ErrorBody)))]
/// News of the hosts, as they happen: server-sent events
pub(super) async fn stream(
    State(app): State<App>,
    Query(wanted): Query<Wanted>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refused> {
    if let Some(name) = &wanted.host {
        app.host(name)?;
    }
    // Before the states are read, so that nothing falls between the two.
    let receiver = app.news.subscribe();
    let now: Vec<News> = app.hosts.values().map(|host| News::Status(host.shared.status())).collect();
    let first: Vec<_> = now.iter().filter_map(|news| event(news, &wanted)).map(Ok).collect();
    let rest = unfold((receiver, wanted), |(mut receiver, wanted)| async move {
        let event = next(&mut receiver, &wanted).await?;
        Some((Ok(event), (receiver, wanted)))
    });
    Ok(Sse::new(with_end(iter(first).chain(rest), app.ending.clone())).keep_alive(KeepAlive::default()))
}

/// Returns the events of a stream, and behind those that are there in the service's last stage the event `end`.
pub(super) fn with_end(
    events: impl Stream<Item = Result<Event, Infallible>> + Send,
    ending: Ending,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    unfold(Some((Box::pin(events), ending)), |state| async move {
        let (mut events, mut ending) = state?;
        // The events first: none that came before the end is left out.
        let next = match select(events.next(), pin!(ending.comes(Stage::Last))).await {
            Either::Left((event, _)) => event,
            Either::Right(((), _)) => None,
        };
        match next {
            Some(event) => Some((event, Some((events, ending)))),
            None => Some((Ok(json("end", &serde_json::json!({ "reason": "the service ends" }))?), None)),
        }
    })
}

/// Returns the next news that are wanted; `None` when the service ends.
async fn next(receiver: &mut Receiver<Arc<News>>, wanted: &Wanted) -> Option<Event> {
    loop {
        match receiver.recv().await {
            Ok(news) => {
                if let Some(event) = event(&news, wanted) {
                    return Some(event);
                }
            }
            Err(RecvError::Lagged(messages)) => {
                return json("lost", &serde_json::json!({ "messages": messages }));
            }
            Err(RecvError::Closed) => return None,
        }
    }
}

/// News as an event, if they are wanted.
fn event(news: &News, wanted: &Wanted) -> Option<Event> {
    let is_wanted = |host: &str| wanted.host.as_deref().is_none_or(|wanted| wanted == host);
    match news {
        News::Status(status) if is_wanted(&status.name) => json("host", status),
        News::Event(host, record) if is_wanted(host) => json("event", &Of { host, record }),
        News::Log(host, record) if wanted.log && is_wanted(host) => json("log", &Of { host, record }),
        News::Update(update) if is_wanted(&update.host) => json("update", update),
        _ => None,
    }
}

fn json(name: &str, data: &impl Serialize) -> Option<Event> {
    Event::default().event(name).json_data(data).ok()
}
