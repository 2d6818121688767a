// SPDX-License-Identifier: MIT OR Apache-2.0
//! The service: its hosts, its clients' places, its audit log.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use tokio::runtime;
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinSet;

use crate::api;
use crate::audit::Audit;
use crate::history::History;
use crate::host::{Host, NEWS, News};
use crate::listen::{Door, MAX_CONNECTIONS};
use crate::options::{HostOption, Options};

/// The service.
pub struct Service {
    /// Its hosts by name.
    pub hosts: BTreeMap<String, Arc<Host>>,
    /// News of all hosts.
    pub news: broadcast::Sender<Arc<News>>,
    /// What is kept of the past.
    pub history: History,
    /// The audit log.
    pub audit: Audit,
}

impl Service {
    /// Begins to reach the hosts that the options name.
    ///
    /// # Errors
    /// Two have one name; the audit log cannot be opened; no thread can be started. A history that cannot be opened
    /// is none: the service goes on without it.
    pub fn start(options: &Options) -> Result<Arc<Self>> {
        let history = History::start(&options.history).context("the history cannot be begun")?;
        let (news, _) = broadcast::channel(NEWS);
        let mut hosts = BTreeMap::new();
        for HostOption { name, address } in &options.host {
            ensure!(!hosts.contains_key(name), "--host: two hosts are called {name:?}; give each a name of its own");
            let host = Host::start(name, address.clone(), options.refresh, (news.clone(), history.clone()));
            hosts.insert(name.clone(), Arc::new(host.with_context(|| format!("host {name} cannot be watched"))?));
        }
        Ok(Arc::new(Self { hosts, news, history, audit: Audit::open(options.audit.as_deref())? }))
    }
}

/// Serves clients until the process is ended.
///
/// # Errors
/// A place or a file cannot be used, or the options contradict each other.
pub fn run(options: Options) -> Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().context("no runtime can be started")?;
    runtime.block_on(async {
        let mut doors = Vec::new();
        for place in options.places() {
            doors.push(Door::open(&place, &options).await?);
        }
        let app = api::router(Service::start(&options)?);
        // Supervisors and scripts wait for this line.
        eprintln!(
            "baton serve: ready at {}",
            options.places().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        );
        let limit = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut serving = JoinSet::new();
        for door in doors {
            serving.spawn(door.serve(app.clone(), limit.clone()));
        }
        serving.join_all().await;
        Ok(())
    })
}
