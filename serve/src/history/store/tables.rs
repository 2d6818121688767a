// SPDX-License-Identifier: MIT OR Apache-2.0
//! The database's tables and their items.

use redb::{Error, Key, Table, TableDefinition, WriteTransaction};

/// Records by host, time in milliseconds since 1970, and number.
pub(super) type Records = TableDefinition<'static, (&'static str, u64, u64), &'static [u8]>;
pub(super) const EVENTS: Records = TableDefinition::new("events");
pub(super) const LOG: Records = TableDefinition::new("log");
/// Samples, in the same form; their number is 0.
pub(super) const SAMPLES: Records = TableDefinition::new("samples");
/// Updates, in the same form, by the time at which they were asked for.
pub(super) const UPDATES: Records = TableDefinition::new("updates");
pub(super) const BY_TIME: [Records; 4] = [EVENTS, LOG, SAMPLES, UPDATES];
/// The kept state of each host.
pub(super) const STATES: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("states");

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An event.
    Event,
    /// A record of the log.
    Log,
    /// A sample of metrics.
    Sample,
    /// An update that a client has asked for.
    Update,
}

impl Kind {
    pub(super) fn table(self) -> Records {
        match self {
            Self::Event => EVENTS,
            Self::Log => LOG,
            Self::Sample => SAMPLES,
            Self::Update => UPDATES,
        }
    }
}

/// An item to be kept.
#[derive(Clone, Debug)]
pub enum Item {
    /// A record of a host; it replaces one of the same kind, time and number.
    Record {
        /// Its kind.
        kind: Kind,
        /// The host.
        host: String,
        /// Milliseconds since 1970.
        at_ms: u64,
        /// Its number.
        id: u64,
        /// The record in JSON.
        json: Vec<u8>,
    },
    /// The kept state of a host, in JSON.
    State {
        /// The host.
        host: String,
        /// The state.
        json: Vec<u8>,
    },
}

/// Puts items into their tables; returns their bytes.
pub(super) fn insert(transaction: &WriteTransaction, items: &[Item]) -> Result<u64, Error> {
    let (mut events, mut log) = (transaction.open_table(EVENTS)?, transaction.open_table(LOG)?);
    let (mut samples, mut updates) = (transaction.open_table(SAMPLES)?, transaction.open_table(UPDATES)?);
    let mut states = transaction.open_table(STATES)?;
    let mut bytes = 0;
    for item in items {
        match item {
            Item::Record { kind, host, at_ms, id, json } => {
                let table = match kind {
                    Kind::Event => &mut events,
                    Kind::Log => &mut log,
                    Kind::Sample => &mut samples,
                    Kind::Update => &mut updates,
                };
                put(table, (host, *at_ms, *id), json)?;
                bytes += (host.len() + 16 + json.len()) as u64;
            }
            Item::State { host, json } => put(&mut states, &**host, json)?,
        }
    }
    Ok(bytes)
}

fn put<'k, K: Key + 'static>(
    table: &mut Table<'_, K, &'static [u8]>,
    key: K::SelfType<'k>,
    json: &[u8],
) -> Result<(), Error> {
    table.insert(key, json)?;
    Ok(())
}
