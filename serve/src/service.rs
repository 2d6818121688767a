// SPDX-License-Identifier: MIT OR Apache-2.0
//! The service: its hosts, its clients' places, its audit log.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::runtime;
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::api;
use crate::audit::Audit;
use crate::ending::{Ending, Stage};
use crate::history::History;
use crate::host::{Host, NEWS, News};
use crate::listen::{Door, MAX_CONNECTIONS};
use crate::options::{HostOption, Options};

/// The time for requests that are under way when the service ends.
const REQUESTS_LIMIT: Duration = Duration::from_secs(10);
/// The time for threads that read files for clients.
const READERS_LIMIT: Duration = Duration::from_secs(1);
/// The time for lines to hosts to be closed: one that is being opened is left to the system.
const LINES_LIMIT: Duration = Duration::from_secs(2);
/// The time for the history to be written.
const HISTORY_LIMIT: Duration = Duration::from_secs(10);
/// The interval at which the end of an update, or of a thread, is polled.
const POLL: Duration = Duration::from_millis(20);

/// The service.
pub struct Service {
    /// Its hosts by name.
    pub hosts: BTreeMap<String, Arc<Host>>,
    /// News of all hosts.
    pub news: broadcast::Sender<Arc<News>>,
    /// The history.
    pub history: History,
    /// The audit log.
    pub audit: Audit,
    /// Its stage.
    pub ending: Ending,
}

impl Service {
    /// Begins to reach the hosts that the options name.
    ///
    /// # Errors
    /// Two have one name; the key cannot be read, or others can read it; the audit log cannot be opened; no thread can
    /// be started. A history that cannot be opened is none: the service goes on without it.
    pub fn start(options: &Options, ending: Ending) -> Result<Arc<Self>> {
        let history = History::start(&options.history).context("the history cannot be begun")?;
        let key = options.key.as_deref().map(baton::keys::secret).transpose()?;
        let (news, _) = broadcast::channel(NEWS);
        let mut hosts = BTreeMap::new();
        for HostOption { name, address } in &options.host {
            ensure!(!hosts.contains_key(name), "--host: two hosts are called {name:?}; give each a name of its own");
            let line = (address.clone(), key.clone());
            let host = Host::start(name, line, options.refresh, (news.clone(), history.clone()));
            hosts.insert(name.clone(), Arc::new(host.with_context(|| format!("host {name} cannot be watched"))?));
        }
        Ok(Arc::new(Self { hosts, news, history, audit: Audit::open(options.audit.as_deref())?, ending }))
    }

    /// Returns the updates that are under way, as an error names them.
    fn updates_under_way(&self) -> Vec<String> {
        let under_way = |host: &Arc<Host>| {
            let updates = host.shared.updates();
            let update = updates.under_way()?;
            Some(format!("update {} of {}", update.id, host.name))
        };
        self.hosts.values().filter_map(under_way).collect()
    }

    /// Waits for the end of updates. Returns those that are under way still.
    async fn updates_end(&self, limit: Duration) -> Vec<String> {
        let end = Instant::now() + limit;
        let mut under_way = self.updates_under_way();
        if !under_way.is_empty() {
            let names = under_way.join(", ");
            eprintln!("baton serve: waits for {names}, {limit:?} at most; a second signal ends it at once");
        }
        while !under_way.is_empty() && Instant::now() < end {
            sleep(POLL).await;
            under_way = self.updates_under_way();
        }
        under_way
    }

    /// Closes the lines to hosts, and then the history, which thus has all that they have sent.
    fn close(self: Arc<Self>, limit: Duration) {
        let history = self.history.clone();
        let hosts = Arc::into_inner(self).map(|service| service.hosts).unwrap_or_default();
        let threads: Vec<_> = hosts.into_values().filter_map(Arc::into_inner).map(Host::end).collect();
        let end = Instant::now() + LINES_LIMIT.min(limit);
        while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < end {
            thread::sleep(POLL);
        }
        if !history.close(HISTORY_LIMIT) {
            eprintln!("baton serve: the history was not written within {HISTORY_LIMIT:?}; its last records are lost");
        }
    }
}

/// Serves clients until `signal`, and then ends in order.
///
/// # Errors
/// A place or a file cannot be used, the options contradict each other, or an update is still under way at the end.
pub fn run(options: Options, signal: impl Future<Output = ()>) -> Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().context("no runtime can be started")?;
    let (service, cut) = runtime.block_on(serve(&options, signal))?;
    // The runtime's end cancels the tasks of clients that were too slow.
    runtime.shutdown_timeout(READERS_LIMIT);
    service.close(options.stop_timeout);
    if !cut.is_empty() {
        let (names, limit) = (cut.join(", "), options.stop_timeout);
        bail!("{names} had not ended within {limit:?}; `baton info` shows which image the host runs");
    }
    Ok(())
}

/// Serves clients until `signal`; then waits for requests under way. Returns the updates that took too long.
async fn serve(options: &Options, signal: impl Future<Output = ()>) -> Result<(Arc<Service>, Vec<String>)> {
    let mut doors = Vec::new();
    for place in options.places() {
        doors.push(Door::open(&place, options).await?);
    }
    let (stage, ending) = Ending::new();
    let service = Service::start(options, ending.clone())?;
    let app = api::router(service.clone());
    // Supervisors and scripts wait for this line.
    eprintln!(
        "baton serve: ready at {}",
        options.places().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    );
    let limit = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let serve = |door: Door| door.serve(app.clone(), limit.clone(), ending.clone());
    let doors: JoinSet<()> = doors.into_iter().map(serve).collect();
    signal.await;
    stage.send_replace(Stage::Closing);
    doors.join_all().await;
    eprintln!("baton serve: ends; no client is taken any more");
    let cut = service.updates_end(options.stop_timeout).await;
    stage.send_replace(Stage::Last);
    // Each client has its part of the limit until its last answer.
    let patience = REQUESTS_LIMIT.min(options.stop_timeout);
    if timeout(patience, limit.acquire_many(MAX_CONNECTIONS as u32)).await.is_err() {
        let clients = MAX_CONNECTIONS - limit.available_permits();
        eprintln!("baton serve: connections with a request under way after {patience:?}: {clients}; they are cut");
    }
    Ok((service, cut))
}
